"""Mixtures of Bernoullis: densities by definition, EM against loops, and no step loses."""

import pytest
import torch
from enumeration import all_states, assert_rates, bernoulli_table, frequencies

from paperlib.kernels import bernoulli
from paperlib.learning import MixtureEM, train_mixture
from paperlib.learning.mixture_em import _em_step
from paperlib.models import BernoulliMixture
from paperlib.numerics import seeded_generator


def random_mixture(components, width, seed, scale=1.5):
    generator = seeded_generator(seed)
    return BernoulliMixture(
        scale * torch.randn(components, width, dtype=torch.float64, generator=generator),
        torch.randn(components, dtype=torch.float64, generator=generator),
    )


MIXTURE = random_mixture(3, 4, 0)
V = all_states(4)


def test_densities_by_the_definition():
    pi = MIXTURE.log_mixing_weights.exp()
    mu = torch.sigmoid(MIXTURE.logits)
    assert pi.sum().item() == pytest.approx(1, abs=1e-15)
    joint = pi * bernoulli_table(mu, V).T
    torch.testing.assert_close(MIXTURE.log_prob(V), joint.sum(1).log(), rtol=1e-13, atol=0)
    torch.testing.assert_close(
        MIXTURE.responsibilities(V), joint / joint.sum(1, keepdim=True), rtol=1e-12, atol=0
    )
    assert MIXTURE.log_prob(V).exp().sum().item() == pytest.approx(1, abs=1e-13)


def test_sample_frequencies():
    count = 40_000
    samples = MIXTURE.sample(count, seeded_generator(1))
    # 16 frequencies: beyond 4 standard errors with probability 1e-3
    assert_rates(frequencies(samples), MIXTURE.log_prob(V).exp(), count, errors=4)


def test_one_step_by_the_definition():
    data = V[torch.tensor([0, 3, 3, 12, 15, 7])]
    smoothing = 0.7
    improved, objective = _em_step(MIXTURE, data.to(torch.uint8), smoothing)
    pi = MIXTURE.log_mixing_weights.exp()
    mu = torch.sigmoid(MIXTURE.logits)
    joint = pi * bernoulli_table(mu, data).T
    share = joint / joint.sum(1, keepdim=True)
    count = share.sum(0)
    prior = pi.log().sum() + (mu * (1 - mu)).log().sum() / 2
    expected = joint.sum(1).log().sum() + smoothing * prior
    assert objective == pytest.approx(expected.item() / 6, abs=1e-12)
    new_mu = (share.T @ data + smoothing / 2) / (count[:, None] + smoothing)
    torch.testing.assert_close(torch.sigmoid(improved.logits), new_mu, rtol=1e-12, atol=0)
    new_pi = (count + smoothing) / (6 + 3 * smoothing)
    torch.testing.assert_close(improved.log_mixing_weights.exp(), new_pi, rtol=1e-12, atol=0)


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 20.0])
def test_no_step_lowers_the_objective(smoothing):
    data = bernoulli(torch.full((300, 12), 0.4).double(), seeded_generator(2))
    recipe = MixtureEM(6, smoothing, max_iterations=200, tolerance=1e-9, restarts=1)
    _, objectives = train_mixture(data, recipe, 3, dtype=torch.float64, progress=False)
    assert len(objectives) > 20
    assert (torch.tensor(objectives, dtype=torch.float64).diff() > -1e-12).all()


def test_a_separated_mixture_is_found_again():
    templates = torch.tensor(
        [[1, 1, 1, 0, 0, 0, 1, 0], [0, 0, 1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 1, 1, 1]]
    )
    truth = BernoulliMixture(6.0 * templates.double() - 3, torch.tensor([0.0, 0.5, 1.0]))
    data = truth.sample(5_000, seeded_generator(4)).to(torch.uint8)
    recipe = MixtureEM(3, smoothing=0.1, restarts=5)
    mixture, _ = train_mixture(data, recipe, 0, dtype=torch.float64, progress=False)
    order = mixture.log_mixing_weights.argsort()
    # standard errors of frequencies among at least 900 images each
    torch.testing.assert_close(
        torch.sigmoid(mixture.logits[order]), torch.sigmoid(truth.logits), rtol=0, atol=0.035
    )
    torch.testing.assert_close(
        mixture.log_mixing_weights[order].exp(), truth.log_mixing_weights.exp(), rtol=0, atol=0.03
    )


def test_starts_at_images_keep_every_component_and_starts_at_noise_do_not():
    # 30 templates inside a wide border that is always off, as in MNIST: whatever the image, the
    # components whose noise is lowest there win the first step
    templates = 5 * torch.randn(30, 40, dtype=torch.float64, generator=seeded_generator(8)) - 5
    truth = BernoulliMixture(templates, torch.zeros(30))
    data = truth.sample(2_000, seeded_generator(9)).to(torch.uint8)
    data = torch.nn.functional.pad(data, (0, 200))
    used = {}
    for start in ("images", "noise"):
        recipe = MixtureEM(30, smoothing=0.1, max_iterations=10, start=start)
        mixture, _ = train_mixture(data, recipe, 0, dtype=torch.float64, progress=False)
        used[start] = int((mixture.log_mixing_weights.exp() > 1 / 2_000).sum())
    assert used["images"] >= 25
    assert used["noise"] <= 15


def test_the_first_objective_from_images_by_the_definition():
    data = V[torch.tensor([0, 3, 12, 15, 7])]
    recipe = MixtureEM(5, smoothing=1e-9, max_iterations=1)
    _, objectives = train_mixture(data, recipe, 0, dtype=torch.float64, progress=False)
    # as many components as images: every image is drawn, in whatever order
    base_rates = (data.sum(0) + 0.5) / 6
    expected = bernoulli_table((base_rates + data) / 2, data).mean(0).log().mean().item()
    assert objectives[0] == pytest.approx(expected, abs=1e-7)  # the smoothing's share is 2e-8


def test_restarts_keep_the_best_and_empty_components_do_no_harm():
    data = torch.zeros(20, 5, dtype=torch.uint8)
    data[10:] = 1
    many, _ = train_mixture(data, MixtureEM(12, 1e-3), 0, progress=False)
    assert torch.isfinite(many.log_prob(data.float())).all()
    recipe = MixtureEM(4, 0.1, max_iterations=15)
    data = random_mixture(4, 10, 9, scale=3).sample(200, seeded_generator(5)).to(torch.uint8)
    one = train_mixture(data, recipe, 1, dtype=torch.float64, progress=False)[1][-1]
    five = train_mixture(
        data, MixtureEM(4, 0.1, 15, restarts=5), 1, dtype=torch.float64, progress=False
    )
    assert five[1][-1] >= one


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("components", [1, 2, 10, 300])
def test_weights_that_are_normalised_already_are_not_normalised_again(components, dtype):
    """Which would move their last bits."""
    for seed in range(50):
        mixture = random_mixture(components, 2, seed).to(dtype=dtype)
        again = mixture.to(dtype=dtype)
        assert again.checksum() == mixture.checksum()
        assert abs(mixture.log_mixing_weights.double().logsumexp(0).item()) < 1e-5


def test_weights_of_half_precision_are_normalised(tmp_path):
    path = tmp_path / "mixture.safetensors"
    MIXTURE.save(path, dtype=torch.float16)
    loaded = BernoulliMixture.load(path, torch.float64)
    assert loaded.log_mixing_weights.logsumexp(0).item() == pytest.approx(0, abs=1e-15)
