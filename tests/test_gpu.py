"""What a GPU does differently, by the same mathematics on a CPU, and on a GPU if there is one."""

import itertools
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest
import torch
from backends import on_a_gpu_of_paper, use_tensor_cores
from enumeration import log_z, random_dbm, random_rbm
from philox import philox
from pretend_gpu import PretendGenerator
from torch.utils._python_dispatch import TorchDispatchMode

from boltzmann_likelihood import store
from boltzmann_likelihood.evaluation import evaluate
from paperlib.annealing import BaseRatePath, DBMPath, RBMPairPath, base_rate_path, uniform_betas
from paperlib.annealing.walk import walk
from paperlib.errors import InputError
from paperlib.estimators import (
    ais,
    ais_run,
    csl_log_prob,
    dbn_lower_bound,
    exact_hidden_samples,
    exact_log_z,
    raise_log_prob,
    raise_run,
    shards,
)
from paperlib.kernels import draw_bits
from paperlib.kernels.products import binary_product
from paperlib.kernels.replay import _RecordedStep
from paperlib.learning import ContrastiveDivergence, DeepBoltzmannLearning, train_dbm, train_rbm
from paperlib.models import DBM, DBN, log_z_lower_bound
from paperlib.numerics import resolve_generator, seeded_generator

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
# it comes with torch for CUDA, and with the packages of the tests on Linux
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="no triton")
BETAS = uniform_betas(20).tolist()


class LooksAtResults(TorchDispatchMode):
    """Fails where a number is read from a tensor, for which the host would have to wait."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        assert function is not torch.ops.aten._local_scalar_dense.default
        return function(*arguments, **(keywords or {}))


def path_of_kind(kind, dtype=torch.float64):
    rbm = random_rbm(12, 5, 1, dtype=dtype)
    if kind == "pair":
        return RBMPairPath(random_rbm(12, 3, 2, dtype=dtype), rbm, burn_in=5)
    return BaseRatePath(rbm, torch.linspace(-1, 1, 12).double())


@pytest.fixture
def device(monkeypatch):
    """The device of a GPU of paper, see `pretend_gpu`."""
    with on_a_gpu_of_paper(monkeypatch) as device:
        yield device


@pytest.mark.parametrize("kind", ["base rates", "pair"])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_recorded_step_does_what_the_loop_does(kind, direction, device, bfloat16):
    """On the GPU of paper, and with the products of tensor cores.

    float32 on a CPU takes other functions, and is never recorded.
    """
    path = path_of_kind(kind, torch.float32).to(device)
    betas = BETAS[::direction]
    results = []
    assert path._sampler._to_hidden.rounded
    for recorded in (False, True):
        generator = seeded_generator(3, device)
        state = path.sample_start(50, generator)
        log_weights = torch.zeros(50, dtype=torch.float64, device=device)

        def step(state, log_weights, beta_from, beta_to, generator=generator):
            return path.forward_steps(state, log_weights, (beta_from, beta_to), generator)

        if recorded:
            one_step = _RecordedStep(step, state, log_weights, betas)
            with LooksAtResults():
                for _ in betas[1:]:
                    one_step()
            state = one_step.state
        else:
            state = walk(
                path, path.forward_steps, state, log_weights, betas, generator, lambda _: None
            )
        results.append((state.v.cpu(), state.hidden_input.cpu(), log_weights.cpu()))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-4)
    assert results[0][2].abs().max() > 0.1


def test_looking_at_results_would_be_noticed(device):
    with pytest.raises(AssertionError), LooksAtResults():
        torch.ones(1, device=device).item()


@pytest.fixture
def bfloat16(monkeypatch):
    use_tensor_cores(monkeypatch)


def test_products_in_two_halves_of_eight_bits(bfloat16):
    matrix = torch.randn(784, 300, generator=seeded_generator(1)) * torch.logspace(-6, 0, 300)
    states = draw_bits(torch.full((40, 784), 0.3), seeded_generator(2))
    offset = torch.randn(300, generator=seeded_generator(3))
    product = binary_product(matrix, matrix.abs().max())
    assert product.rounded
    # each element to 16 significant bits, and alike in both directions
    assert ((product.matrix - matrix).abs() <= matrix.abs() * 2.0**-16).all()
    transposed = binary_product(matrix.T.contiguous(), matrix.abs().max())
    assert torch.equal(product.matrix, transposed.matrix.T)
    expected = offset.double() + 0.7 * (states.double() @ product.matrix.double())
    for factor in (0.7, torch.tensor(0.7).double()):
        got = product(states, factor, offset)
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=1e-4)
    # float64 stays as it is
    assert not binary_product(matrix.double(), matrix.abs().max()).rounded


DRAWS = """
import sys
import torch
from paperlib.kernels import gpu as fused_gpu
calls = torch.load(sys.argv[1])
torch.save([fused_gpu.draw_bits(**call) for call in calls], sys.argv[2])
"""


def draw_interpreted(calls, folder):
    """What `paperlib.kernels.gpu.draw_bits` gives, by triton's interpreter on any processor."""
    torch.save(calls, folder / "calls.pt")
    interpret(DRAWS, folder / "calls.pt", folder / "bits.pt")
    return torch.load(folder / "bits.pt")


