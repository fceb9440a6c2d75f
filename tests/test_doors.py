"""What is taken where a user's values enter: states, devices, seeds, steps, paths and models."""

import math

import numpy as np
import pytest
import torch
from enumeration import all_states, normal, random_dbm, random_rbm

from boltzmann_likelihood import evaluate
from boltzmann_likelihood.planted import low_rank
from paperlib.annealing import (
    BaseRatePath,
    DBMPath,
    PosteriorPath,
    base_rate_path,
    path_to,
    start_bias,
    uniform_betas,
)
from paperlib.annealing.path import AnnealingPath
from paperlib.errors import InputError
from paperlib.estimators import (
    ais,
    ais_run,
    csl_log_prob,
    dbn_lower_bound,
    exact_hidden_samples,
    exact_log_z,
    importance_sampling,
    parallel_tempering,
    raise_log_prob,
    raise_run,
)
from paperlib.mcmc import MarkovChain, metropolis_samples
from paperlib.models import DBN, BernoulliMixture
from paperlib.models import RBM as RBM_KIND
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import seeded_generator
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet
from paperlib.variational.vae import VAE

RBM = random_rbm(4, 3, 1)
PATH = BaseRatePath(RBM)
DBN_ = DBN([RBM, random_rbm(3, 2, 2)])
DBM_ = random_dbm(4, 3, 2, 3)
MIXTURE = BernoulliMixture(normal(5, 4, seed=4), normal(5, seed=5))
BELIEF = SigmoidBeliefNet(*RBM.tensors().values())
VAE_ = VAE(4, 2, 3, seeded_generator(6))
V = all_states(4)[[0, 5, 14]]
H = all_states(3)[[0, 3, 5]]
H2 = all_states(2)[[0, 1, 3]]


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
    "SigmoidBeliefNet.log_joint": (BELIEF.log_joint, (V, H), ()),
    "SigmoidBeliefNet.log_prob": (BELIEF.log_prob, (V,), ()),
    "VAE.log_joint": (lambda v: VAE_.log_joint(v, torch.zeros(len(v), 2).double()), (V,), ()),
    "VAE.log_weights": (lambda v: VAE_.log_weights(v, 2, seed()), (V,), ()),
    "VAE.lower_bound": (lambda v: VAE_.lower_bound(v, 2, seed()), (V,), ()),
    "VAE.log_prob_on_grid": (lambda v: VAE_.log_prob_on_grid(v, points=5), (V,), ()),
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
        arguments = [FORMS[form](each) if i == place else each for i, each in enumerate(states)]
        if form == "means" and place in means:
            method(*arguments)
            continue
        with pytest.raises(InputError, match=r"^(v|h|h1|h2|hidden|top_visible): expected "):
            method(*arguments)


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


# Every kind of call that takes a `generator`, as a function of it.
SEEDED = {
    "ais": lambda g: ais(PATH, 5, 10, g, progress=False).log_weights,
    "importance_sampling": lambda g: importance_sampling(PATH, 10, g).log_weights,
    "raise_log_prob": lambda g: raise_log_prob(PATH, V, 5, 2, g, progress=False).log_weights,
    "parallel_tempering": lambda g: parallel_tempering(PATH, 1_000, g, progress=False).samples,
    "csl_log_prob": lambda g: csl_log_prob(RBM, V, 5, 6, g, progress=False),
    "exact_hidden_samples": lambda g: exact_hidden_samples(RBM, 5, g)[0],
    "dbn_lower_bound": lambda g: dbn_lower_bound(DBN_, V, 0.0, 3, g).values,
    "base_rate_path": lambda g: base_rate_path(DBN_, V, g).sample_start(5, seed()).v,
    "start_bias": lambda g: start_bias(DBM_, V, g),
    "RBM.gibbs_step": lambda g: RBM.gibbs_step(V, g),
    "RBM.log_unnormalized_of": lambda g: DBN_.log_unnormalized_of(V, 3, g),
    "DBN.recognize": lambda g: DBN_.recognize(V, g)[0],
    "DBN.generate": lambda g: DBN_.generate(H, g),
    "DBN.sample": lambda g: DBN_.sample(5, 3, g),
    "DBN.log_unnormalized": lambda g: DBN_.log_unnormalized(V, 3, g),
    "DBN.variational_bound": lambda g: DBN_.variational_bound(V, g),
    "DBM.log_unnormalized": lambda g: DBM_.log_unnormalized(V, 3, g),
    "BernoulliMixture.sample": lambda g: MIXTURE.sample(5, g),
    "MarkovChain.sample": lambda g: MarkovChain([[0.5, 0.5], [0.25, 0.75]]).sample([0, 1], 9, g),
    "metropolis_samples": lambda g: metropolis_samples(log_normal, walk, torch.zeros(3, 1), 9, g)[
        0
    ],
    "SigmoidBeliefNet.sample": lambda g: SigmoidBeliefNet(*RBM.tensors().values()).sample(5, g)[0],
    "VAE": lambda g: VAE(4, 2, 3, g).lower_bound(V, 2, g),
    "low_rank": lambda g: low_rank(10, 5, generator=g).rbm.weights,
    "Planted.draws": lambda g: low_rank(10, 5, generator=0).draws(4, g),
}


