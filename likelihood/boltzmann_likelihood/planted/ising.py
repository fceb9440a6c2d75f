"""The Ising model on a torus as an RBM: ln Z by Kaufman's formula, and exact draws.

The lattice is a square with periodic boundaries. A hidden unit that sees two spins s = 2 v - 1 with
the same weight w represents a bond between them: summing it out leaves

    2 cosh(w (s_1 + s_2)) = A e^{J s_1 s_2},        cosh(2 w) = e^{2 J},        A = 2 e^J

(decimation). In units that are 0 or 1, the weights are 4 w, the hidden biases -4 w and the visible
biases -8 w, and ln Z of the RBM is that of the Ising model plus ln 2 + J - 2 w for each bond.
Kaufman (1949) gave Z of a finite torus in closed form; the critical point of the infinite lattice
is J = ln(1 + sqrt 2) / 2.

*Draws of the disordered model, up to the critical coupling:* coupling from the past (Propp &
Wilson, 1996) in its read-once form (Wilson, 2000). Chains that start from all spins up and from all
spins down are updated with the same random numbers. Updates preserve the order of chains, so where
these two have met, every other chain has met them as well. Time is cut into blocks of a length that
is fixed beforehand. The state *before* a block in which the chains meet, reached from the end of an
earlier such block, has exactly the distribution of the model.

*Draws of the ordered model, above it:* such chains would take a time that grows exponentially with
the lattice. However, the domain walls of an ordered model are the graphs of the high-temperature
expansion of a disordered one on the dual lattice, tanh J* = e^{-2J} (Kramers & Wannier, 1941).
Therefore, spins are drawn at J*, then bonds between equal spins with probability 1 - e^{-2J*}
(Edwards & Sokal, 1988), and then a uniform random even subgraph of the bonds, which has exactly the
distribution of these graphs (Grimmett & Janson, 2009). Subgraphs that wind around the torus an odd
number of times are not domain walls, and are drawn anew.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor

from boltzmann_likelihood.planted.planted_model import Draws, Planted, require_number, require_type
from paperlib.errors import InputError
from paperlib.models.rbm import RBM
from paperlib.torch_settings import plain_torch
from paperlib.validation import require_count

_CRITICAL_COUPLING = math.log1p(math.sqrt(2)) / 2
# Pairs of chains whose meeting times set the length of a block.
_PILOTS = 32
_MOST_SWEEPS = 10**5
# Number of sites that are updated together, over all lattices.
_TOGETHER = 400_000


@plain_torch()
def ising_2d(
    side: int = 28, coupling: float | None = None, dtype: torch.dtype = torch.float64
) -> Planted:
    """The Ising model on a `side` x `side` torus as an RBM with a hidden unit for each bond.

    Parameters
    ----------
    side : int
        L, at least 2: L^2 visible and 2 L^2 hidden units. For L = 2 each pair of neighbours has two
        bonds.
    coupling : float, optional
        J, between 0.001 and 20: the energy of a bond is -J s_1 s_2. By default the critical
        coupling, 0.4407. It is rounded to a value that weights of the given type can express.
    dtype : torch.dtype
        Type of the model, float32 or float64.

    Returns
    -------
    Planted
        Visible unit r L + c is the site in row r and column c. Draws are made by coupling from the
        past and are exact at every coupling. They take longest at the critical coupling.

    Raises
    ------
    InputError
        If a number does not fit. Also raised by `draws` if chains do not meet within 100,000
        sweeps, which can happen on large lattices close to the critical point.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> model = ising_2d(3)
    >>> model.rbm
    RBM(9 visible, 18 hidden, torch.float64, cpu)
    >>> abs(model.log_z - exact_log_z(model.rbm)) < 1e-10
    True
    """
    side = require_count("side", side, 2)
    coupling = _CRITICAL_COUPLING if coupling is None else coupling
    coupling = require_number("coupling", coupling, 1e-3, 20.0)
    dtype = require_type(dtype)
    weight = torch.tensor(2 * _acosh_exp(2 * coupling), dtype=dtype)
    sites = torch.arange(side * side).view(side, side)
    here = sites.flatten().repeat(2)
    there = torch.cat([sites.roll(-1, 1).flatten(), sites.roll(-1, 0).flatten()])
    bonds = torch.arange(2 * side * side)
    weights = torch.zeros(side * side, 2 * side * side, dtype=dtype)
    weights[here, bonds] = weights[there, bonds] = weight
    rbm = RBM(
        weights, (-2 * weight).expand(side * side).clone(), (-weight).expand(len(bonds)).clone()
    )
    rounded = weight.item()
    coupling = _log_cosh(rounded / 2) / 2
    bonds_log_z = len(bonds) * (math.log(2) + coupling - rounded / 2)
    log_z = _ising_log_z(side, coupling) + bonds_log_z
    return Planted(rbm, log_z, Draws(partial(_draw, side, coupling, dtype)))


def _ising_log_z(side: int, coupling: float) -> float:
    """ln Z = ln sum_s exp(J sum_bonds s_1 s_2) on a torus in nats.

    Kaufman (1949), in the form of Ferdinand & Fisher (1969).
    """
    # With n = side, Z = (2 sinh 2J)^{n^2 / 2} (Z_1 + Z_2 + Z_3 + Z_4) / 2, each Z_i a product over
    # r of 2 cosh or 2 sinh of n gamma / 2.
    log_sinh = _log_2_sinh(2 * coupling) - math.log(2)
    # (1 - S)^2 / S is cosh 2J coth 2J - 2, without cancellation; S = sinh 2J
    excess = 4 * math.sinh(log_sinh / 2) ** 2
    # cosh gamma_k = cosh 2J coth 2J - cos(pi k / n)
    gammas = [
        2 * math.asinh(math.sqrt(excess / 2 + math.sin(math.pi * k / (2 * side)) ** 2))
        for k in range(2 * side)
    ]
    # gamma_0 has the sign of the distance from the critical point
    gammas[0] = 2 * coupling + math.log(math.tanh(coupling))
    halves = [side * gamma / 2 for gamma in gammas]
    odd = halves[1::2]
    even = halves[0::2]
    log_terms = [
        sum(_log_2_cosh(x) for x in odd),
        sum(_log_2_sinh(abs(x)) for x in odd),
        sum(_log_2_cosh(x) for x in even),
        sum(_log_2_sinh(abs(x)) for x in even),
    ]
    largest = max(log_terms)
    scaled = [math.exp(term - largest) for term in log_terms]
    total = sum(scaled[:3]) + math.copysign(scaled[3], even[0])
    log_prefactor = side * side / 2 * (log_sinh + math.log(2)) - math.log(2)
    return log_prefactor + largest + math.log(total)


def _acosh_exp(x: float) -> float:
    """The y >= 0 with cosh y = e^x."""
    return x + math.log1p(math.sqrt(-math.expm1(-2 * x)))


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2) if x < 1 else _log_2_cosh(x) - math.log(2)


def _log_2_cosh(x: float) -> float:
    return abs(x) + math.log1p(math.exp(-2 * abs(x)))


def _log_2_sinh(x: float) -> float:
    """ln(2 sinh x) for x >= 0."""
    return x + math.log(-math.expm1(-2 * x)) if x > 0 else -math.inf


def _draw(
    side: int, coupling: float, dtype: torch.dtype, num_draws: int, generator: torch.Generator
) -> Tensor:
    """A site is 1 where the spin is up."""
    return _draw_spins(side, coupling, num_draws, generator).flatten(1).to(dtype)


def _draw_spins(side: int, coupling: float, num_draws: int, generator: torch.Generator) -> Tensor:
    """Independent exact draws, bool [num_draws, side, side]."""
    # The relation sinh 2J sinh 2J* = 1 is symmetric, so this formula works in both directions.
    dual = -math.log(math.tanh(coupling)) / 2
    # Near the critical point both ways take equally long, but only the ordered one discards draws.
    disordered = coupling <= 1.001 * dual
    sampler = _Coupled(side, coupling if disordered else dual, generator)
    together = max(1, _TOGETHER // side**2)
    draws: list[Tensor] = []
    missing = num_draws
    while missing > 0:
        spins = sampler.draw(min(missing, together))
        if not disordered:
            spins = _ordered_from_dual(spins, dual, generator)
        draws.append(spins)
        missing -= len(spins)
    return torch.cat(draws)


class _Coupled:
    """Read-once coupling from the past for heat-bath sweeps.

    Three chains share their random numbers: one from all spins down, one from all spins up, and one
    from which draws are taken. A site is one integer with four bits for each chain, the lowest of
    which is the spin, so the sum over four neighbours counts for all three at once.
    """

    _DOWN = 0x001
    _UP = 0x010
    _DRAWN = 0x100
    _ALL = _DOWN | _UP | _DRAWN

    def __init__(self, side: int, coupling: float, generator: torch.Generator) -> None:
        self._side = side
        # numpy's generator is several times faster than torch's in float64
        self._random = np.random.default_rng(_seeds(generator))
        # P(up) when 0 to 4 of the neighbours are up
        self._levels = torch.sigmoid(2 * coupling * torch.arange(-4, 5, 2).double()).tolist()
        # Sites of the same colour are not neighbours. A ring of odd length needs three colours.
        ring = torch.arange(side) % 2
        if side % 2:
            ring[-1] = 2
        colours = (ring[:, None] + ring) % (3 if side % 2 else 2)
        self._colours = [
            (self._ALL * (colours == colour)).to(torch.int16)
            for colour in range(int(colours.max()) + 1)
        ]
        self._block = self._meeting_time()

    def draw(self, num_draws: int) -> Tensor:
        """Exact draws, bool [num_draws, side, side].

        Each draw has its own sequence of blocks, so that none is preferred for being early.
        """
        drawn = torch.empty(num_draws, self._side, self._side, dtype=torch.bool)
        start = torch.zeros(num_draws, self._side, self._side, dtype=torch.int16)
        valid = torch.zeros(num_draws, dtype=torch.bool)
        places = torch.arange(num_draws)
        while len(places):
            sites = start | self._UP
            for _ in range(self._block):
                sites = self._sweep(sites)
            met = self._met(sites)
            finished = met & valid
            drawn[places[finished]] = start[finished] != 0
            valid |= met
            start = (sites & self._DRAWN)[~finished]
            valid = valid[~finished]
            places = places[~finished]
        return drawn

    def _sweep(self, sites: Tensor) -> Tensor:
        """One heat-bath update of every site of `sites` [n, side, side]."""
        uniform = self._random.random(tuple(sites.shape))
        above = sum((uniform < level).astype(np.int16) for level in self._levels)
        # A spin becomes up if at least 5 - above of its neighbours are up, that is, if their number
        # + 3 + above has the bit of value 8.
        carry = torch.from_numpy(np.asarray((above + 3) * self._ALL, dtype=np.int16))
        for colour in self._colours:
            count = sites.roll(1, 1) + sites.roll(-1, 1) + sites.roll(1, 2) + sites.roll(-1, 2)
            sites = (sites & ~colour) | (((count + carry) >> 3) & colour)
        return sites

    def _met(self, sites: Tensor) -> Tensor:
        """Whether the chains from all up and from all down are the same, for each lattice: [n]."""
        apart = (sites & self._UP) >> 4 != sites & self._DOWN
        return ~apart.flatten(1).any(1)

    def _meeting_time(self) -> int:
        """Sweeps after which most pairs of chains meet, from pilot chains with no other use."""
        shape = (_PILOTS, self._side, self._side)
        sites = torch.full(shape, self._UP, dtype=torch.int16)
        for sweeps in range(1, _MOST_SWEEPS + 1):
            sites = self._sweep(sites)
            if self._met(sites).sum() >= _PILOTS * 3 // 4:
                return sweeps
        raise InputError(
            f"side: expected a lattice whose chains meet within {_MOST_SWEEPS} sweeps, got "
            f"{self._side} so close to the critical coupling"
        )


def _seeds(generator: torch.Generator) -> list[int]:
    return torch.randint(2**32, (4,), generator=generator).tolist()


def _ordered_from_dual(spins: Tensor, coupling: float, generator: torch.Generator) -> Tensor:
    """Draws at the dual coupling from `spins` [n, side, side] at `coupling`.

    Those with walls that wind around the torus are left out.
    """
    # Bonds to the right and downwards from each site of the dual lattice.
    equal = torch.stack([spins == spins.roll(-1, 2), spins == spins.roll(-1, 1)])
    uniform = torch.rand(equal.shape, dtype=torch.float64, generator=generator)
    coins = torch.rand(equal.shape, dtype=torch.float64, generator=generator) < 0.5
    walls = _uniform_even_subgraph(equal & (uniform < -math.expm1(-2 * coupling)), coins)
    # A dual bond to the right crosses the downward bond of the next site; a downward dual bond
    # crosses the rightward bond of the site below.
    between_rows = walls[0].roll(1, 2)
    between_columns = walls[1].roll(1, 1)
    closed = (between_rows[:, :, 0].sum(1) % 2 == 0) & (between_columns[:, 0, :].sum(1) % 2 == 0)
    first = torch.rand(len(spins), generator=generator) < 0.5
    # Parity of the number of walls on the way from the first site: down the first column, then
    # along the row.
    down = between_rows[:, :, :1].long().roll(1, 1)
    down[:, 0] = 0
    along = between_columns.long().roll(1, 2)
    along[:, :, 0] = 0
    walls_crossed = down.cumsum(1) + along.cumsum(2)
    return ((walls_crossed % 2).bool() ^ first[:, None, None])[closed]


def _uniform_even_subgraph(bonds: Tensor, coins: Tensor) -> Tensor:
    """A uniform draw among the subsets of `bonds` with an even number at every site.

    The shape of `bonds` is [2, n, side, side]. Bonds outside a spanning forest are taken according
    to their coins; those in the forest are then determined, from the leaves to the roots.
    """
    _, count, side, _ = bonds.shape
    sites = torch.arange(count * side * side).view(count, side, side)
    others = torch.stack([sites.roll(-1, 2), sites.roll(-1, 1)])
    indices = torch.nonzero(bonds.flatten()).flatten().numpy()
    here = sites.expand(2, -1, -1, -1).flatten().numpy()[indices]
    there = others.flatten().numpy()[indices]
    size = count * side * side
    graph = coo_array((np.ones(len(indices)), (here, there)), shape=(size, size))
    number, labels = connected_components(graph, directed=False)
    # A common root above one site of each component turns the forest into a tree, which a single
    # search traverses.
    roots = np.empty(number, dtype=np.int64)
    roots[labels[::-1]] = np.arange(size)[::-1]
    rows = np.concatenate([here, np.full(number, size)])
    columns = np.concatenate([there, roots])
    rooted = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size + 1, size + 1))
    order, parents = breadth_first_order(rooted.tocsr(), size, directed=False)
    # On a lattice of side 2, only the first of two bonds between the same sites is in the tree.
    in_tree = (parents[here] == there) | (parents[there] == here)
    child = np.where(parents[here] == there, here, there)
    _, firsts = np.unique(np.where(in_tree, child, -1 - np.arange(len(child))), return_index=True)
    first = np.zeros(len(child), dtype=bool)
    first[firsts] = True
    in_tree &= first
    taken = np.where(in_tree, False, coins.flatten().numpy()[indices])
    odd = np.zeros(size + 1, dtype=np.int64)
    np.add.at(odd, here, taken)
    np.add.at(odd, there, taken)
    parity = (odd % 2).tolist()
    parent = parents.tolist()
    for site in order[:0:-1].tolist():
        # A site with an odd number of taken bonds also takes the bond to its parent.
        if parity[site]:
            parity[parent[site]] ^= 1
    taken[in_tree] = np.array(parity, dtype=bool)[child[in_tree]]
    subset = torch.zeros(bonds.numel(), dtype=torch.bool)
    subset[torch.from_numpy(indices)] = torch.from_numpy(taken)
    return subset.view(bonds.shape)
