"""The deep Boltzmann machine (DBM) with two hidden layers (Salakhutdinov & Hinton 2009).

Every connection is undirected:

    E(v, h1, h2) = - v' W1 h1 - h1' W2 h2 - b' v - a1' h1 - a2' h2

The layers alternate: given h1, the visible units and h2 are independent of each other. A DBM is
therefore an RBM, `joint_rbm`, whose hidden units are h1 and whose "visible" units are v and h2
together. Everything known about RBMs applies to it, including block Gibbs sampling, enumeration of
a small h1, and annealing. The new difficulty is that h2 is not observed: neither ln p*(v) nor the
posterior p(h1, h2 | v) can be computed. Mean field approximates the posterior by independent units,
at Salakhutdinov & Hinton's fixed points

    m1 = s(W1' v + W2 m2 + a1),      m2 = s(W2' m1 + a2),

and provides a lower bound on ln p*(v) (`log_unnormalized_bound`), or a proposal for importance
sampling (`log_unnormalized`; RAISE paper, section 5.2). If unsure: importance sampling. Where its
weights vary too much, `paperlib.annealing.PosteriorPath` leads from mean field to the posterior.

Used in chapter: deep-boltzmann-machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.models.enumeration import can_enumerate, sum_over_states
from paperlib.models.posterior_sampling import Proposal, log_mean_weights
from paperlib.models.rbm import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import (
    all_states,
    bernoulli_entropy,
    resolve_generator,
    softplus,
)
from paperlib.torch_settings import plain_torch
from paperlib.validation import (
    ArrayLike,
    as_binary,
    as_bits,
    as_means,
    parameter,
    require_count,
    require_shape,
)

# Rows at a time for the mean-field bound.
_BOUND_BLOCK = 2_000


@dataclass(frozen=True)
class MeanField:
    """A factorial approximation of the posterior over both hidden layers, for N visible vectors.

    Attributes
    ----------
    logits_1, logits_2 : Tensor, shapes [N, M1], [N, M2]
        Logits of the means of h1 and h2.
    residuals : Tensor, shape [N]
        Largest change of a mean in the last update of each case.
    tolerance : float
        Largest residual that counts as converged.
    warnings : tuple of str
        How many cases have not converged, and by how much; empty if all have.

    Examples
    --------
    >>> dbm = DBM([[1.0], [0.5]], [[2.0]], [0.0, 0.0], [-1.0], [0.0])
    >>> field = dbm.mean_field([[1, 0], [1, 1]])
    >>> torch.sigmoid(field.logits_2)
    tensor([[0.8439],
            [0.8586]], dtype=torch.float64)
    >>> field.converged, field.warnings
    (tensor([True, True]), ())
    """

    logits_1: Tensor
    logits_2: Tensor
    residuals: Tensor
    tolerance: float

    @property
    def converged(self) -> Tensor:
        """Which cases have converged, bool [N]."""
        return self.residuals <= self.tolerance

    @property
    def warnings(self) -> tuple[str, ...]:
        """How many cases have not converged and by how much, as a sentence; empty if all have."""
        moving = int((~self.converged).sum())
        if moving == 0:
            return ()
        sentence = (
            f"Mean field has not converged for {moving} of {len(self.residuals)} cases: "
            f"a mean still moves by up to {self.residuals.max().item():.1g} "
            f"(tolerance {self.tolerance:g}). Allow more updates."
        )
        return (sentence,)


class DBM(UnnormalizedModel):
    """A deep Boltzmann machine with two layers of binary hidden units.

    Parameters
    ----------
    weights_1 : array or Tensor, shape [D, M1]
        Interaction of v with h1.
    weights_2 : array or Tensor, shape [M1, M2]
        Interaction of h1 with h2.
    visible_bias, hidden_bias_1, hidden_bias_2 : array or Tensor, shapes [D], [M1], [M2]
        b, a1 and a2.

    Raises
    ------
    InputError
        If a shape does not fit or a parameter is NaN or infinite.

    Examples
    --------
    >>> dbm = DBM([[1.0], [0.5]], [[2.0]], [0.0, 0.0], [-1.0], [0.0])
    >>> dbm
    DBM(2-1-1, torch.float64, cpu)
    >>> dbm.joint_rbm
    RBM(3 visible, 1 hidden, torch.float64, cpu)
    >>> dbm.log_unnormalized_joint([1, 0], [1])
    tensor(2.1269, dtype=torch.float64)
    """

    tensor_names = ("weights_1", "weights_2", "visible_bias", "hidden_bias_1", "hidden_bias_2")
    called = "a DBM"

    def __init__(
        self,
        weights_1: object,
        weights_2: object,
        visible_bias: object,
        hidden_bias_1: object,
        hidden_bias_2: object,
    ) -> None:
        self.weights_1 = parameter("weights_1", weights_1, [None, None])
        like = self.weights_1
        num_visible, num_hidden_1 = self.weights_1.shape
        self.weights_2 = parameter("weights_2", weights_2, [num_hidden_1, None], like)
        self.visible_bias = parameter("visible_bias", visible_bias, [num_visible], like)
        self.hidden_bias_1 = parameter("hidden_bias_1", hidden_bias_1, [num_hidden_1], like)
        self.hidden_bias_2 = parameter("hidden_bias_2", hidden_bias_2, [self.num_hidden_2], like)

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.weights_1.shape[0]

    @property
    def num_hidden_1(self) -> int:
        """Number of units of the first hidden layer, M1."""
        return self.weights_1.shape[1]

    @property
    def num_hidden_2(self) -> int:
        """Number of units of the second hidden layer, M2."""
        return self.weights_2.shape[1]

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """M1 and M2."""
        return self.num_hidden_1, self.num_hidden_2

    @property
    def annealed(self) -> RBM:
        """`joint_rbm`, which has the same ln Z."""
        return self.joint_rbm

    @property
    def joint_rbm(self) -> RBM:
        """The same joint distribution as an RBM with hidden units h1.

        Its D + M2 visible units are v, followed by h2.
        """
        return RBM(
            torch.cat([self.weights_1, self.weights_2.T]),
            torch.cat([self.visible_bias, self.hidden_bias_2]),
            self.hidden_bias_1,
        )

    @plain_torch()
    def energy(self, v: ArrayLike, h1: ArrayLike, h2: ArrayLike) -> Tensor:
        """E(v, h1, h2) in nats.

        Binary `v` [..., D], `h1` [..., M1] and `h2` [..., M2] broadcast over their leading
        dimensions.
        """
        v = self._visible(v)
        h1 = as_bits("h1", h1, self.weights_1, self.num_hidden_1)
        h2 = as_bits("h2", h2, self.weights_1, self.num_hidden_2)
        return (
            -((v @ self.weights_1 + h2 @ self.weights_2.T + self.hidden_bias_1) * h1).sum(-1)
            - v @ self.visible_bias
            - h2 @ self.hidden_bias_2
        )

    def log_unnormalized_joint(self, v: ArrayLike, h2: ArrayLike) -> Tensor:
        """ln sum_h1 exp(-E(v, h1, h2)) in nats; `v` [..., D] and `h2` [..., M2] give [...].

        Both are binary. `h2` may also be means from 0 to 1: with their entropy added, the result is
        the bound of `log_unnormalized_bound`.
        """
        h2 = as_means("h2", h2, self.weights_1, self.num_hidden_2)
        return self._log_unnormalized_joint(self._visible(v), h2)

    @plain_torch()
    def _log_unnormalized_joint(self, v: Tensor, h2: Tensor) -> Tensor:
        hidden_input = v @ self.weights_1 + h2 @ self.weights_2.T + self.hidden_bias_1
        return v @ self.visible_bias + h2 @ self.hidden_bias_2 + softplus(hidden_input).sum(-1)

    @plain_torch()
    def mean_field(
        self, v: ArrayLike, max_updates: int = 200, tolerance: float = 1e-5
    ) -> MeanField:
        """Fixed points of mean field, by alternating updates of both layers.

        The first means of h2 are those that its bias alone would give.

        Parameters
        ----------
        v : array or Tensor, shape [N, D]
            Binary visible vectors.
        max_updates : int
            Maximum number of updates of both layers.
        tolerance : float
            A case has converged when no mean moves by more than this.

        Returns
        -------
        MeanField
            Its `warnings` say how many cases have not converged. Every update is the optimum of one
            layer given the other, so the bound of `log_unnormalized_bound` never falls.
        """
        v = self._visible(v)
        require_shape("v", v, [None, self.num_visible])
        updates = require_count("max_updates", max_updates)
        bottom_up = v @ self.weights_1 + self.hidden_bias_1
        logits_2 = self.hidden_bias_2.expand(len(v), -1)
        means_2 = torch.sigmoid(logits_2)
        logits_1 = bottom_up
        residuals = torch.full_like(bottom_up[:, 0], torch.inf)
        for _ in range(updates):
            logits_1 = bottom_up + means_2 @ self.weights_2.T
            logits_2 = torch.sigmoid(logits_1) @ self.weights_2 + self.hidden_bias_2
            updated = torch.sigmoid(logits_2)
            residuals = (updated - means_2).abs().amax(-1)
            means_2 = updated
            if bool((residuals <= tolerance).all()):
                break
        return MeanField(logits_1, logits_2, residuals, tolerance)

    def log_unnormalized_bound(self, v: ArrayLike, mean_field: MeanField | None = None) -> Tensor:
        """The mean-field lower bound on ln p*(v), in nats; binary `v` [N, D] gives float64 [N].

        For the means m2 of h2, it is the maximum of E_Q[-E] + H(Q1) + H(Q2) over Q1(h1),

            b'v + a2'm2 + sum softplus(W1'v + W2 m2 + a1) + H(m2).
        """
        v = self._visible(v)
        logits = self._logits_2(v, mean_field)
        energy = self._log_unnormalized_joint(v, torch.sigmoid(logits))
        return (energy + bernoulli_entropy(logits)).double()

    def log_unnormalized(
        self,
        v: ArrayLike,
        num_samples: int = 500,
        generator: torch.Generator | int | None = None,
        mean_field: MeanField | None = None,
    ) -> Tensor:
        """Estimate ln p*(v) by importance sampling of h2 from its mean field.

        h1 is summed out (RAISE paper, section 5.2). Arguments, result and errors are those of
        `DBN.log_unnormalized`. A `mean_field` of `v` that is known already need not be computed
        again.
        """
        v = as_binary("v", v, self.num_visible)
        draws = require_count("num_samples", num_samples)
        generator = resolve_generator(generator, self.device)
        cases = v.to(self.device, self.dtype)
        logits = self._logits_2(cases, mean_field)

        def proposal(part: slice) -> Proposal:
            return _MeanFieldProposal(
                self,
                cases[part].repeat_interleave(draws, 0),
                logits[part].repeat_interleave(draws, 0),
            )

        return log_mean_weights(len(cases), draws, proposal, generator, self.device)

    _log_unnormalized_block = log_unnormalized

    def proposal(self, rows: Tensor) -> Proposal:
        """Independent units of h2 with the means of mean field, for binary rows [N, D]."""
        v = rows.to(self.device, self.dtype)
        # Where many draws of a row are wanted, it is repeated, and mean field need not be.
        different, number = v.unique_consecutive(return_inverse=True, dim=0)
        return _MeanFieldProposal(self, v, self.mean_field(different).logits_2[number])

    def annealed_units(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Binary rows [N, D] with the means of h2 by mean field."""
        v = rows.to(self.device, self.dtype)
        return torch.cat([v, torch.sigmoid(self.mean_field(v).logits_2)], 1)

    def completed(self, units: Tensor, generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        """Visible vectors and h2, which together are the units of `joint_rbm` [N, D + M2]."""
        return units[:, : self.num_visible], [units[:, self.num_visible :]]

    def is_exact(self, num_rows: int) -> bool:
        """Whether h1 can be enumerated in seconds for this many rows."""
        return can_enumerate(num_rows, [self.num_hidden_1])

    def exact_log_unnormalized(self, rows: Tensor) -> Tensor:
        """ln p*(v) of rows [N, D] by enumeration of h1, float64 [N] on the CPU, in nats.

        For each state of h1, h2 is summed out in closed form.
        """
        model = self.to("cpu", torch.float64)
        upper = RBM(model.weights_2, model.hidden_bias_1, model.hidden_bias_2)
        states = all_states(self.num_hidden_1)
        masses = upper.log_unnormalized(states)
        return sum_over_states(rows, states, masses, model.weights_1, model.visible_bias)

    def variational_bound(
        self, rows: Tensor, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """`log_unnormalized_bound` of any number of rows [N, D], float64 [N] on the CPU."""
        parts = rows.split(_BOUND_BLOCK)
        bounds = [self.log_unnormalized_bound(part.to(self.device, self.dtype)) for part in parts]
        return torch.cat([bound.cpu() for bound in bounds])

    def _logits_2(self, v: Tensor, mean_field: MeanField | None) -> Tensor:
        """Logits of the means of h2 for each row of `v`, from `mean_field` if it is given."""
        if mean_field is None:
            return self.mean_field(v).logits_2
        require_shape("mean_field.logits_2", mean_field.logits_2, [len(v), self.num_hidden_2])
        return mean_field.logits_2

    def _visible(self, v: object) -> Tensor:
        return as_bits("v", v, self.weights_1, self.num_visible)


class _MeanFieldProposal(Proposal):
    """Independent units of h2 with these logits [N, M2], for rows [N, D] of the DBM's type."""

    num_layers = 1

    def __init__(self, dbm: DBM, rows: Tensor, logits: Tensor) -> None:
        self._dbm = dbm
        self._rows = rows
        self._logits = logits

    def logits(self, layer: int, hidden: Sequence[Tensor]) -> Tensor:
        return self._logits

    def log_joint(self, hidden: Sequence[Tensor]) -> Tensor:
        return self._dbm._log_unnormalized_joint(self._rows, hidden[0])
