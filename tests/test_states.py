"""States in every form that users have: bytes, booleans, arrays, lists, other float types."""

import numpy as np
import pytest
import torch
from enumeration import all_states, normal, random_dbm, random_rbm

from boltzmann_likelihood.evaluation import evaluate
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.datasets import base_rate_bias, binarize
from paperlib.errors import InputError
from paperlib.estimators import (
    ais,
    bracket,
    csl_log_prob,
    dbn_lower_bound,
    raise_log_prob,
    raise_run,
)
from paperlib.learning import (
    ContrastiveDivergence,
    DeepBoltzmannLearning,
    MixtureEM,
    train_dbm,
    train_dbn,
    train_mixture,
    train_rbm,
)
from paperlib.mcmc import MarkovChain, autocorrelation_time, gibbs_update, metropolis_samples
from paperlib.models import DBN, BernoulliMixture, log_z_lower_bound
from paperlib.numerics import seeded_generator
from paperlib.validation import as_binary, as_states, as_tensor
from paperlib.variational import (
    RecognitionWeights,
    block_mean_field,
    ista,
    learn_sparse_coding,
    map_codes,
    mean_field,
    wake_step,
)
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet
from paperlib.variational.sparse_coding import BinarySparseCoding, LaplaceSparseCoding
from paperlib.variational.vae import VAE

FORMS = {
    "bytes": lambda v: v.to(torch.uint8),
    "booleans": lambda v: v.bool(),
    "integers": lambda v: v.long(),
    "single precision": lambda v: v.float(),
    "half precision": lambda v: v.half(),
    "numpy bytes": lambda v: v.to(torch.uint8).numpy(),
    "numpy booleans": lambda v: v.bool().numpy(),
    "numpy 16 bits": lambda v: v.numpy().astype(np.uint16),
    "numpy big-endian": lambda v: v.numpy().astype(">f4"),
    "numpy, not to be written to": lambda v: np.broadcast_to(v.numpy(), v.shape),
    "numpy backwards": lambda v: v.flip(0).numpy()[::-1],
    "lists": lambda v: v.tolist(),
}
V = all_states(4)[torch.tensor([0, 3, 5, 9, 14, 15])]
H = all_states(3)[:6]
H2 = all_states(2)[[0, 1, 2, 3, 0, 1]]
RBM = random_rbm(4, 3, 1)
DBN_ = DBN([RBM, random_rbm(3, 2, 2)])


DBM_ = random_dbm(4, 3, 2, 3)
MIXTURE = BernoulliMixture(normal(5, 4, seed=4), normal(5, seed=5))
# of four visible and three hidden units
W, B, A = RBM.tensors().values()
BELIEF_NET = SigmoidBeliefNet(W, B, A)
BINARY_CODES = BinarySparseCoding(W, A, torch.ones(4))
LAPLACE_CODES = LaplaceSparseCoding(W, B, 1.0, 2.0)
VAE_ = VAE(4, 2, 3, seeded_generator(0))
PATH = BaseRatePath(RBM)
CHAIN = MarkovChain([[0.5, 0.5], [0.25, 0.75]])
GUESS = RecognitionWeights(W, A)
CD = ContrastiveDivergence(2, 1)
DEEP = DeepBoltzmannLearning(CD, CD, 1)


def seed():
    return seeded_generator(7)


