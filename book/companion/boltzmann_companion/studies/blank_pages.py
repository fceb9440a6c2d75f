"""How much probability a model can have beyond its nearly blank pages, told by Gibbs chains of the model alone: no path, and no estimate of ln Z.

Block Gibbs sampling is reversible: p(v) T(v, w) = sum_h p(v, h) p(w, h) / p(h) is symmetric in v and w, and so is p(v) T^m(v, w) for m steps.
Let B be the nearly blank pages, and A those other pages from which m steps end in B with a probability of at least a half. As much flows from A to B
as from B to A:

    p(A) / 2  <=  sum_{v in A} p(v) T^m(v, B)  =  sum_{w in B} p(w) T^m(w, A)  <=  p(B) P(not in B after m steps from B).

Chains from the blank page stand for draws from p on B once they have forgotten it. The bound says nothing of pages from which chains seldom end in B.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.special import betaincinv
from torch import Tensor

from boltzmann_companion.studies.bracket_rows import Entry
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

# Probability with which pages of A end in B, and how sure the bound is.
_ARRIVING, _LEVEL = 0.5, 0.95


def flow_row(
    entry: Entry, fewer_than: int, chains: int, blank_chains: int, steps: int, seed: int
) -> dict[str, Any]:
    """The row of `blank-page-flow` of a model.

    Parameters
    ----------
    entry : Entry
        The model, and the test images at which chains start.
    fewer_than : int
        A page with fewer pixels on is nearly blank.
    chains, blank_chains : int
        Chains from each image, and from the blank page.
    steps : int
        Gibbs steps, m. Chains from the blank page make as many before, to forget it.
    seed : int
        Seed of the chains.
    """
    generator = seeded_generator(seed)
    row = {"model": entry.name, "images": len(entry.v), "gibbs_steps": steps}
    row |= _from_images(entry, fewer_than, chains, steps, generator)
    return row | _from_blank(entry.model, fewer_than, blank_chains, steps, generator)


def _from_images(
    entry: Entry, fewer_than: int, chains: int, steps: int, generator: torch.Generator
) -> dict[str, Any]:
    """How many of the chains from images end on nearly blank pages."""
    pixels = _pixels_on(entry.model, entry.v.repeat_interleave(chains, 0), steps, generator)[-1]
    arrived = pixels < fewer_than
    of_image = arrived.view(-1, chains).double().mean(1)
    return {
        "arrived": arrived.double().mean().item(),
        "half_arrive": int((of_image >= _ARRIVING).sum()),
        "none_arrive": int((of_image == 0).sum()),
        "pixels_arrived": pixels[arrived].double().mean().item() if arrived.any() else None,
    }


def _from_blank(
    rbm: RBM, fewer_than: int, chains: int, steps: int, generator: torch.Generator
) -> dict[str, Any]:
    """Whether chains from the blank page leave nearly blank pages, and the mass of these; None where fewer than two chains are there to tell."""
    counts = _pixels_on(rbm, torch.zeros(chains, rbm.num_visible), 2 * steps, generator)
    told = {"states": counts.numel(), "most_pixels": int(counts.max())}
    of_mass = dict.fromkeys(("chains", "pixels_on", "mass_bound", "blank_log_z", "blank_error"))
    there = counts[steps - 1] < fewer_than
    later = counts[steps:, there]
    inside, empty = (later < fewer_than).sum(0).double(), (later == 0).sum(0).double()
    if len(inside) > 1 and empty.sum() > 0:
        # the share of blank pages among nearly blank ones, whose p* is known
        share = (empty.sum() / inside.sum()).item()
        error = (empty - share * inside).std().item() * math.sqrt(len(inside))
        log_p = rbm.log_unnormalized(torch.zeros(1, rbm.num_visible)).item()
        left = int((later[-1] >= fewer_than).sum())
        of_mass = {
            "chains": len(inside),
            "pixels_on": later[-1][later[-1] < fewer_than].double().mean().item(),
            "mass_bound": _upper(left, len(inside)) / _ARRIVING,
            "blank_log_z": log_p - math.log(share),
            "blank_error": error / empty.sum().item(),
        }
    return told | of_mass


def _pixels_on(rbm: RBM, v: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """How many pixels are on after each step, int16 [steps, chains]."""
    v, counts = v.to(rbm.dtype), []
    for _ in range(steps):
        v = rbm.gibbs_step(v, generator)
        counts.append(v.sum(1).to(torch.int16))
    return torch.stack(counts)


def _upper(count: int, total: int) -> float:
    """Upper end of the one-sided interval of Clopper and Pearson for a probability."""
    return float(betaincinv(count + 1, total - count, _LEVEL)) if count < total else 1.0
