"""Parallel tempering, AIS and RAISE on one model: first all of them, then more of what is in doubt.

The first round runs AIS and RAISE with K/16 steps, all of parallel tempering, AIS and RAISE with
K/4 steps, and short runs of parallel tempering from modes of the model and from modes that images
show and where parallel tempering has not been (`boltzmann_likelihood.evaluation.modes`). What is
left, four ninths of the work, goes where a doubt is (`boltzmann_likelihood.evaluation.verdict`):
all of it to parallel tempering, or a part to a run from a mode. AIS and RAISE take what no doubt
takes, with K steps if it is whole.

`AnnealingRuns` prepares these runs for one model. Its `run_up_to` makes them, and gives
`FinishedRuns` with whatever is finished when Ctrl-C ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from boltzmann_likelihood.evaluation.hidden_layers import DIVISORS, TOTAL_STEPS
from boltzmann_likelihood.evaluation.interruption import before_estimate
from boltzmann_likelihood.evaluation.modes import (
    ModeCheck,
    ModeSearch,
    Optimum,
    check_mode,
    evenly_spread,
    start_bias_near,
)
from boltzmann_likelihood.evaluation.result import AnnealingRun, FinishedRuns, Remedy
from boltzmann_likelihood.evaluation.verdict import find_doubts, shortfall
from paperlib.annealing import AnnealingPath, BaseRatePath, path_to, uniform_betas
from paperlib.estimators import (
    PartitionEstimate,
    ReverseEstimate,
    TemperingEstimate,
    ais,
    bracket,
    raise_log_prob,
)
from paperlib.estimators.tempering.run import Plan, TemperingRun
from paperlib.estimators.tempering.tempering import finish
from paperlib.kernels import can_replay
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import seeded_generator
from paperlib.threads import step_bar

#: With fewer steps, the first of the runs would have no intermediate distribution.
FEWEST_STEPS = 2 * DIVISORS[0]
AIS_CHAINS = 200
RAISE_VECTORS = 100
CHAINS_PER_VECTOR = 4
# A GPU first records a step, which takes as long as running thousands of them.
_PILOT_STEPS = 20
_GPU_PILOT_STEPS = 5_000
_LARGEST_K = 100_000
# The share of the time for the first run of parallel tempering.
TEMPERING_SHARE = 1 / 3
# The work for its runs from two modes together, in units of that of the first run.
MODES_WORK = 1 / 4
# The last run of AIS and RAISE takes as long as this multiple of the first run of parallel
# tempering, where the minutes set the steps of both.
_LEFT = (1 / TEMPERING_SHARE - 1 - MODES_WORK) / TOTAL_STEPS
# A doubtful run from a mode gets this multiple of the steps of parallel tempering at a time.
_PORTION = 1 / 3
# Fewest and most chain-steps of parallel tempering in the first round; by default it takes half as
# many as AIS and RAISE. Its memory grows with them, to 400 MB at most.
TEMPERING_STEPS = (5_000, 10_000_000)
_TEMPERING_PILOT_STEPS = 10_000
_SAMPLES = 1_000
#: Modes are looked for from this many test images, and from as many training images.
SOME_IMAGES = 64


@dataclass
class _Tempering:
    """Parallel tempering that can be made longer, and its estimate so far.

    `check` says whether the estimate is compared with a proven bound.
    """

    path: Any
    run: TemperingRun
    estimate: TemperingEstimate
    check: bool
    # What the mode where it starts promises; see `ModeCheck`.
    promised: float = 0.0


def seconds_of(work: Callable[[], object]) -> float:
    """How long this work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class AnnealingRuns:
    """All runs on one model and its test rows [N, D], from one start.

    The model has the type in which chains walk. `log_unnormalized` is ln p*(v) of the rows [N],
    `visible_bias` the start as for `path_to`, and the weights [N] are above zero. `train_units` are
    units of `model.annealed` that go with training images.
    """

    def __init__(
        self,
        model: UnnormalizedModel,
        test: Tensor,
        log_unnormalized: Tensor,
        visible_bias: Tensor | None,
        generator: torch.Generator,
        weights: Tensor | None = None,
        train_units: Tensor | None = None,
    ) -> None:
        self._model = model
        self._path = path_to(model, visible_bias)
        # The same walk for the annealed part of the model alone, for the checks that look at where
        # chains ended.
        self._annealed = model.annealed
        self._annealed_path = self._path
        if self._annealed is not model:
            self._annealed_path = path_to(self._annealed, visible_bias)
        self._test = test
        self._weights = weights
        self._train_units = train_units
        self.log_unnormalized = log_unnormalized
        self._generator = generator
        # What pilot runs have measured, in seconds: a step of AIS and RAISE, a chain-step of
        # parallel tempering, and the checks of a run.
        self._step_seconds = 0.0
        self._chain_step_seconds = 0.0
        self._check_seconds = 0.0

    @property
    def shortest_seconds(self) -> float:
        """About how long the shortest run takes; 0 before pilot runs.

        `affordable_steps` and `affordable_tempering_steps` make the pilot runs.
        """
        annealing = FEWEST_STEPS * TOTAL_STEPS * self._step_seconds
        # Parallel tempering, and as much again from each of two modes.
        tempering = 3 * TEMPERING_STEPS[0] * self._chain_step_seconds
        # Checks of three runs and of parallel tempering; the search for modes takes about as long
        # as one of them.
        return annealing + tempering + 5 * self._check_seconds

    def affordable_steps(self, seconds: float) -> int:
        """The largest K for which all but parallel tempering fits the time.

        A pilot run finds it, which leaves the generator unchanged.
        """
        with self._pilot():
            self._step_seconds = self._seconds_per_step()
            affordable = int(seconds / self._step_seconds / TOTAL_STEPS)
            # Checks take a while for a large model only, and count where time is short.
            if affordable <= FEWEST_STEPS:
                self._check_seconds = self._seconds_of_checks()
        return max(FEWEST_STEPS, min(_LARGEST_K, affordable))

    def affordable_tempering_steps(self, seconds: float) -> int:
        """How many chain-steps of parallel tempering fit the time.

        Pilot runs find it, which leave the generator unchanged. They grow until one takes a
        fiftieth of the time, since a longer run has more replicas and its chain-steps cost less.
        """
        fewest, most = TEMPERING_STEPS
        steps = _TEMPERING_PILOT_STEPS

        def temper() -> None:
            self._temper(self._path, steps, lambda _: None, check=False)

        with self._pilot():
            # The first run compiles and allocates.
            temper()
            took = seconds_of(temper)
            while took <= seconds / 50 and steps < most:
                steps = min(4 * steps, most)
                took = seconds_of(temper)
        self._chain_step_seconds = took / steps
        return max(fewest, min(most, int(seconds / took * steps)))

    @contextmanager
    def _pilot(self) -> Iterator[None]:
        """Give pilot runs, which only measure time, a separate source of random numbers."""
        generator = self._generator
        self._generator = seeded_generator(0, generator.device)
        try:
            yield
        finally:
            self._generator = generator

    def usual_tempering_steps(self, largest: int) -> int:
        """Chain-steps of parallel tempering for runs up to this K: half those of AIS and RAISE."""
        return max(TEMPERING_STEPS[0], min(TEMPERING_STEPS[1], self._steps_of_runs(largest) // 2))

    def run_up_to(
        self, largest: int, tempering_steps: int, progress: bool | None = None
    ) -> FinishedRuns:
        """Run everything once, and then more of what is in doubt, up to this K.

        Ctrl-C ends the series and gives what is finished.
        """
        finished = FinishedRuns(interrupted=True)
        total = self._steps_of_runs(largest) + round((1 + MODES_WORK) * tempering_steps)
        with step_bar(total, "Tempering, AIS and RAISE", progress) as bar:
            try:
                for stage in self._series(largest, tempering_steps, bar):
                    finished = stage
            except KeyboardInterrupt:
                if not finished.runs:
                    raise
        return finished

    def from_strongest_modes(
        self, tempering: TemperingEstimate, progress: bool | None = None
    ) -> list[TemperingEstimate]:
        """Parallel tempering from the two strongest phases of the model.

        Both together are as long as `tempering`, a run that may know both phases.
        """
        search = ModeSearch(self._annealed, tempering.samples)
        starts = [
            start_bias_near(self._annealed, mode, self._generator) for mode in search.phases()
        ]
        steps = max(TEMPERING_STEPS[0], tempering.chain_steps // 2)
        with step_bar(len(starts) * steps, "Tempering from modes", progress) as bar:
            runs = [
                self._temper(self._path_from(bias), steps, bar.update, check=False)
                for bias in starts
            ]
        return [run.estimate for run in runs]

    def _series(self, largest: int, tempering_steps: int, bar: tqdm[Any]) -> Iterator[FinishedRuns]:
        """What is finished, after each run."""
        begin = largest // DIVISORS[0]
        middle = largest // DIVISORS[1]
        bar.set_postfix(K=begin)
        with before_estimate(
            "waiting for the first and shortest run of AIS and RAISE, with "
            f"{begin:,} of {largest:,} steps"
        ):
            first = self._run(begin, bar.update)
        finished = FinishedRuns((first,), interrupted=True)
        yield finished
        bar.set_postfix(K="tempering")
        tempering = self._temper(self._path, tempering_steps, bar.update)
        finished = replace(finished, tempering=tempering.estimate)
        yield finished
        bar.set_postfix(K=middle)
        finished = replace(finished, runs=(*finished.runs, self._run(middle, bar.update)))
        yield finished
        bar.set_postfix(K="modes")
        search = ModeSearch(self._annealed, tempering.estimate.samples)
        short = max(TEMPERING_STEPS[0], round(MODES_WORK * tempering_steps / 2))

        def temper_from(mode: Optimum) -> _Tempering:
            path = self._path_from(start_bias_near(self._annealed, mode, self._generator))
            run = self._temper(path, short, bar.update, check=False)
            return replace(run, promised=mode.promised)

        model_optima = search.of_model()
        modes = [temper_from(mode) for mode in model_optima]
        finished = replace(finished, mode_checks=self._mode_checks(tempering, modes))
        yield finished
        bar.set_postfix(K="images")
        hard = self._hardly_reached(finished.runs[-1], tempering.estimate)
        image_optima = search.of_images(self._image_units(), hard, model_optima)
        image_modes = [temper_from(mode) for mode in image_optima]
        # Its copy of the model would stay beside those that the next runs make.
        del search
        finished = replace(finished, image_checks=self._mode_checks(tempering, image_modes))
        yield finished
        left = (_LEFT - MODES_WORK / 2 * len(image_modes)) * tempering_steps
        portion = _PORTION * tempering_steps
        while left >= portion:
            doubtful = self._most_doubtful(finished, tempering, [*modes, *image_modes])
            if doubtful is None:
                break
            # If parallel tempering were looked at after each portion, it would end when its
            # interval is too narrow by chance.
            longer = round(left if doubtful is tempering else portion)
            bar.set_postfix(K="tempering" if doubtful is tempering else "modes")
            self._extend(doubtful, longer, bar.update)
            left -= longer
            finished = replace(
                finished,
                tempering=tempering.estimate,
                mode_checks=self._mode_checks(tempering, modes),
                image_checks=self._mode_checks(tempering, image_modes),
            )
            yield finished
        last = int(left / (_LEFT * tempering_steps) * largest)
        if last > middle:
            bar.set_postfix(K=last)
            finished = replace(finished, runs=(*finished.runs, self._run(last, bar.update)))
            yield finished
        yield replace(finished, interrupted=False)

    def _path_from(self, visible_bias: Tensor) -> AnnealingPath[Any]:
        """The path of the annealed model from another start."""
        path = self._annealed_path
        # A path of the library shares what was prepared of the weights; a user's own may not.
        if type(path) is BaseRatePath:
            return path.restarted(visible_bias)
        return path_to(self._annealed, visible_bias)

    def _hardly_reached(self, run: AnnealingRun, tempering: TemperingEstimate) -> Tensor:
        """The images for which RAISE is too low in this run, as units of the annealed model.

        What RAISE loses by few draws of hidden units is measured only after all runs, and so is
        not allowed for: of a DBN, more images count here than in the verdict.
        """
        lacking = shortfall(run, tempering)
        if lacking is None:
            return torch.empty(0, self._annealed.num_visible, device=self._model.device)
        return self._units_of(self._test[run.chosen[lacking.affected.to(run.chosen.device)]])

    def _image_units(self) -> Tensor:
        """Some test and training images, as units of the annealed model."""
        test_units = self._units_of(evenly_spread(self._test, SOME_IMAGES))
        if self._train_units is None:
            return test_units
        return torch.cat([test_units, self._train_units])

    def _units_of(self, rows: Tensor) -> Tensor:
        # A separate source of random numbers, so that the look alone changes no draws.
        generator = seeded_generator(0, self._model.device)
        return self._model.annealed_units(rows.to(self._model.device), generator)

    def _most_doubtful(
        self, finished: FinishedRuns, tempering: _Tempering, modes: Sequence[_Tempering]
    ) -> _Tempering | None:
        """The run of parallel tempering that should be longer, if that could settle a doubt."""
        remedies = [doubt.remedy for doubt in find_doubts(finished)]
        if Remedy.NOTHING in remedies:
            return None
        if Remedy.TEMPERING in remedies:
            return tempering
        if Remedy.MODES in remedies:
            return max(zip(finished.checks, modes, strict=True), key=lambda pair: pair[0].most)[1]
        return None

    def _mode_checks(
        self, tempering: _Tempering, modes: Sequence[_Tempering]
    ) -> tuple[ModeCheck, ...]:
        """What the runs from modes say about parallel tempering."""
        return tuple(
            check_mode(
                tempering.estimate, self._annealed_path, mode.estimate, mode.path, mode.promised
            )
            for mode in modes
        )

    def _temper(
        self,
        path: AnnealingPath[Any],
        chain_steps: int,
        on_step: Callable[[int], object],
        check: bool = True,
    ) -> _Tempering:
        """Parallel tempering along a path, from its beginning."""
        run = TemperingRun(path, Plan(chain_steps, None, None, _SAMPLES), self._generator)
        return _Tempering(path, run, finish(run, on_step, check), check)

    def _extend(
        self, tempering: _Tempering, chain_steps: int, on_step: Callable[[int], object]
    ) -> None:
        """Make parallel tempering longer."""
        tempering.run.extend(chain_steps)
        tempering.estimate = finish(tempering.run, on_step, tempering.check)

    def _run(self, num_steps: int, on_step: Callable[[int], object]) -> AnnealingRun:
        """AIS and RAISE with this K, and the bracket that they make."""
        began = time.perf_counter()
        above, below, chosen = self._anneal(num_steps, on_step)
        # As numbers of the model's type, the states of all runs would take more than a model with
        # few hidden units.
        above = replace(above, final_states=above.final_states.to(torch.uint8))
        ends = bracket(self.log_unnormalized, chosen, above, below, self._weights)
        return AnnealingRun(num_steps, above, ends, time.perf_counter() - began, chosen)

    def _anneal(
        self, num_steps: int, on_step: Callable[[int], object], check: bool = True
    ) -> tuple[PartitionEstimate, ReverseEstimate, Tensor]:
        """AIS and RAISE, and which images RAISE was run for."""
        path = self._path
        betas = uniform_betas(num_steps)
        generator = self._generator
        above = ais(path, betas, AIS_CHAINS, generator, check=check, on_step=on_step)
        chosen = self._choose()
        below = raise_log_prob(
            path, self._test[chosen], betas, CHAINS_PER_VECTOR, generator, on_step=on_step
        )
        return above, below, chosen

    def _seconds_per_step(self) -> float:
        """Seconds that a step takes, measured on a few of them."""
        steps = _GPU_PILOT_STEPS if can_replay(self._path.device) else _PILOT_STEPS

        def anneal() -> None:
            # Reading the results waits for the GPU.
            for result in self._anneal(steps, lambda _: None, check=False)[:2]:
                result.log_weights.sum().item()

        # The first pass compiles and allocates.
        anneal()
        return seconds_of(anneal) / steps

    def _seconds_of_checks(self) -> float:
        """Seconds that a run takes beyond its steps."""
        took = seconds_of(lambda: self._anneal(_PILOT_STEPS, lambda _: None))
        return max(0.0, took - _PILOT_STEPS * self._step_seconds)

    def _choose(self) -> Tensor:
        """The indices of the test images that RAISE is run for."""
        order = torch.randperm(
            len(self._test), generator=self._generator, device=self._generator.device
        )
        return order[:RAISE_VECTORS].to(self._test.device)

    def _steps_of_runs(self, largest: int) -> int:
        """How many chain-steps all runs of AIS and RAISE take, up to this K."""
        chains = AIS_CHAINS + min(RAISE_VECTORS, len(self._test)) * CHAINS_PER_VECTOR
        return chains * sum(largest // divisor for divisor in DIVISORS)
