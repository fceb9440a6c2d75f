"""What a public method takes, where a user's own values enter: states, devices and types."""

import numpy as np
import pytest
import torch
from enumeration import all_states, normal, random_dbm, random_rbm

from paperlib.annealing import BaseRatePath, DBMPath, PosteriorPath, uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import ais, csl_log_prob, parallel_tempering, raise_log_prob
from paperlib.models import DBN, BernoulliMixture
from paperlib.numerics import seeded_generator

RBM = random_rbm(4, 3, 1)
DBN_ = DBN([RBM, random_rbm(3, 2, 2)])
DBM_ = random_dbm(4, 3, 2, 3)
MIXTURE = BernoulliMixture(normal(5, 4, seed=4), normal(5, seed=5))
V, H, H2 = all_states(4)[[0, 5, 14]], all_states(3)[[0, 3, 5]], all_states(2)[[0, 1, 3]]


def seed():
    return seeded_generator(7)


# (method, its states, the places of those that may be means)
METHODS = {
    "RBM.energy": (RBM.energy, (V, H), ()),
    "RBM.log_unnormalized": (RBM.log_unnormalized, (V,), ()),
    "RBM.log_unnormalized_hidden": (RBM.log_unnormalized_hidden, (H,), ()),
    "RBM.log_unnormalized_flips": (RBM.log_unnormalized_flips, (H,), ()),
    "RBM.hidden_probs": (RBM.hidden_probs, (V,), (0,)),
    "RBM.visible_probs": (RBM.visible_probs, (H,), (0,)),
    "RBM.gibbs_step": (lambda v: RBM.gibbs_step(v, seed()), (V,), ()),
    "DBM.energy": (DBM_.energy, (V, H, H2), ()),
    "DBM.log_unnormalized_joint": (DBM_.log_unnormalized_joint, (V, H2), (1,)),
    "DBM.mean_field": (DBM_.mean_field, (V,), ()),
    "DBM.log_unnormalized_bound": (DBM_.log_unnormalized_bound, (V,), ()),
    "DBM.log_unnormalized": (lambda v: DBM_.log_unnormalized(v, 3, seed()), (V,), ()),
    "DBN.recognize": (lambda v: DBN_.recognize(v, seed()), (V,), ()),
    "DBN.log_recognition": (lambda v, h: DBN_.log_recognition(v, [h]), (V, H), ()),
    "DBN.log_directed": (lambda v, h: DBN_.log_directed(v, [h]), (V, H), ()),
    "DBN.log_joint_unnormalized": (lambda v, h: DBN_.log_joint_unnormalized(v, [h]), (V, H), ()),
    "DBN.log_unnormalized": (lambda v: DBN_.log_unnormalized(v, 3, seed()), (V,), ()),
    "DBN.generate": (lambda h: DBN_.generate(h, seed()), (H,), ()),
    "BernoulliMixture.log_joint": (MIXTURE.log_joint, (V,), ()),
    "BernoulliMixture.log_prob": (MIXTURE.log_prob, (V,), ()),
    "BernoulliMixture.responsibilities": (MIXTURE.responsibilities, (V,), ()),
    "BaseRatePath.log_start": (BaseRatePath(RBM).log_start, (V,), ()),
    "BaseRatePath.state_at": (BaseRatePath(RBM).state_at, (V,), ()),
}
FORMS = {
    "spins": lambda states: 2 * states - 1,
    "grey levels": lambda states: (255 * states).to(torch.uint8).numpy(),
    "means": lambda states: (states + 0.25) / 2,
    "not a number": lambda states: np.where(states == 1, np.nan, states),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", METHODS)
def test_values_that_are_neither_0_nor_1_are_refused(name, form):
    method, states, means = METHODS[name]
    for place in range(len(states)):
        given = [FORMS[form](each) if i == place else each for i, each in enumerate(states)]
        if form == "means" and place in means:
            method(*given)
            continue
        with pytest.raises(InputError, match=r"^(v|h|h1|h2|hidden|top_visible): expected "):
            method(*given)


def test_no_step_of_a_walk_looks_at_the_values(monkeypatch):
    """They were looked at once, at the door."""
    looks = []

    def counted(name, value, *rest):
        looks.append(name)
        return value

    for name in ("rbm.as_bits", "rbm.as_means", "dbn.as_bits", "dbm.as_bits", "dbm.as_means"):
        monkeypatch.setattr(f"paperlib.models.{name}", counted)
    # Along a DBM's path all steps are those of its RBM.
    for path in (BaseRatePath(RBM), DBMPath(DBM_)):
        ais(path, uniform_betas(5), 10, seed(), progress=False, check=False)
        raise_log_prob(path, V, uniform_betas(5), 2, seed(), progress=False)
        parallel_tempering(path, 1_000, seed(), progress=False, check=False)
    posterior = PosteriorPath(DBN_, V)
    ais(posterior, uniform_betas(5), 3, seed(), progress=False, check=False)
    csl_log_prob(RBM, V, 5, 6, seed(), progress=False)
    assert not looks
    RBM.log_unnormalized(V)
    assert looks == ["v"]


MODELS = {"RBM": RBM, "DBN": DBN_, "DBM": DBM_, "mixture": MIXTURE}
# As of `torch.nn.Module.to`.
CONVERSIONS = {
    "a type": lambda m: m.to(torch.float32),
    "a type by name": lambda m: m.to(dtype=torch.float32),
    "a device and a type": lambda m: m.to("cpu", torch.float32),
    "a device and a type by name": lambda m: m.to(device="cpu", dtype=torch.float32),
    "a device, and a type by name": lambda m: m.to(torch.device("cpu"), dtype=torch.float32),
    "no device and a type": lambda m: m.to(None, torch.float32),
    "a tensor": lambda m: m.to(torch.zeros(1)),
    "float": lambda m: m.float(),
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("name", MODELS)
def test_models_are_converted_as_torch_converts_modules(name, conversion):
    model = MODELS[name]
    converted = CONVERSIONS[conversion](model)
    module = CONVERSIONS[conversion](torch.nn.Linear(1, 1).double())
    assert converted.dtype == module.weight.dtype == torch.float32
    assert converted.device == model.device
    assert model.dtype == torch.float64
    assert converted.double().dtype == torch.float64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.float16,), "dtype: expected torch.float32 or torch.float64"),
        (("cuda:99",), "device: expected one that torch finds on this machine, got 'cuda:99'"),
        (("nowhere",), "device: expected one that torch finds on this machine, got 'nowhere'"),
        ((torch.float32, torch.float64), "to: expected one device and one type at most"),
        (("cpu", "cpu"), "to: expected one device and one type at most"),
        ((1.5,), "to: expected a device or a type, got float"),
    ],
)
def test_what_is_no_device_and_no_type_is_named(arguments, words):
    with pytest.raises(InputError, match=words):
        RBM.to(*arguments)
