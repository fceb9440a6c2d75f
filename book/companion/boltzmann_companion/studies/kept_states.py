"""Two numbers of the RAISE paper whose protocol is not stated in full.

*CSL* in Table 1: how far it falls short, by the number of hidden states, which are kept along Gibbs
chains or drawn exactly. *Footnote 2*: how much more probable a model finds ones than eights, on
several sets of images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import Model
from boltzmann_companion.rows import average, by_blocks
from boltzmann_companion.studies.bracket_rows import Entry, csl_with_error
from boltzmann_companion.studies.bracket_tables import TABLES
from boltzmann_likelihood.store import kept
from paperlib.datasets import BinaryImages, binarize
from paperlib.estimators import exact_hidden_samples, exact_log_z
from paperlib.estimators.csl import CSLEstimate, log_prob_given
from paperlib.estimators.shards import Walk, identity_of, shard
from paperlib.kernels import bernoulli
from paperlib.models import RBM
from paperlib.models.files import tensors_checksum
from paperlib.numerics import log_mean_exp, seeded_generator
from paperlib.resumable import Work
from paperlib.threads import OnStep


@dataclass(frozen=True)
class Kept:
    """Which hidden states are kept: batches of `size` of them, in independent parts.

    Attributes
    ----------
    parts, size : int
        How many parts, and how many states one batch has.
    counts : list of int
        For how many batches of a part CSL is asked, in increasing order.
    strides : list of int
        How far apart the batches are that are kept; 1 keeps every batch.
    burn_in : int or None
        Gibbs steps before the first batch. A batch is then one step of `size` chains, and otherwise
        of exact draws.
    """

    parts: int
    size: int
    counts: Sequence[int]
    strides: Sequence[int] = (1,)
    burn_in: int | None = None

    def batches(self, rbm: RBM, generator: torch.Generator) -> Iterator[Tensor]:
        """The hidden states of a part, [size, M] each."""
        if self.burn_in is None:
            _, states = exact_hidden_samples(rbm, self.counts[-1] * self.size, generator)
            yield from states.split(self.size)
            return
        v = bernoulli(rbm.weights.new_full((self.size, rbm.num_visible), 0.5), generator)
        for _, h in gibbs_states(rbm, v, self.burn_in, self.counts[-1], generator):
            yield h


def gibbs_states(
    rbm: RBM, v: Tensor, burn_in: int, count: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """The `count` states after the burn-in of n Gibbs chains from v: [n, D] and [n, M] each."""
    for step in range(burn_in + count):
        h = bernoulli(rbm.hidden_probs(v), generator)
        if step >= burn_in:
            yield v, h
        v = bernoulli(rbm.visible_probs(h), generator)


def running_csl(
    rbm: RBM, v: Tensor, batches: Iterable[Tensor], counts: Sequence[int], strides: Sequence[int]
) -> dict[str, Tensor]:
    """ln of the mean of p(v | h) over the first batches, [N].

    The keys are the number of batches and how far apart they are: "10 1" has the first ten.
    """
    cases = v.to(rbm.dtype)
    log_means = {}
    sums = {stride: v.new_full((len(v),), -math.inf, dtype=torch.float64) for stride in strides}
    for number, h in enumerate(batches):
        log_probs = log_prob_given(cases, h @ rbm.weights.T + rbm.visible_bias)
        batch_mean = log_mean_exp(log_probs.double())
        for stride in strides:
            if number % stride:
                continue
            sums[stride] = torch.logaddexp(sums[stride], batch_mean)
            count = number // stride + 1
            if count in counts:
                log_means[f"{count} {stride}"] = sums[stride] - math.log(count)
    return log_means


def csl_by_states(
    size: Profile, rbm: RBM, v: Tensor, kept_states: Kept, seed: int
) -> dict[str, CSLEstimate]:
    """CSL of binary images v, by the keys of `running_csl`; kept on disk at the papers' size."""
    run = states_run(rbm, v, kept_states, seed)
    return kept(run, size.folder if size.name == "paper" else None)


def states_run(rbm: RBM, v: Tensor, kept_states: Kept, seed: int) -> Work[dict[str, CSLEstimate]]:
    """The shards of `csl_by_states`."""
    walk = rbm, torch.empty(0, dtype=torch.float64)
    model = identity_of("csl-by-states", *walk, rbm.device)
    identity = f"{model} {kept_states} {seed} {tensors_checksum([v])}"

    def task(walk: Walk, generator: torch.Generator, on_step: OnStep) -> dict[str, Tensor]:
        batches = kept_states.batches(walk[0], generator)
        return running_csl(walk[0], v, batches, kept_states.counts, kept_states.strides)

    def join(parts: list[dict[str, Tensor]]) -> dict[str, CSLEstimate]:
        return {key: CSLEstimate(torch.stack([part[key] for part in parts], 1)) for key in parts[0]}

    shards = [shard(f"{identity} {number}", task, 1) for number in range(kept_states.parts)]
    return Work("CSL by hidden states", walk, shards, join, unit="part")


def chain_rows(
    size: Profile, entry: Entry, chains: Kept, ais: float, seed: int
) -> list[dict[str, Any]]:
    """Rows of `csl-kept-states`: CSL from states of Gibbs chains beside AIS's average.

    The columns `csl` take states at the first of the two strides of `chains`, and the columns
    `thinned` at the second.
    """
    every, some = chains.strides
    estimates = csl_by_states(size, entry.model, entry.v, chains, seed)
    averages = {key: csl_with_error(entry, estimate) for key, estimate in estimates.items()}
    rows = []
    for count in chains.counts:
        # The longest chains are not long enough for as many states some steps apart.
        thinned = averages.get(f"{count} {some}", {"csl": None, "csl_error": None})
        row = {"csl_states": count * chains.size * chains.parts} | averages[f"{count} {every}"]
        row |= {"thinned": thinned["csl"], "thinned_error": thinned["csl_error"], "ais": ais}
        rows.append(row)
    return rows


