"""Schedules, and draws of a pair's first model by Gibbs steps; `test_every_path` has what holds for all paths."""

import torch
from enumeration import all_states, assert_rates, frequencies, random_rbm

from paperlib.annealing import RBMPairPath, check_betas, salakhutdinov_murray_betas, uniform_betas
from paperlib.numerics import seeded_generator


def test_pair_path_default_start_draws_from_model_a():
    rbm_a = random_rbm(4, 2, seed=12)
    path = RBMPairPath(rbm_a, random_rbm(4, 3, seed=13))
    state = path.sample_start(20_000, seeded_generator(3))
    p = rbm_a.log_unnormalized(all_states(4)).softmax(0)
    assert_rates(frequencies(path.units(state)), p, 20_000, errors=4.5)


def test_schedules_have_the_published_steps():
    betas = salakhutdinov_murray_betas()
    steps = betas.diff()
    assert len(betas) == 14_501
    for part, width in ((slice(0, 500), 1e-3), (slice(500, 4500), 1e-4), (slice(4500, None), 1e-5)):
        torch.testing.assert_close(
            steps[part], torch.full_like(steps[part], width), rtol=1e-9, atol=0
        )
    torch.testing.assert_close(check_betas(betas), betas, rtol=0, atol=0)
    assert uniform_betas(4).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert check_betas((0, 0.5, 1)).tolist() == [0, 0.5, 1]
    assert len(salakhutdinov_murray_betas(0.1)) == 1451
