"""What chapter 02 claims of chains so small that everything about them can be computed."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor

from boltzmann_companion.claims.checks import Check, Claims, Rows
from boltzmann_companion.rows import where
from paperlib.mcmc import MarkovChain, total_variation


def dimension(rows: Rows, num_draws: int) -> Claims:
    """Of importance sampling from a proposal that is too wide."""
    claim = "50 dimensions, importance: fewer than ten draws are effective"
    yield claim, rows[-1]["effective_exact"] * num_draws < 10


def metropolis(log_target: Tensor, proposal: MarkovChain) -> Claims:
    """Of a lopsided proposal for ln p* [S], without the Hastings factor: accept by p(x*) / p(x) alone."""
    moves = proposal.transition * (log_target - log_target[:, None]).clamp(max=0).exp()
    wrong = MarkovChain(moves + (1 - moves.sum(1)).diag())
    another = total_variation(wrong.stationary, log_target.softmax(0)) > 0.05
    yield "without the Hastings factor, another distribution comes out", another


def random_walk(by_step: Rows, by_dimension: Rows, independent: Rows) -> Claims:
    """Of random walks by the size of a step and by the dimension, and of independent draws by the dimension."""
    effective = [row["effective"] for row in by_step]
    inside = max(effective) > max(effective[0], effective[-1])
    yield "the best step is neither the smallest nor the largest", inside
    better = by_dimension[-1]["effective"] > 10 * independent[-1]["effective_exact"]
    yield "in 50 dimensions the walk is better than importance sampling", better


def strength(rows: Rows) -> Claims:
    """Of relaxation times by the factor of all parameters."""
    times = {(row["kernel"], row["factor"]): row["time"] for row in rows}
    slower = all(times[name, 3.0] > 3 * times[name, 1.0] for name, _ in times)
    yield "from factor 1 to 3 each of the chains slows down more than threefold", slower
    slower = times["Metropolis, one flip", 0.125] > times["Metropolis, one flip", 0.75]
    yield "Metropolis is slow for weak weights, too", slower


def worth(variances: Rows, kernels: Rows) -> Claims:
    """Of variances of means by length, and of what the steps of each kind of chain are worth."""
    claim = "for N = 200 the naive c_0 / N is less than half of the variance"
    yield claim, variances[-1]["simulated"] > 2
    block = kernels[-1]
    yield "1,000 steps of block Gibbs are worth 224 draws", round(float(block["worth"])) == 224
    close = all(abs(row["tau_estimated"] / row["tau"] - 1) < 0.1 for row in kernels)
    yield "each estimate of tau is within 10 % of the exact value", close


def inference(rows: Rows, exact: Tensor, by_mean_field: Tensor) -> Claims:
    """Of three ways to a posterior; with marginals [M] under the blank image at strength 4, exact and by mean field."""
    settled = where(rows, propagation_settled="yes")
    better = all(row["propagation"] < row["mean_field"] for row in settled)
    yield "where belief propagation converges it beats mean field", better
    claim = "decisive image: belief propagation within 1 percentage point at every strength"
    yield claim, all(row["propagation"] < 1 for row in where(rows, image="decisive"))
    blank = where(rows, image="blank")
    settles = blank[-1]["propagation_settled"] == "yes"
    yield Check("blank image, strength 4: belief propagation converges", settles, expected=False)
    largest = max(float(row["mean_field"]) for row in rows)
    yield "mean field is off by up to 45 percentage points", round(largest) == 45
    undecided = (exact - 0.5).abs().max() < 0.1
    confident = (by_mean_field - 0.5).abs().min() > 0.35
    claim = "in truth all units are between 0.4 and 0.6, and mean field has them all below 0.15 or above 0.85"
    yield claim, undecided and confident
    rising = all(a["rate"] < b["rate"] for a, b in pairwise(blank))
    ends = [round(float(row["rate"]), 2) for row in (blank[0], blank[-1])]
    claim = "blank image: the second eigenvalue of Gibbs sampling rises steadily from 0.03 to 0.95"
    yield claim, rising and ends == [0.03, 0.95]