def start_rows(
    entry: Entry, parts: int, chains: int, burn_in: int, counts: Sequence[int], seed: int
) -> list[dict[str, Any]]:
    """Rows of `csl-starts`: CSL of a model from Gibbs chains that start in three ways.

    Each part has `chains` chains and a generator of its own. CSL is computed after each of the
    `counts` of states of a chain, without those of the burn-in. `blank_share` is the share of
    nearly blank pages among the visible states, with fewer pixels on than any training image.
    """
    rbm = entry.model
    train = entry.images.train
    fewest = train.sum(1).min()

    def images(generator: torch.Generator) -> Tensor:
        return train[torch.randperm(len(train), generator=generator)[:chains]].to(rbm.dtype)

    def pixels(generator: torch.Generator) -> Tensor:
        return bernoulli(rbm.weights.new_full((chains, rbm.num_visible), 0.5), generator)

    def blank(generator: torch.Generator) -> Tensor:
        return rbm.weights.new_zeros((chains, rbm.num_visible))

    rows = []
    starts = {"training images": images, "random pixels": pixels, "the blank page": blank}
    for number, (start, first_states) in enumerate(starts.items()):
        log_means: dict[int, list[Tensor]] = {count: [] for count in counts}
        blank_shares: list[Tensor] = []
        for part in range(parts):
            generator = seeded_generator(seed + parts * number + part)
            v = first_states(generator)
            shares: list[float] = []
            states = gibbs_states(rbm, v, burn_in, counts[-1], generator)
            hidden = _counting_blank(states, fewest, shares)
            log_means_of_part = running_csl(rbm, entry.v, hidden, counts, [1])
            for count in counts:
                log_means[count].append(log_means_of_part[f"{count} 1"])
            blank_shares.append(torch.tensor(shares, dtype=torch.float64))
        share = torch.stack(blank_shares).mean(0)
        for count in counts:
            estimate = CSLEstimate(torch.stack(log_means[count], 1))
            row = {"model": entry.name, "start": start, "csl_states": parts * chains * count}
            row |= csl_with_error(entry, estimate)
            rows.append(row | {"blank_share": share[:count].mean().item()})
    return rows


def _counting_blank(
    states: Iterable[tuple[Tensor, Tensor]], fewest: Tensor, shares: list[float]
) -> Iterator[Tensor]:
    """The hidden states; appends for each the share of chains with fewer pixels on."""
    for v, h in states:
        shares.append((v.sum(1) < fewest).double().mean().item())
        yield h


def exact_rows(
    size: Profile, models: Mapping[str, Model], num_images: int, draws: Kept, seed: int
) -> list[dict[str, Any]]:
    """Rows of `csl-exact-draws`: how far CSL falls short with independent draws of hidden states.

    The models are small enough for exact draws; the images are the first of the test set.
    """
    v = size.images().test[:num_images]
    names = {model_id: name for name, model_id in TABLES[size.name]["raise-table-1"].models.items()}
    rows = []
    for model_id, rbm in models.items():
        assert isinstance(rbm, RBM)
        exact = average(rbm.log_unnormalized, v, rbm.dtype) - exact_log_z(rbm)
        estimates = csl_by_states(size, rbm, v, draws, seed)
        for count in draws.counts:
            short = exact - estimates[f"{count} 1"].log_means.mean(0)
            row = {"model": names[model_id], "csl_states": count * draws.size}
            row |= {"short": short.mean().item(), "spread": short.std().item()}
            rows.append(row)
    return rows


def digit_rows(rbm: RBM, images: BinaryImages, draws: int, seed: int) -> list[dict[str, Any]]:
    """Rows of `one-minus-eight`: mean ln p* of the ones less that of the eights.

    There is a row for each set of images as it is given, and one for it binarised anew. The error
    is what another binarisation changes. The error of choice counts the images as chosen from
    others, which they are not in averages over the whole set.
    """
    rows = []
    for number, (split, name) in enumerate({"train": "training", "test": "test"}.items()):
        labels = getattr(images.grey, f"{split}_labels")
        grey = getattr(images.grey, split)
        anew = (binarize(grey, seed + 20 * draw + number) for draw in range(draws))
        for how, binary in (("as given", [getattr(images, split)]), ("anew", anew)):
            differences = [_ones_less_eights(rbm, v, labels) for v in binary]
            values = torch.tensor([value for value, _ in differences], dtype=torch.float64)
            row = {"model": f"{name} images, {how}", "draws": len(differences)}
            row |= {
                "one_minus_eight": values.mean().item(),
                "one_minus_eight_error": values.std().item() if len(differences) > 1 else None,
                "lowest": values.min().item(),
                "highest": values.max().item(),
                "choice_error": differences[0][1],
            }
            rows.append(row)
    return rows


def _ones_less_eights(rbm: RBM, v: Tensor, labels: Tensor) -> tuple[float, float]:
    """The difference of the two means of ln p*, and its error of choice."""
    ones = by_blocks(rbm.log_unnormalized, v[labels == 1], rbm.dtype)
    eights = by_blocks(rbm.log_unnormalized, v[labels == 8], rbm.dtype)
    error = math.hypot(
        ones.std().item() / len(ones) ** 0.5, eights.std().item() / len(eights) ** 0.5
    )
    return (ones.mean() - eights.mean()).item(), error
