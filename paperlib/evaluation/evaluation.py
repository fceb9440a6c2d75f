"""The average test log-probability of an RBM: exact where it can be, otherwise by a ladder of temperatures within a time budget.

The number and its interval come from parallel tempering. AIS from above and RAISE from below stand beside it and are judged together
with it (`paperlib.evaluation.verdict`).

One run of AIS gives a number and an error bar and may still be wrong by tens of nats. What can be checked is checked here: the bracket
of AIS from above and RAISE from below, with three numbers of intermediate distributions so that one sees whether the
estimate still moves; the diagnostics of AIS, among them a proven bound on ln Z; AIS from other modes of the model; and the start of
the annealing. Each check that fails becomes a sentence that says what to do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.datasets import base_rate_bias
from paperlib.errors import InputError
from paperlib.estimators import (
    Bracket,
    PartitionEstimate,
    ReverseEstimate,
    TemperingEstimate,
    ais,
    bracket,
    exact_log_z,
    raise_log_prob,
)
from paperlib.estimators.bennett import interval_of
from paperlib.estimators.ladder_run import LadderRun, Plan
from paperlib.estimators.tempering import summarize_ladder
from paperlib.evaluation.modes import ModeCheck, check_mode, mode_starts
from paperlib.evaluation.verdict import (
    ImageAverage,
    Judgement,
    as_population,
    average_of,
    judge,
    known_log_z,
    log_z_with_modes,
)
from paperlib.kernels import can_replay
from paperlib.models import RBM
from paperlib.numerics import resolve_generator
from paperlib.validation import ArrayLike, as_binary, blocks

# Up to so many units of the smaller layer all states are enumerated, in seconds.
EXACT_UNITS = 25
# What the largest run's K is divided by for the runs before it, which show whether the estimate still moves.
_FRACTIONS = (16, 4, 1)
_AIS_CHAINS = 200
_VECTORS, _CHAINS_PER_VECTOR = 100, 4
# A GPU first records a step, which takes as long as thousands of them.
_PILOT_STEPS, _GPU_PILOT_STEPS = 20, 5_000
_LARGEST_K = 100_000
# An open bracket, or an estimate that moves, by less than that is left without remark.
_TOLERANCE = 1.0
_MOVING = 0.5
# AIS from other modes of the model: chains for each, and what it adds in steps of a whole run.
_MODE_CHAINS = 100
_MODE_COST = 1 / 3
# The ladder's share of the time; of chain-steps it takes half of what AIS and RAISE take. Its memory grows with them: 160 MB at most.
_LADDER_SHARE = 1 / 3
_LADDER_STEPS = (5_000, 10_000_000)
_LADDER_PILOT_STEPS = 10_000
_LADDER_SAMPLES = 1_000


@dataclass(frozen=True)
class ExactResult:
    """Everything enumerated.

    Attributes
    ----------
    log_z : float
        ln Z, in nats.
    test, test_std_error : float
        Average ln p(v) of the test images, and its standard error for other images of the kind.

    Examples
    --------
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> result = evaluate(rbm, [[0, 1, 0], [1, 1, 0]]).exact
    >>> print(f"{result.log_z:.4f} {result.test:.4f}")
    3.4657 -2.0794
    """

    log_z: float
    test: float
    test_std_error: float


@dataclass(frozen=True)
class AnnealingRun:
    """AIS and RAISE with one number of intermediate distributions.

    Attributes
    ----------
    num_steps : int
        K.
    ais : PartitionEstimate
        Of ln Z.
    bracket : Bracket
        Around the average ln p(v) of the test images.
    seconds : float
        What it took.

    Examples
    --------
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> series = AnnealingRuns(rbm, torch.eye(3), None, torch.Generator().manual_seed(0))
    >>> finished = series.run_up_to(32, progress=False)
    >>> [run.num_steps for run in finished.runs]
    [2, 8, 32]
    >>> print(f"{finished.runs[-1].bracket.upper:.4f}")
    -2.0794
    """

    num_steps: int
    ais: PartitionEstimate
    bracket: Bracket
    seconds: float


@dataclass(frozen=True)
class Evaluation:
    """What is known of a model's average test log-probability.

    Attributes
    ----------
    num_visible, num_hidden, num_images : int
        Sizes of the model and of the test set.
    exact : ExactResult or None
        Where a layer is small enough to be enumerated.
    runs : tuple of AnnealingRun
        AIS and RAISE with growing K, the last one the best; empty where the exact value is known.
    findings : tuple of str
        What is wrong and what to do; empty if nothing was found.
    start : str
        Where annealing and the ladder start.
    interrupted : bool
        Whether the run was stopped before its largest K.
    ladder : TemperingEstimate or None
        ln Z by parallel tempering; None where the exact value is known, or the run was stopped before.
    average : ImageAverage or None
        The average test log-probability with its intervals, exact or of the judgement's source.
    judgement : Judgement or None
        The verdict, by the rule of `paperlib.evaluation.verdict`; None where the exact value is known.
    log_z_with_modes : float
        The largest estimate of ln Z, with what AIS from the model's own modes found in addition, in nats; minus infinity where the exact
        value is known.

    Examples
    --------
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> result = evaluate(rbm, [[0, 1, 0], [1, 1, 0]])
    >>> result.num_images, result.runs, result.findings
    (2, (), ())
    """

    num_visible: int
    num_hidden: int
    num_images: int
    exact: ExactResult | None
    runs: tuple[AnnealingRun, ...]
    findings: tuple[str, ...]
    start: str
    interrupted: bool
    ladder: TemperingEstimate | None = None
    average: ImageAverage | None = None
    judgement: Judgement | None = None
    log_z_with_modes: float = -math.inf

    @property
    def trustworthy(self) -> bool:
        """Whether nothing was found that speaks against the result."""
        return not self.findings

    @property
    def known_log_z(self) -> tuple[float, float, float]:
        """The reported ln Z, its standard error, both in nats, and the degrees of freedom of that."""
        if self.exact is not None:
            return self.exact.log_z, 0.0, math.inf
        source = "AIS" if self.judgement is None else self.judgement.source
        return known_log_z(self.runs[-1].ais, self.ladder, source)

    def log_z_interval(self, level: float) -> tuple[float, float]:
        """An interval (low, high) that is to hold ln Z with this probability, in nats.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        return interval_of(*self.known_log_z, level)