# (method, the states that it takes, of its own model's type)
CALLS = {
    "RBM.energy": (RBM.energy, V, H),
    "RBM.log_unnormalized": (RBM.log_unnormalized, V),
    "RBM.log_unnormalized_hidden": (RBM.log_unnormalized_hidden, H),
    "RBM.log_unnormalized_flips": (RBM.log_unnormalized_flips, H),
    "RBM.hidden_probs": (RBM.hidden_probs, V),
    "RBM.visible_probs": (RBM.visible_probs, H),
    "RBM.gibbs_step": (lambda v: RBM.gibbs_step(v, seed()), V),
    "DBM.energy": (DBM_.energy, V, H, H2),
    "DBM.log_unnormalized_joint": (DBM_.log_unnormalized_joint, V, H2),
    "DBM.mean_field": (lambda v: DBM_.mean_field(v).logits_2, V),
    "DBM.log_unnormalized_bound": (DBM_.log_unnormalized_bound, V),
    "DBM.log_unnormalized": (lambda v: DBM_.log_unnormalized(v, 3, seed()), V),
    "DBN.recognize": (lambda v: DBN_.recognize(v, seed())[0], V),
    "DBN.log_recognition": (lambda v, h: DBN_.log_recognition(v, [h]), V, H),
    "DBN.log_joint_unnormalized": (lambda v, h: DBN_.log_joint_unnormalized(v, [h]), V, H),
    "DBN.log_unnormalized": (lambda v: DBN_.log_unnormalized(v, 3, seed()), V),
    "DBN.generate": (lambda h: DBN_.generate(h, seed(), mean=True), H),
    "BernoulliMixture.log_joint": (MIXTURE.log_joint, V),
    "BernoulliMixture.log_prob": (MIXTURE.log_prob, V),
    "BernoulliMixture.responsibilities": (MIXTURE.responsibilities, V),
    "SigmoidBeliefNet.log_joint": (BELIEF_NET.log_joint, V, H),
    "SigmoidBeliefNet.log_prob": (BELIEF_NET.log_prob, V),
    "BinarySparseCoding.log_joint": (BINARY_CODES.log_joint, V, H),
    "BinarySparseCoding.log_prob": (BINARY_CODES.log_prob, V),
    "BinarySparseCoding.lower_bound": (BINARY_CODES.lower_bound, V, H),
    "BinarySparseCoding.conditional_logits": (BINARY_CODES.conditional_logits, V, H),
    "LaplaceSparseCoding.energy": (LAPLACE_CODES.energy, V, H),
    "LaplaceSparseCoding.log_joint": (LAPLACE_CODES.log_joint, V, H),
    "VAE.log_weights": (lambda v: VAE_.log_weights(v, 3, seed()), V),
    "VAE.lower_bound": (lambda v: VAE_.lower_bound(v, 3, seed()), V),
    "VAE.log_prob_on_grid": (lambda v: VAE_.log_prob_on_grid(v, points=20), V),
    "mean_field": (lambda v: mean_field(BINARY_CODES, v).means, V),
    "block_mean_field": (lambda v: block_mean_field(BINARY_CODES, v, 0.5).means, V),
    "learn_sparse_coding": (lambda v: learn_sparse_coding(BINARY_CODES, v, 1, False)[0].weights, V),
    "map_codes": (lambda v: map_codes(LAPLACE_CODES, v), V),
    "ista": (ista(LAPLACE_CODES, 3), V),
    "wake_step": (lambda v: wake_step(BELIEF_NET, GUESS, v, 0.1, seed()).weights, V),
    "log_z_lower_bound": (lambda v: torch.tensor(log_z_lower_bound(RBM, v)), V),
    "BaseRatePath.log_f": (lambda v: PATH.log_f(PATH.state_at(v), 0.3), V),
    "BaseRatePath.log_z_lower_bound": (lambda v: torch.tensor(PATH.log_z_lower_bound(v)), V),
    "raise_log_prob": (
        lambda v: raise_log_prob(PATH, v, uniform_betas(3), 2, seed(), progress=False).log_weights,
        V,
    ),
    "raise_run": (lambda v: raise_run(PATH, v, uniform_betas(3), 2, 7).result().log_weights, V),
    "csl_log_prob": (lambda v: csl_log_prob(RBM, v, 5, 6, seed(), progress=False), V),
    "dbn_lower_bound": (lambda v: dbn_lower_bound(DBN_, v, 0.0, 3, seed()).values, V),
    "evaluate": (lambda v: torch.tensor(evaluate(RBM, v, train=v).exact.test), V),
    "base_rate_bias": (base_rate_bias, V),
    "binarize": (lambda v: binarize(v, 0), V),
    "train_rbm": (lambda v: train_rbm(v, CD, 0, progress=False)[0].weights, V),
    "train_dbn": (lambda v: train_dbn(v, [CD], 0, progress=False).top.weights, V),
    "train_dbm": (lambda v: train_dbm(v, DEEP, 0, progress=False).weights_1, V),
    "train_mixture": (lambda v: train_mixture(v, MixtureEM(2), 0, progress=False)[0].logits, V),
    "autocorrelation_time": (lambda v: torch.tensor(autocorrelation_time(v)), V.T),
    "gibbs_update": (lambda v: gibbs_update(v, [1]).transition, V[3]),
    "MarkovChain.distributions": (lambda p: CHAIN.distributions(p, 2), torch.tensor([0.0, 1.0])),
    "MarkovChain.autocovariance": (lambda f: CHAIN.autocovariance(f, 2), torch.tensor([0.0, 1.0])),
    "MarkovChain.sample": (lambda s: CHAIN.sample(s, 3, seed()), torch.tensor([0.0, 1.0])),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", CALLS)
def test_any_form_gives_the_same_to_the_last_bit(call, form):
    method, *states = CALLS[call]
    expected = method(*states)
    assert torch.equal(method(*(FORMS[form](state) for state in states)), expected)


@pytest.mark.parametrize("call", [name for name in CALLS if "." in name and "Chain" not in name])
def test_another_width_is_named(call):
    method, *states = CALLS[call]
    for place in range(len(states)):
        wrong = [s[..., :-1] if i == place else s for i, s in enumerate(states)]
        with pytest.raises(
            InputError,
            match=r"^(v|h|h1|h2|hidden|top_visible|means|others|inputs|visible_starts): ",
        ):
            method(*wrong)


@pytest.mark.parametrize("value", ["text", None, [[1, 2], [3]], [1j], object()])
def test_what_holds_no_real_numbers_is_named(value):
    for call in (as_tensor, as_binary):
        with pytest.raises(InputError, match=r"^v: expected (an array of|real) numbers, got"):
            call("v", value)
    with pytest.raises(InputError, match=r"^v: expected (an array of|real) numbers, got"):
        RBM.log_unnormalized(value)


def test_the_models_own_type_is_left_untouched():
    means = torch.rand(3, 4, dtype=torch.float64, generator=seed())
    assert as_states("v", means, RBM.weights, 4) is means
    assert as_tensor("v", means) is means
    # memory is shared, so that a data set of bytes is not copied
    images = np.zeros((5, 4), np.uint8)
    assert as_binary("v", images).data_ptr() == images.ctypes.data


def test_gradients_flow_through_states():
    v = V.float().requires_grad_()
    RBM.log_unnormalized(v).sum().backward()
    assert v.grad.shape == v.shape


@pytest.mark.parametrize("form", ["bytes", "integers", "numpy bytes", "lists"])
def test_a_bracket_takes_numbers_of_vectors_in_any_form(form):
    path = BaseRatePath(RBM)
    betas = uniform_betas(3)
    chosen = torch.tensor([4, 0, 2])
    above = ais(path, betas, 10, seed())
    below = raise_log_prob(path, V[chosen], betas, 4, seed())
    log_p = RBM.log_unnormalized(V)
    expected = bracket(log_p, chosen, above, below)
    ends = bracket(log_p.numpy(), FORMS[form](chosen), above, below)
    assert torch.equal(ends.vector_gaps, expected.vector_gaps)
    for wrong in (chosen.double(), torch.tensor([True, False, True])):
        with pytest.raises(InputError, match=r"^chosen: expected whole numbers"):
            bracket(log_p, wrong, above, below)


def test_metropolis_chains_of_integers_and_of_single_precision():
    def target(states):
        return -states.double().square().sum(1)

    def propose(states, generator):
        return states + torch.randint(-1, 2, states.shape, generator=generator)

    for starts in (torch.zeros(50, 1, dtype=torch.int64), np.zeros((50, 1)), torch.zeros(50, 1)):
        states, rate = metropolis_samples(target, propose, starts, 200, seed())
        assert states.dtype == torch.as_tensor(starts).dtype
        assert 0.4 < rate < 0.9
        assert abs(states.double().mean().item()) < 0.1
    with pytest.raises(InputError, match=r"^starts: expected numbers of states from 0 to 1"):
        CHAIN.sample([0, 2], 3)
