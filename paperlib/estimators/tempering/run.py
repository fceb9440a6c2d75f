"""A run of parallel tempering, from its first pilot to its last step, that can be interrupted and resumed.

Pilot rounds grow longer, and each places the temperatures for the next. The main round then uses
the rest of the budget. The first half of the first round heats the chains: it takes them from the
start to their temperatures. The replicas of the main round begin with the chains of different times
of the last pilot round.

A checkpoint holds everything that the rest of a run depends on. It is written after every round and
ten times within the main round. A resumed run gives the same result, bit for bit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    link_barriers,
    link_memory,
    link_shares,
    place_temperatures,
    temperatures_for,
)
from paperlib.kernels.version import DRAWS
from paperlib.models.files import tensors_checksum
from paperlib.numerics import seeded_generator
from paperlib.resumable import Checkpoint, State
from paperlib.threads import OnStep, one_thread, walk_side_by_side

# Shares of the budget for the pilot rounds.
_PILOTS = (0.02, 0.04, 0.08)
_MOST_FIRST_TEMPERATURES = 24
# This gives 4 replicas of 23 temperatures at a budget of 10^5. There, for RBMs of 784 x 500 units,
# 2 and 4 replicas had the same error and 8 a larger error; more replicas determine the error
# better. More do not help at 10^6 either: with 12 replicas, which then all began with the chains of
# one time of the pilot, the error on CD25(500) was 0.15 nats, and with 3 it was 0.11.
_REPLICA_SCALE = 12.0
_MOST_CHAINS = 100
# Draws are kept at every fourth step at most, since each costs a product in full precision.
_SMALLEST_INTERVAL = 4
# At so many times of a pilot round, its chains are kept for replicas of the main round to begin
# with.
_MOST_TIMES = 32
_SEGMENTS = 10
# So many steps are taken at once at most, and so many visible units drawn, so that Ctrl-C need not
# wait for long.
_MOST_STEPS = 100
_MOST_UNITS = 2_000_000


@dataclass(frozen=True)
class Plan:
    """What a run is asked to do."""

    chain_steps: int  # transitions of single chains that may be spent
    betas: Tensor | None  # the temperatures; None: chosen by pilot rounds
    num_replicas: int | None  # chains at each temperature; None: chosen to suit the budget
    max_samples: int  # how many draws of the target to keep

    @property
    def pilots(self) -> tuple[float, ...]:
        """Shares of the budget spent before the main round; with given betas, on heating the chains alone."""
        return _PILOTS if self.betas is None else _PILOTS[1:2]

    def replicas_for(self, num_temperatures: int) -> int:
        """How many replicas the main round has: at least two, and more for a larger budget until there are a hundred chains.

        Long chains pay for their burn-in once; several replicas determine the error.
        """
        if self.num_replicas is not None:
            return self.num_replicas
        chains = min(math.sqrt(self.chain_steps / _REPLICA_SCALE), _MOST_CHAINS)
        return max(2, round(chains / num_temperatures))


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
            most = math.sqrt(plan.pilots[0] * plan.chain_steps) / 2
            betas = torch.linspace(
                0, 1, min(_MOST_FIRST_TEMPERATURES, max(3, int(most))), dtype=torch.float64
            )
            num_replicas = 1
        else:
            betas, num_replicas = plan.betas, plan.replicas_for(len(plan.betas))
        chains = len(betas) * num_replicas
        state = path.sample_start(chains, generator)
        require_ratios(path, state, chains, 0.0, betas[1].item())
        self._begin(0, Replicas(path, betas, num_replicas, state))
        stored = self._checkpoint.load()
        if stored is not None:
            self._restore(stored)

    @property
    def main(self) -> bool:
        """Whether the current round is the last one, the only one that counts."""
        return self._number == len(self._plan.pilots)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.main and self._done == self._steps

    def _begin(self, number: int, replicas: Replicas[Any]) -> None:
        """Set up a round that begins with these chains."""
        self._number = number
        self.replicas = replicas
        self._done = 0
        left = self._plan.chain_steps - self.spent
        share = left if self.main else int(self._plan.pilots[number] * self._plan.chain_steps)
        self._steps = max(0 if self.main else 1, min(share, left) // replicas.num_chains)
        self._heating = 0
        if number == 0:
            self._heating = self._steps if self._plan.betas is not None else self._steps // 2
        draws = self._steps * replicas.num_replicas
        interval = max(_SMALLEST_INTERVAL, -(-draws // self._plan.max_samples))
        self._interval = max(1, min(interval, self._steps))
        self._apart = max(1, self._steps // _MOST_TIMES)
        self._earlier: list[Any] = []
        # What the steps after the heating have recorded, by name, one row for each step or for each
        # draw that is kept.
        self._series: dict[str, Tensor] = {}

    def advance(self, on_step: OnStep) -> None:
        """Advance by a segment: a pilot round, or a tenth of the main round."""
        length = -(-self._steps // _SEGMENTS) if self.main else self._steps
        steps = range(self._done, min(self._done + length, self._steps))
        found = self._walk_side_by_side(steps, on_step)
        self._done += len(steps)
        self.spent += len(steps) * self.replicas.num_chains
        # The last digits of sums depend on how many threads share them.
        with one_thread():
            for name, new in self._joined(found).items():
                self._series[name] = torch.cat([self._series.get(name, new[:0]), new])
            if self._done == self._steps and not self.main:
                self._begin(self._number + 1, self._next_replicas())
        if self._checkpoint.path is not None:
            self._checkpoint.save(self._stored())

    def _walk_side_by_side(self, steps: range, on_step: OnStep) -> list[dict[str, list[Any]]]:
        """Take these steps, and return what each part of the replicas has recorded.

        Where the path allows it, and its layers are wide enough, the replicas of the main round
        walk side by side in as many threads as torch has. Otherwise small products run in this
        thread: many threads would wait for each other in each of them.
        """
        path = self.path
        replicas = self.replicas
        if path.walks_in_threads and not path.divides_replicas:
            return [self._walk(replicas, self.generator, steps, on_step)]
        threads = torch.get_num_threads() if self.main and path.walks_in_threads else 1
        parts = [replicas]
        copies = [self.generator]
        if min(threads, replicas.num_replicas) > 1:
            parts = replicas.divide(threads)
            copies = [self.generator.clone_state() for _ in parts]
        walks = [partial(self._walk, *each, steps) for each in zip(parts, copies, strict=True)]
        found = walk_side_by_side(walks, on_step)
        if len(parts) > 1:
            # All copies are now in the same state.
            self.generator.set_state(copies[0].get_state())
            replicas.join(parts)
        return found

    def _walk(
        self, replicas: Replicas[Any], generator: torch.Generator, steps: range, on_step: OnStep
    ) -> dict[str, list[Any]]:
        """Take these steps with some of the replicas, or all, and return what they have recorded, by name.

        Of the draws that are kept, these are the states of the chains at beta = 0 and at beta = 1.
        """
        found = defaultdict[str, list[Any]](list)
        units = replicas.num_chains * max(1, self.path.num_visible)
        most = min(_MOST_STEPS, max(1, _MOST_UNITS // units))
        step = steps.start
        while step < steps.stop:
            count = 1
            if step < self._heating:
                replicas.heat((step + 1) / self._heating, generator)
            else:
                # up to the next states that are kept
                kept_after = (
                    self._interval - step % self._interval
                    if self.main
                    else (self._steps - step - 1) % self._apart + 1
                )
                count = min(kept_after, steps.stop - step, most)
                ratios, ends = replicas.steps(generator, count)
                found["log_ratios"].append(ratios)
                found["ends"].append(ends)
                if count == kept_after and self.main:
                    places = replicas.chain_at[:, 0], replicas.chain_at[:, -1]
                    kept = [self.path.select(replicas.state, place) for place in places]
                    found["kept"].append(kept)
                elif count == kept_after:
                    self._earlier.append(self.path.select(replicas.state, replicas.chain_at[0]))
            step += count
            on_step(count * replicas.num_chains)
        return found

    def _joined(self, found: Sequence[Mapping[str, list[Any]]]) -> dict[str, Tensor]:
        """What all replicas have recorded, from the records of their parts: a row for each step, or for each draw that is kept.

        Corrections for rounding are those of all replicas at once, since the last digits of a
        product depend on how many rows it has.
        """
        joined = {}
        for name, dimension in (("log_ratios", 2), ("ends", 1)):
            if found[0][name]:
                rows = torch.cat([torch.cat(part[name]) for part in found], dimension)
                # On a GPU they are fetched only now, so that no step has to be waited for.
                joined[name] = rows.cpu() if name == "log_ratios" else rows.int().cpu()
        units = []
        corrections = []
        for kept in zip(*[part["kept"] for part in found], strict=True):
            for end in (0, 1):
                states = [states[end] for states in kept]
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
        """Make the main round longer, by at most so many transitions of single chains."""
        self._steps += chain_steps // self.replicas.num_chains

    def _next_replicas(self) -> Replicas[Any]:
        """Temperatures placed according to the last round, with those of its chains that were nearest to them."""
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
        # A round needs at least a few steps, however large the barrier is.
        while (
            num_temperatures > 3
            and 10 * num_temperatures * num_replicas > plan.chain_steps - self.spent
        ):
            num_temperatures -= 1
        shares = link_shares(barriers, link_memory(*record.links()))
        betas = place_temperatures(record.betas, shares, num_temperatures)
        near = (betas[:, None] - record.betas).abs().argsort(stable=True).to(self.path.device)
        # The error is that of independent replicas, so each begins with the chains of another time,
        # the first with the last ones. Only if there are more replicas than times do some begin
        # with the chains that are second nearest.
        times = torch.linspace(len(self._earlier) - 1, 0, min(num_replicas, len(self._earlier)) + 1)
        chosen = [self._earlier[round(time)] for time in times[:-1].tolist()]
        states = [
            self.path.select(
                chosen[replica % len(chosen)], near[:, replica // len(chosen) % near.shape[1]]
            )
            for replica in range(num_replicas)
        ]
        return Replicas(self.path, betas, num_replicas, self.path.concatenate(states))

    def record(self, first: int = 0) -> Record:
        """The record of the current round so far, from step `first` on."""
        series = self._series
        return Record(
            self.replicas.betas.cpu(), series["log_ratios"][first:], series["ends"][first:]
        )

    def draws(self) -> tuple[list[int], Tensor, Tensor]:
        """What was kept from the current round: the steps after which, the units at beta = 1, [kept, R, n], and corrections, [kept, 2, R].

        The corrections are float64, `end_correction` of the chains at beta = 0 and at beta = 1.
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
    """What distinguishes runs: the path, the plan and, if the run was `seeded`, where its random numbers begin."""
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