def log_normal(x):
    return -x.square().sum(1) / 2


def walk(x, generator):
    return x + torch.randn(x.shape, generator=generator)


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_is_a_generator_with_it(name):
    call = SEEDED[name]
    if name != "VAE":  # which is asked twice here
        assert torch.equal(call(3), call(seeded_generator(3)))
    assert torch.equal(call(np.int64(3)), call(3))
    with pytest.raises(InputError, match=r"generator: expected a torch.Generator, a seed or None"):
        call("3")


def test_true_is_no_seed():
    with pytest.raises(InputError, match="generator: expected"):
        RBM.gibbs_step(V, True)


STEPS = {
    "ais": lambda betas: ais(PATH, betas, 10, 1, progress=False).log_weights,
    "raise_log_prob": lambda betas: raise_log_prob(PATH, V, betas, 2, 1, False).log_weights,
    "parallel_tempering": lambda betas: (
        parallel_tempering(PATH, 2_000, 1, betas=betas, progress=False).samples
    ),
    "ais_run": lambda betas: ais_run(PATH, betas, 10, 1).result().log_weights,
    "raise_run": lambda betas: raise_run(PATH, V, betas, 10, 1).result().log_weights,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_number_of_steps_stands_for_equal_ones(name):
    call = STEPS[name]
    assert torch.equal(call(4), call(uniform_betas(4)))
    for wrong in (0, -1, True, 2.5):
        with pytest.raises(InputError, match=r"^betas: expected"):
            call(wrong)


class Coins(AnnealingPath):
    """Three independent bits; `log_f` as it is given."""

    reversible = True
    log_z_start = 3 * math.log(2)
    num_visible = 3

    def __init__(self, log_f):
        self._log_f = log_f

    def sample_start(self, num_chains, generator):
        return torch.rand(num_chains, 3, generator=generator) < 0.5

    def state_at(self, v):
        return v.bool()

    def log_f(self, state, beta):
        return self._log_f(state.double(), torch.as_tensor(beta))

    def transition(self, state, beta, generator):
        beta = torch.as_tensor(beta).reshape(-1, 1)
        return torch.rand(state.shape, generator=generator) < torch.sigmoid(0.8 * beta)


WALKS = {
    "ais": lambda path: ais(path, 5, 10, 1, progress=False),
    "raise_log_prob": lambda path: raise_log_prob(path, V[:, :3], 5, 4, 1, progress=False),
    "parallel_tempering": lambda path: parallel_tempering(path, 1_000, 1, progress=False),
}
WRONG = {
    "a sum over chains": (lambda v, beta: (0.8 * beta * v.sum(1)).sum(), "one number for each of"),
    "no sum": (lambda v, beta: 0.8 * beta.reshape(-1, 1) * v, "one number for each of"),
    "not a number": (lambda v, beta: 0.8 * beta * v.sum(1) + math.nan, "finite log-weights"),
    "infinite": (lambda v, beta: beta * v.sum(1) / 0, "finite log-weights"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("walk", WALKS)
def test_a_path_of_ones_own_is_looked_at_once(walk, wrong):
    log_f, words = WRONG[wrong]
    with pytest.raises(InputError, match=f"^path: expected {words}"):
        WALKS[walk](Coins(log_f))
    WALKS[walk](Coins(lambda v, beta: 0.8 * beta * v.sum(1)))


@pytest.mark.parametrize(
    ("log_target", "words"),
    [
        (lambda x: (x[:, 0] - 1).log() - x[:, 0], "got NaN at 50 of 50 states"),
        (lambda x: torch.where(x[:, 0] > 0.5, math.nan, -x[:, 0]), "got NaN at "),
        (lambda x: -x.sum(), "expected shape"),
    ],
)
def test_a_density_that_is_no_number_is_named(log_target, words):
    with pytest.raises(InputError, match=f"^log_target: .*{words}"):
        metropolis_samples(log_target, walk, torch.zeros(50, 1), 300, 0)


class Forgetful(UnnormalizedModel):
    """An RBM whose `annealed` forgets a constant."""

    tensor_names = ("weights", "visible_bias", "hidden_bias")
    called = "a forgetful model"

    def __init__(self, weights, visible_bias, hidden_bias):
        self._rbm = RBM_KIND(weights, visible_bias, hidden_bias)
        vars(self).update(self._rbm.tensors())

    num_visible = property(lambda self: self._rbm.num_visible)
    hidden_layers = property(lambda self: self._rbm.hidden_layers)
    annealed = property(lambda self: self._rbm)

    def log_unnormalized(self, v):
        return self._rbm.log_unnormalized(v) + self.visible_bias.sum()


@path_to.register
def _(model: Forgetful, bias):
    return BaseRatePath(model.annealed, bias)


def test_a_model_whose_path_ends_elsewhere_is_named():
    weights, bias, hidden_bias = RBM.tensors().values()
    images = all_states(4)
    right = Forgetful(weights, torch.zeros(4), hidden_bias)
    assert evaluate(right, images).exact.log_z == pytest.approx(exact_log_z(right.annealed))
    with pytest.raises(InputError, match=r"^model: expected ln p\*\(v\) of Forgetful.annealed"):
        evaluate(Forgetful(weights, bias + 0.1, hidden_bias), images)