def evaluate(
    rbm: RBM,
    test: ArrayLike,
    train: ArrayLike | None = None,
    minutes: float = 2.0,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Average ln p(v) of test images under an RBM, with every check that there is.

    Parameters
    ----------
    rbm : RBM
        The model. Chains walk on its device.
    test : array or Tensor, shape [N, D]
        Binary test images of any type, at least two.
    train : array or Tensor, shape [any, D], optional
        Binary training images, for the start of the annealing only. Without them the start is at the test images' base rates, of
        which RAISE's annealing model then knows the means.
    minutes : float
        Time to spend, about, a third of it on the ladder; pilot runs choose K and the ladder's steps accordingly. Not needed where the smaller layer has at most 25 units: ln Z is
        then exact.
    generator : torch.Generator, optional
        Source of randomness, on the model's device; a fresh one by default. With the same one results still depend on how fast the
        machine is, since K does.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Returns
    -------
    Evaluation
        Ctrl-C ends the run with what there is so far, marked as interrupted.

    Raises
    ------
    InputError
        If an image is not binary or of another width, `minutes` is not positive, or the model overflows.
    KeyboardInterrupt
        If interrupted before there is any estimate.

    Notes
    -----
    Memory beyond the images and the model is that of 400 chains and of blocks of four million pixels, 8 bytes for each image, and 16 for
    each of the ladder's chain-steps, of which there are at most ten million: a
    million images of 784 bytes, memory-mapped, take less than 2 GiB with everything.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> rbm = RBM(torch.zeros(64, 10), torch.zeros(64), torch.zeros(10))
    >>> result = evaluate(rbm, binary_images("digits").test)  # 10 hidden units: exact
    >>> print(f"{result.exact.log_z:.2f} {result.exact.test:.2f}")
    51.29 -44.36
    >>> result.trustworthy
    True
    """
    test = as_binary("test", test, rbm.num_visible)
    train = None if train is None else as_binary("train", train, rbm.num_visible)
    if len(test) < 2:
        raise InputError(f"test: expected at least two images, got {len(test)}")
    if not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected a positive number, got {minutes}")
    generator = resolve_generator(generator, rbm.device)
    sizes = (rbm.num_visible, rbm.num_hidden, len(test))
    if min(rbm.num_visible, rbm.num_hidden) <= EXACT_UNITS:
        exact, average = _exactly(rbm, test)
        return Evaluation(*sizes, exact, (), (), "none needed", interrupted=False, average=average)

    start = f"base rates of the {'test' if train is None else 'training'} images"
    series = AnnealingRuns(rbm, test, base_rates(test if train is None else train), generator)
    seconds = 60 * minutes
    ladder_steps = series.affordable_ladder_steps(_LADDER_SHARE * seconds)
    largest = series.affordable_steps((1 - _LADDER_SHARE) * seconds)
    finished = series.run_up_to(largest, progress, ladder_steps)
    others = () if train is None else far_off(train, test)
    judgement = judge(finished, find_reasons(finished), others)
    return Evaluation(
        *sizes,
        None,
        finished.runs,
        judgement.findings,
        start,
        finished.interrupted,
        finished.ladder,
        series.average(finished, judgement),
        judgement,
        log_z_with_modes=log_z_with_modes(finished),
    )


def base_rates(images: Tensor) -> Tensor:
    """Smoothed from both sides: in images of any origin a pixel may be always on as well as always off."""
    return base_rate_bias(images, pseudo_off=0.05)


def log_unnormalized_of(rbm: RBM, images: Tensor) -> Tensor:
    """ln p*(v) of images [N, D] of any number, float64 [N] on the CPU, in nats.

    Examples
    --------
    >>> log_unnormalized_of(RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)), torch.eye(3))[0].isclose(
    ...     torch.tensor(4.0).double().log()
    ... )
    tensor(True)
    """
    # Written in place: small results kept between large blocks that come and go would leave gigabytes of holes in memory.
    result, start = torch.empty(len(images), dtype=torch.float64), 0
    for block in blocks(images):
        log_masses = rbm.log_unnormalized(block.to(rbm.device, rbm.dtype))
        result[start : start + len(block)] = log_masses
        start += len(block)
    return result


def _exactly(rbm: RBM, test: Tensor) -> tuple[ExactResult, ImageAverage]:
    rbm = rbm.to(dtype=torch.float64)
    log_z = exact_log_z(rbm)
    log_unnormalized = log_unnormalized_of(rbm, test)
    log_prob = log_unnormalized - log_z
    std_error = log_prob.std().item() / math.sqrt(len(test))
    exact = ExactResult(log_z, log_prob.mean().item(), std_error)
    return exact, average_of(log_unnormalized, log_z, 0.0, math.inf)


@dataclass(frozen=True)
class FinishedRuns:
    """The runs that were finished, and what was checked beside them.

    Attributes
    ----------
    runs : tuple of AnnealingRun
        Growing K, at least one.
    mode_checks : tuple of ModeCheck
        AIS that starts at modes of the model, with the last run's K.
    interrupted : bool
        Whether Ctrl-C ended it.
    ladder : TemperingEstimate or None
        Parallel tempering from the same start; None if it was interrupted before.
    ladder_mode_checks : tuple of ModeCheck
        What the same AIS from modes says of the ladder's draws.
    """

    runs: tuple[AnnealingRun, ...]
    mode_checks: tuple[ModeCheck, ...]
    interrupted: bool
    ladder: TemperingEstimate | None = None
    ladder_mode_checks: tuple[ModeCheck, ...] = ()


class AnnealingRuns:
    """A ladder, and AIS and RAISE with growing numbers of intermediate distributions, on one model, test set and start.

    `evaluate` uses it where nothing can be enumerated, `paperlib.experiments.study` where the truth
    is known.

    Parameters
    ----------
    rbm : RBM
        The model.
    test : Tensor, shape [N, D]
        Binary test images of any type.
    visible_bias : Tensor, shape [D], or None
        Biases of the start, as for `BaseRatePath`.
    generator : torch.Generator
        Source of randomness.
    """

    def __init__(
        self, rbm: RBM, test: Tensor, visible_bias: Tensor | None, generator: torch.Generator
    ) -> None:
        # Single precision is enough: AIS is unbiased for the model as it then is, which differs by 1e-7 of a weight.
        self._rbm = rbm.to(dtype=torch.float32)
        self._path = BaseRatePath(self._rbm, visible_bias)
        self._test = test
        self._log_unnormalized = log_unnormalized_of(self._rbm, test)
        self._generator = generator

    def affordable_steps(self, seconds: float) -> int:
        """The largest K for which all runs fit the time, by a pilot run."""
        steps = sum(1 / part for part in _FRACTIONS) + _MODE_COST
        affordable = seconds / self._seconds_per_step() / steps
        return max(_FRACTIONS[0] * 2, min(_LARGEST_K, int(affordable)))

    def affordable_ladder_steps(self, seconds: float) -> int:
        """How many chain-steps of the ladder fit the time, by pilot runs.

        They grow until one takes a fiftieth of the time: a longer run has more replicas, and a chain-step costs less.
        """
        fewest, most = _LADDER_STEPS
        steps = _LADDER_PILOT_STEPS
        # As for AIS, the second time counts.
        self._ladder(steps, lambda _: None, check=False)
        while True:
            began = time.perf_counter()
            self._ladder(steps, lambda _: None, check=False)
            took = time.perf_counter() - began
            if took > seconds / 50 or steps == most:
                return max(fewest, min(most, int(seconds / took * steps)))
            steps = min(4 * steps, most)

    def average(self, finished: FinishedRuns, judgement: Judgement) -> ImageAverage:
        """The average test log-probability with ln Z of the judgement's source."""
        known = known_log_z(finished.runs[-1].ais, finished.ladder, judgement.source)
        return average_of(self._log_unnormalized, *known)

    def run_up_to(
        self, largest: int, progress: bool | None = None, ladder_steps: int | None = None
    ) -> FinishedRuns:
        """Run with the smallest K, then the ladder, then growing K up to the largest, and with that one AIS from other modes, too.

        Parameters
        ----------
        largest : int
            K of the last run.
        progress : bool, optional
            Show a progress bar; by default where standard error is a terminal.
        ladder_steps : int, optional
            Transitions of single chains for the ladder. By default half of what the runs of AIS and RAISE take, up to ten million; 0 for none.

        Raises
        ------
        KeyboardInterrupt
            If no run is finished yet. Later Ctrl-C ends the series, and what is finished is
            returned.
        """
        step_counts = [largest // part for part in _FRACTIONS]
        of_runs = self._chain_count() * sum(step_counts)
        if ladder_steps is None:
            ladder_steps = max(_LADDER_STEPS[0], min(_LADDER_STEPS[1], of_runs // 2))
        runs: list[AnnealingRun] = []
        ladder: TemperingEstimate | None = None
        mode_checks: list[ModeCheck] = []
        of_ladder: list[ModeCheck] = []
        with tqdm(
            total=of_runs + ladder_steps,
            unit="step",
            unit_scale=True,
            desc="Ladder, AIS and RAISE",
            disable=None if progress is None else not progress,
        ) as bar:
            try:
                for num_steps in step_counts:
                    bar.set_postfix(K=num_steps)
                    runs.append(self._run(num_steps, bar.update))
                    if ladder is None and ladder_steps > 0:
                        bar.set_postfix(K="ladder")
                        ladder = self._ladder(ladder_steps, bar.update)
                base = runs[-1].ais
                biases = mode_starts(self._rbm, base.final_states, self._generator)
                bar.total += len(biases) * _MODE_CHAINS * largest
                for bias in biases:
                    path = BaseRatePath(self._rbm, bias)
                    at_mode = self._ais(path, largest, _MODE_CHAINS, bar.update, check=False)
                    mode_checks.append(check_mode(base, self._path, at_mode, path))
                    if ladder is not None:
                        draws = as_population(ladder)
                        of_ladder.append(check_mode(draws, self._path, at_mode, path))
                interrupted = False
            except KeyboardInterrupt:
                if not runs:
                    raise
                interrupted = True
        return FinishedRuns(tuple(runs), tuple(mode_checks), interrupted, ladder, tuple(of_ladder))

    def _ladder(
        self, chain_steps: int, on_step: Callable[[int], object], check: bool = True
    ) -> TemperingEstimate:
        plan = Plan(chain_steps, None, None, _LADDER_SAMPLES)
        run = LadderRun(self._path, plan, self._generator)
        while not run.finished:
            run.advance(on_step)
        return summarize_ladder(self._path, run, self._generator, check)

    def _run(self, num_steps: int, on_step: Callable[[int], object]) -> AnnealingRun:
        """AIS and RAISE with `num_steps` intermediate distributions."""
        began = time.perf_counter()
        above = self._ais(self._path, num_steps, _AIS_CHAINS, on_step)
        chosen = self._choose()
        below = self._raise(chosen, num_steps, on_step)
        result = bracket(self._log_unnormalized, chosen, above, below)
        return AnnealingRun(num_steps, above, result, time.perf_counter() - began)

    def _ais(
        self,
        path: BaseRatePath,
        num_steps: int,
        num_chains: int,
        on_step: Callable[[int], object],
        check: bool = True,
    ) -> PartitionEstimate:
        betas, generator = uniform_betas(num_steps), self._generator
        return ais(path, betas, num_chains, generator, check=check, on_step=on_step)

    def _raise(
        self, chosen: Tensor, num_steps: int, on_step: Callable[[int], object]
    ) -> ReverseEstimate:
        return raise_log_prob(
            self._path,
            self._test[chosen],
            uniform_betas(num_steps),
            _CHAINS_PER_VECTOR,
            self._generator,
            on_step=on_step,
        )

    def _seconds_per_step(self) -> float:
        """What a step costs, from a few of them."""
        steps = _GPU_PILOT_STEPS if can_replay(self._path.device) else _PILOT_STEPS
        seconds = 0.0
        # The first steps compile and allocate: those of the second time count.
        for _ in range(2):
            began = time.perf_counter()
            forward = self._ais(self._path, steps, _AIS_CHAINS, lambda _: None, check=False)
            reverse = self._raise(self._choose(), steps, lambda _: None)
            # a GPU is waited for where its results are looked at
            for result in (forward, reverse):
                result.log_weights.sum().item()
            seconds = time.perf_counter() - began
        return seconds / steps

    def _choose(self) -> Tensor:
        order = torch.randperm(
            len(self._test), generator=self._generator, device=self._generator.device
        )
        return order[:_VECTORS].to(self._test.device)

    def _chain_count(self) -> int:
        """How many chains take a step of a run."""
        return _AIS_CHAINS + min(_VECTORS, len(self._test)) * _CHAINS_PER_VECTOR


def find_reasons(finished: FinishedRuns) -> tuple[str, ...]:
    """Reasons not to believe the last run, each with what to do."""
    runs = finished.runs
    best = runs[-1]
    gap, found = best.bracket.gap, list(best.bracket.warnings)
    word = best.bracket.verdict(_TOLERANCE)
    if word == "open":
        advice = "Give it more time."
        if abs(best.bracket.median_gap) <= _TOLERANCE:
            advice = (
                f"For half of the images the two are within {abs(best.bracket.median_gap):.1f} nats: the gap is due to a few "
                "to which annealing hardly finds the way, and more time may not close it."
            )
        found.append(
            f"The bracket is open by {gap:.1f} nats: AIS says {best.bracket.upper:.2f}, RAISE {best.bracket.lower.mean:.2f}. "
            f"The truth lies between them as far as RAISE is conservative. {advice}"
        )
    elif word == "crossed":
        found.append(
            f"RAISE lies above AIS by {-gap:.1f} nats, so that there is no bracket: the annealing model fits these images "
            "better than the model itself. Give it more time."
        )
    # Where AIS's error is infinite, its own warning says so already.
    if _TOLERANCE / 2 < best.bracket.gap_std_error < math.inf:
        found.append(
            f"The two ends of the bracket are known to {best.bracket.gap_std_error:.1f} nats only "
            "(one standard error); their agreement means little. Give it more time, or more test "
            "images."
        )
    if len(runs) > 1:
        moved = best.bracket.upper - runs[-2].bracket.upper
        noise = max(run.bracket.upper_slack for run in runs[-2:])
        if abs(moved) > max(_MOVING, noise):
            found.append(
                f"AIS's estimate still moves: by {moved:+.1f} nats from "
                f"K = {runs[-2].num_steps:,} to {best.num_steps:,}. "
                "Give it more time."
            )
    found += _missed_modes(best, finished.mode_checks)
    if finished.interrupted:
        found.append(
            f"Interrupted: this is the estimate with K = {best.num_steps:,}, the last one that was finished."
        )
    return tuple(found)


def _missed_modes(best: AnnealingRun, mode_checks: tuple[ModeCheck, ...]) -> list[str]:
    """A sentence if AIS from one of the model's modes finds much more of Z there than AIS from the base rates."""
    missed = max((check.missed for check in mode_checks if check.significant), default=0.0)
    if missed <= _MOVING:
        return []
    return [
        f"AIS that starts at a mode of the model's own raises ln Z by {missed:.1f} nats: the chains from the base rates missed that "
        "mode, and RAISE, which starts at the images, cannot see it. The truth is at most about "
        f"{best.bracket.upper - missed:.2f}."
    ]


def far_off(train: Tensor, test: Tensor) -> tuple[str, ...]:
    """A sentence if independent pixels with the training images' means explain the test images badly."""
    own, given = (torch.sigmoid(base_rates(images)) for images in (test, train))
    divergence = torch.xlogy(own, own / given) + torch.xlogy(1 - own, (1 - own) / (1 - given))
    total = divergence.sum().item()
    if total <= 5.0:
        return ()
    return (
        f"The training images' base rates are far from the test images': {total:.0f} nats of divergence. Are these the "
        "images that the model was trained on? Annealing may start in the wrong place.",
    )
