"""Wrong input: a ValueError that names the argument, what was expected and what came, before any work starts."""

import math
import re
from functools import partial

import numpy as np
import pytest
import torch
from enumeration import all_states, random_rbm
from torch import full, zeros
from writers import as_npz

from boltzmann_companion.profiles import get_profile
from boltzmann_companion.recipes import load_model, recipe
from paperlib.annealing import (
    BaseRatePath,
    DBMPath,
    DBNPath,
    MixturePath,
    PottsPath,
    RBMPairPath,
    TrajectoryPath,
    base_rate_path,
    mean_field_bias,
    mean_field_mixture,
    salakhutdinov_murray_betas,
    uniform_betas,
)
from paperlib.datasets import (
    base_rate_bias,
    binarize,
    binary_images,
    load_digits,
    site_frequency_bias,
)
from paperlib.estimators import (
    ais,
    ais_in_shards,
    certified_lower_bound,
    dbn_lower_bound,
    exact_hidden_samples,
    exact_log_z,
    importance_sampling,
    log_z_along_training,
    raise_log_prob,
    smc,
)
from paperlib.kernels import draw_categories
from paperlib.learning import (
    ContrastiveDivergence,
    MixtureEM,
    train_mixture,
    train_rbm,
)
from paperlib.mcmc import (
    MarkovChain,
    acceptance_matrix,
    autocorrelation,
    autocorrelation_time,
    gibbs_update,
    loopy_belief_propagation,
    metropolis_samples,
)
from paperlib.models import DBM, DBN, RBM, BernoulliMixture, PottsRBM, log_z_lower_bound
from paperlib.numerics import seeded_generator

RBM_5_4 = random_rbm(5, 4, seed=1)
PATH = BaseRatePath(RBM_5_4)
PAIR = partial(RBMPairPath, RBM_5_4)
WIDE = RBM(zeros(40, 30), zeros(40), zeros(30))
WIDER = RBM(zeros(1500, 1100), zeros(1500), zeros(1100))
HUGE = RBM(full((5, 4), 3e38), zeros(5), zeros(4))
CD = partial(ContrastiveDivergence, 2, 1)
NAN = float("nan")


def with_nan(*shape):
    tensor = zeros(*shape)
    tensor.view(-1)[0] = NAN
    return tensor


def started_at(sample):
    return ais(PAIR(RBM_5_4, sample), [0, 1], 3)


def trained_on(images, **options):
    return train_rbm(images, CD(), 0, **options)


POTTS = PottsRBM(zeros(2, 3, 3), zeros(2, 3), zeros(3))
POTTS_PATH = PottsPath(POTTS)
MIXTURE = BernoulliMixture(zeros(2, 4), zeros(2))
TRAINING = TrajectoryPath([RBM_5_4] * 3)
DBM_3_2 = DBM(zeros(3, 3), zeros(3, 2), zeros(3), zeros(3), zeros(2))
DBN_3_3 = DBN([RBM(zeros(3, 4), zeros(3), zeros(4)), RBM(zeros(4, 3), zeros(4), zeros(3))])
EVERY_3 = all_states(3)
CHAIN = MarkovChain(torch.eye(3))


def along(**options):
    return log_z_along_training(**{"path": TRAINING, "num_chains": 10, "betas": [0, 1]} | options)


