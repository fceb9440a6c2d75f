"""The ways in which paperlib computes one thing, all held to the same enumeration.

The models of these tests are tiny. Limits that send wide layers to another code are therefore
lowered, so that tiny ones take it.

Fast products round the weights, by so little that no test would notice a wrong treatment of it.
`coarse` backends round them to a third of the largest: the model that is walked to is then visibly
another one.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field

import pretend_gpu
import pytest
import torch
from enumeration import WeightlessRBM

from paperlib.kernels import capability, products
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


@dataclass(frozen=True)
class Backend:
    """How the models of a test compute."""

    name: str
    dtype: torch.dtype = torch.float32
    coarse: bool = False
    # constants of paperlib.kernels.products
    constants: dict = field(default_factory=dict)

    @property
    def on_gpu(self):
        return self.device.type != "cpu"

    @property
    def device(self):
        gpus = {"pretended GPU": pretend_gpu.DEVICE, "GPU": torch.device("cuda")}
        return gpus.get(self.name, torch.device("cpu"))

    @property
    def tolerance(self):
        """Of sums and logarithms that are computed without any sampling; relative or in nats."""
        return 1e-12 if self.dtype == torch.float64 else 2e-5

    def place(self, model):
        """A model in this backend's type."""
        return model.to(dtype=self.dtype)

    def generator(self, seed):
        return seeded_generator(seed, self.device)


_WIDE = {"_FEWEST_COLUMNS": 1, "_FEWEST_ROWS": 1}
_BACKENDS = [
    Backend("float64", torch.float64),
    Backend("float32 reference"),
    Backend("float32 fast, narrow"),
    Backend("float32 fast, narrow, no fast integers", constants={"_FAST_INTEGERS": False}),
    Backend("float32 fast, wide, rows added", constants=_WIDE | {"_FAST_INTEGERS": False}),
    Backend(
        "float32 fast, wide, summed anew",
        constants=_WIDE | {"_FAST_INTEGERS": True, "_PREPARED": 0, "_SHARE_OF_A_CHAIN": 0.0},
    ),
    Backend("pretended GPU"),
    *([Backend("GPU")] if torch.cuda.is_available() else []),
]
BACKENDS = [
    Backend(backend.name, backend.dtype, coarse, backend.constants)
    for backend in _BACKENDS
    for coarse in (False, True)
    if not (coarse and backend.dtype == torch.float64)
]


class _CoarseHalves(products._HalvesProduct):
    """Each element rounded to a power of two, of whatever matrix it is an element."""

    def __init__(self, matrix):
        super().__init__(torch.sign(matrix) * torch.exp2(torch.log2(matrix.abs()).round()))


def use(backend, monkeypatch, stack):
    """Let the library compute in this way until the monkeypatch and the stack are undone."""
    if backend.name == "float32 reference":
        monkeypatch.setattr(capability, "agrees", lambda: False)
    for name, value in backend.constants.items():
        monkeypatch.setattr(products, name, value)
    if backend.coarse:
        monkeypatch.setattr(products, "_LARGEST", 3)
        monkeypatch.setattr(products, "_HalvesProduct", _CoarseHalves)
    if backend.name == "pretended GPU":
        use_tensor_cores(monkeypatch)
        stack.enter_context(on_a_gpu_of_paper(monkeypatch))


def use_tensor_cores(monkeypatch):
    """The products of tensor cores, on this processor: factors of eight bits, sums in float32."""
    monkeypatch.setattr(products, "_multiplies_bfloat16", lambda device: True)
    monkeypatch.setattr(
        products, "_sum_bfloat16", lambda states, halves: states.float() @ halves.float()
    )


def on_a_gpu_of_paper(monkeypatch):
    """In this context tensors can be made on `pretend_gpu.DEVICE`.

    Steps are replayed there, without a CUDA graph.
    """
    monkeypatch.setattr(torch, "Generator", pretend_gpu.PretendGenerator)
    monkeypatch.setattr("paperlib.kernels.replay._record", lambda recorded, generator: recorded)
    return pretend_gpu.gpu()


def _name(backend):
    return f"{backend.name}, coarse" if backend.coarse else backend.name


def on_backends(*names):
    """Marks a test that is for these ways alone, and whose products are not coarse."""
    chosen = [backend for backend in BACKENDS if backend.name in names and not backend.coarse]
    return pytest.mark.parametrize("backend", chosen, ids=_name, indirect=True)


@pytest.fixture(params=BACKENDS, ids=_name)
def backend(request, monkeypatch):
    """Each way to compute in turn; tests/conftest.py hands it to all tests."""
    with ExitStack() as stack:
        use(request.param, monkeypatch, stack)
        yield request.param


def walked_models(path):
    """What a path really walks between: its two models in float64, with the rounded weights."""
    weights = path._sampler._to_hidden.matrix.cpu().double()
    hidden_bias = path._hidden_bias.cpu().double()
    bias_a, bias_b = (b.cpu().double() for b in (path._visible_bias_a, path._visible_bias_b))
    split = path._num_hidden_a
    model_b = RBM(weights[:, split:], bias_b, hidden_bias[split:])
    model_a = RBM(weights[:, :split], bias_a, hidden_bias[:split]) if split else None
    return model_a or WeightlessRBM(bias_a), model_b
