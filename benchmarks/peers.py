"""Public peers from PyPI, used as their authors do.

They run their compiled functions and their loops, without their files and logs.

- `rbms` (Bereux et al.): `rbms.partition_function` and the loop of `rbms.training.pcd.train`. The
  loop is repeated here because the original opens an HDF5 file at every update, which is left out
  in its favour.
- scikit-learn's `BernoulliRBM` knows one algorithm: PCD with one Gibbs step for each update. It
  stands beside CD-1, too, since both need one step.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.work import CD_STEPS, LEARNING_RATE, Answer, Work
from paperlib.models import RBM


def prepare_rbms_ais(work: Work, device: str) -> Callable[[], Answer]:
    """rbms.partition_function.ais.compute_partition_function_ais(num_chains, num_beta=K + 1,
    params).
    """
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.partition_function.ais import compute_partition_function_ais

    rbm = work.model(device)
    params = BBRBM(rbm.weights, rbm.visible_bias, rbm.hidden_bias)

    def run() -> Answer:
        torch.manual_seed(1)  # its only way to be seeded
        return Answer(compute_partition_function_ais(work.chains, work.steps + 1, params), None)

    return run


def _rbms_exact(work: Work, device: str, listed_before: bool) -> Callable[[], Answer] | None:
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.partition_function.exact import compute_partition_function
    from rbms.utils import get_categorical_configurations

    # It holds float32 inputs of all visible units for all states, several times: 16 GiB at 2^20
    # states.
    if work.hidden > 18:
        return None
    rbm = work.model(device)
    params = BBRBM(rbm.weights, rbm.visible_bias, rbm.hidden_bias)

    def states() -> torch.Tensor:
        return get_categorical_configurations(2, work.hidden, device=torch.device(device))

    if not listed_before:
        return lambda: Answer(compute_partition_function(params, states()), 0.0)
    listed = states()
    return lambda: Answer(compute_partition_function(params, listed), 0.0)


def prepare_rbms_exact(work: Work, device: str) -> Callable[[], Answer] | None:
    """rbms.partition_function.exact.compute_partition_function(params,
    get_categorical_configurations(2, M)).
    """
    return _rbms_exact(work, device, listed_before=False)


def prepare_rbms_exact_sum(work: Work, device: str) -> Callable[[], Answer] | None:
    """compute_partition_function(params, states)
    with the list of all states made before the clock starts.
    """
    return _rbms_exact(work, device, listed_before=True)


def prepare_rbms_training(work: Work, device: str) -> Callable[[], RBM]:
    """fit_batch_pcd(..., centered=False) and SGD in the loop of rbms.training.pcd.train,
    training_type cd or pcd.
    """
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    images = work.images(device)
    initial = work.initial(device)
    weights_of_images = torch.ones(len(images), device=device)

    def run() -> RBM:
        torch.manual_seed(1)
        params = BBRBM(
            initial.weights.clone(), initial.visible_bias.clone(), initial.hidden_bias.clone()
        )
        params.init_grad()
        optimizer = torch.optim.SGD(params.parameters(), lr=LEARNING_RATE, maximize=True)
        chains = params.init_chains(work.chains)
        with torch.no_grad():
            for _ in range(work.steps):
                index = torch.randperm(len(images))[: work.chains]
                batch = (images[index], weights_of_images[index])
                if work.task != "PCD":
                    chains = params.init_chains(work.chains, weights=batch[1], start_v=batch[0])
                optimizer.zero_grad(set_to_none=False)
                chains, _ = fit_batch_pcd(
                    batch, chains, params, CD_STEPS[work.task], beta=1.0, centered=False
                )
                optimizer.step()
        return RBM(params.weight_matrix, params.vbias, params.hbias)

    return run


def prepare_sklearn_training(work: Work, device: str) -> Callable[[], RBM] | None:
    """sklearn.neural_network.BernoulliRBM(n_components, learning_rate, batch_size, n_iter).fit(X),
    X float32; PCD with one step.
    """
    from sklearn.neural_network import BernoulliRBM

    if device != "cpu":
        return None
    images = work.images().numpy()

    def run() -> RBM:
        model = BernoulliRBM(
            n_components=work.hidden,
            learning_rate=LEARNING_RATE,
            batch_size=work.chains,
            n_iter=work.epochs,
            random_state=1,
        ).fit(images)
        return RBM(model.components_.T, model.intercept_visible_, model.intercept_hidden_)

    return run
