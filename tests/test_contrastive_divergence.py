"""Training: one update against its definition, and that it learns.

`test_every_training` has checkpoints, `test_faults` what kills it.
"""

import pytest
import torch
from enumeration import all_states, random_rbm

from paperlib.estimators import exact_log_z
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

DATA = all_states(6)[torch.tensor([0, 7, 7, 56, 63, 63, 56, 7, 21, 42])].to(torch.uint8)


def recipe(**changes):
    return ContrastiveDivergence(**({"num_hidden": 3, "epochs": 4, "batch_size": 4} | changes))


def train(chosen, seed=0, **options):
    return train_rbm(DATA, chosen, seed, dtype=torch.float64, progress=False, **options)


def test_defaults_are_the_published_recipe():
    cd25 = ContrastiveDivergence(500, epochs=300, cd_steps=25, cd_ramp_epochs=10)
    assert [cd25.steps_in(epoch) for epoch in (1, 10, 11, 240, 241, 300)] == [1, 1, 2, 24, 25, 25]
    assert cd25.learning_rate_in(11) == 0.05 / 2
    assert [cd25.momentum_in(epoch) for epoch in (1, 5, 6)] == [0.5, 0.5, 0.9]
    assert (cd25.batch_size, cd25.weight_cost, cd25.initial_weight_std) == (100, 0.0002, 0.01)


STRONG = random_rbm(6, 3, 8, scale=3)
BELOW = random_rbm(6, 6, 1)
UPDATES = {
    "small weights": ({}, {}),
    "strong weights": ({}, {"initial": STRONG}),
    "inputs that are multiplied": ({"upward_factor": 2, "downward_factor": 3}, {"initial": STRONG}),
    "a layer below": ({}, {"layers_below": [BELOW]}),
    "images in one order": ({"shuffle": False}, {"initial": STRONG}),
}


@pytest.mark.parametrize(("changes", "options"), UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("chains", [0, 5])
def test_updates_are_data_minus_chain_statistics(chains, changes, options):
    """The first two updates, written down again from eq. 7 with the same stream of random numbers.

    With small weights all units are on in half of the draws, wherever a chain comes from. Only with
    strong ones does it matter that persistent chains go on from one update to the next.
    """
    common = {"epochs": 1, "batch_size": 5, "cd_steps": 2, "weight_cost": 0.01}
    before = STRONG.checksum(), BELOW.checksum()
    result, _ = train(recipe(persistent_chains=chains, **common, **changes), seed=3, **options)
    assert (STRONG.checksum(), BELOW.checksum()) == before

    generator = seeded_generator(3)
    up = changes.get("upward_factor", 1)
    down = changes.get("downward_factor", 1)

    def uniform_below(p):
        return (torch.rand(p.shape, dtype=torch.float64, generator=generator) < p).double()

    def pass_up(v):
        for layer in options.get("layers_below", ()):
            v = uniform_below(torch.sigmoid(v @ layer.weights + layer.hidden_bias))
        return v

    if "initial" in options:
        w, b, a = (tensor.clone() for tensor in STRONG.tensors().values())
    else:
        w = 0.01 * torch.randn(6, 3, dtype=torch.float64, generator=generator)
        b = torch.zeros(6).double()
        a = torch.zeros(3).double()
    start = torch.randint(10, (5,), generator=generator) if chains else None
    chain = pass_up(DATA[start].double()) if chains else None
    velocity = [torch.zeros_like(t) for t in (w, b, a)]
    shuffle = changes.get("shuffle", True)
    order = torch.randperm(10, generator=generator) if shuffle else torch.arange(10)
    for index in order.split(5):
        v0 = pass_up(DATA[index].double())
        v = v0 if chain is None else chain
        for _ in range(2):
            h = uniform_below(torch.sigmoid(up * v @ w + a))
            v = uniform_below(torch.sigmoid(down * h @ w.T + b))
        if chains:
            chain = v
        p0 = torch.sigmoid(up * v0 @ w + a)
        p1 = torch.sigmoid(up * v @ w + a)
        gradients = [
            v0.T @ p0 / 5 - v.T @ p1 / 5 - 0.01 * w,
            v0.mean(0) - v.mean(0),
            p0.mean(0) - p1.mean(0),
        ]
        velocity = [0.5 * old + 0.05 * new for old, new in zip(velocity, gradients, strict=True)]
        w, b, a = (t + step for t, step in zip((w, b, a), velocity, strict=True))
    for name, expected in (("weights", w), ("visible_bias", b), ("hidden_bias", a)):
        torch.testing.assert_close(getattr(result, name), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("chains", "reconstructed"), [(0, 10), (3, 1)])
def test_reconstruction_errors_are_of_all_minibatches_or_of_every_tenth(chains, reconstructed):
    still = recipe(epochs=1, batch_size=1, learning_rate=1e-12, persistent_chains=chains)
    bias = torch.tensor([2.0, -2.0, 1.0, 0.5, -1.0, 3.0]).double()
    initial = RBM(torch.zeros(6, 3).double(), bias, torch.zeros(3).double())
    _, (error,) = train(still, seed=3, initial=initial)
    generator = seeded_generator(3)
    if chains:
        torch.randint(10, (chains,), generator=generator)
    v = DATA[torch.randperm(10, generator=generator)[:reconstructed]].double()
    assert error == pytest.approx((v - torch.sigmoid(bias)).square().mean().item(), abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"persistent_chains": 100}, {"cd_steps": 5}])
def test_training_raises_the_exact_likelihood(options):
    gentle = {"batch_size": 10, "final_momentum": 0.5, "weight_cost": 0.0}
    chosen = recipe(num_hidden=4, epochs=2000, **gentle, **options)
    rbm, errors = train(chosen)
    data = DATA.double()
    log_likelihood = (rbm.log_unnormalized(data).mean() - exact_log_z(rbm)).item()
    # Six fair coins give -4.16; the data's own entropy, the best there is, is -1.70.
    assert log_likelihood > -3.0
    assert errors[-1] < errors[0]


def test_diverging_training_is_an_error():
    with pytest.raises(ValueError, match="learning_rate"):
        train(recipe(epochs=200, learning_rate=1e200))
