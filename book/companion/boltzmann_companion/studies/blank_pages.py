"""Where a model has its mass: on nearly blank pages, where its images' chains go, or elsewhere.

Block Gibbs sampling is reversible: p(v) T(v, w) = sum_h p(v, h) p(w, h) / p(h) is symmetric in v
and w, and so is p(v) T^m(v, w) for m steps. Let B be the nearly blank pages, and A those other
pages from which m steps end in B with a probability of at least a half. As much flows from A to B
as from B to A:

    p(A) / 2  <=  sum_{v in A} p(v) T^m(v, B)
               =  sum_{w in B} p(w) T^m(w, A)
              <=  p(B) P(not in B after m steps from B).

Chains from the blank page stand for draws from p on B once they have forgotten it. Among these
draws the share of the blank page itself, whose p* is known, gives the mass of B.

The bound says nothing of pages from which chains seldom end in B. The mass of those to which they
go instead is estimated by AIS that starts at the base rates of these ends, not of the images.
Nothing is said of modes to which neither the images nor the blank page lead.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from scipy.stats import binomtest
from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.studies.bracket_rows import Entry, entries_of
from boltzmann_companion.studies.bracket_tables import TABLES, bracket_runs
from boltzmann_likelihood.store import kept
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.datasets import base_rate_bias
from paperlib.estimators import PartitionEstimate, ReverseEstimate, ais
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

# Probability with which pages of A end in B, and how sure the bound is.
_ARRIVING = 0.5
_LEVEL = 0.95
_AIS_CHAINS = 200


def longest_bracket(
    size: Profile, model_id: str, seed: int
) -> tuple[Entry, PartitionEstimate, ReverseEstimate]:
    """A model of chapter 8 and its images, with AIS and RAISE from the base rates at the last K."""
    table = TABLES[size.name]["raise-table-1"]
    start = "base rates"
    entry = entries_of(size, table, seed)[model_id]
    first = seed + table.stream(entry.number, start, table.steps[-1])
    path = entry.path(start)
    folder = None if size.name == "digits" else size.folder
    below, above = bracket_runs(size, table, path, entry.v, table.steps[-1], first)
    return entry, kept(above, folder, False), kept(below, folder, False)


def gaps_of_raise(size: Profile, model_id: str, seed: int) -> tuple[Entry, Tensor]:
    """The model and images of `longest_bracket`; by how much RAISE is below AIS on each image."""
    entry, above, below = longest_bracket(size, model_id, seed)
    return entry, entry.log_p[entry.cases] - above.log_z - below.log_prob


def flow_row(
    entry: Entry,
    gaps: Tensor,
    fewer_than: int,
    chains: int,
    blank_chains: int,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """The row of `blank-page-flow` of a model.

    Parameters
    ----------
    entry : Entry
        The model, and the test images at which chains start.
    gaps : Tensor, shape [n]
        By how much RAISE is below AIS on these images, in nats.
    fewer_than : int
        A page with fewer pixels on is nearly blank.
    chains, blank_chains : int
        Chains from each image, and from the blank page.
    steps : int
        Gibbs steps, m, and those of AIS. Chains from the blank page make as many before, to forget
        it.
    seed : int
        Seed of the chains.
    """
    rbm = entry.model
    generator = seeded_generator(seed)
    counts, ends = _walk(rbm, entry.v.repeat_interleave(chains, 0), steps, generator)
    arrived = counts[-1] < fewer_than
    share = arrived.view(-1, chains).double().mean(1)
    row = {
        "model": entry.name,
        "images": len(entry.v),
        "gibbs_steps": steps,
        "arrived": arrived.double().mean().item(),
        "half_arrive": int((share >= _ARRIVING).sum()),
        "half_gap": _mean(gaps[share >= _ARRIVING]),
        "largest_gap": gaps[share > 0].max().item() if arrived.any() else None,
        "none_arrive": int((share == 0).sum()),
        "none_gap": _mean(gaps[share == 0]),
        "pixels_arrived": _mean(counts[-1, arrived]),
    }
    row |= _from_blank(rbm, fewer_than, blank_chains, steps, generator)
    elsewhere = ends[~arrived]
    if len(elsewhere) == 0:
        return row | dict.fromkeys(("rest_pixels", "rest_log_z", "rest_error", "rest_effective"))
    path = BaseRatePath(rbm, base_rate_bias(elsewhere))
    estimate = ais(path, uniform_betas(steps), _AIS_CHAINS, generator, False, check=False)
    # weights of chains that end elsewhere have the mass there as their mean
    blank = estimate.final_states.sum(1) < fewer_than
    rest = replace(estimate, log_weights=estimate.log_weights.masked_fill(blank, -math.inf))
    return row | {
        "rest_pixels": _mean(counts[-1, ~arrived]),
        "rest_log_z": rest.log_z,
        "rest_error": rest.std_error,
        "rest_effective": rest.effective_sample_size,
    }


def _from_blank(
    rbm: RBM, fewer_than: int, chains: int, steps: int, generator: torch.Generator
) -> dict[str, Any]:
    """Whether chains from the blank page leave nearly blank pages, and the mass of these.

    The mass is None where fewer than two chains can tell.
    """
    counts, _ = _walk(rbm, torch.zeros(chains, rbm.num_visible), 2 * steps, generator)
    row = {"states": counts.numel(), "most_pixels": int(counts.max())}
    later = counts[steps:, counts[steps - 1] < fewer_than]
    inside = (later < fewer_than).sum(0).double()
    empty = (later == 0).sum(0).double()
    if len(inside) < 2 or empty.sum() == 0:
        mass = ("chains", "pixels_on", "mass_bound", "blank_log_z", "blank_error")
        return row | dict.fromkeys(mass)
    share = (empty.sum() / inside.sum()).item()
    # of a ratio of two sums over independent chains
    error = (empty - share * inside).std().item() * math.sqrt(len(inside))
    log_p = rbm.log_unnormalized(torch.zeros(1, rbm.num_visible)).item()
    stayed = later[-1] < fewer_than
    departures = binomtest(int((~stayed).sum()), len(inside), alternative="less")
    return row | {
        "chains": len(inside),
        "pixels_on": _mean(later[-1, stayed]),
        "mass_bound": 100 * departures.proportion_ci(_LEVEL).high / _ARRIVING,
        "blank_log_z": log_p - math.log(share),
        "blank_error": error / empty.sum().item(),
    }


def _walk(rbm: RBM, v: Tensor, steps: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """How many pixels are on after each step, int16 [steps, chains], and the last states."""
    v = v.to(rbm.dtype)
    counts = []
    for _ in range(steps):
        v = rbm.gibbs_step(v, generator)
        counts.append(v.sum(1).to(torch.int16))
    return torch.stack(counts), v


def _mean(values: Tensor) -> float | None:
    return values.double().mean().item() if len(values) else None
