"""The variational lower bound on a DBN's log-probability.

For any distribution Q over h^1, ..., h^{L-1} (Salakhutdinov & Murray 2008, section 4.2, eq. 22),

    ln p(v) >= E_Q[ln p*(v, h^1, ..., h^{L-1})] - ln Z + H(Q) = B(v)

with the top layer summed out in closed form and Z the partition function of the top RBM. The gap is
the Kullback-Leibler divergence from Q to the true posterior (chapter 19 of Goodfellow, Bengio &
Courville, eq. 19.3); it is zero if the second layer holds the first layer's weights transposed. The
expectation is estimated with M draws from Q (eq. 23), the entropy of Q(h^1 | v) is exact, and ln Z
comes from AIS.

An estimate of ln Z that is too low makes the bound too high, so with AIS it is a bound only to the
extent that AIS is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators.estimate import PartitionEstimate, StudentEstimate
from paperlib.models import DBN
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.uncertain import Uncertain
from paperlib.validation import ArrayLike, as_binary, require_count, require_finite

# With fewer draws, of all cases together, intervals from them hold too seldom: those of 95 % in 8
# to 98 %, for one to five cases.
_FEWEST_DRAWS = 200


@dataclass(frozen=True, repr=False)
class DBNBoundEstimate(StudentEstimate):
    """An estimate of the lower bound B(v) for every case, with the sources of its error.

    Attributes
    ----------
    expected_log_joint : Tensor, shape [N, M]
        ln p*(v_n, h) of each draw h from Q, float64, in nats. With more than one directed layer it
        includes the entropies of Q(h^2 | h^1) and so on, which are exact given the draw.
    entropy : Tensor, shape [N]
        H(Q(h^1 | v_n)), exact, float64, in nats.
    log_z : float
        The ln Z of the top RBM that was used.
    ais_error : (float, float)
        The ends of the three-sigma interval of ln Z relative to `log_z`, as in the last column of
        the paper's Table 2; (0, 0) for an exact ln Z.

    Examples
    --------
    >>> log_joint, entropy = torch.tensor([[-2.0, -4.0], [-1.0, -3.0]]), torch.zeros(2)
    >>> estimate = DBNBoundEstimate(log_joint, entropy, log_z=1.0, ais_error=(0.0, 0.0))
    >>> estimate
    DBNBoundEstimate(bound = -3.50 +- 0.50 nats, 2 cases, 2 draws each)
    >>> estimate.values
    tensor([-4., -3.])
    """

    _number = "bound"
    expected_log_joint: Tensor
    entropy: Tensor
    log_z: float
    ais_error: tuple[float, float]

    def _details(self) -> str:
        cases, draws = self.expected_log_joint.shape
        return f", {cases} cases, {draws} draws each"

    @property
    def values(self) -> Tensor:
        """B(v_n) of each case, float64 [N], in nats."""
        return self.expected_log_joint.mean(1) + self.entropy - self.log_z

    @property
    def bound(self) -> float:
        """The bound averaged over the cases, eq. 24."""
        return self.values.mean().item()

    @property
    def std_error(self) -> float:
        """Standard error of the average over cases and draws, given ln Z.

        It is a third of the paper's "Error r_B", and infinite for a single case. It mostly reflects
        the spread between cases, that is, how far another test set of the same size would move the
        average.
        """
        count = len(self.entropy)
        return self.values.std().item() / math.sqrt(count) if count > 1 else math.inf

    @property
    def degrees_of_freedom(self) -> float:
        """Those of `std_error`, the number of cases minus one."""
        return max(len(self.entropy) - 1.0, 1.0)

    @property
    def monte_carlo_std_error(self) -> float:
        """Standard error of the average on these particular cases, from the draws alone.

        It falls as 1 / sqrt(N M), as stated below eq. 24. Infinite for a single draw per case.
        """
        cases, draws = self.expected_log_joint.shape
        if draws < 2:
            return math.inf
        return math.sqrt(self.expected_log_joint.var(1).sum().item() / draws) / cases

    @property
    def monte_carlo(self) -> Uncertain:
        """The average on these particular cases with its error from the draws alone, given ln Z.

        The variance is a sum over cases, each with M - 1 degrees of freedom. Those of the sum are
        Satterthwaite's. With fewer than 200 draws of all cases together the error is infinite: a
        hidden unit that is seldom on may then not have been on in any.
        """
        cases, draws = self.expected_log_joint.shape
        if draws < 2 or cases * draws < _FEWEST_DRAWS:
            return Uncertain(self.bound, math.inf, 1.0)
        variances = self.expected_log_joint.var(1)
        squares = variances.square().sum().item()
        freedom = (draws - 1) * variances.sum().item() ** 2 / squares if squares > 0 else math.inf
        return Uncertain(self.bound, self.monte_carlo_std_error, freedom)


@plain_torch(gradients=False)
def dbn_lower_bound(
    dbn: DBN,
    v: ArrayLike,
    log_z: float | PartitionEstimate,
    num_samples: int = 5,
    generator: torch.Generator | int | None = None,
) -> DBNBoundEstimate:
    """Estimate the variational lower bound on ln p(v) of a DBN with any number of layers.

    Equations 22 to 24 of Salakhutdinov & Murray (2008).

    Parameters
    ----------
    dbn : DBN
        The model.
    v : array or Tensor, shape [N, D]
        Binary vectors of any type.
    log_z : float or PartitionEstimate
        ln Z of `dbn.top` in nats: from `exact_log_z(dbn.top)`, or an AIS estimate along a path that
        ends there, whose interval is then reported beside the bound.
    num_samples : int
        Draws M from Q for each case. The paper uses 5, which is plenty with many cases.
    generator : torch.Generator or int, optional
        Source of randomness; a fresh one by default.

    Returns
    -------
    DBNBoundEstimate
        The bound for every case, and its errors.

    Raises
    ------
    InputError
        If `v` is not binary, is empty or has another width, `num_samples` is not a whole number of
        at least 1, or `log_z` is not finite or is an estimate for a model of another width.

    Notes
    -----
    Apart from the result, memory is bounded by a block of cases, not by N M.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> from paperlib.models import RBM
    >>> from paperlib.numerics import seeded_generator
    >>> below = RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0])
    >>> dbn = DBN([below, RBM([[0.5], [0.5]], [0.0, 0.0], [0.1])])
    >>> log_z = exact_log_z(dbn.top)
    >>> dbn_lower_bound(dbn, [[1, 0], [1, 1]], log_z, 1_000, seeded_generator(0)).entropy
    tensor([1.1644, 1.0573], dtype=torch.float64)
    """
    v = as_binary("v", v, dbn.num_visible)
    draws = require_count("num_samples", num_samples)
    generator = resolve_generator(generator, dbn.device)
    value, ais_error = _log_z_and_error(log_z, dbn)
    return DBNBoundEstimate(*dbn.bound_terms(v, draws, generator), value, ais_error)


def _log_z_and_error(
    log_z: float | PartitionEstimate, dbn: DBN
) -> tuple[float, tuple[float, float]]:
    if not isinstance(log_z, PartitionEstimate):
        require_finite("log_z", torch.as_tensor(log_z, dtype=torch.float64))
        return float(log_z), (0.0, 0.0)
    width = log_z.final_states.shape[1]
    # AIS may have annealed either side of the top RBM.
    if width not in (dbn.top.num_visible, dbn.top.num_hidden):
        raise InputError(
            f"log_z: expected an estimate for the top RBM with {dbn.top.num_visible} visible "
            f"and {dbn.top.num_hidden} hidden units, got one for {width}"
        )
    low, high = log_z.std_interval(3)
    return log_z.log_z, (low - log_z.log_z, high - log_z.log_z)