#: What the message begins with and what else it says, what is called, and its arguments.
CASES = [
    ("weights: array of numbers", RBM, "abc", [0], [0]),
    (r"weights: \[5\]", RBM, zeros(5), zeros(5), zeros(4)),
    (r"weights: \[5, 0\]", RBM, zeros(5, 0), zeros(5), zeros(0)),
    ("weights: real", RBM, zeros(2, 2, dtype=torch.cfloat), [0, 0], [0, 0]),
    ("weights: 1 NaN or infinite of 20", RBM, with_nan(5, 4), zeros(5), zeros(4)),
    ("weights: 4 NaN or infinite", RBM, np.full((2, 2), np.inf), [0, 0], [0, 0]),
    ("weights: list", RBM, [[1.0], [1.0, 2.0]], [0, 0], [0]),
    (r"visible_bias: \[5\], got \[4\]", RBM, zeros(5, 4), zeros(4), zeros(5)),
    (r"hidden_bias: \[4\], got \[5\]", RBM, zeros(5, 4), zeros(5), zeros(5)),
    ("visible_bias: NaN", RBM, zeros(5, 4), with_nan(5), zeros(4)),
    ("v: expected 5 values", RBM_5_4.log_unnormalized, zeros(3, 4).double()),
    ("h: expected 4 values", RBM_5_4.log_unnormalized_hidden, zeros(5).double()),
    ("h: expected 4 values", RBM_5_4.log_unnormalized_flips, zeros(5).double()),
    (r"visible_bias: \[5\], got \[4\]", BaseRatePath, RBM_5_4, zeros(4)),
    ("visible_bias: 5 NaN or infinite", BaseRatePath, RBM_5_4, full((5,), math.inf)),
    ("rbm_b: num_visible 5 .* got 6", PAIR, random_rbm(6, 4, seed=1)),
    ("rbm_b: float64", PAIR, RBM_5_4.to(dtype=torch.float32)),
    ("burn_in: at least 1, got 0", partial(PAIR, RBM_5_4, burn_in=0)),
    ("sample_a: 0.5", started_at, lambda n, g: full((n, 5), 0.5)),
    (r"sample_a: \[3, 5\]", started_at, lambda n, g: zeros(n, 4)),
    ("betas: from 0 to 1, got 0.1 first", ais, PATH, [0.1, 1], 10),
    ("betas: 0.9 last", ais, PATH, [0, 0.9], 10),
    ("betas: 0.7 then 0.3 at index 2", ais, PATH, [0, 0.7, 0.3, 1], 10),
    ("betas: strictly increasing", ais, PATH, [0, 0.5, 0.5, 1], 10),
    ("betas: NaN", ais, PATH, [0, NAN, 1], 10),
    ("betas: at least two", ais, PATH, [0.0], 10),
    (r"betas: \[2, 2\]", ais, PATH, zeros(2, 2), 10),
    ("betas: str|betas", ais, PATH, "uniform", 10),
    ("num_steps: at least 1, got 0", uniform_betas, 0),
    ("num_steps: 2.5", uniform_betas, 2.5),
    (r"fraction: \(0, 1\], got 0", salakhutdinov_murray_betas, 0),
    ("num_chains: at least 1, got 0", ais, PATH, [0, 1], 0),
    ("num_chains: got -5", ais, PATH, [0, 1], -5),
    ("num_chains: got True", ais, PATH, [0, 1], True),
    ("num_chains: got 10.0", ais, PATH, [0, 1], 10.0),
    ("num_chains: at least 1", importance_sampling, PATH, 0),
    ("generator: torch.Generator or None, got int", ais, PATH, [0, 1], 10, 42),
    ("threshold: number from 0 to 1, got 2", partial(smc, PATH, 3, threshold=2)),
    ("device: cpu or cuda, got 'meta'", partial(ais_in_shards, PATH, [0, 1], 3, 1, "unused", device="meta")),
    ("path: finite log-weights", ais, BaseRatePath(HUGE), [0, 1], 3),
    (r"rbm: 2\^30 = 1.1e\+09 states", exact_log_z, WIDE),
    (r"rbm: 1500 visible and 1100 hidden: 2\^1100 states", exact_log_z, WIDER),
    ("dtype: torch.float32 or .*float16", partial(RBM_5_4.to, dtype=torch.float16)),
    ("dtype: torch.float32 or .*int32", partial(RBM_5_4.to, dtype=torch.int32)),
    ("rbm: at most 25 units", exact_hidden_samples, WIDE, 10),
    ("rbm: hidden as visible", exact_hidden_samples, RBM_5_4.transposed(), 10),
    ("num_samples: at least 1", exact_hidden_samples, RBM_5_4, 0),
    ("train: 0.3", trained_on, full((4, 5), 0.3)),
    ("train: nan", trained_on, with_nan(4, 5)),
    (r"train: \[0, 5\]", trained_on, zeros(0, 5)),
    (r"train: \[5\]", trained_on, zeros(5)),
    ("num_hidden: at least 1", ContrastiveDivergence, 0, 1),
    ("epochs: at least 1", ContrastiveDivergence, 2, 0),
    ("cd_steps: at least 1", partial(CD, cd_steps=0)),
    ("learning_rate: positive number, got -1", partial(CD, learning_rate=-1)),
    (r"final_momentum: \[0, 1\)", partial(CD, final_momentum=1.0)),
    ("weight_cost: nan", partial(CD, weight_cost=NAN)),
    ("images: 0, 1.*255", binarize, full((2, 2), 255.0), 0),
    ("images: NaN", binarize, with_nan(2, 2), 0),
    ("images: at least one", binarize, zeros(0, 4), 0),
    ("train: 255", base_rate_bias, full((2, 2), 255.0)),
    (r"train: \[0, 4\]", base_rate_bias, zeros(0, 4)),
    ("pseudo_on, pseudo_off: 5 always off", partial(base_rate_bias, zeros(4, 5), pseudo_on=0)),
    ("pseudo_on, pseudo_off: 2 pixels are always on", partial(base_rate_bias, 1 - zeros(3, 2), pseudo_on=0)),
    ("pseudo_on: at least 0, got -1", partial(base_rate_bias, zeros(4, 5), pseudo_on=-1)),
    (r"visible_starts: \[5\]", log_z_lower_bound, RBM_5_4, zeros(5)),
    ("visible_starts: 1 NaN or infinite of 15", log_z_lower_bound, RBM_5_4, with_nan(3, 5)),
    ("path: expected an AnnealingPath, such as BaseRatePath.rbm., got RBM", ais_in_shards, RBM_5_4, [0, 1], 3, 1, "unused"),
    ("test_fraction: 1.0", partial(load_digits, test_fraction=1.0)),
    ("profile: digits, paper, got 'imagenet'", get_profile, "imagenet"),
    ("model_id: mnist-cd1-20", recipe, "mnist-cd7-3"),
    ("model_id: got 'x'", load_model, "x", torch.float64),
    ("dataset: digits, mnist, omniglot, mnist-2008, got 'cifar'", binary_images, "cifar"),
    (r"weights: shape \[any, any, any\], got \[2, 3\]", PottsRBM, zeros(2, 3), zeros(2, 3), [0.0]),
    ("weights: at least two states", PottsRBM, zeros(2, 1, 3), zeros(2, 1), zeros(3)),
    (r"visible_bias: \[2, 3\], got \[6\]", PottsRBM, zeros(2, 3, 1), zeros(6), [0.0]),
    ("hidden_bias: finite", PottsRBM, zeros(2, 3, 1), zeros(2, 3), [NAN]),
    ("sequences: whole numbers from 0 to 2", POTTS.one_hot, [[0, 3]]),
    ("sequences: whole numbers from 0 to 2", POTTS.one_hot, [[0, -1]]),
    ("sequences: whole numbers from 0 to 2", POTTS.one_hot, [[0.5, 1.0]]),
    ("sequences: expected 2 sites", POTTS.one_hot, [[0, 1, 2]]),
    ("sequences: expected 2 sites", POTTS.one_hot, 1),
    ("v: one bit on of each", POTTS_PATH.state_at, [[1, 1, 0, 0, 1, 0]]),
    ("v: one bit on of each", raise_log_prob, POTTS_PATH, [[0, 0, 0, 0, 1, 0]], [0, 1], 2),
    ("v: expected", raise_log_prob, POTTS_PATH, [[0, 1]], [0, 1], 2),
    ("visible_bias: expected shape", PottsPath, POTTS, zeros(6)),
    ("rbm: at most 25 units to enumerate, got 4 visible and 30 hidden", exact_log_z, PottsRBM(zeros(2, 2, 30), zeros(2, 2), zeros(30))),
    ("logits: a multiple of 3", draw_categories, zeros(1, 5), 3, seeded_generator(0)),
    ("train: expected shape", site_frequency_bias, zeros(0, 3), 3),
    ("train: whole numbers", site_frequency_bias, [[4]], 3),
    ("pseudo_count: expected a", site_frequency_bias, [[1]], 3, 0.0),
    (r"rbms: a sequence of at least one RBM, got \[\]", TrajectoryPath, []),
    ("rbms: a sequence of at least one RBM", TrajectoryPath, RBM_5_4),
    ("rbms: a sequence of at least one RBM", TrajectoryPath, "RBMs"),
    ("rbms[1]: an RBM, got NoneType", TrajectoryPath, [RBM_5_4, None]),
    (r"rbms[1]: num_hidden 4 as in rbms\[0\], got 2", TrajectoryPath, [RBM_5_4, random_rbm(5, 2, 1)]),
    ("rbms[1]: num_visible 5", TrajectoryPath, [RBM_5_4, random_rbm(6, 4, 1)]),
    ("rbms[1]: dtype torch.float64", TrajectoryPath, [RBM_5_4, RBM_5_4.to(dtype=torch.float32)]),
    ("visible_bias: expected shape", TrajectoryPath, [RBM_5_4], [0.0]),
    ("visible_bias: expected finite", TrajectoryPath, [RBM_5_4], [NAN] * 5),
    ("path: a TrajectoryPath, got BaseRate", partial(along, path=PATH)),
    ("num_chains: a whole number of at least 1", partial(along, num_chains=0)),
    ("chain_steps: a whole number of at least 800", partial(along, betas=None, chain_steps=799)),
    ("betas: from 0 to 1", partial(along, betas=[0, 0.5])),
    ("cess: a number between 0 and 1", partial(along, betas=None, cess=2)),
    ("second: a number from 0 to 2", lambda: along().difference(0, 3)),
    ("first: a whole number", lambda: along().difference(-1, 2)),
    ("level: a number between 0 and 1", lambda: along().interval(95)),
    ("rbm: an RBM, got str", MixturePath, "RBM", MIXTURE),
    ("mixture: a BernoulliMixture, got NoneType", MixturePath, RBM_5_4, None),
    ("mixture: 5 visible units as in", MixturePath, RBM_5_4, MIXTURE),
    ("rbm: an RBM, got NoneType", mean_field_bias, None),
    ("rbm: an RBM, got list", mean_field_mixture, [1]),
    ("num_components: a whole number", mean_field_mixture, RBM_5_4, 0),
    ("logits: expected shape", BernoulliMixture, zeros(3), zeros(3)),
    ("log_mixing_weights: expected", BernoulliMixture, zeros(3, 2), zeros(2)),
    ("logits: finite", BernoulliMixture, full((3, 2), math.inf), zeros(3)),
    ("v: 4 values in the last dimension", MIXTURE.log_prob, zeros(2, 3)),
    ("num_samples: a whole number", MIXTURE.sample, 0, seeded_generator(0)),
    ("num_components: a whole number", MixtureEM, 0),
    ("smoothing: a positive number", partial(MixtureEM, 2, smoothing=0)),
    ("tolerance: a positive number", partial(MixtureEM, 2, tolerance=NAN)),
    ("start: one of images, noise, got 'zero'", partial(MixtureEM, 2, start="zero")),
    ("train: at least 4 images", train_mixture, zeros(3, 4), MixtureEM(4), 0),
    ("train: only 0 and 1", train_mixture, full((5, 4), 0.5), MixtureEM(2), 0),
    (r"weights_2: shape \[2, any\], got \[3, 2\]", DBM, zeros(3, 2), zeros(3, 2), zeros(3), zeros(2), zeros(2)),
    (r"hidden_bias_2: shape \[4\]", DBM, zeros(3, 2), zeros(2, 4), zeros(3), zeros(2), zeros(2)),
    ("v: only 0 and 1", DBM_3_2.log_unnormalized, EVERY_3 / 2),
    (r"v: shape \[any, 3\]", DBM_3_2.log_unnormalized, EVERY_3[:, :2]),
    ("max_updates: a whole number", partial(DBM_3_2.mean_field, EVERY_3, max_updates=0)),
    (r"visible_bias: shape \[3\]", DBMPath, DBM_3_2, zeros(5)),
    (r"hidden_bias_2: shape \[2\]", DBMPath, DBM_3_2, None, zeros(3)),
    ("hidden_bias_2: finite", DBMPath, DBM_3_2, None, [0.0, NAN]),
    ("model: an RBM, DBM or DBN, got BaseRatePath", base_rate_path, PATH, EVERY_3),
    (r"train: shape \[any, 3\]", base_rate_path, DBM_3_2, EVERY_3[:, :2]),
    (r"train: values in \[0, 1\]", base_rate_path, DBM_3_2, EVERY_3 * 2),
    ("generator: a torch.Generator", base_rate_path, DBM_3_2, EVERY_3, 5),
    (r"v: shape \[any, 3\]", raise_log_prob, DBMPath(DBM_3_2), all_states(5), [0, 1], 1),
    (r"v: shape \[any, 3\]", raise_log_prob, DBNPath(DBN_3_3), all_states(4), [0, 1], 1),
    ("layers: at least one RBM", DBN, []),
    ("layers: 3 visible", DBN, [random_rbm(4, 3, 0), random_rbm(4, 3, 0)]),
    ("layers: torch.float64", DBN, [random_rbm(4, 3, 0), random_rbm(3, 2, 0, dtype=torch.float32)]),
    ("v: only 0 and 1", dbn_lower_bound, DBN_3_3, EVERY_3 / 2, 0.0),
    (r"v: shape \[any, 3\]", dbn_lower_bound, DBN_3_3, EVERY_3[:0], 0.0),
    (r"v: shape \[any, 3\]", dbn_lower_bound, DBN_3_3, EVERY_3[:, :2], 0.0),
    ("log_z: finite", dbn_lower_bound, DBN_3_3, EVERY_3, NAN),
    ("num_samples: a whole number", dbn_lower_bound, DBN_3_3, EVERY_3, 0.0, 0),
    ("log_z: an estimate for the top RBM with 4 visible and 3 hidden units, got one for 5", dbn_lower_bound, DBN_3_3, EVERY_3, ais(PATH, [0, 1], 2)),
    ("hidden: 1 layers", DBN_3_3.log_joint_unnormalized, EVERY_3, []),
    ("num_samples: expected", DBN_3_3.sample, 0, 1, seeded_generator(0)),
    ("gibbs_steps: expected", DBN_3_3.sample, 1, 0, seeded_generator(0)),
    ("path: a .safetensors file", DBN_3_3.save, "model.npz"),
    ("layers_below: 4 visible units in layer 0, got 5", partial(trained_on, layers_below=[RBM_5_4]), zeros(3, 4)),
    (r"initial.weights: shape \[4, 2\]", partial(trained_on, initial=RBM_5_4), zeros(3, 4)),
    (r"transition: shape \[any, any\], got \[2\]", MarkovChain, [0.5, 0.5]),
    (r"transition: shape \[1, 1\], got \[1, 2\]", MarkovChain, [[0.5, 0.5]]),
    ("transition, row 0: probabilities .* got sum 0.9", MarkovChain, [[0.5, 0.4], [0.0, 1.0]]),
    ("transition, row 1: minimum -0.5", MarkovChain, [[1.0, 0.0], [1.5, -0.5]]),
    ("transition: finite numbers", MarkovChain, [[NAN, 1.0], [0.0, 1.0]]),
    (r"start: shape \[3\]", CHAIN.distributions, full((2,), 0.5), 1),
    ("start: probabilities", CHAIN.distributions, full((3,), 1.0), 1),
    ("num_steps: a whole number of at least 1", CHAIN.sample, zeros(1), 0),
    (r"other: shape \[3, 3\]", CHAIN.then, MarkovChain(torch.eye(4))),
    (r"values: shape \[3\]", CHAIN.variance_of_mean, full((4,), 1.0), 2),
    ("log_target: a power of two values", gibbs_update, zeros(6), [0]),
    ("block: units from 0 to 2", gibbs_update, zeros(8), [3]),
    ("log_target: finite", gibbs_update, [0.0, math.inf], [0]),
    (r"log_target: shape \[3\]", acceptance_matrix, zeros(4), CHAIN),
    (r"starts: shape \[any, any\]", metropolis_samples, torch.sum, torch.sub, zeros(3), 1),
    (r"values: shape \[any, any\]", autocorrelation, zeros(5)),
    ("values: at least two different ones", autocorrelation_time, zeros(2, 5)),
    ("values: finite", autocorrelation, with_nan(1, 2)),
    ("couplings: a symmetric matrix", loopy_belief_propagation, [[0.0, 1.0], [2.0, 0.0]], zeros(2)),
    ("couplings: zero diagonal", loopy_belief_propagation, [[1.0, 1.0], [1.0, 0.0]], zeros(2)),
    (r"couplings: shape \[2, 2\]", loopy_belief_propagation, [[0.0]], zeros(2)),
    ("biases: finite", loopy_belief_propagation, [[0.0]], [math.inf]),
    (r"log_weights: shape \[any\], got \[0\]", certified_lower_bound, []),
    (r"log_weights: shape \[any\]", certified_lower_bound, [[0.0]]),
    ("log_weights: got 1 others of 2", certified_lower_bound, [0.0, NAN]),
    ("log_weights: got 1 others of 2", certified_lower_bound, [0.0, math.inf]),
    ("log_weights: an array of numbers", certified_lower_bound, "abc"),
    ("level: between 0 and 1, got 1.0", certified_lower_bound, [0.0], 1.0),
    ("level: got 0", certified_lower_bound, [0.0], 0),
    ("level: got nan", certified_lower_bound, [0.0], NAN),
    ("level: got 'high'", certified_lower_bound, [0.0], "high"),
    ("level: got True", certified_lower_bound, [0.0], True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "call", "arguments"), [(c[0], c[1], c[2:]) for c in CASES], ids=[c[0] for c in CASES]
)
def test_wrong_argument_is_named(said, call, arguments):
    name, message = said.split(": ", 1)
    with pytest.raises(ValueError, match=f"^{re.escape(name)}.*: (?s:.*){message}"):
        call(*arguments)


