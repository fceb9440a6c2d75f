"""The RBMs of chapter 8, and the rows of their brackets, with the CSL beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import recipe
from boltzmann_companion.rows import by_blocks, pixels_on
from boltzmann_companion.studies.bracket_tables import (
    CSL_STREAM,
    BracketTable,
    ends_and_gap,
    from_start,
    point_of,
    stored_csl,
)
from paperlib.annealing import BaseRatePath
from paperlib.datasets import BinaryImages, binary_images
from paperlib.errors import InputError, never_changed
from paperlib.estimators import (
    Bracket,
    CSLEstimate,
    PartitionEstimate,
    control_variate_mean,
    csl_estimate,
    exact_log_z,
)
from paperlib.models import RBM
from paperlib.numerics import seeded_generator
from paperlib.validation import as_tensor, require_shape

# Enumeration of a model with more hidden units takes too long.
_ENUMERABLE = 25


@never_changed("write entries[name] = dataclasses.replace(entries[name], images=..., cases=...)")
@dataclass(frozen=True, eq=False)
class Entry:
    """An RBM and its images, for some of which RAISE is run.

    Attributes
    ----------
    number : int
        Its place in a table, counted from 0.
    name : str
        Its name there.
    model : RBM
        The model.
    images : BinaryImages
        Training and test images.
    cases : Tensor, shape [n]
        Indices of the test images for which RAISE is run.
    """

    number: int
    name: str
    model: RBM
    images: BinaryImages
    cases: Tensor

    def __post_init__(self) -> None:
        """Refuse images of another size than the model's, and `cases` that RAISE cannot average."""
        require_shape(
            "images.test",
            as_tensor("images.test", self.images.test),
            [None, self.model.num_visible],
        )
        if len(self.cases) < 2:
            raise InputError(f"cases: expected two test images or more, got {len(self.cases)}")
        count = len(self.images.test)
        last = int(max(self.cases))
        if last >= count:
            raise InputError(
                f"cases: expected indices of {count} test images, got {last}; "
                f"choose others with cases=torch.arange({count})"
            )

    @property
    def v(self) -> Tensor:
        """The test images for which RAISE is run, [n, D]."""
        return self.images.test[self.cases]

    @cached_property
    def log_p(self) -> Tensor:
        """ln p*(v) of all test images, float64 [N]."""
        return by_blocks(self.model.log_unnormalized, self.images.test, self.model.dtype)

    @cached_property
    def exact(self) -> float | None:
        """Exact average test log-probability; None if the model is too large to be enumerated."""
        if self.model.num_hidden > _ENUMERABLE:
            return None
        return self.log_p.mean().item() - exact_log_z(self.model)

    def path(self, start: str) -> BaseRatePath:
        """The path to the model from one of `STARTS`."""
        bias = None if start == "uniform" else self.images.base_rate_bias()
        return BaseRatePath(self.model, bias)


def entries_of(size: Profile, table: BracketTable, seed: int) -> dict[str, Entry]:
    """The RBMs of a table by their ids, with the images that it chooses for the chapter's seed."""
    entries = {}
    for number, (name, model_id) in enumerate(table.models.items()):
        model = size.model(model_id)
        images = binary_images(recipe(model_id).dataset)
        assert isinstance(model, RBM)
        cases = table.chosen(number, len(images.test), seed)
        entries[model_id] = Entry(number, name, model, images, cases)
    return entries


def course_rows(
    courses: Mapping[str, Sequence[Tensor]], betas: Sequence[float], looks: Sequence[int]
) -> list[dict[str, Any]]:
    """Rows of `raise-course`, for chains [steps][chains, D] of each kind at some of the steps."""
    return [
        {"model": kind, "beta": betas[look], "pixels_on": pixels_on(states[look])}
        for kind, states in courses.items()
        for look in looks
    ]


def bracket_row(
    entry: Entry,
    start: str,
    steps: int,
    above: PartitionEstimate,
    bracket: Bracket,
) -> dict[str, Any]:
    """A bracket as a row of `raise-figure-3` and of its parts."""
    return {
        "model": entry.name,
        "start": start,
        "steps": steps,
        **point_of(bracket),
        "ais_interval": bracket.upper_interval,
        "effective_sample_size": above.effective_sample_size,
        "exact": entry.exact,
    }


def table_row(
    entry: Entry,
    brackets: Mapping[str, Bracket],
    steps: int,
    above: PartitionEstimate,
) -> dict[str, Any]:
    """A row of `raise-table-1` without CSL.

    It takes the brackets from the two `STARTS` with the same K, and AIS from the base rates.
    """
    row: dict[str, Any] = {
        "model": entry.name,
        "steps": steps,
        "exact": entry.exact,
        "images": entry.images.grey.name,
    }
    for start, bracket in brackets.items():
        row |= from_start(start, ends_and_gap(bracket))
    fewest_pixels = entry.images.train.sum(1).min()
    blank = above.final_states.sum(1) < fewest_pixels
    row["blank_share"] = above.log_weights.softmax(0)[blank].sum().item()
    return row


def gap_rows(
    entries: Mapping[str, Entry],
    brackets: Mapping[str, Mapping[str, Bracket]],
    steps: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Whether the gap of a bracket is that of all images or of a few.

    It takes the brackets of the largest K by model and start, and that K by model.
    """
    rows = []
    for model_id, entry in entries.items():
        for start, bracket in brackets[model_id].items():
            gaps = bracket.vector_gaps.sort(descending=True).values
            rows.append(
                {
                    "start": start,
                    "model": entry.name,
                    "steps": steps[model_id],
                    "gap": bracket.gap,
                    "median": bracket.median_gap,
                    "worst_tenth": gaps[: max(1, len(gaps) // 10)].mean().item(),
                }
            )
    return rows


def csl_average(
    size: Profile,
    entry: Entry,
    chains_and_steps: Sequence[int],
    readers_steps: int | None,
    seed: int,
) -> dict[str, Any]:
    """CSL as in `csl_with_error`, and how many hidden states it took: chains times steps.

    A reader may set other steps than the chapter's. With the chapter's, what `paperlib long` has
    stored of 500 million Gibbs steps is taken instead. `seed` is the chapter's.
    """
    chains, usual_steps = chains_and_steps
    steps = readers_steps or usual_steps
    states = chains * steps
    estimate = None
    if steps == usual_steps:
        estimate, stored_states = stored_csl(size, entry.model, entry.v, entry.number, seed)
        states = stored_states or states
    if estimate is None:
        generator = seeded_generator(seed + CSL_STREAM + entry.number)
        estimate = csl_estimate(entry.model, entry.v, chains, steps, generator, progress=False)
    return csl_with_error(entry, estimate) | {"csl_states": states}


def csl_with_error(entry: Entry, estimate: CSLEstimate) -> dict[str, float]:
    """CSL's average over all test images with the control variate of RAISE, and its standard error.

    The choice of images is one part of the error. The chains are another, since all images share
    them: their noise moves the average as a whole. The error does not cover by how much the average
    is too low for want of more hidden states.
    """
    average = control_variate_mean(estimate.log_prob, entry.log_p[entry.cases], entry.log_p)
    error = math.hypot(average.test_set_std_error, estimate.monte_carlo_std_error)
    return {"csl": average.mean, "csl_error": error}
