"""What a transition matrix says about the long run of a finite Markov chain, exactly.

The definitions are those of CS281 lecture 22, section 22.2.1. With S states, row x of the matrix
holds the distribution of the next state after x:

    transition[x, x'] = T(x' | x),        p_{t+1}(x') = sum_x p_t(x) T(x' | x)

so that a distribution is a row vector and a step is `p @ transition`. (The lecture's matrix is the
transpose of this one.)

The qualitative questions depend only on which states can be reached from which, and so on the
pattern of non-zero entries. A chain is irreducible if all states form one class, aperiodic if the
lengths of all ways back have no common divisor, and recurrent if no class can be left. The
eigenvalues say how fast it converges: distances from the stationary distribution shrink by the
second largest modulus in each step.

Used in chapter: markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import resolve_generator
from paperlib.validation import (
    ArrayLike,
    as_double,
    as_float_tensor,
    as_tensor,
    require_count,
    require_shape,
)

_ROUNDING = 1e-9  # how far the sum of a row may be from one


class MarkovChain:
    """A time-homogeneous Markov chain on finitely many states.

    Parameters
    ----------
    transition : array or Tensor, shape [S, S]
        T(x' | x) in row x and column x'; converted to float64.

    Raises
    ------
    InputError
        If it is not square, or a row is not a distribution.

    Examples
    --------
    >>> chain = MarkovChain([[0.9, 0.1], [0.3, 0.7]])
    >>> chain.stationary
    tensor([0.7500, 0.2500], dtype=torch.float64)
    >>> chain.is_ergodic, round(chain.convergence_rate, 10)
    (True, 0.6)
    """

    def __init__(self, transition: object) -> None:
        matrix = as_double("transition", transition, [None, None])
        require_shape("transition", matrix, [len(matrix), len(matrix)])
        for x, row in enumerate(matrix):
            _require_distribution(f"transition, row {x}", row)
        self.transition = matrix

    def __repr__(self) -> str:
        return f"MarkovChain({self.num_states} states)"

    @property
    def num_states(self) -> int:
        """Number of states, S."""
        return len(self.transition)

    def then(self, other: MarkovChain) -> MarkovChain:
        """The chain whose step is one of this chain followed by one of the other."""
        require_shape("other", other.transition, list(self.transition.shape))
        return MarkovChain(self.transition @ other.transition)

    # ---- which states can be reached

    @cached_property
    def classes(self) -> Tensor:
        """Number of the communicating class of each state, int64 [S].

        States that can be reached from each other share one.
        """
        from scipy.sparse.csgraph import connected_components

        _, labels = connected_components(self._edges.numpy(), connection="strong")
        return torch.from_numpy(labels).long()

    @cached_property
    def recurrent(self) -> Tensor:
        """Which states the chain returns to with probability one, bool [S].

        These are the states whose class cannot be left.
        """
        same = self.classes[:, None] == self.classes
        can_leave = (self._edges & ~same).any(1)
        return ~(same & can_leave).any(1)

    @cached_property
    def periods(self) -> Tensor:
        """Greatest common divisor of the lengths of all ways back to each state, int64 [S].

        It is 0 where there is no way back. Within a class, an edge x -> x' closes ways of length
        depth(x) + 1 and depth(x'), with depths counted from any one state. The differences between
        these lengths generate all others.
        """
        from scipy.sparse.csgraph import breadth_first_order

        periods = torch.zeros(self.num_states, dtype=torch.int64)
        for label in self.classes.unique():
            members = (self.classes == label).nonzero().flatten()
            edges = self._edges[members][:, members].double()
            order, parents = breadth_first_order(edges.numpy(), 0)
            depth = torch.zeros(len(members), dtype=torch.int64)
            for state in order[1:]:
                depth[state] = depth[parents[state]] + 1
            source, target = edges.nonzero().T
            periods[members] = math.gcd(*(depth[source] + 1 - depth[target]).tolist())
        return periods

    @property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every state."""
        return bool((self.classes == 0).all())

    @property
    def is_aperiodic(self) -> bool:
        """Whether every state has period one."""
        return bool((self.periods == 1).all())

    @property
    def is_recurrent(self) -> bool:
        """Whether the chain returns to every state with probability one.

        With finitely many states the mean time until then is finite, too.
        """
        return bool(self.recurrent.all())

    @property
    def is_ergodic(self) -> bool:
        """Whether the chain is positive recurrent and aperiodic.

        This is the lecture's definition, which does not ask for irreducibility.
        """
        return self.is_recurrent and self.is_aperiodic

    @property
    def _edges(self) -> Tensor:
        return self.transition > 0

    # ---- the long run

    @cached_property
    def eigenvalues(self) -> Tensor:
        """All eigenvalues, complex128 [S], the largest modulus first."""
        values = torch.linalg.eigvals(self.transition)
        return values[values.abs().argsort(descending=True)]

    @property
    def convergence_rate(self) -> float:
        """Second largest modulus of an eigenvalue.

        It is the factor by which distances from stationarity eventually shrink in each step.
        """
        return self.eigenvalues[1].abs().item() if self.num_states > 1 else 0.0

    @cached_property
    def stationary(self) -> Tensor:
        """The stationary distribution, [S], from the linear equations p T = p and sum p = 1.

        Raises
        ------
        InputError
            If there are several, one for each class that cannot be left.
        """
        closed = len(self.classes[self.recurrent].unique())
        if closed > 1:
            raise InputError(
                "transition: expected a chain with one stationary distribution, "
                f"got {closed} classes that cannot be left"
            )
        # The columns of T' - 1 add up to zero, so that one equation is redundant and can be
        # replaced by the one for the sum.
        equations = self.transition.T - torch.eye(self.num_states, dtype=torch.float64)
        equations[-1] = 1
        right_side = torch.zeros(self.num_states, dtype=torch.float64)
        right_side[-1] = 1
        return torch.linalg.solve(equations, right_side)

    def distributions(self, start: ArrayLike, num_steps: int) -> Tensor:
        """Distributions of the state after 0, 1, ..., `num_steps` steps, [num_steps + 1, S].

        `start` [S] is the first of them.
        """
        start = as_double("start", start, [self.num_states])
        _require_distribution("start", start)
        rows = [start]
        for _ in range(require_count("num_steps", num_steps)):
            rows.append(rows[-1] @ self.transition)
        return torch.stack(rows)

    def flow(self, distribution: ArrayLike) -> Tensor:
        """p(x) T(x' | x), the traffic from x to x' under a distribution [S]; [S, S].

        It is symmetric exactly when detailed balance holds.
        """
        distribution = as_double("distribution", distribution, [self.num_states])
        return distribution[:, None] * self.transition

    # ---- averages along the chain, in equilibrium

    def autocovariance(self, values: ArrayLike, max_lag: int) -> Tensor:
        """Covariances of f(x_n) and f(x_{n+k}) for k from 0 to `max_lag`, [max_lag + 1].

        `values` [S] are those of f, and the start is stationary.
        """
        values = as_double("values", values, [self.num_states])
        centred = values - self.stationary @ values
        ahead = centred
        rows = []
        for _ in range(require_count("max_lag", max_lag, minimum=0) + 1):
            rows.append(self.stationary @ (centred * ahead))
            ahead = self.transition @ ahead
        return torch.stack(rows)

    def variance_of_mean(self, values: ArrayLike, num_samples: int) -> float:
        """Variance of the mean of f over `num_samples` successive states, by the lecture's formula.

        `values` [S] are those of f, and the start is stationary.
        """
        count = require_count("num_samples", num_samples)
        covariances = self.autocovariance(values, count - 1)
        pairs = 2.0 * (count - torch.arange(count, dtype=torch.float64))  # ordered, at each lag
        pairs[0] = count
        return (pairs @ covariances / count**2).item()

    # ---- sampling

    def sample(
        self, starts: ArrayLike, num_steps: int, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """Paths of independent chains.

        Parameters
        ----------
        starts : array or Tensor, shape [N]
            Numbers of the states in which the chains start, from 0 to S - 1.
        num_steps : int
            Number of steps of each chain.
        generator : torch.Generator or int, optional
            Source of randomness; a fresh one by default.

        Returns
        -------
        Tensor
            int64 [num_steps + 1, N]; row 0 holds the starts.

        Raises
        ------
        InputError
            If a start is not the number of a state.
        """
        starts = as_tensor("starts", starts)
        require_shape("starts", starts, [None])
        if not bool(((starts >= 0) & (starts < self.num_states)).all()):
            raise InputError(
                f"starts: expected numbers of states from 0 to {self.num_states - 1}, got others"
            )
        generator = resolve_generator(generator)
        # The last column would be one but for rounding; without it no draw is beyond the last
        # state.
        cumulated = self.transition.cumsum(1)[:, :-1]
        path = [starts.long()]
        for _ in range(require_count("num_steps", num_steps)):
            uniform = torch.rand(len(starts), 1, dtype=torch.float64, generator=generator)
            path.append((uniform >= cumulated[path[-1]]).sum(1))
        return torch.stack(path)


def total_variation(p: ArrayLike, q: ArrayLike) -> Tensor:
    """The largest difference between p and q [..., S] on any event.

    It is half the sum of absolute differences.

    Examples
    --------
    >>> total_variation([0.5, 0.5], [0.9, 0.1])
    tensor(0.4000, dtype=torch.float64)
    """
    p = as_float_tensor("p", p)
    q = as_float_tensor("q", q)
    return (p - q).abs().sum(-1) / 2


def _require_distribution(name: str, row: Tensor) -> None:
    total = row.sum().item()
    if not bool((row >= 0).all()) or not abs(total - 1) <= _ROUNDING:
        raise InputError(
            f"{name}: expected probabilities that sum to one, "
            f"got sum {total:g} and minimum {row.min().item():g}"
        )
