"""A run of parallel tempering, from its first pilot to its last step.

Pilot rounds grow longer, and each places the temperatures for the next. The main round then uses
the rest of the budget. The first half of the first round heats the chains: it takes them from the
start to their temperatures. The replicas of the main round begin with the chains of different times
of the last pilot round.

A run can be interrupted. A checkpoint holds everything that the rest of it depends on, and is
written after every round and ten times within the main round. A resumed run gives the same result,
bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath
from paperlib.annealing.path import state_tensors, with_tensors
from paperlib.annealing.walk import require_ratios
from paperlib.errors import InputError
from paperlib.estimators.estimate import require_finite_log_weights
from paperlib.estimators.tempering.replicas import Record, Replicas
from paperlib.estimators.tempering.temperatures import (
    FEWEST_TEMPERATURES,
    link_barriers,
    link_memory,
    link_shares,
    place_temperatures,
    temperatures_for,
)
from paperlib.kernels import parts_for, steps_at_a_time
from paperlib.kernels.version import DRAWS
from paperlib.models.files import tensors_checksum
from paperlib.numerics import seeded_generator
from paperlib.resumable import Checkpoint, State
from paperlib.threads import OnStep, one_thread, walk_side_by_side

# Shares of the budget for the pilot rounds.
_PILOTS = (0.02, 0.04, 0.08)
# The first round has no more temperatures than this.
_MOST_FIRST_TEMPERATURES = 24
# This gives 4 replicas of 23 temperatures at a budget of 10^5. There, for RBMs of 784 x 500 units,
# 2 and 4 replicas had the same error and 8 a larger error; more replicas determine the error
# better. More do not help at 10^6 either: with 12 replicas, which then all began with the chains of
# one time of the pilot, the error on CD25(500) was 0.15 nats, and with 3 it was 0.11.
_REPLICA_SCALE = 12.0
_MOST_CHAINS = 100
# Draws are kept at every fourth step at most, since each costs a product in full precision.
_SMALLEST_INTERVAL = 4
# The chains of a pilot round are kept at this many of its steps, for replicas of the main round to
# begin with.
_MOST_TIMES = 32
# Parts of the main round, after each of which a checkpoint is written.
_SEGMENTS = 10


@dataclass(frozen=True)
class Plan:
    """The arguments of a run."""

    chain_steps: int  # transitions of single chains that may be spent
    betas: Tensor | None  # the temperatures; None: chosen by pilot rounds
    num_replicas: int | None  # chains at each temperature; None: chosen to suit the budget
    max_samples: int  # how many draws of the target to keep

    @property
    def pilots(self) -> tuple[float, ...]:
        """Shares of the budget for the rounds before the main one.

        If the temperatures are given there is a single one, which only heats the chains.
        """
        return _PILOTS if self.betas is None else _PILOTS[1:2]

    def replicas_for(self, num_temperatures: int) -> int:
        """How many replicas the main round has, by default at least two.

        There are more for a larger budget, up to a hundred chains. Long chains pay for their
        burn-in once; several replicas determine the error.
        """
        if self.num_replicas is not None:
            return self.num_replicas
        chains = min(math.sqrt(self.chain_steps / _REPLICA_SCALE), _MOST_CHAINS)
        return max(2, round(chains / num_temperatures))


@dataclass
class _Recording:
    """What some of the replicas have recorded in a segment."""

    # of each call of `Replicas.steps`
    log_ratios: list[Tensor] = field(default_factory=list)
    ends: list[Tensor] = field(default_factory=list)
    # of each draw, the states of the chains at beta = 0 and at beta = 1
    end_states: list[tuple[Any, Any]] = field(default_factory=list)


class TemperingRun:
    """The rounds of a run, in segments; `spent` counts transitions of single chains.

    All random numbers come from the generator, on the path's device. If there is a checkpoint, with
    the identity of this run (`run_identity`), the run resumes from it; if it is damaged or belongs
    to another run, that is an `InputError`.
    """

    def __init__(
        self,
        path: AnnealingPath[Any],
        plan: Plan,
        generator: torch.Generator,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.path = path
        self.generator = generator
        self._plan = plan
        self._checkpoint = checkpoint or Checkpoint(None, {})
        self.spent = 0
        if plan.betas is None:
            most = int(math.sqrt(plan.pilots[0] * plan.chain_steps) / 2)
            count = min(_MOST_FIRST_TEMPERATURES, max(FEWEST_TEMPERATURES, most))
            betas = torch.linspace(0, 1, count, dtype=torch.float64)
            num_replicas = 1
        else:
            betas = plan.betas
            num_replicas = plan.replicas_for(len(betas))
        chains = len(betas) * num_replicas
        state = path.sample_start(chains, generator)
        require_ratios(path, state, chains, 0.0, betas[1].item())
        self._begin(0, Replicas(path, betas, num_replicas, state))
        stored = self._checkpoint.load()
        if stored is not None:
            self._restore(stored)

    @property
    def in_main_round(self) -> bool:
        """Whether the current round is the last one, the only one that counts."""
        return self._number == len(self._plan.pilots)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.in_main_round and self._done == self._steps

    def _begin(self, number: int, replicas: Replicas[Any]) -> None:
        """Set up a round that begins with these chains."""
        self._number = number
        self.replicas = replicas
        self._done = 0
        plan = self._plan
        left = plan.chain_steps - self.spent
        if self.in_main_round:
            self._steps = max(0, left // replicas.num_chains)
        else:
            share = int(plan.pilots[number] * plan.chain_steps)
            self._steps = max(1, min(share, left) // replicas.num_chains)
        # steps at the beginning that heat the chains
        self._heating = 0
        if number == 0:
            self._heating = self._steps // 2 if plan.betas is None else self._steps
        draws = self._steps * replicas.num_replicas
        interval = max(_SMALLEST_INTERVAL, math.ceil(draws / plan.max_samples))
        # steps from one draw of the main round to the next
        self._interval = max(1, min(interval, self._steps))
        # steps from one of the earlier states of a pilot round to the next
        self._apart = max(1, self._steps // _MOST_TIMES)
        self._earlier: list[Any] = []
        # What the steps after the heating have recorded, by name: one row for each step or, of
        # "units" and "corrections", for each draw.
        self._series: dict[str, Tensor] = {}

    def advance(self, on_step: OnStep) -> None:
        """Advance by a round or, in a main round with a checkpoint, by a tenth of it."""
        # Without need there are no segments, at the end of which threads wait for each other.
        segmented = self.in_main_round and self._checkpoint.path is not None
        length = math.ceil(self._steps / _SEGMENTS) if segmented else self._steps
        steps = range(self._done, min(self._done + length, self._steps))
        recordings = self._walk_side_by_side(steps, on_step)
        self._done += len(steps)
        self.spent += len(steps) * self.replicas.num_chains
        # The last digits of sums depend on how many threads share them.
        with one_thread():
            for name, rows in self._joined(recordings).items():
                earlier = self._series.get(name)
                self._series[name] = rows if earlier is None else torch.cat([earlier, rows])
            if self._done == self._steps and not self.in_main_round:
                self._begin(self._number + 1, self._next_replicas())
        if self._checkpoint.path is not None:
            self._checkpoint.save(self._stored())

    def _walk_side_by_side(self, steps: range, on_step: OnStep) -> list[_Recording]:
        """Take these steps, and return what each part of the replicas has recorded.

        Where the path takes steps at once, the replicas of the main round walk side by side in as
        many threads as torch has.
        """
        replicas = self.replicas
        parts = 1
        if self.in_main_round and self.path.steps_at_once:
            threads = min(torch.get_num_threads(), replicas.num_replicas)
            parts = parts_for(replicas.num_chains, threads)
        if parts == 1:
            walk = partial(self._walk, replicas, self.generator, steps)
            return walk_side_by_side([walk], on_step)
        divided = replicas.divide(parts)
        generators = [self.generator.clone_state() for _ in divided]
        walks = [
            partial(self._walk, part, generator, steps)
            for part, generator in zip(divided, generators, strict=True)
        ]
        recordings = walk_side_by_side(walks, on_step)
        # All copies are now in the same state.
        self.generator.set_state(generators[0].get_state())
        replicas.join(divided)
        return recordings

    def _walk(
        self, replicas: Replicas[Any], generator: torch.Generator, steps: range, on_step: OnStep
    ) -> _Recording:
        """Take these steps with some or all of the replicas; returns what they have recorded."""
        recording = _Recording()
        most = steps_at_a_time(replicas.num_chains, self.path.num_visible)
        step = steps.start
        while step < steps.stop:
            if step < self._heating:
                replicas.heat((step + 1) / self._heating, generator)
                count = 1
            else:
                to_next = self._steps_to_next_states(step)
                count = min(to_next, steps.stop - step, most)
                ratios, ends = replicas.steps(generator, count)
                recording.log_ratios.append(ratios)
                recording.ends.append(ends)
                if count == to_next:
                    self._record_states(replicas, recording)
            step += count
            on_step(count * replicas.num_chains)
        return recording

    def _steps_to_next_states(self, step: int) -> int:
        """After how many more steps the next states are recorded."""
        if self.in_main_round:
            return self._interval - step % self._interval
        return (self._steps - step - 1) % self._apart + 1

    def _record_states(self, replicas: Replicas[Any], recording: _Recording) -> None:
        """Record a draw or, in a pilot round, states with which the next round may begin."""
        if self.in_main_round:
            at_start = self.path.select(replicas.state, replicas.chain_at[:, 0])
            at_target = self.path.select(replicas.state, replicas.chain_at[:, -1])
            recording.end_states.append((at_start, at_target))
        else:
            self._earlier.append(self.path.select(replicas.state, replicas.chain_at[0]))

    def _joined(self, recordings: Sequence[_Recording]) -> dict[str, Tensor]:
        """The rows of a segment's series for all replicas, from the recordings of their parts.

        Corrections for rounding are those of all replicas at once, since the last digits of a
        product depend on how many rows it has.
        """
        joined = {}
        if recordings[0].log_ratios:
            log_ratios = torch.cat([torch.cat(part.log_ratios) for part in recordings], 2)
            ends = torch.cat([torch.cat(part.ends) for part in recordings], 1)
            # On a GPU they are fetched only now, so that no step has to be waited for.
            joined["log_ratios"] = log_ratios.cpu()
            joined["ends"] = ends.int().cpu()
        units = []
        corrections = []
        for states_of_parts in zip(*[part.end_states for part in recordings], strict=True):
            for end in (0, 1):
                states = [end_states[end] for end_states in states_of_parts]
                state = self.path.concatenate(states) if len(states) > 1 else states[0]
                correction = torch.as_tensor(self.path.end_correction(state, end))
                corrections.append(correction.double().cpu().expand(self.replicas.num_replicas))
                if end == 1:
                    units.append(self.path.units(state))
        if units:
            joined["units"] = torch.stack(units)
            joined["corrections"] = torch.stack(corrections).unflatten(0, (-1, 2))
        return joined

    def extend(self, chain_steps: int) -> None:
        """Make the main round longer, by at most this many transitions of single chains."""
        self._steps += chain_steps // self.replicas.num_chains

    def _next_replicas(self) -> Replicas[Any]:
        """Replicas at temperatures placed by the last round, with its chains nearest to each."""
        old = self.replicas
        plan = self._plan
        if plan.betas is not None:
            return Replicas(self.path, plan.betas, old.num_replicas, old.state)
        record = self.record()
        require_finite_log_weights(record.log_ratios)
        barriers = link_barriers(record.rejection_rates())
        num_temperatures = temperatures_for(barriers)
        last_pilot = self._number + 1 == len(plan.pilots)
        num_replicas = plan.replicas_for(num_temperatures) if last_pilot else 1
        # A round needs at least ten steps, however large the barrier is.
        left = plan.chain_steps - self.spent
        while num_temperatures > FEWEST_TEMPERATURES:
            if 10 * num_temperatures * num_replicas <= left:
                break
            num_temperatures -= 1
        shares = link_shares(barriers, link_memory(*record.links()))
        betas = place_temperatures(record.betas, shares, num_temperatures)
        near = (betas[:, None] - record.betas).abs().argsort(stable=True).to(self.path.device)
        # The error is that of independent replicas, so each begins with the chains of another time,
        # the first with the last ones. Only if there are more replicas than times do some begin
        # with the chains that are second nearest.
        times = torch.linspace(len(self._earlier) - 1, 0, min(num_replicas, len(self._earlier)) + 1)
        earlier = [self._earlier[round(time)] for time in times[:-1].tolist()]
        states = []
        for replica in range(num_replicas):
            rank, number = divmod(replica, len(earlier))
            nearest = near[:, rank % near.shape[1]]
            states.append(self.path.select(earlier[number], nearest))
        return Replicas(self.path, betas, num_replicas, self.path.concatenate(states))

    def record(self, first: int = 0) -> Record:
        """The record of the current round so far, from step `first` on."""
        series = self._series
        return Record(
            self.replicas.betas.cpu(), series["log_ratios"][first:], series["ends"][first:]
        )

    def draws(self) -> tuple[list[int], Tensor, Tensor]:
        """The draws of the current round: after which steps, their units, and their corrections.

        The units [draws, R, n] are those at beta = 1. The corrections, float64 [draws, 2, R], are
        `end_correction` of the chains at beta = 0 and at beta = 1.
        """
        units = self._series["units"]
        corrections = self._series["corrections"]
        steps = [(place + 1) * self._interval - 1 for place in range(len(units))]
        return steps, units, corrections

    def _stored(self) -> State:
        """All that the rest of the run depends on."""
        tensors = {
            f"state_{name}": value for name, value in state_tensors(self.replicas.state).items()
        }
        tensors |= {
            "generator": self.generator.get_state(),
            "chain_at": self.replicas.chain_at,
            "betas": self.replicas.betas,
            **self._series,
        }
        return State(tensors, {"round": self._number, "done": self._done, "spent": self.spent})

    def _restore(self, stored: State) -> None:
        """Continue from what `_stored` gave."""
        tensors, numbers = stored
        device = self.path.device
        parts = {
            name.removeprefix("state_"): value.to(device)
            for name, value in tensors.items()
            if name.startswith("state_")
        }
        # A single chain shows how a state is built; its tensors are replaced with those of all
        # chains.
        model = self.path.sample_start(1, seeded_generator(0, device))
        chain_at = tensors["chain_at"].to(device)
        replicas = Replicas(self.path, tensors["betas"], len(chain_at), with_tensors(model, parts))
        if not torch.equal(chain_at.sort(1).values, replicas.chain_at):
            raise InputError(
                f"checkpoint: expected every chain once in {self._checkpoint.path}; "
                "remove it to start anew"
            )
        replicas.chain_at = chain_at
        self.spent = numbers["spent"] - numbers["done"] * replicas.num_chains
        self._begin(numbers["round"], replicas)
        self.spent = numbers["spent"]
        self._done = numbers["done"]
        recorded = ("log_ratios", "ends", "units", "corrections")
        self._series = {name: tensors[name] for name in recorded if name in tensors}
        if "units" in tensors:
            self._series["units"] = tensors["units"].to(device)
        self.generator.set_state(tensors["generator"])


def run_identity(
    path: AnnealingPath[Any], plan: Plan, generator: torch.Generator, seeded: bool
) -> dict[str, str]:
    """What distinguishes runs: the path, the plan and, if `seeded`, the generator's state."""
    betas = "chosen" if plan.betas is None else tensors_checksum([plan.betas])
    start = tensors_checksum([generator.get_state()]) if seeded else "system entropy"
    return {
        "kind": "parallel tempering",
        "draws": DRAWS,
        "path": path.checksum(),
        "device": path.device.type,
        "chain_steps": str(plan.chain_steps),
        "betas": betas,
        "num_replicas": "chosen" if plan.num_replicas is None else str(plan.num_replicas),
        "max_samples": str(plan.max_samples),
        "generator": start,
    }
