"""What chapter 02 claims of chains so small that everything about them can be computed.

Where a line states two or three things at once, a function makes the line, and asks `answer` for each: `Chapter.answer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Check, Claims, Rows, largest_gap
from boltzmann_companion.rows import where
from boltzmann_companion.studies.tiny_chains import bounds, distances
from paperlib.mcmc import (
    MarkovChain,
    acceptance_matrix,
    gibbs_sweep,
    loopy_belief_propagation,
    metropolis_hastings_chain,
    total_variation,
)
from paperlib.models import RBM
from paperlib.numerics import all_states


def dimension(rows: Rows, num_draws: int) -> Claims:
    """Of rejection and importance sampling from a proposal that is too wide."""
    few = [row for row in rows if row["dimension"] <= 5]
    agree = len(few) == 3
    for row in few:
        exact = row["accepted_exact"]
        error = 5 * math.sqrt(exact * (1 - exact) / num_draws)  # five standard errors
        agree &= abs(row["accepted"] - exact) < error
        agree &= abs(row["effective"] / row["effective_exact"] - 1) < 0.05
    yield "up to 5 dimensions, measured shares agree with the proposition", agree
    last = rows[-1]
    claim = "50 dimensions, rejection: fewer than one of 20,000 draws is expected"
    yield claim, last["accepted_exact"] * num_draws < 1
    claim = "50 dimensions, importance: fewer than ten draws are effective"
    yield claim, last["effective_exact"] * num_draws < 10


def properties(chains: Mapping[str, MarkovChain], rows: Rows) -> Claims:
    """Of the search through a graph, beside powers of the matrix and first returns; and of the table of properties."""
    for name, chain in chains.items():
        powers = [torch.linalg.matrix_power(chain.transition, n) for n in range(1, 61)]
        possible = torch.stack([power > 0 for power in powers])
        periods = [
            math.gcd(*(n for n in range(1, 61) if possible[n - 1, x, x]))
            for x in range(chain.num_states)
        ]
        returns_surely = (chain.first_return_probs(2_000).sum(0) - 1).abs() < 1e-9
        agree = (
            chain.is_irreducible == bool(possible.any(0).all())
            and chain.periods.tolist() == periods
            and torch.equal(chain.recurrent, returns_surely)
        )
        yield f"{name}: graph search agrees with the definitions", agree
    keys = ("irreducible", "recurrent", "ergodic", "forgets")
    both = all(len({row[key] for row in rows}) == 2 for key in keys)
    yield "each property is present in one chain and absent in another", both
    yield "so is aperiodicity", {row["period"] > 1 for row in rows} == {True, False}


def return_times(walks: Sequence[MarkovChain]) -> Claims:
    """Of walks around rings, by the probabilities of a first return after so many steps."""
    times = torch.arange(1, 8_001, dtype=torch.float64)
    for walk in walks:
        mean = (times @ walk.first_return_probs(8_000)[:, 0]).item()
        expected = (1 / walk.stationary[0].item(), walk.num_states)
        agree = all(abs(mean - value) < 1e-6 for value in expected)
        yield f"ring of {walk.num_states:2}: mean return time {mean:.4f}; equal to 1 / pi", agree


def limits(
    chains: Mapping[str, MarkovChain],
    eigenvectors: Mapping[str, Tensor],
    answer: Callable[..., str],
) -> Iterator[str]:
    """A line for each chain: whether its eigenvector [1, S] solves the linear equations, and is the limit of the powers."""
    for name, chain in chains.items():
        number = len(eigenvectors[name])
        if number > 1:
            yield f"{name}: {number} eigenvalues equal to 1, no unique stationary distribution"
            continue
        by_eigenvector = _normalised(eigenvectors[name])
        limit = torch.linalg.matrix_power(chain.transition, 1_000)
        same = answer(largest_gap(by_eigenvector, chain.stationary) < 1e-12)
        reached = largest_gap(limit, by_eigenvector) < 1e-12
        found = answer(reached, expected=name != "even ring")
        yield (
            f"{name}: eigenvector solves the linear equations: {same}; limit of the powers: {found}"
        )


def uniqueness(chains: Mapping[str, MarkovChain], eigenvectors: Mapping[str, Tensor]) -> Claims:
    """Of the eigenvectors [n, S] of each chain to the eigenvalue 1."""
    several = [name for name, found in eigenvectors.items() if len(found) > 1]
    yield "only the two islands have no unique one", several == ["two islands"]
    signs_tell = all(
        bool((_normalised(eigenvectors[name]) > 0).all()) == chain.is_irreducible
        for name, chain in chains.items()
        if name not in several
    )
    yield "it is positive everywhere just for irreducible chains", signs_tell


def balance(chains: Mapping[str, MarkovChain], answer: Callable[..., str]) -> Iterator[str]:
    """A line for each chain on a ring: whether it keeps the uniform distribution, and whether in detailed balance."""
    for name, chain in chains.items():
        uniform = torch.full((chain.num_states,), 1 / chain.num_states, dtype=torch.float64)
        keeps = answer(largest_gap(uniform @ chain.transition, uniform) < 1e-12)
        balanced = answer(_balanced(chain, chain.stationary), expected=name == "lazy ring")
        yield (
            f"{name}: leaves the uniform distribution invariant: {keeps}; "
            f"detailed balance: {balanced}"
        )


def rates(rows: Rows, answer: Callable[..., str]) -> Iterator[str]:
    """A line for each chain: whether it converges at the rate that is predicted."""
    for row in rows:
        # complex eigenvalues make the distance swing around its exponential decline, hence the looser comparison
        tolerance = 0.01 if row["chain"] == "roundabout" else 1e-4
        same = answer(abs(row["measured"] - row["predicted"]) < tolerance)
        yield (
            f"{row['chain']}: |lambda_2| = {row['predicted']:.4f}, {row['steps']} steps; "
            f"measured the same: {same}"
        )


def rings(walks: Mapping[str, MarkovChain]) -> Claims:
    """Of walks around rings that rest with probability 0.2."""
    as_formula = all(
        abs(walk.convergence_rate - 0.2 - 0.8 * math.cos(2 * math.pi / walk.num_states)) < 1e-12
        for walk in walks.values()
    )
    yield "eigenvalues of the rings are those of the formula", as_formula
    below = all(
        bool((distances(walk, 3_000) <= bounds(walk, 3_000) + 1e-12).all())
        for walk in walks.values()
    )
    yield "the bound holds for every number of steps", below


def metropolis(chain: MarkovChain, log_target: Tensor, proposal: MarkovChain) -> Claims:
    """Of the chain of Metropolis and Hastings by hand, for ln p* [S] and a proposal."""
    target = log_target.softmax(0)
    yield "detailed balance for all pairs", _balanced(chain, target)
    keeps = largest_gap(chain.stationary, target) < 1e-12
    yield "the stationary distribution is the target", keeps
    yield "irreducible and aperiodic", chain.is_irreducible and chain.is_aperiodic
    library = metropolis_hastings_chain(log_target, proposal)
    same = largest_gap(library.transition, chain.transition) < 1e-12
    yield "the library's chain is the same", same
    shifted = metropolis_hastings_chain(log_target + 100, proposal)
    same = largest_gap(shifted.transition, chain.transition) < 1e-12
    yield "a constant added to ln p* changes nothing", same
    # what happens without the Hastings factor: accept by p(x*) / p(x) alone
    plain = proposal.transition * (log_target - log_target[:, None]).clamp(max=0).exp()
    plain.fill_diagonal_(0)
    wrong = MarkovChain(plain + torch.diag(1 - plain.sum(1)))
    another = total_variation(wrong.stationary, target) > 0.05
    yield "without the Hastings factor, another distribution comes out", another


def random_walk(by_step: Rows, by_dimension: Rows, independent: Rows) -> Claims:
    """Of random walks by the size of a step and by the dimension, and of independent draws by the dimension."""
    falling = all(a["accepted"] > b["accepted"] for a, b in pairwise(by_step))
    yield "larger steps are accepted less often", falling
    effective = [row["effective"] for row in by_step]
    inside = max(effective) > max(effective[0], effective[-1])
    yield "the best step is neither the smallest nor the largest", inside
    walk = {row["dimension"]: row["effective"] for row in by_dimension}
    weighted = {row["dimension"]: row["effective_exact"] for row in independent}
    claim = "from 5 to 50 dimensions the effective share falls less than 20-fold"
    yield claim, walk[5] / walk[50] < 20
    claim = "importance sampling's share falls more than 1,000-fold"
    yield claim, weighted[5] / weighted[50] > 1_000
    yield "in 50 dimensions the walk is the better one", walk[50] > 10 * weighted[50]


def single_units(
    units: Sequence[MarkovChain], log_target: Tensor, answer: Callable[..., str]
) -> Iterator[str]:
    """A line for the update of each unit: whether it is Metropolis-Hastings that always accepts."""
    for number, unit in enumerate(units, start=1):
        accepted = acceptance_matrix(log_target, unit)[unit.transition > 0]
        always = answer(largest_gap(accepted, 1) < 1e-12)
        corrected = metropolis_hastings_chain(log_target, unit)
        same = answer(largest_gap(corrected.transition, unit.transition) < 1e-12)
        yield (
            f"unit {number}: every proposal is accepted: {always}; "
            f"Metropolis-Hastings changes nothing: {same}"
        )


def scans(
    chains: Mapping[str, MarkovChain], target: Tensor, answer: Callable[..., str]
) -> Iterator[str]:
    """A line for each way to take turns: whether it converges, to what [S], and whether in detailed balance."""
    for name, chain in chains.items():
        irreducible = answer(chain.is_irreducible)
        keeps = answer(largest_gap(chain.stationary, target) < 1e-12)
        balanced = answer(_balanced(chain, target), expected=name == "random scan")
        yield (
            f"{name}: irreducible: {irreducible}; keeps p: {keeps}; detailed balance: {balanced}"
        )


def alone(units: Sequence[MarkovChain]) -> Claims:
    """Of the updates of single units."""
    reaches = any(unit.is_irreducible for unit in units)
    yield Check("a single unit's update alone is irreducible", reaches, expected=False)


def block(rbm: RBM, both: MarkovChain, visible: MarkovChain, generator: torch.Generator) -> Claims:
    """Of block Gibbs sampling of an RBM with three visible and two hidden units: on all units, and on the visible ones alone."""
    states, joint_states = all_states(3), all_states(5)
    log_joint = -rbm.energy(joint_states[:, :3], joint_states[:, 3:])
    joint, target = log_joint.softmax(0), rbm.log_unnormalized(states).softmax(0)
    keeps = largest_gap(both.stationary, joint) < 1e-12
    yield "stationary distribution of the block chain = enumeration", keeps
    keeps = largest_gap(visible.stationary, target) < 1e-12
    yield "that of the visible chain = enumeration", keeps
    yield "irreducible and aperiodic", both.is_irreducible and both.is_aperiodic
    flow = both.flow(joint)
    yield "the joint chain violates detailed balance", largest_gap(flow, flow.T) > 1e-3
    yield "the visible chain satisfies it", _balanced(visible, target)
    same = abs(both.convergence_rate - visible.convergence_rate) < 1e-9
    yield "both forget at the same rate", same
    one_by_one = gibbs_sweep(log_joint, [[3], [4], [0], [1], [2]])
    same = largest_gap(one_by_one.transition, both.transition) < 1e-12
    yield "unit by unit in this order is the same chain", same
    count, place_value = 40_000, torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64)
    drawn = rbm.gibbs_step(states[1].expand(count, -1), generator) @ place_value
    frequencies = torch.bincount(drawn.long(), minlength=8) / count
    row = visible.transition[1]
    near = ((frequencies - row).abs() < 4.5 * (row * (1 - row) / count).sqrt()).all()
    yield "RBM.gibbs_step draws from its row, within 4.5 standard errors", near


def strength(rows: Rows, flip_any: MarkovChain) -> Claims:
    """Of relaxation times by the factor of all parameters; and of the proposal of Metropolis, alone."""
    times = {(row["kernel"], row["factor"]): row["time"] for row in rows}
    for name in dict.fromkeys(row["kernel"] for row in rows):
        slower = times[name, 3.0] > 3 * times[name, 1.0]
        yield f"{name}: from factor 1 to 3 it slows down more than threefold", slower
    one, two, three = (times["block Gibbs", factor] for factor in (1.0, 2.0, 3.0))
    claim = "block Gibbs: each further unit of the factor costs more than a factor of 3"
    yield claim, min(two / one, three / two) > 3
    flat = metropolis_hastings_chain(torch.zeros(flip_any.num_states).double(), flip_any)
    yield "Metropolis flips on a flat target have period 2", flat.periods[0] == 2
    slower = times["Metropolis, one flip", 0.125] > times["Metropolis, one flip", 0.75]
    yield "which is why it is slow for weak weights, too", slower


def worth(variances: Rows, kernels: Rows, num_chains: int) -> Claims:
    """Of variances of means along so many chains, by length; and of what the steps of each kind of chain are worth."""
    relative = [row["simulated"] / row["predicted"] - 1 for row in variances]
    # 4.5 standard errors; the values are bimodal, so that their means have less kurtosis than the normal variable
    # assumed for the error
    near = max(map(abs, relative)) < 4.5 * math.sqrt(2 / (num_chains - 1))
    yield "simulated variances agree with the formula", near
    longest, block_row = variances[-1], kernels[-1]
    claim = "for N = 200 the naive c_0 / N is less than half of the variance"
    yield claim, longest["simulated"] > 2
    close = abs(longest["predicted"] / block_row["tau"] - 1) < 0.05
    yield "N = 200 is within 5 % of the limit tau", close
    yield "1,000 steps of block Gibbs are worth 224 draws", round(float(block_row["worth"])) == 224
    for row in kernels:
        agree = abs(row["tau_estimated"] / row["tau"] - 1) < 0.1
        yield f"{row['kernel']}: tau = {row['tau']:.2f}, estimated within 10 %", agree


def inference(rows: Rows, exact: Tensor, by_mean_field: Tensor) -> Claims:
    """Of four ways to a posterior; with marginals [M] under the blank image at strength 4, exact and by mean field."""
    exact_way = all(row["conditioning"] < 1e-9 for row in rows)
    yield "conditioning on the smaller layer is exact", exact_way
    settled = [row for row in rows if row["propagation_settled"] == "yes"]
    better = all(row["propagation"] < row["mean_field"] for row in settled)
    yield "where belief propagation converges it beats mean field", better
    decisive, blank = (where(rows, image=image) for image in ("decisive", "blank"))
    claim = "decisive image: belief propagation within 1 percentage point at every strength"
    yield claim, all(row["propagation"] < 1 for row in decisive)
    strongest = blank[-1]
    settles = strongest["propagation_settled"] == "yes"
    yield Check("blank image, strength 4: belief propagation converges", settles, expected=False)
    claim = "blank image, strength 4: mean field is off by more than 20 percentage points"
    yield claim, strongest["mean_field"] > 20
    largest = max(float(row["mean_field"]) for row in rows)
    yield "mean field is off by up to 45 percentage points", round(largest) == 45
    undecided = (exact - 0.5).abs().max() < 0.1
    confident = (by_mean_field - 0.5).abs().min() > 0.35
    claim = "in truth all units are between 0.4 and 0.6, and mean field has them all below 0.15 or above 0.85"
    yield claim, undecided and confident
    claim = "blank image: Gibbs sampling forgets more slowly at each further strength"
    yield claim, all(a["rate"] < b["rate"] for a, b in pairwise(blank))
    ends = [round(float(row["rate"]), 2) for row in (blank[0], strongest)]
    yield "its second eigenvalue rises from 0.03 to 0.95", ends == [0.03, 0.95]


def tree(couplings: Tensor, biases: Tensor) -> Claims:
    """Of units in a row, with couplings [n - 1] between neighbours and biases [n]."""
    states, joined = all_states(len(biases)), torch.diag(couplings, 1)
    joined = joined + joined.T
    log_p = states @ biases + ((states @ joined) * states).sum(-1) / 2
    found = torch.sigmoid(loopy_belief_propagation(joined, biases).logits)
    same = largest_gap(found, log_p.softmax(0) @ states) < 1e-9
    yield "on a graph without loops belief propagation is exact", same


def _balanced(chain: MarkovChain, distribution: Tensor) -> bool:
    """Whether the flow between all pairs of states is the same in both directions."""
    flow = chain.flow(distribution)
    return largest_gap(flow, flow.T) < 1e-12


def _normalised(eigenvector: Tensor) -> Tensor:
    """An eigenvector [1, S] as a distribution [S]."""
    return eigenvector[0] / eigenvector.sum()