def interpret(code, *arguments):
    # a process of its own: triton asks for the interpreter when it is imported
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True)


def call(logits, factor=0.7, key=123_456_789_012_345_678):
    return {"logits": logits, "factor": torch.tensor(factor), "key": torch.tensor(key)}


@needs_triton
def test_draws_of_a_gpu_have_a_stream_of_philox_for_each_chain(tmp_path):
    wide = torch.linspace(-6, 6, 3 * 1_030).view(3, 1_030)
    calls = [call(wide), call(wide[:2]), call(wide[:, 5:9]), call(wide[:, :1]), call(wide.T[:4])]
    calls += [call(wide[:1].expand(2, -1)), call(wide[:0]), call(wide, key=2**63 - 2)]
    calls += [call(torch.tensor([[-200.0, -9.0, 9.0, 200.0]]).repeat(20, 50))]
    for arguments, bits in zip(calls, draw_interpreted(calls, tmp_path), strict=True):
        logits = arguments["logits"]
        key = int(arguments["key"])
        assert bits.dtype == torch.bool
        assert bits.shape == logits.shape
        probabilities = torch.sigmoid(0.7 * logits.double())
        quarter = -(-logits.shape[1] // 4)
        for chain, unit in itertools.product(*map(range, logits.shape)):
            part, place = divmod(unit, quarter)
            numbers = philox((place, chain, 0, 0), key % 2**32, key // 2**32)
            # a draw may differ only where the number is within rounding of the probability
            distance = probabilities[chain, unit].item() - numbers[part] / 2**32
            assert bits[chain, unit] == (distance > 0) or abs(distance) < 1e-6


SEEDED_DRAWS = """
import torch
from paperlib.kernels.draws import _draw_bits_on_gpu
from paperlib.errors import InputError
from paperlib.numerics import resolve_generator, seeded_generator

logits = torch.linspace(-3, 3, 800).view(4, 200)
generator = seeded_generator(1)
first, second = (_draw_bits_on_gpu(logits, generator, 0.7) for _ in range(2))
assert not torch.equal(first, second)
# as of a recorded step: a tensor, and fewer chains
beta = torch.tensor(0.7).double()
assert torch.equal(_draw_bits_on_gpu(logits[:2], seeded_generator(1), beta), first[:2])
"""


@needs_triton
def test_each_call_takes_a_key_from_the_generator():
    interpret(SEEDED_DRAWS)


@needs_triton
def test_draws_compile_for_a_gpu_without_one():
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from paperlib.kernels import gpu as fused_gpu

    signature = {"logits": "*fp32", "row_stride": "i32", "columns": "i32", "factor": "*fp32"}
    signature |= {"key": "*i64", "out": "*i1", "BLOCK": "constexpr"}
    source = ASTSource(fused_gpu._draw_kernel, signature, {"BLOCK": 128})
    assert ".target sm_90a" in compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]


@needs_gpu
@needs_triton
def test_draws_on_a_gpu_are_those_of_the_interpreter(tmp_path):
    logits = torch.randn(300, 1_030, generator=seeded_generator(1))
    (expected,) = draw_interpreted([call(logits)], tmp_path)
    from paperlib.kernels import gpu as fused_gpu

    got = fused_gpu.draw_bits(**{name: value.cuda() for name, value in call(logits).items()})
    # but for numbers within the rounding of a probability
    assert (got.cpu() != expected).sum() <= 3


@needs_gpu
@pytest.mark.parametrize("kind", ["base rates", "pair"])
def test_shards_walk_on_a_gpu_and_come_back(tmp_path, kind):
    path = path_of_kind(kind)
    betas = uniform_betas(50)
    truth = log_z(random_rbm(12, 5, 1)) - (
        0 if kind == "base rates" else log_z(random_rbm(12, 3, 2))
    )
    estimate = store.kept(ais_run(path, betas, 20_000, 1, "cuda"), tmp_path, False)
    assert estimate.log_weights.device.type == "cpu"
    assert abs(math.expm1(estimate.log_z - truth)) < 4 * estimate.relative_std


@needs_gpu
def test_a_replay_on_a_gpu_is_the_loop_on_a_gpu(monkeypatch):
    path = BaseRatePath(random_rbm(200, 150, 5, scale=0.3).to("cuda"))
    # its walks follow other draws, which a replay must not repeat
    dbm = DBMPath(random_dbm(30, 20, 10, 6).to("cuda"))
    v = draw_bits(torch.full((4, 30), 0.4), seeded_generator(1))

    def run():
        above = ais(path, uniform_betas(50), 300, seeded_generator(3, "cuda"))
        below = raise_log_prob(dbm, v, uniform_betas(50), 70, seeded_generator(4, "cuda"))
        return above.log_weights, above.final_states, below.log_weights

    replayed = run()
    monkeypatch.setattr("paperlib.kernels.replay._record", lambda recorded, generator: recorded)
    for one, other in zip(replayed, run(), strict=True):
        assert torch.equal(one, other)


def test_a_gpu_of_paper_keeps_devices_apart(device):
    there = torch.ones(3, device=device)
    assert (there + 1).sum().item() == 6
    for mistake in (
        lambda: there + torch.ones(3),
        lambda: torch.rand(3, generator=seeded_generator(1, device)),
        lambda: torch.rand(3, device=device, generator=seeded_generator(1)),
        there.numpy,
    ):
        with pytest.raises(RuntimeError, match=r"two devices|with a generator on|numpy"):
            mistake()


def test_a_generator_of_another_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    generator = PretendGenerator("cuda:1")
    for same in ("cuda:1", "cuda"):
        assert resolve_generator(generator, same) is generator
    for other in ("cuda:0", "cpu", "cuda:2"):
        with pytest.raises(
            InputError, match=f"generator: expected one on device {other}.*got cuda:1"
        ):
            resolve_generator(generator, other)
    with pytest.raises(
        InputError, match="expected one on device cuda, where the model is, got cuda:0"
    ):
        resolve_generator(PretendGenerator("cuda:0"), "cuda")
    # of a processor there is but one, whatever its number
    here = seeded_generator(1)
    assert resolve_generator(here, "cpu") is resolve_generator(here, "cpu:0") is here


@needs_gpu
def test_a_generator_without_a_number_is_the_current_gpus():
    generator = torch.Generator("cuda")
    assert (
        resolve_generator(generator, "cuda") is resolve_generator(generator, "cuda:0") is generator
    )


VECTORS = draw_bits(torch.full((40, 12), 0.4), seeded_generator(1))
CD = ContrastiveDivergence(5, 2, batch_size=10)


def models(device):
    """A small model of each kind."""
    rbm = random_rbm(12, 5, 1, dtype=torch.float32)
    upper = random_rbm(5, 6, 2, dtype=torch.float32)
    dbm = DBM(rbm.weights, upper.weights, *(torch.zeros(count) for count in (12, 5, 6)))
    return [model.to(device) for model in (rbm, dbm, DBN([rbm, upper]))]


@pytest.mark.parametrize("kind", range(3))
def test_shards_walk_on_another_device_and_come_back(device, kind, tmp_path, monkeypatch):
    for module in (store, shards):
        monkeypatch.setattr(module, "require_device", lambda name, device, present=True: device)
    path = base_rate_path(models("cpu")[kind], VECTORS)
    schedule = uniform_betas(5)
    above = store.kept(ais_run(path, schedule, 50, 1, device), tmp_path, False)
    below = store.kept(raise_run(path, VECTORS, schedule, 9, 1, device), tmp_path, False)
    assert (above.log_weights.device, below.log_weights.device) == (path.device, path.device)
    assert len(list(tmp_path.iterdir())) == 2


def test_functions_of_an_rbm_work_where_it_is(device):
    rbm = models(device)[0]
    generator = seeded_generator(2, device)
    truth = log_z(models("cpu")[0])
    assert exact_log_z(rbm) == pytest.approx(truth, abs=1e-4)
    assert log_z_lower_bound(rbm, VECTORS.to(device)) <= truth + 1e-4
    assert [part.device for part in exact_hidden_samples(rbm, 9, generator)] == [device, device]
    assert csl_log_prob(rbm, VECTORS, 50, 3, generator).device == device
    assert dbn_lower_bound(models(device)[2], VECTORS, 1.0, 3, generator).bound < 0
    for deep in models(device)[1:]:
        assert deep.log_unnormalized(VECTORS, 20, generator).device == device
    estimate = ais(RBMPairPath(rbm, rbm, burn_in=3), uniform_betas(5), 50, generator)
    assert math.isfinite(estimate.log_z)


def test_evaluation_of_a_model_on_a_gpu(device, monkeypatch):
    monkeypatch.setattr("boltzmann_likelihood.evaluation.annealing_runs._GPU_PILOT_STEPS", 20)
    small = evaluate(models(device)[0], VECTORS, progress=False)
    assert small.exact.log_z == pytest.approx(log_z(models("cpu")[0]), abs=1e-4)
    images = draw_bits(torch.full((40, 30), 0.4), seeded_generator(1))
    result = evaluate(random_rbm(30, 28, 3).to(device), images, images, 0.01, progress=False)
    assert math.isfinite(result.runs[-1].bracket.gap)


@pytest.mark.parametrize(
    "train",
    [
        partial(train_rbm, recipe=CD),
        partial(
            train_rbm, recipe=replace(CD, persistent_chains=10), layers_below=[random_rbm(12, 4, 1)]
        ),
        partial(train_dbm, recipe=DeepBoltzmannLearning(CD, CD, 2)),
    ],
    ids=["CD", "PCD", "DBM"],
)
def test_training_on_a_gpu_resumes_there(device, train, tmp_path):
    options = {"seed": 1, "device": device, "progress": False}
    whole = train(VECTORS, **options)
    file = tmp_path / "checkpoint.safetensors"
    train(VECTORS, **options, checkpoint=file)
    resumed = train(VECTORS, **options, checkpoint=file)
    for result in (whole, resumed):
        model = result[0] if isinstance(result, tuple) else result
        assert model.device == device
