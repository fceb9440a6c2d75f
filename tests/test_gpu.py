"""What a GPU does differently, checked by the same mathematics on a CPU, and on a GPU where there is one."""

import math

import pytest
import torch
from enumeration import log_z, random_rbm
from torch.utils._python_dispatch import TorchDispatchMode

from paperlib.annealing import BaseRatePath, RBMPairPath, uniform_betas
from paperlib.annealing.walk import RecordedStep, walk
from paperlib.binary_products import BinaryProduct
from paperlib.estimators import ais, raise_log_prob
from paperlib.models import RBM
from paperlib.numerics import draw_bits, seeded_generator

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
BETAS = uniform_betas(20).tolist()


class LooksAtResults(TorchDispatchMode):
    """Fails where a number is read from a tensor, for which the host would have to wait."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        assert function is not torch.ops.aten._local_scalar_dense.default
        return function(*arguments, **(keywords or {}))


def path_of_kind(kind):
    rbm = random_rbm(12, 5, 1)
    if kind == "pair":
        return RBMPairPath(random_rbm(12, 3, 2), rbm, burn_in=5)
    return BaseRatePath(rbm, torch.linspace(-1, 1, 12).double())


@pytest.mark.parametrize("kind", ["base rates", "pair"])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_recorded_step_does_what_the_loop_does(kind, direction):
    path, betas = path_of_kind(kind), BETAS[::direction]
    results = []
    for recorded in (False, True):
        generator = seeded_generator(3)
        state, log_weights = path.sample_start(50, generator), torch.zeros(50).double()

        def step(state, log_weights, beta_from, beta_to, generator=generator):
            log_weights += path.log_ratio(state, beta_from, beta_to)
            return path.transition(state, beta_to, generator)

        if recorded:
            one_step = RecordedStep(step, state, log_weights, betas)
            with LooksAtResults():
                for _ in betas[1:]:
                    one_step()
            state = one_step.state
        else:
            state = walk(step, state, log_weights, betas, generator, lambda: None)
        results.append((state.v, state.hidden_input, log_weights))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)
    assert results[0][2].abs().max() > 0.1


def test_looking_at_results_would_be_noticed():
    with pytest.raises(AssertionError), LooksAtResults():
        torch.ones(1).item()


@pytest.fixture
def bfloat16(monkeypatch):
    """The products of tensor cores, on this processor: factors of eight bits, sums in float32."""
    monkeypatch.setattr("paperlib.binary_products._multiplies_bfloat16", lambda device: True)
    monkeypatch.setattr(
        "paperlib.binary_products._sum_bfloat16",
        lambda states, halves: states.float() @ halves.float(),
    )


def test_products_in_two_halves_of_eight_bits(bfloat16):
    matrix = torch.randn(784, 300, generator=seeded_generator(1)) * torch.logspace(-6, 0, 300)
    states = draw_bits(torch.full((40, 784), 0.3), seeded_generator(2))
    offset = torch.randn(300, generator=seeded_generator(3))
    product = BinaryProduct(matrix, matrix.abs().max())
    assert product.rounded
    # each element to 16 significant bits, and alike in both directions
    assert ((product.matrix - matrix).abs() <= matrix.abs() * 2.0**-16).all()
    transposed = BinaryProduct(matrix.T.contiguous(), matrix.abs().max())
    assert torch.equal(product.matrix, transposed.matrix.T)
    expected = offset.double() + 0.7 * (states.double() @ product.matrix.double())
    for factor in (0.7, torch.tensor(0.7).double()):
        got = product(states, factor, offset)
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=1e-4)
    # float64 stays as it is
    assert not BinaryProduct(matrix.double(), matrix.abs().max()).rounded


def test_ais_in_halves_is_unbiased_for_the_model_itself(bfloat16):
    rbm = random_rbm(4, 3, 31, dtype=torch.float32)
    estimate = ais(BaseRatePath(rbm), uniform_betas(20), 40_000, seeded_generator(3))
    assert abs(math.expm1(estimate.log_z - log_z(rbm))) < 4 * estimate.relative_std


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ais_and_raise_on_a_gpu(dtype):
    rbm = random_rbm(10, 6, 31, dtype=dtype).to("cuda")
    path = BaseRatePath(rbm)
    estimate = ais(path, uniform_betas(50), 40_000, seeded_generator(3, "cuda"))
    truth = log_z(rbm.to("cpu", torch.float64))
    assert abs(math.expm1(estimate.log_z - truth)) < 4 * estimate.relative_std
    v = draw_bits(torch.full((5, 10), 0.5), seeded_generator(1))
    exact = rbm.to("cpu", torch.float64).log_unnormalized(v.double()) - truth
    # so many steps that p_ann is the model
    below = raise_log_prob(path, v, uniform_betas(3_000), 2_000, seeded_generator(4, "cuda"))
    assert (below.log_prob.cpu() - exact).abs().max() < 0.1


@needs_gpu
def test_a_replay_on_a_gpu_is_the_loop_on_a_gpu(monkeypatch):
    rbm = random_rbm(200, 150, 5, scale=0.3).to("cuda")
    path = BaseRatePath(RBM(rbm.weights, rbm.visible_bias, rbm.hidden_bias))
    replayed = ais(path, uniform_betas(50), 300, seeded_generator(3, "cuda"))

    def loop(step, state, log_weights, betas, generator, on_step):
        recorded = RecordedStep(step, state, log_weights, betas)
        for _ in betas[1:]:
            recorded()
        return recorded.state

    monkeypatch.setattr("paperlib.estimators.ais.walk", loop)
    looped = ais(path, uniform_betas(50), 300, seeded_generator(3, "cuda"))
    assert torch.equal(replayed.log_weights, looped.log_weights)
    assert torch.equal(replayed.final_visible, looped.final_visible)
