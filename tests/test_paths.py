"""Paths with layers as wide as those that take another code, and states as values.

`test_every_path` has the rest, `test_extending` what a path of one's own needs.
"""

import itertools
import pickle

import pytest
import torch
from backends import on_backends
from enumeration import random_dbm, random_rbm
from walks import LARGE_KINDS, path_of

from paperlib.annealing import BaseRatePath, DBMPath, DBNPath, RBMPairPath, uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import ais, raise_log_prob
from paperlib.kernels import products
from paperlib.kernels.capability import multiplies_integers
from paperlib.models import DBN
from paperlib.numerics import seeded_generator

# Narrow and wide: below and above the width from which sums are brought up to date.
SIZES = {"narrow": (40, 12), "wide": (150, 140)}


# These lower no limit: wide layers are those of wide models.
ON_THREE_BACKENDS = on_backends("float64", "float32 reference", "float32 fast, narrow")
ALL = pytest.mark.parametrize(
    ("kind", "size"), [(kind, size) for kind in LARGE_KINDS for size in SIZES]
)


def tensors(state):
    return state.v, state.hidden_input, state.bias_difference


@ALL
@ON_THREE_BACKENDS
@pytest.mark.parametrize("chains", [1, 3, 50])
def test_the_last_state_may_be_of_other_chains(kind, size, backend, chains):
    """A segmentation fault once: the memory of one chain was used for fifty."""
    path = path_of(kind, *SIZES[size], backend.dtype)
    last = path.sample_start(chains, seeded_generator(1))
    last = path.transition(last, 0.5, seeded_generator(2))
    for count in (1, 3, 50):
        v = last.v[:1].expand(count, -1).clone()
        v[:, :3] = ~v[:, :3]
        state = path.state_at(v, last)
        assert len(state.hidden_input) == count
        for ours, theirs in zip(tensors(state), tensors(path.state_at(v)), strict=True):
            assert torch.equal(ours, theirs)


def test_small_steps_of_float32_add_up():
    """1,000 steps lose less than a thousandth of a nat; plain float32 loses ten times more."""
    rbm = random_rbm(50, 30, 25, scale=0.5)
    v = (torch.rand(40, 50, generator=seeded_generator(0)) < 0.5).double()
    betas = uniform_betas(1_000).tolist()
    sums = []
    for dtype in (torch.float32, torch.float64):
        path = BaseRatePath(rbm.to(dtype=dtype))
        state = path.state_at(v)
        steps = itertools.pairwise(betas)
        sums.append(sum(path.log_ratio(state, low, high) for low, high in steps))
    torch.testing.assert_close(sums[0], sums[1], rtol=0, atol=1e-3)


@ON_THREE_BACKENDS
def test_editing_units_that_were_given_changes_no_state_and_no_later_one(backend):
    path = path_of("base rates", 300, 200, backend.dtype, scale=0.1)
    v = torch.rand(20, 300, generator=seeded_generator(2)) < 0.5
    state = path.state_at(v)
    before = state.v.clone()
    v[:, :3] = ~v[:, :3]
    assert torch.equal(state.v, before)
    # even if the state's own units are edited, the next product is that of the units passed
    state.v[:, :2] = ~state.v[:, :2]
    after = path.state_at(state.v, state)
    assert torch.equal(after.hidden_input, path.state_at(state.v).hidden_input)


@ALL
@pytest.mark.parametrize("here_has_them", [True, False])
def test_a_path_arrives_prepared_for_the_processor_that_it_finds(
    kind, size, here_has_them, monkeypatch
):
    """Prepared where there are fast integer products, used where there are none, and vice versa."""
    if not multiplies_integers():
        pytest.skip("this processor has no fast integer products")
    monkeypatch.setattr(products, "_FAST_INTEGERS", here_has_them)
    path = path_of(kind, *SIZES[size], torch.float32)
    expected = ais(path, uniform_betas(5), 20, seeded_generator(1)).log_weights
    message = pickle.dumps(path)
    monkeypatch.setattr(products, "_FAST_INTEGERS", not here_has_them)
    arrived = pickle.loads(message)
    assert arrived.checksum() == path.checksum()
    log_weights = ais(arrived, uniform_betas(5), 20, seeded_generator(1)).log_weights
    assert torch.equal(log_weights, expected)
    # the parameters and nothing that was prepared from them
    numbers = sum(t.numel() for t in vars(path)["_sampler"].__dict__.values() if torch.is_tensor(t))
    assert len(message) < 2.5 * 4 * numbers + 5_000


def test_the_dbm_path_counts_its_heating_steps():
    path = path_of("DBM", *SIZES["narrow"])
    counts = []
    raise_log_prob(
        path, torch.ones(2, 40), uniform_betas(4), 3, seeded_generator(0), on_step=counts.append
    )
    assert sum(counts) == 6 * 4 * path.reverse_passes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "change",
    [
        lambda rbm: rbm.weights.mul_(3),
        lambda rbm: rbm.hidden_bias.add_(1),
        lambda rbm: rbm.load_state_dict(rbm.state_dict()),
    ],
    ids=["weights", "biases", "another state"],
)
def test_a_path_is_refused_when_its_model_has_changed(dtype, change):
    """It would be half that of one model and half that of the other."""
    rbm = random_rbm(8, 6, 1, dtype=dtype)
    path = BaseRatePath(rbm)
    ais(path, 4, 5, 1)
    change(rbm)
    with pytest.raises(
        InputError, match=r"a model whose .* changed since; make a path of the model"
    ):
        ais(path, 4, 5, 1)
    ais(BaseRatePath(rbm), 4, 5, 1)


@pytest.mark.parametrize("kind", ["pair", "DBM", "DBN"])
def test_a_path_between_or_of_several_layers_is_refused_as_well(kind):
    if kind == "pair":
        model = random_rbm(8, 6, 1)
        path = RBMPairPath(model, random_rbm(8, 5, 2))
    elif kind == "DBM":
        model = random_dbm(6, 4, 3, seed=1)
        path = DBMPath(model)
    else:
        model = DBN([random_rbm(6, 4, 1), random_rbm(4, 3, 2)])
        path = DBNPath(model)
    ais(path, 4, 5, 1)
    model.load_state_dict(model.state_dict())
    with pytest.raises(InputError, match="make a path of the model as it is now"):
        ais(path, 4, 5, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_chain_may_have_betas_of_its_own(dtype):
    path = BaseRatePath(random_rbm(40, 30, 1, dtype=dtype))
    state = path.sample_start(4, seeded_generator(1))
    for steps in (path.forward_steps, path.reverse_steps):
        results = []
        for betas in ([0.25, 0.5, 0.75], [torch.full((4,), beta) for beta in (0.25, 0.5, 0.75)]):
            log_weights = torch.zeros(4, dtype=torch.float64)
            v = steps(state, log_weights, betas, seeded_generator(2)).v
            results.append((v, log_weights))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.allclose(results[0][1], results[1][1], rtol=1e-6)
