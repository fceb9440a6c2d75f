"""Every annealing path to a model of the library, with all that enumeration says of it.

Each maker takes a backend and the size of its model, and returns a `Walk`. Tests of paths and of
estimators run over `WALKS`.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from backends import BACKENDS, walked_models
from enumeration import (
    all_states,
    directed_table,
    expected_weights,
    joint_log_table,
    log_f_pair_table,
    log_f_table,
    random_dbm,
    random_rbm,
    state_numbers,
    transition_matrix,
)

from paperlib.annealing import (
    AnnealingPath,
    BaseRatePath,
    DBMPath,
    DBNPath,
    RBMPairPath,
)
from paperlib.models import DBM, DBN

FLOAT64 = BACKENDS[0]
#: Both ends, and places between them.
BETAS = [0.0, 0.2, 1 / 3, 0.5, 0.8, 1.0]
BIAS = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)


@dataclass(frozen=True)
class Walk:
    """A path and what it walks through, written down from the definitions."""

    path: AnnealingPath
    # every state of the path's units, [S, n]
    states: torch.Tensor
    # ln f_beta of every state, and the transition matrix, of what is really walked: its products
    # may round weights
    log_f: Callable[[float], torch.Tensor]
    kernel: Callable[[float], torch.Tensor]
    # ln p of every state at the start, and ln p* under the model itself
    log_start: torch.Tensor
    log_target: torch.Tensor
    # how many units are drawn for a start and for a step
    start_bits: int
    step_bits: int
    # of sums and logarithms
    tolerance: float
    # ln Z of the start, if the path estimates a ratio
    log_z_below: float = 0.0
    # the ends at which there are weights that fast products round
    rounded: tuple[int, ...] = (1,)
    # for RAISE: every test vector, the units drawn before a walk back, and from probabilities of
    # states those of vectors
    vectors: torch.Tensor | None = None
    begin_bits: Callable[[int], int] = lambda steps: 0
    observed: Callable[[torch.Tensor], torch.Tensor] = lambda probs: probs

    @property
    def truth(self):
        """What AIS has to find."""
        return self.log_target.logsumexp(0).item() - self.log_z_below

    def state(self, repeats=1):
        """Every state in turn, each for so many chains."""
        return self.path.state_at(self.states.repeat_interleave(repeats, 0).to(self.path.device))

    def numbers(self, units):
        """The place of each row of units among the states."""
        place = torch.full((2 ** self.states.shape[1],), -1)
        place[state_numbers(self.states)] = torch.arange(len(self.states))
        numbers = place[state_numbers(units.cpu())]
        assert (numbers >= 0).all()
        return numbers

    def frequencies(self, units):
        """How often each state occurs among the rows of units, in all 1."""
        return torch.bincount(self.numbers(units), minlength=len(self.states)) / len(units)

    def annealing_model(self, betas):
        """p_ann of every test vector (RAISE paper, eq. 10 and 11)."""
        probs = self.log_start.exp()
        for beta in betas[1:]:
            probs = probs @ self.kernel(beta)
        return self.observed(probs)

    def weights(self, betas):
        """E[w^n] of what AIS multiplies up, `log_z_start` apart, for n = 1 to 4."""
        state = self.state()
        ends = [torch.as_tensor(self.path.end_correction(state, end)).cpu() for end in (0, 1)]
        return [
            expected_weights(self.log_start, self.log_f, self.kernel, betas, ends, power)
            for power in (1, 2, 3, 4)
        ]


def draw_states(log_probs, count, generator):
    """Independent draws of places among states with these log-probabilities."""
    probs = log_probs.exp().to(generator.device)
    return torch.multinomial(probs, count, replacement=True, generator=generator).cpu()


def _between(path, backend, model, hidden, **more):
    """The walk of a path between bipartite models, to this RBM."""
    start, target = walked_models(path)
    states = all_states(target.num_visible)
    log_f = (
        partial(log_f_pair_table, start, target)
        if start.num_hidden
        else partial(log_f_table, target, start.visible_bias)
    )
    fields = {
        "log_start": (states @ start.visible_bias).log_softmax(0),
        "start_bits": target.num_visible,
        "vectors": states,
    } | more
    return Walk(
        path=path,
        states=states,
        log_f=log_f,
        kernel=partial(transition_matrix, start, target),
        log_target=joint_log_table(model).logsumexp(1),
        step_bits=hidden + target.num_visible,
        tolerance=backend.tolerance,
        **fields,
    )


def base_rates(backend=FLOAT64, visible=4, hidden=3):
    rbm = random_rbm(visible, hidden, seed=21)
    path = BaseRatePath(backend.place(rbm), BIAS[:visible]).to(backend.device)
    return _between(path, backend, rbm, hidden)


def pair(backend=FLOAT64, visible=4, hidden=3):
    """To a model from one with fewer hidden units, with exact draws of the first."""
    rbm_a = random_rbm(visible, hidden - 1, seed=22)
    rbm_b = random_rbm(visible, hidden, seed=23)
    below = joint_log_table(rbm_a).logsumexp(1)
    states = all_states(visible)
    log_start = below.log_softmax(0)

    def sample_a(num_chains, generator):
        return states[draw_states(log_start, num_chains, generator)]

    path = RBMPairPath(backend.place(rbm_a), backend.place(rbm_b), sample_a).to(backend.device)
    return _between(
        path,
        backend,
        rbm_b,
        2 * hidden - 1,
        log_start=log_start,
        log_z_below=below.logsumexp(0).item(),
        rounded=(0, 1),
        # RAISE needs ln Z of the start
        vectors=None,
    )


def dbm(backend=FLOAT64, visible=4, hidden=3):
    """So many units in v and h2 together, one of them in h2."""
    model = random_dbm(visible - 1, hidden, 1, seed=5)
    path = DBMPath(backend.place(model), BIAS[: visible - 1], [0.75]).to(backend.device)
    return _between(
        path,
        backend,
        model.joint_rbm,
        hidden,
        vectors=all_states(visible - 1),
        begin_bits=lambda steps: 1 + steps * (hidden + 1),
        observed=lambda probs: probs.view(-1, 2).sum(1),
    )


def dbn(backend=FLOAT64, visible=4, hidden=3):
    """So many units in the lower layer of the top RBM, above one or two directed layers.

    Small ones have two.
    """
    widths = (3, visible, hidden) if visible > 3 else (2, 2, visible, hidden)
    # with strong directed weights, draws of the recognition distribution would have weights whose
    # error nobody can trust
    scales = *[0.5] * (len(widths) - 2), 1.0
    layers = [
        random_rbm(*pair, 30 + n, scale)
        for n, (pair, scale) in enumerate(zip(itertools.pairwise(widths), scales, strict=True))
    ]
    model = backend.place(DBN(layers))
    path = DBNPath(model, BIAS[:visible]).to(backend.device)

    def observed(probs):
        for layer in reversed(model.directed):
            probs = probs @ directed_table(layer)
        return probs

    return _between(
        path,
        backend,
        layers[-1],
        hidden,
        vectors=all_states(widths[0]),
        begin_bits=lambda steps: sum(widths[1:-1]),
        observed=observed,
    )


WALKS = {
    "RBM": base_rates,
    "pair": pair,
    "DBM": dbm,
    "DBN": dbn,
}
EVERY_WALK = pytest.mark.parametrize("make", WALKS.values(), ids=WALKS)
#: For estimators that take long: to a model with visible units alone, between two models, and to
#: one with two kinds of units.
THREE_WALKS = pytest.mark.parametrize("make", [base_rates, pair, dbm], ids=["RBM", "pair", "DBM"])
#: Those that RAISE can walk back.
REVERSIBLE = {name: make for name, make in WALKS.items() if make is not pair}
EVERY_WALK_BACK = pytest.mark.parametrize("make", REVERSIBLE.values(), ids=REVERSIBLE)


LARGE_KINDS = "base rates", "pair", "DBM", "DBN"


def path_of(kind, visible, hidden, dtype=torch.float64, scale=0.2):
    """To a model with weights of this scale, too large to be enumerated."""
    rbm = random_rbm(visible, hidden, 1, scale, dtype)
    bias = torch.linspace(-1, 1, visible).to(dtype)
    if kind == "base rates":
        return BaseRatePath(rbm, bias)
    if kind == "pair":
        return RBMPairPath(random_rbm(visible, hidden // 2, 2, scale, dtype), rbm, burn_in=3)
    upper = random_rbm(hidden, hidden + 3, 3, scale, dtype)
    if kind == "DBN":
        return DBNPath(DBN([rbm, upper]))
    biases = (rbm.visible_bias, rbm.hidden_bias, upper.hidden_bias)
    return DBMPath(DBM(rbm.weights, upper.weights, *biases), bias)


class Coins(AnnealingPath):
    """Three fair coins that end up biased: three verbs, and a tensor for a state."""

    odds = math.log(3)
    log_z_start = 3 * math.log(2)

    def sample_start(self, num_chains, generator):
        return torch.rand(num_chains, 3, generator=generator) < 0.5

    def log_f(self, state, beta):
        return beta * self.odds * state.double().sum(1)

    def transition(self, state, beta, generator):
        heads = torch.sigmoid(torch.as_tensor(beta * self.odds, dtype=torch.float32))
        redrawn = torch.rand(state.shape, generator=generator) < heads
        one = torch.arange(3) == torch.randint(3, (len(state), 1), generator=generator)
        return torch.where(one, redrawn, state)
