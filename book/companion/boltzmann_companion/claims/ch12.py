"""What chapter 12 claims of recognition networks, wake-sleep, AIS of a directed model, learned starts, LISTA and VAEs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Row, Rows
from boltzmann_companion.studies.learned_inference import Assessment


def amortised(rows: Rows) -> Claims:
    """Of mean field from the prior and from three networks."""
    prior, flat, one, two = rows
    claim = "one affine layer loses more than twice what one tanh layer does"
    yield claim, flat["gap"] > 2 * one["gap"]
    claim = "from the best network mean field ends at better maxima than from the prior"
    yield claim, two["end"] < prior["end"]


def wake_sleep(rows: Rows) -> Claims:
    """Of wake-sleep beside exact learning, along training."""
    last = rows[-1]
    claim = "exact learning is ahead of wake-sleep, by less than half a nat"
    yield claim, 0 < last["exact"] - last["log_prob"] < 0.5


def directions(rows: Rows, asleep: Assessment) -> Claims:
    """Of networks for two finished models; for that of exact learning the one by the bound is then trained by sleep."""
    _, of_wake_sleep, _, of_exact = rows
    claim = "sleep lowers the bound of a network that was trained by it"
    yield claim, asleep.bound < of_exact["bound"] - 0.02
    claim = "the model of exact learning is harder to recognise, more than twice the gap"
    yield claim, of_exact["gap"] > 2 * of_wake_sleep["gap"]


def directed(rows: Rows, errors: Mapping[int, Tensor], network_gap: float) -> Claims:
    """Of AIS, from 1 to 100 steps, and its errors of ln p(v) [chains, N] by the number of steps."""
    *short, _ = rows
    low = all(row["one"] < -4 * row["one_error"] for row in short)
    high = all(row["rbm"] > 4 * row["rbm_error"] for row in short)
    claim = "up to 30 steps one chain is too low on average, and the RBM's too high, by more than four standard errors"
    yield claim, low and high
    either = all(0 < row["above"] < 100 for row in rows)
    yield "a single image's estimate may be above the truth", either
    claim = "30 steps and one chain are closer than the network's bound"
    yield claim, -short[-1]["one"] < network_gap
    means = [values.exp().mean(0) for steps, values in errors.items() if steps >= 10]
    scores = [(mean.mean() - 1) / (mean.std() / math.sqrt(len(mean))) for mean in means]
    yield "the mean weight is p(v), within four standard errors", max(map(abs, scores)) < 4


def starts(rows: Rows) -> Claims:
    """Of mean field in the DBM from the biases, doubled weights, and two learned networks."""
    biases, _, learned, _ = rows
    saved = biases["updates"] - learned["updates"]
    yield "the learned start saves more than one update, and fewer than two", 1 < saved < 2


def lista(rows: Rows) -> Claims:
    """Of ISTA, and of LISTA at the depths at which it was learned."""
    excess = {(row["algorithm"], row["depth"]): row for row in rows}
    eight, two, all_steps = (
        excess[key]["new"] for key in (("ISTA", 8), ("LISTA", 2), ("ISTA", 24))
    )
    claim = "two learned layers beat eight steps of ISTA, but not twenty-four"
    yield claim, all_steps < two < eight
    new, noise = (excess["ISTA", 2][key] / excess["LISTA", 2][key] for key in ("new", "noise"))
    yield "two layers: the lead on noise is smaller by a quarter or more", noise < 0.75 * new


def vaes(bounds: Row, gaps: Rows) -> Claims:
    """Of the VAE with two latent dimensions, whose ln p(v) is known: bounds by the number of weights, and gaps of two Gaussians."""
    one, thousand = (bounds["truth"] - bounds[key] for key in ("k1", "k1000"))
    claim = "one weight: more than 0.05 nats below the truth; a thousand: within 0.01"
    yield claim, one > 0.05 and abs(thousand) < 0.01
    encoder, own = (row["gap"] for row in gaps)
    claim = "a Gaussian of its own for each image leaves some of the gap, but less than half"
    yield claim, 0.01 < own < 0.5 * encoder
