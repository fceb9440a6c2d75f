"""AIS, RAISE and the ladder on one model, with growing numbers of intermediate distributions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib.annealing import AnnealingPath, uniform_betas
from paperlib.estimators import (
    Bracket,
    PartitionEstimate,
    ReverseEstimate,
    TemperingEstimate,
    ais,
    bracket,
    raise_log_prob,
)
from paperlib.estimators.ladder_run import LadderRun, Plan
from paperlib.estimators.tempering import summarize_ladder
from paperlib.evaluation.modes import ModeCheck, check_mode, mode_starts
from paperlib.evaluation.targets import Model, annealed, log_unnormalized_of, path_to
from paperlib.evaluation.verdict import (
    ImageAverage,
    Judgement,
    as_population,
    average_of,
    known_log_z,
)
from paperlib.kernels import can_replay
from paperlib.numerics import seeded_generator

# What the largest run's K is divided by for the runs before it, which show whether the estimate still moves.
_FRACTIONS = (16, 4, 1)
#: Fewer steps than that leave the first of the runs with none.
FEWEST_STEPS = 2 * _FRACTIONS[0]
AIS_CHAINS = 200
RAISE_VECTORS, CHAINS_PER_VECTOR = 100, 4
# A GPU first records a step, which takes as long as thousands of them.
_PILOT_STEPS, _GPU_PILOT_STEPS = 20, 5_000
_LARGEST_K = 100_000
# AIS from other modes of the model: chains for each, and what it adds in steps of a whole run.
_MODE_CHAINS = 100
_MODE_COST = 1 / 3
# The ladder's chain-steps are half of what AIS and RAISE take. Its memory grows with them: 160 MB at most.
LADDER_STEPS = (5_000, 10_000_000)
_LADDER_PILOT_STEPS = 10_000
_LADDER_SAMPLES = 1_000


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
    >>> from paperlib.models import RBM
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
    model : RBM, PottsRBM, DBM or DBN
        The model.
    test : Tensor, shape [N, D]
        Binary test images of any type.
    visible_bias : Tensor or None
        Biases of the start, of the units that are annealed (`paperlib.evaluation.targets`): of an RBM, [D], as for `BaseRatePath`.
    generator : torch.Generator
        Source of randomness.
    weights : Tensor, shape [N], optional
        By which the images count, all above zero.
    log_unnormalized : Tensor, shape [N], optional
        ln p*(v) of the images where it is known already.
    """

    def __init__(
        self,
        model: Model,
        test: Tensor,
        visible_bias: Tensor | None,
        generator: torch.Generator,
        weights: Tensor | None = None,
        log_unnormalized: Tensor | None = None,
    ) -> None:
        # Single precision is enough: AIS is unbiased for the model as it then is, which differs by 1e-7 of a weight.
        single = model.to(dtype=torch.float32)
        self._path = path_to(single, visible_bias)
        # The same walk, of a model without layers that are not annealed: for what asks where chains ended.
        self._annealed = annealed(single)
        self._annealed_path = path_to(self._annealed, visible_bias)
        self._test, self._weights = test, weights
        if log_unnormalized is None:
            log_unnormalized = log_unnormalized_of(single, test, generator)
        self._log_unnormalized = log_unnormalized
        self._generator = generator

    def affordable_steps(self, seconds: float) -> int:
        """The largest K for which all runs fit the time, by a pilot run that leaves the generator as it is."""
        steps = sum(1 / part for part in _FRACTIONS) + _MODE_COST
        with self._pilot():
            affordable = seconds / self._seconds_per_step() / steps
        return max(FEWEST_STEPS, min(_LARGEST_K, int(affordable)))

    def affordable_ladder_steps(self, seconds: float) -> int:
        """How many chain-steps of the ladder fit the time, by pilot runs that leave the generator as it is.

        They grow until one takes a fiftieth of the time: a longer run has more replicas, and a chain-step costs less.
        """
        with self._pilot():
            return self._ladder_pilots(seconds)

    def _ladder_pilots(self, seconds: float) -> int:
        fewest, most = LADDER_STEPS
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

    @contextmanager
    def _pilot(self) -> Iterator[None]:
        """Random numbers of its own for what is run to see how long it takes."""
        kept, self._generator = self._generator, seeded_generator(0, self._generator.device)
        try:
            yield
        finally:
            self._generator = kept

    def usual_ladder_steps(self, largest: int) -> int:
        """The ladder's chain-steps for runs up to this K: half of what AIS and RAISE take, up to ten million."""
        of_runs = self._chain_count() * sum(largest // part for part in _FRACTIONS)
        return max(LADDER_STEPS[0], min(LADDER_STEPS[1], of_runs // 2))

    def average(self, finished: FinishedRuns, judgement: Judgement) -> ImageAverage:
        """The average test log-probability with ln Z of the judgement's source."""
        known = known_log_z(finished.runs[-1].ais, finished.ladder, judgement.source)
        return average_of(self._log_unnormalized, *known, self._weights)

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
            Transitions of single chains for the ladder. By default `usual_ladder_steps`; 0 for none.

        Raises
        ------
        KeyboardInterrupt
            If no run is finished yet. Later Ctrl-C ends the series, and what is finished is
            returned.
        """
        step_counts = [largest // part for part in _FRACTIONS]
        of_runs = self._chain_count() * sum(step_counts)
        if ladder_steps is None:
            ladder_steps = self.usual_ladder_steps(largest)
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
                biases = mode_starts(self._annealed, base.final_states, self._generator)
                bar.total += len(biases) * _MODE_CHAINS * largest
                for bias in biases:
                    path, base_path = path_to(self._annealed, bias), self._annealed_path
                    at_mode = self._ais(path, largest, _MODE_CHAINS, bar.update, check=False)
                    mode_checks.append(check_mode(base, base_path, at_mode, path))
                    if ladder is not None:
                        draws = as_population(ladder)
                        of_ladder.append(check_mode(draws, base_path, at_mode, path))
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
        above = self._ais(self._path, num_steps, AIS_CHAINS, on_step)
        chosen = self._choose()
        below = self._raise(chosen, num_steps, on_step)
        result = bracket(self._log_unnormalized, chosen, above, below, self._weights)
        return AnnealingRun(num_steps, above, result, time.perf_counter() - began)

    def _ais(
        self,
        path: AnnealingPath[Any],
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
            CHAINS_PER_VECTOR,
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
            forward = self._ais(self._path, steps, AIS_CHAINS, lambda _: None, check=False)
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
        return order[:RAISE_VECTORS].to(self._test.device)

    def _chain_count(self) -> int:
        """How many chains take a step of a run."""
        return AIS_CHAINS + min(RAISE_VECTORS, len(self._test)) * CHAINS_PER_VECTOR
