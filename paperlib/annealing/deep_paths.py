"""Annealing paths to deep models, whose test vectors leave a part of the state unobserved.

A DBM is an RBM over (v, h2) and h1, so its path is the path of that RBM. RAISE starts at a v whose
h2 is unknown and has an intractable posterior. Algorithm 3 of the RAISE paper therefore walks the
path once forward with v held fixed, from the start's p_0(h2), and includes the weight of that walk.
By the definition of q_rev in its section 3.2, h'_k is drawn from the reversal of the kernel that
leaves p_{k-1} invariant; the algorithm as printed uses the kernel at k, which fails the test by
enumeration.

A DBN is an RBM on top of a few directed layers (section 3.3). Its path is the path of the top RBM;
the directed layers are drawn from the recognition distribution and weighted once.

Both need ln p*(v), for which the layers between are drawn from a proposal. `PosteriorPath` leads
from there to their posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from paperlib import storage
from paperlib.annealing.path import AnnealingPath, moving_first
from paperlib.annealing.rbm_paths import BaseRatePath, VisibleState, bias_at_start
from paperlib.annealing.walk import walk
from paperlib.errors import InputError
from paperlib.kernels import Beta, bernoulli, draw_bits_of_logits
from paperlib.models import DBM, DBN
from paperlib.models.posterior_sampling import Proposal
from paperlib.numerics import bernoulli_log_prob
from paperlib.threads import OnStep
from paperlib.validation import require_instance

# A transition of a `PosteriorPath` proposes all units of a layer, or half of them, and so on, down
# to one in 128.
_HALVINGS = 8


class DBMPath(BaseRatePath):
    """A path from independent units to a DBM.

    States are those of `dbm.joint_rbm`: v and h2 side by side.

    AIS along this path estimates ln Z of the DBM.

    Parameters
    ----------
    dbm : DBM
        The target.
    visible_bias : array or Tensor, shape [D], optional
        Biases of the start, from `paperlib.datasets.base_rate_bias(train)`. None: zero, the uniform
        start.
    hidden_bias_2 : array or Tensor, shape [M_2], optional
        Biases of h2 at the start; `base_rate_path` finds good ones. None: zero. If most units of h2
        are off most of the time, a start with half of them on is as bad as one with half of the
        pixels on.

    Raises
    ------
    InputError
        If `visible_bias` or `hidden_bias_2` has the wrong length or holds NaN or infinite values.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import DBM
    >>> sizes = [(4, 3), (3, 2), 4, 3, 2]
    >>> path = DBMPath(DBM(*(torch.zeros(size) for size in sizes)))
    >>> state = path.sample_start(5, torch.Generator().manual_seed(0))
    >>> path.units(state).shape  # v and h2 beside each other
    torch.Size([5, 6])
    """

    reverse_passes: ClassVar[int] = 2

    def __init__(
        self, dbm: DBM, visible_bias: object | None = None, hidden_bias_2: object | None = None
    ) -> None:
        require_instance("dbm", dbm, DBM, "a DBM")
        visible = bias_at_start("visible_bias", visible_bias, dbm.visible_bias)
        hidden = bias_at_start("hidden_bias_2", hidden_bias_2, dbm.hidden_bias_2)
        super().__init__(dbm.joint_rbm, torch.cat([visible, hidden]))
        self._remember(dbm)
        self._dbm = dbm
        self._to_h2 = self._sampler.to_visible(slice(None), slice(dbm.num_visible, None))

    @property
    def num_visible(self) -> int:
        """Number of visible units of the DBM, D."""
        return self._dbm.num_visible

    def _arguments(self) -> tuple[Any, ...]:
        bias = self._visible_bias_a
        width = self.num_visible
        return self._dbm, bias[:width], bias[width:]

    def begin_reverse(
        self,
        v: Tensor,
        schedule: Sequence[float],
        generator: torch.Generator,
        on_step: OnStep,
    ) -> tuple[VisibleState, Tensor]:
        """h2 for each row of `v` [chains, D], and the log-weights so far, float64 [chains].

        Both come from the heating chain of Algorithm 3.
        """
        width = self.num_visible
        v = v.to(self.device, torch.bool)
        bias = self._visible_bias_a
        h2 = draw_bits_of_logits(bias[width:].expand(len(v), -1), generator)
        state = self._state(torch.cat([v, h2], 1))
        log_weights = bernoulli_log_prob(v.double(), bias[:width].double())
        heat = moving_first(self, self._clamped_transition)
        state = walk(self, heat, state, log_weights, schedule, generator, on_step)
        return state, log_weights

    def _clamped_transition(
        self, state: VisibleState, beta: Beta, generator: torch.Generator
    ) -> VisibleState:
        """One block Gibbs step of h1 and h2 at `beta`, with v held fixed.

        With h1 summed out it is reversible.
        """
        width = self.num_visible
        first = state.first
        h1 = draw_bits_of_logits(state.hidden_input, generator, beta, first)
        bias = self._visible_bias(beta)[..., width:]
        visible_input = self._to_h2(h1, beta, bias, state.memory)
        h2 = draw_bits_of_logits(visible_input, generator, 1.0, first)
        return self._state(torch.cat([state.v[:, :width], h2], 1), state)


class DBNPath(BaseRatePath):
    """A path from independent units to the top RBM of a DBN. States are those of that RBM: h^{L-1}.

    AIS along this path estimates ln Z of the top RBM, which is that of the DBN.

    Parameters
    ----------
    dbn : DBN
        The target.
    visible_bias : array or Tensor, shape [M_{L-1}], optional
        Biases of the start; `base_rate_path` finds good ones. None: zero, the uniform start, the
        only one that the RAISE paper has for DBNs.

    Raises
    ------
    InputError
        If `visible_bias` has the wrong length or holds NaN or infinite values.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import DBN, RBM
    >>> below = RBM(torch.zeros(4, 3), torch.zeros(4), torch.zeros(3))
    >>> top = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> path = DBNPath(DBN([below, top]))
    >>> path.num_visible, path.units(path.sample_start(5, torch.Generator())).shape
    (4, torch.Size([5, 3]))
    """

    def __init__(self, dbn: DBN, visible_bias: object | None = None) -> None:
        require_instance("dbn", dbn, DBN, "a DBN")
        super().__init__(dbn.top, visible_bias)
        self._remember(dbn)
        self._dbn = dbn

    @property
    def num_visible(self) -> int:
        """Number of visible units of the DBN, D."""
        return self._dbn.num_visible

    def _arguments(self) -> tuple[Any, ...]:
        return self._dbn, self._visible_bias_a

    def checksum(self) -> str:
        """SHA-256 of all that draws and weights depend on, the directed layers included."""
        return storage.sha256(f"{super().checksum()} {self._dbn.checksum()}".encode())

    def begin_reverse(
        self,
        v: Tensor,
        schedule: Sequence[float],
        generator: torch.Generator,
        on_step: OnStep,
    ) -> tuple[VisibleState, Tensor]:
        """h^{L-1} for each row of `v` [chains, D], drawn from Q, and its log-weight.

        The log-weights are ln p*(v, h) - ln Q(h | v) - ln Z_0, float64 [chains]. The top RBM's part
        of ln p* is computed with the weights of the path, which may be rounded, so that the mean
        weight is a probability.
        """
        v = v.to(self.device, self.dtype)
        hidden = self._dbn.recognize(v, generator)
        # without directed layers the top RBM's units are the visible ones
        state = self._state([v, *hidden][-1].bool())
        log_weights = self._dbn.log_directed(v, hidden).double() + self.log_f(state, 1.0)
        log_weights -= self._dbn.log_recognition(v, hidden).double()
        assert self.log_z_start is not None  # every base-rate start has one
        return state, log_weights - self.log_z_start


@dataclass(slots=True)
class HiddenState:
    """Hidden layers of a batch of chains, with what the weights and the next transition need."""

    hidden: list[Tensor]
    log_joint: Tensor  # ln p*(v, h), float64 [chains]
    log_layers: Tensor  # ln Q of each layer given those below, float64 [layers, chains]

    @property
    def log_weight(self) -> Tensor:
        """ln p*(v, h) - ln Q(h | v), float64 [chains]."""
        return self.log_joint - self.log_layers.sum(0)


class PosteriorPath(AnnealingPath[HiddenState]):
    """A path from the proposal of hidden units Q(h | v) to their posterior p(h | v).

    It has one chain for each of the given test vectors. With

        ln f_beta(h) = (1 - beta) ln Q(h | v) + beta ln p*(v, h),

    AIS along this path estimates ln p*(v) of each chain's vector: the weights of single draws from
    Q are those of importance sampling. A transition proposes new states for some units of one
    layer, from Q, and accepts them by the rule of Metropolis and Hastings. Any model with a
    proposal can be walked in this way, also a DBN, whose posterior has no conditionals in closed
    form.

    Parameters
    ----------
    model : DBM or DBN
        The model.
    rows : Tensor, shape [chains, D]
        Binary test vectors.
    proposal : Proposal, optional
        Another proposal for these rows, in place of the model's; ln p*(v, h) is then what it says.

    Examples
    --------
    >>> import torch
    >>> from paperlib.annealing import uniform_betas
    >>> from paperlib.estimators import ais
    >>> from paperlib.models import DBM
    >>> dbm = DBM([[1.0], [0.5]], [[2.0]], [0.0, 0.0], [-1.0], [0.0])
    >>> path = PosteriorPath(dbm, torch.tensor([[1, 0]] * 500))
    >>> estimate = ais(path, uniform_betas(20), 500, torch.Generator().manual_seed(0))
    >>> abs(estimate.log_z - dbm.exact_log_unnormalized(torch.tensor([[1, 0]])).item()) < 0.05
    True
    """

    log_z_start = 0.0
    reversible: ClassVar[bool] = True

    def __init__(self, model: DBM | DBN, rows: Tensor, proposal: Proposal | None = None) -> None:
        self._model = model
        self._proposal = model.proposal(rows) if proposal is None else proposal
        self._chains = len(rows)

    @property
    def device(self) -> torch.device:
        """Where states live."""
        return self._model.device

    @property
    def chains_per_block(self) -> int:
        """All of them, since each chain has a test vector of its own."""
        return self._chains

    def state_of(self, hidden: list[Tensor]) -> HiddenState:
        """The state of chains with these hidden layers, [chains, M_l] each."""
        log_layers = torch.stack(self._proposal.log_layers(hidden)).double()
        return HiddenState(hidden, self._proposal.log_joint(hidden).double(), log_layers)

    def sample_start(self, num_chains: int, generator: torch.Generator) -> HiddenState:
        """A draw from Q for each test vector.

        Raises
        ------
        InputError
            If `num_chains` is not the number of test vectors.
        """
        if num_chains != self._chains:
            raise InputError(
                f"num_chains: expected {self._chains}, one for each test vector, got {num_chains}"
            )
        return self.state_of(self._proposal.draw(generator))

    def log_f(self, state: HiddenState, beta: Beta) -> Tensor:
        """(1 - beta) ln Q(h | v) + beta ln p*(v, h) of each chain, in nats; float64 [chains]."""
        return state.log_layers.sum(0) + beta * state.log_weight

    def log_ratio(self, state: HiddenState, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(h) - ln f_{beta_from}(h) of each chain; float64 [chains]."""
        return (beta_to - beta_from) * state.log_weight

    def transition(self, state: HiddenState, beta: Beta, generator: torch.Generator) -> HiddenState:
        """Propose some units of one layer from Q given the layers below; accept or reject them."""
        device = self.device
        layer = int(torch.randint(len(state.hidden), (), generator=generator, device=device))
        # Most of a layer at once, or a few units: which is better depends on the model and on beta.
        halvings = int(torch.randint(_HALVINGS, (), generator=generator, device=device))
        old = state.hidden[layer]
        new = bernoulli(torch.sigmoid(self._proposal.logits(layer, state.hidden)), generator)
        some = torch.rand(old.shape, generator=generator, device=device) < 2.0**-halvings
        proposed = self.state_of(
            [*state.hidden[:layer], torch.where(some, new, old), *state.hidden[layer + 1 :]]
        )
        # Q of this layer cancels against the proposal; the layer above is now less or more probable
        # under Q.
        log_accept = beta * (proposed.log_weight - state.log_weight)
        log_accept += (proposed.log_layers - state.log_layers)[layer + 1 :].sum(0)
        uniform = torch.rand(log_accept.shape, generator=generator, device=device)
        accepted = uniform.log() < log_accept
        hidden = [
            torch.where(accepted[:, None], after, before)
            for after, before in zip(proposed.hidden, state.hidden, strict=True)
        ]
        return HiddenState(
            hidden,
            torch.where(accepted, proposed.log_joint, state.log_joint),
            torch.where(accepted, proposed.log_layers, state.log_layers),
        )

    def units(self, state: HiddenState) -> Tensor:
        """All hidden layers beside each other, [chains, n]."""
        return torch.cat(state.hidden, 1).to(self.dtype)
