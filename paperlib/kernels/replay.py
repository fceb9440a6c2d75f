"""One step of a walk, recorded in a CUDA graph and replayed.

A step consists of some twenty small operations. On a GPU most of the time would go into launching
them one by one. Once recorded, they are launched together, and the host, which never looks at a
result, runs ahead. The betas are on the device, where the step finds its own with a counter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

Step = Callable[[Any, Tensor, Any, Any], Any]


def can_replay(device: torch.device) -> bool:
    """Whether steps on this device are recorded: on any but a CPU."""
    return device.type != "cpu"


def replayed(
    step: Step,
    state: Any,
    log_weights: Tensor,
    betas: Sequence[float],
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> Any:
    """`paperlib.annealing.walk.walk` with a recorded step; the result is the same.

    `on_step` is called when a step has been launched. The step must not read numbers from tensors.
    """
    with _current(log_weights.device):
        recorded = _RecordedStep(step, state, log_weights, betas)
        replay = _record(recorded, generator)
        for _ in betas[1:]:
            replay()
            on_step()
    return recorded.state


def _current(device: torch.device) -> AbstractContextManager[object]:
    """A context in which streams and graphs belong to this GPU, whichever was current before."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


class _RecordedStep:
    """A step that reads and writes the same memory each time, as a CUDA graph requires.

    It works on any device.
    """

    def __init__(self, step: Step, state: Any, log_weights: Tensor, betas: Sequence[float]) -> None:
        device = log_weights.device
        self._step = step
        self._names = [
            field.name for field in fields(state) if isinstance(getattr(state, field.name), Tensor)
        ]
        # copies, since they will be written to
        self.state = replace(state, **{name: getattr(state, name).clone() for name in self._names})
        self._log_weights = log_weights
        self._betas = torch.tensor(betas, dtype=torch.float64, device=device)
        self._place = torch.zeros(1, dtype=torch.int64, device=device)

    def __call__(self) -> None:
        """Take one step."""
        places = torch.cat([self._place, self._place + 1])
        beta_from, beta_to = self._betas.index_select(0, places).unbind()
        after = self._step(self.state, self._log_weights, beta_from, beta_to)
        for name in self._names:
            getattr(self.state, name).copy_(getattr(after, name))
        self._place.add_(1)

    def memory(self) -> list[Tensor]:
        """All tensors that a call changes."""
        return [
            *(getattr(self.state, name) for name in self._names),
            self._log_weights,
            self._place,
        ]


def _record(recorded: _RecordedStep, generator: torch.Generator) -> Callable[[], None]:
    """A function that replays the step."""
    # The first call sets up libraries and workspaces, which must not be recorded. Its effects are
    # undone.
    before = [tensor.clone() for tensor in recorded.memory()]
    drawn = generator.get_state()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        recorded()
    torch.cuda.current_stream().wait_stream(side)
    for tensor, value in zip(recorded.memory(), before, strict=True):
        tensor.copy_(value)
    generator.set_state(drawn)

    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=side):
        recorded()
    # torch sets the generator's place to zero on the stream that records. On a GPU that other
    # programs keep busy, that could otherwise happen after the first replay has set it, which would
    # then draw what was drawn before the walk.
    torch.cuda.current_stream().wait_stream(side)
    return graph.replay