W, B = np.zeros((2, 2)), np.zeros(2)
FILES = {
    r"the arrays weights, visible_bias, hidden_bias .* got W, b": {"W": W, "b": B},
    r"model.npz.*weights.*4 NaN": {"weights": W + NAN, "visible_bias": B, "hidden_bias": B},
    r"got hidden_bias, lateral, visible_bias, weights": dict.fromkeys(
        ("weights", "visible_bias", "hidden_bias", "lateral"), W
    ),
}


@pytest.mark.parametrize("message", FILES)
def test_what_a_file_lacks_is_named(tmp_path, message):
    """What is no model at all is told in the words of `hostile_files`."""
    (tmp_path / "model.npz").write_bytes(as_npz(FILES[message]))
    with pytest.raises(ValueError, match=f"^path: expected .*{message}"):
        RBM.load(tmp_path / "model.npz")


@pytest.mark.parametrize("name", ["model.pt", "model"])
def test_unknown_format_is_not_written(tmp_path, name):
    with pytest.raises(ValueError, match=r"^path: expected a .safetensors, .npz or .mat file"):
        RBM_5_4.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_overflow_the_storage_type_are_not_written(tmp_path):
    huge = RBM(full((2, 2), 1e6), zeros(2), zeros(2))
    with pytest.raises(ValueError, match=r"stored as torch.float16"):
        huge.save(tmp_path / "model.safetensors", dtype=torch.float16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("model.npz", torch.bfloat16),
        ("model.npz", torch.int32),
        ("model.mat", torch.float16),
        ("model.mat", torch.bfloat16),
        ("model.safetensors", torch.int32),
        ("model.safetensors", torch.float8_e4m3fn),
    ],
)
def test_types_that_a_file_cannot_hold_are_named(tmp_path, name, dtype):
    with pytest.raises(ValueError, match=f"^dtype: expected one of torch.float.*got {dtype}"):
        RBM_5_4.save(tmp_path / name, dtype=dtype)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_half_precision_is_not_loaded_as_such(tmp_path):
    path = tmp_path / "model.npz"
    RBM_5_4.save(path, dtype=torch.float16)
    assert RBM.load(path).dtype == torch.float32
    with pytest.raises(ValueError, match=r"^dtype: expected torch\.float32 or"):
        RBM.load(path, dtype=torch.float16)


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    RBM_5_4.save(path)
    before = path.read_bytes()

    def full_disk(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space"):
        random_rbm(5, 4, seed=2).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]
