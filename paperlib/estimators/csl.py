"""The conservative sampling-based log-likelihood (CSL) of Bengio, Yao & Cho (2013).

If h_1 ... h_S are draws from the model, the mean of p(v | h_s) is an unbiased estimate of p(v), and
its logarithm is too small on average. With Gibbs chains that have not converged, it estimates the
distribution that those chains generate instead, which depends on where they started. As with simple
importance sampling from the prior, hardly any draw explains a given v, so the estimate is tens of
nats too low for most models, and the lower the fewer states there are: report their number and the
start of the chains with it. Table 1 of the RAISE paper shows it beside better estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from paperlib.estimators.estimate import StudentEstimate
from paperlib.estimators.shards import Walk, device_of, identity_of, require_seed, shard
from paperlib.kernels import bernoulli, chains_per_shard
from paperlib.models import RBM
from paperlib.models.files import tensors_checksum
from paperlib.numerics import leave_one_out, log_mean_exp, resolve_generator, softplus
from paperlib.resumable import Work
from paperlib.threads import OnStep, step_bar
from paperlib.torch_settings import plain_torch
from paperlib.uncertain import Uncertain
from paperlib.validation import ArrayLike, as_binary, require_count


@dataclass(frozen=True, repr=False)
class CSLEstimate(StudentEstimate):
    """CSL of a batch of test vectors, with its errors.

    All vectors share the hidden states, so that their noise does not average out over the vectors.
    With few chains, the errors are badly known themselves, and intervals are from Student's t.

    Attributes
    ----------
    log_means : Tensor, shape [N, M]
        ln of the mean of p(v | h) over the states of each chain, or of each shard of chains,
        float64, in nats.

    Examples
    --------
    >>> CSLEstimate(torch.tensor([[0.2, 0.4], [0.1, 0.2]]).double().log())
    CSLEstimate(mean = -1.55 +- 0.49 nats, 2 vectors, 2 independent parts)
    >>> estimate = CSLEstimate(torch.tensor([[0.2, 0.4, 0.3], [0.1, 0.2, 0.1]]).double().log())
    >>> "{:.2f} to {:.2f}".format(*estimate.monte_carlo.interval(0.95))
    '-2.58 to -0.64'
    """

    _number = "mean"
    log_means: Tensor

    def _details(self) -> str:
        vectors, parts = self.log_means.shape
        return f", {vectors} vectors, {parts} independent parts"

    @property
    def log_prob(self) -> Tensor:
        """ln of the mean over all states for each vector, float64 [N], on average too low."""
        return log_mean_exp(self.log_means)

    @property
    def mean(self) -> float:
        """Average over the vectors."""
        return self.log_prob.mean().item()

    @property
    def std_error(self) -> float:
        """Standard error of the average, for other vectors and other chains.

        Infinite for a single vector or a single chain.
        """
        return math.hypot(self._error_over_vectors, self.monte_carlo_std_error)

    @property
    def degrees_of_freedom(self) -> float:
        """Of `std_error`, from the numbers of vectors and of chains."""
        over_vectors = Uncertain(0.0, self._error_over_vectors, len(self.log_means) - 1)
        return (self.monte_carlo + over_vectors).dof

    @property
    def _error_over_vectors(self) -> float:
        count = len(self.log_means)
        return self.log_prob.std().item() / math.sqrt(count) if count > 1 else math.inf

    @property
    def monte_carlo(self) -> Uncertain:
        """The average on these particular vectors with its error from the chains alone.

        The error, `monte_carlo_std_error`, has one degree of freedom less than there are chains
        or, from `csl_run`, shards of chains.
        """
        parts = self.log_means.shape[1]
        return Uncertain(self.mean, self.monte_carlo_std_error, max(parts - 1, 1))

    @property
    def monte_carlo_std_error(self) -> float:
        """Standard error of the average on these particular vectors, from the chains alone.

        It is the jackknife's, and infinite for a single chain. It knows nothing of states that no
        chain has met, and so nothing of how much too low the average is.
        """
        if self.log_means.shape[1] < 2:
            return math.inf
        return leave_one_out(self.log_means.cpu()).mean(0).norm().item()


@plain_torch(gradients=False)
def csl_estimate(
    rbm: RBM,
    v: ArrayLike,
    num_chains: int,
    num_steps: int,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
) -> CSLEstimate:
    """Estimate ln p(v) by the mean of p(v | h) over the hidden states of Gibbs chains.

    Parameters
    ----------
    rbm : RBM
        The model.
    v : array or Tensor, shape [N, D]
        Binary test vectors of any type.
    num_chains : int
        Gibbs chains, started at uniformly random pixels. With `num_steps` = K and as many chains as
        AIS, the work is that of AIS.
    num_steps : int
        Gibbs steps of each chain. The hidden state after every step counts.
    generator : torch.Generator or int, optional
        Source of randomness; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than
        two seconds.

    Returns
    -------
    CSLEstimate
        What each chain says about each vector, and the estimates and errors that follow.

    Raises
    ------
    InputError
        If `v` is not binary, is empty or has another width, or a count is not a whole number of at
        least 1.

    Notes
    -----
    Memory holds the chains and N x `num_chains` numbers.

    Examples
    --------
    >>> from paperlib.numerics import seeded_generator
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> estimate = csl_estimate(rbm, [[1, 0, 1]], 10, 100, seeded_generator(0))
    >>> exact = rbm.log_unnormalized([[1, 0, 1]]) - torch.logsumexp(
    ...     rbm.log_unnormalized_hidden([[0, 0], [0, 1], [1, 0], [1, 1]]), 0
    ... )
    >>> bool((estimate.log_prob - exact).abs() < 3 * estimate.monte_carlo_std_error < 0.1)
    True
    """
    v = as_binary("v", v, rbm.num_visible)
    num_chains = require_count("num_chains", num_chains)
    num_steps = require_count("num_steps", num_steps)
    generator = resolve_generator(generator, rbm.device)
    cases = v.to(rbm.device, rbm.dtype)
    sums = torch.full((len(v), num_chains), -math.inf, dtype=torch.float64, device=rbm.device)
    state = bernoulli(rbm.weights.new_full((num_chains, rbm.num_visible), 0.5), generator)
    with step_bar(num_steps, f"CSL, {num_chains} chains", progress) as bar:
        for _ in range(num_steps):
            hidden = bernoulli(rbm._hidden_probs(state), generator)
            logits = hidden @ rbm.weights.T + rbm.visible_bias
            sums = torch.logaddexp(sums, log_prob_given(cases, logits).double())
            state = bernoulli(logits.sigmoid_(), generator)
            bar.update()
    return CSLEstimate(sums - math.log(num_steps))


def log_prob_given(v: Tensor, logits: Tensor) -> Tensor:
    """ln p(v | h) of vectors [N, D] for each of S hidden states: [N, S].

    Given these states, the visible units are on with the `logits` [S, D].

    Examples
    --------
    >>> log_prob_given(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2))
    tensor([[-1.3863]])
    """
    return v @ logits.T - softplus(logits).sum(-1)


def csl_log_prob(
    rbm: RBM,
    v: ArrayLike,
    num_chains: int,
    num_steps: int,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
) -> Tensor:
    """The values of `csl_estimate` without their errors, float64 [N], in nats.

    Examples
    --------
    >>> csl_log_prob(RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)), [[1, 0, 1]], 2, 2)
    tensor([-2.0794], dtype=torch.float64)
    """
    return csl_estimate(rbm, v, num_chains, num_steps, generator, progress).log_prob


@plain_torch(gradients=False)
def csl_run(
    rbm: RBM,
    v: ArrayLike,
    num_chains: int,
    num_steps: int,
    seed: int,
    device: torch.device | str | None = None,
) -> Work[CSLEstimate]:
    """CSL as in `csl_estimate`, in shards of 100 chains (GPU: 5,000).

    `boltzmann_likelihood.store.kept` keeps them.

    Parameters
    ----------
    rbm, v, num_steps
        As in `csl_estimate`.
    num_chains : int
        Gibbs chains; a number that does not fill its last shard is raised to the one that does.
    seed, device
        As in `ais_run`.

    Raises
    ------
    InputError
        As in `csl_estimate` and `ais_run`.

    Examples
    --------
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0])
    >>> csl_run(rbm, [[0, 1], [1, 1]], 200, 50, seed=1).result().log_means.shape
    torch.Size([2, 2])
    """
    vectors = as_binary("v", v, rbm.num_visible).to(torch.uint8)
    num_chains = require_count("num_chains", num_chains)
    num_steps = require_count("num_steps", num_steps)
    device = device_of(rbm.device, device)
    size = chains_per_shard(device)
    # Gibbs chains have no schedule.
    walk = rbm, torch.empty(0, dtype=torch.float64)
    seed = require_seed(seed)
    of_vectors = tensors_checksum([vectors])
    identity = f"{identity_of('csl', *walk, device)} {num_steps} {seed} {of_vectors}"
    task = partial(_gibbs, vectors, size, num_steps)
    steps = size * num_steps

    def join(shards: list[dict[str, Tensor]]) -> CSLEstimate:
        # All shards have as many states.
        return CSLEstimate(torch.stack([part["log_prob"] for part in shards], 1).to(rbm.device))

    num_shards = math.ceil(num_chains / size)
    shards = [shard(f"{identity} {n}", task, steps) for n in range(num_shards)]
    return Work(f"CSL, {num_chains} chains", walk, shards, join, device)


def _gibbs(
    vectors: Tensor,
    num_chains: int,
    num_steps: int,
    walk: Walk,
    generator: torch.Generator,
    on_step: OnStep,
) -> dict[str, Tensor]:
    rbm, _ = walk
    return {"log_prob": csl_log_prob(rbm, vectors, num_chains, num_steps, generator, False)}
