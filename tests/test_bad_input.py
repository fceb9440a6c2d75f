"""Wrong input: a ValueError that names the argument, what was expected and what came.

It is raised before any work starts.
"""

import math
import re
from functools import partial

import numpy as np
import pytest
import torch
from enumeration import all_states, random_rbm
from players import SHAPE, ring, some_runs, some_traces, some_visits
from torch import full, zeros
from walks import Coins
from writers import as_npz

from boltzmann_companion import log_probability_store, seeds
from boltzmann_companion.players import brackets, chains, frames, particles, tempering
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.recipes import load_model, recipe
from boltzmann_companion.studies import (
    estimator_study,
    known_models,
    open_brackets,
    pair_free_energy,
    tempering_runs,
    training_paths,
)
from boltzmann_likelihood import evaluation, planted
from boltzmann_likelihood.files import read_checkpoints
from boltzmann_likelihood.store import kept
from paperlib import annealing, datasets, estimators, learning, mcmc, models, numerics
from paperlib import variational as vi
from paperlib.errors import InputError
from paperlib.numerics import seeded_generator
from paperlib.variational.recognition import Network
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet
from paperlib.variational.sparse_coding import BinarySparseCoding, LaplaceSparseCoding
from paperlib.variational.vae import VAE

RBM_5_4 = random_rbm(5, 4, seed=1)
PATH = annealing.BaseRatePath(RBM_5_4)
PAIR = partial(annealing.RBMPairPath, RBM_5_4)
WIDE = models.RBM(zeros(40, 30), zeros(40), zeros(30))
WIDER = models.RBM(zeros(1500, 1100), zeros(1500), zeros(1100))
HUGE = models.RBM(full((5, 4), 3e38), zeros(5), zeros(4))
LARGE = models.RBM(full((2, 2), 1e6), zeros(2), zeros(2))
# What a file of this kind cannot hold.
NOT_STORED = [
    ("model.npz", torch.bfloat16),
    ("model.npz", torch.int32),
    ("model.mat", torch.float16),
    ("model.mat", torch.bfloat16),
    ("model.safetensors", torch.int32),
    ("model.safetensors", torch.float8_e4m3fn),
]
CD = partial(learning.ContrastiveDivergence, 2, 1)
NAN = float("nan")


def with_nan(*shape):
    tensor = zeros(*shape)
    tensor.view(-1)[0] = NAN
    return tensor


def started_at(sample):
    return estimators.ais(PAIR(RBM_5_4, sample), [0, 1], 3)


def trained_on(images, **options):
    return learning.train_rbm(images, CD(), 0, **options)


MIXTURE = models.BernoulliMixture(zeros(2, 4), zeros(2))
DBM_3_2 = models.DBM(zeros(3, 3), zeros(3, 2), zeros(3), zeros(3), zeros(2))
DBN_3_3 = models.DBN(
    [models.RBM(zeros(3, 4), zeros(3), zeros(4)), models.RBM(zeros(4, 3), zeros(4), zeros(3))]
)
EVERY_3 = all_states(3)
CHAIN = mcmc.MarkovChain(torch.eye(3))


V = all_states(5)
AIS_ABOVE = estimators.PartitionEstimate(zeros(2).double(), zeros(2, 1))
RAISE_BELOW = estimators.ReverseEstimate(zeros(3, 2).double())
RAISE = partial(estimators.raise_log_prob, path=PATH, v=V, betas=[0, 0.5, 1], num_chains=2)
CSL = partial(estimators.csl_log_prob, rbm=RBM_5_4, v=V, num_chains=2, num_steps=2)
CONTROL = estimators.control_variate_mean
WEIGHTED = partial(CONTROL, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
TEMPERING = partial(estimators.parallel_tempering, path=PATH, chain_steps=1_000)
SHARDS = partial(estimators.ais_run, PATH, [0, 1], seed=1)
EVALUATE = partial(evaluation.evaluate, RBM_5_4, V)
OBJECTS = np.zeros((4, 5), object)
COMPARE = partial(evaluation.compare, RBM_5_4, RBM_5_4, V)
AUDIT = partial(evaluation.audit, RBM_5_4, V)
ALONG = partial(evaluation.evaluate_training, [RBM_5_4], V, progress=False)
CHECKPOINTS = read_checkpoints
DEEP = learning.DeepBoltzmannLearning
SPARSE = BinarySparseCoding(full((3, 4), 0.5), zeros(4), full((3,), 1.0))
X = full((6, 3), 0.5)
NET = SigmoidBeliefNet(zeros(4, 3), zeros(4), zeros(3))
KNOWN = partial(
    known_models.KnownModel, name="m", kind="planted", rbm=RBM_5_4, log_z=1.0, start_bias=zeros(5)
)
STUDY = partial(estimator_study.run_study, models=[KNOWN()], budgets={2_000: 1}, progress=False)
FRAMES = partial(frames.frame_player, description="Nothing", image_shape=SHAPE)
FLAT = [0.0] * 5
WALK = particles.particle_run("run", [0.0, 1.0], [[0], [5]], [[0.0], [0.0]], ["a", "b"])
LONGER = particles.particle_run("longer", [0.0, 0.5, 1.0], [[0]] * 3, [[0.0]] * 3, ["a", "b", "c"])
THRICE = [0.0, 0.5, 1.0]


class NoWayIn(Coins):
    """Reversible, but nobody knows how a test vector becomes a state."""

    reversible = True


def bracketed(x=None, chosen=(4, 1, 2)):
    return estimators.bracket(
        zeros(5) if x is None else x, torch.tensor(chosen), AIS_ABOVE, RAISE_BELOW
    )


#: What is called, rightly but for one argument at a time: wrong values of these, several in a
#: tuple. Where no other row says it, the key also holds what is said of them.
ONE_WRONG = [
    (
        partial(estimators.ais, PATH, betas=[0, 1], num_chains=10),
        {"num_chains": (0, -5, True, 10.0), "generator": "42"},
    ),
    (
        RAISE,
        {
            "path: an AnnealingPath.*got str": "base rates",
            "v": (V * 0.5, V[:, :4]),
            "betas": [0, 0.5],
            "num_chains": 0,
        },
    ),
    (CSL, {"v": (V * 0.5, V[:, :2]), "num_chains": 0, "num_steps": 0}),
    (
        TEMPERING,
        {"path": None, "generator": "7", "num_replicas": 0, "betas": [0, 0.5], "max_samples": 0},
    ),
    (partial(SHARDS, num_chains=3), {"num_chains": 0, "device: cpu or cuda": ("tpu", "meta")}),
    (
        partial(DBN_3_3.sample, num_samples=1, gibbs_steps=1, generator=seeded_generator(0)),
        {"num_samples": 0, "gibbs_steps": 0},
    ),
    (
        partial(learning.ContrastiveDivergence, num_hidden=2, epochs=1),
        {
            "num_hidden": 0,
            "epochs": 0,
            "cd_steps": 0,
            "learning_rate": -1,
            r"final_momentum: \[0, 1\)": 1.0,
            "weight_cost": NAN,
        },
    ),
    (
        partial(DEEP, CD(), CD(), epochs=1),
        {"epochs": 0, "chains": 0, "learning_rate": 0.0, "weight_cost": -1.0, "momentum": 1.0},
    ),
    (
        partial(learning.MixtureEM, num_components=2),
        {
            "num_components": 0,
            "smoothing": 0,
            "tolerance": NAN,
            "start: one of images, noise": "zero",
        },
    ),
    (
        planted.block_diagonal,
        {
            "num_visible": 0,
            "num_hidden": 2.5,
            "weight_std": NAN,
            "bias_std": -1,
            "dtype": torch.float16,
            "generator": "0",
        },
    ),
    (
        planted.low_rank,
        {
            "rank: 1 or 2": 3,
            "values": ((), (0,)),
            "strength": math.inf,
            "threshold": ("2", 1e3, -1e3),
        },
    ),
    (
        partial(
            planted.from_factors,
            visible_factors=[[1]],
            hidden_factors=[[1.0]],
            visible_bias=[0.0],
            hidden_bias=[0.0],
        ),
        {
            "visible_factors": ([[0.5]], [[NAN]]),
            "hidden_factors": [[1.0, 2.0]],
            "visible_bias": [0.0, 0.0],
            "hidden_bias": [NAN],
        },
    ),
    (planted.ising_2d, {"side": 1, "coupling": (0.0, NAN), "dtype": "float32"}),
    (
        partial(planted.hidden_mode, rbm=RBM_5_4),
        {"rbm": "rbm", "log_odds": NAN, "units": 0, "fraction": 2.0, "strength": -1.0},
    ),
    (partial(vi.tap_log_z, RBM_5_4), {"max_iterations": 0, "tolerance": NAN}),
    (partial(pair_free_energy.bethe_log_z, RBM_5_4), {"max_iterations": 2.5, "tolerance": "small"}),
    (
        partial(pair_free_energy.tree_reweighted_log_z, RBM_5_4),
        {"max_iterations": 0, "tolerance": -1},
    ),
    (AUDIT, {"claimed_log_z": NAN, "claimed_log_prob": -math.inf}),
    (
        STUDY,
        {
            "budgets": ({}, {1_999: 1}, {2_500.5: 1}),
            "seed": -1,
            "estimators: some of": (("guess",), ()),
            "models: some, no two of one name": ([], [KNOWN()] * 2),
        },
    ),
    (
        partial(
            tempering_runs.timed_run,
            estimator="parallel tempering",
            path=PATH,
            chain_steps=2_000,
            seed=1,
        ),
        {
            "estimator: one of parallel tempering, AIS, SMC, RAISE, got 'RTS'": "RTS",
            "chain_steps": (100, 2_000.5),
            "seed": -1,
        },
    ),
    (
        partial(seeds.prediction_interval, values=[1.0] * 5),
        {"values": ([1.0] * 4, [1.0] * 4 + [math.inf]), "level": 1.0},
    ),
]
#: What the message begins with and what else it says, what is called, and its arguments.
CASES = [
    ("weights: array of numbers", models.RBM, "abc", [0], [0]),
    (r"weights: \[5\]", models.RBM, zeros(5), zeros(5), zeros(4)),
    (r"weights: \[5, 0\]", models.RBM, zeros(5, 0), zeros(5), zeros(0)),
    ("weights: real", models.RBM, zeros(2, 2, dtype=torch.cfloat), [0, 0], [0, 0]),
    ("weights: 1 NaN or infinite of 20", models.RBM, with_nan(5, 4), zeros(5), zeros(4)),
    ("weights: 4 NaN or infinite", models.RBM, np.full((2, 2), np.inf), [0, 0], [0, 0]),
    ("weights: list", models.RBM, [[1.0], [1.0, 2.0]], [0, 0], [0]),
    (r"visible_bias: \[5\], got \[4\]", models.RBM, zeros(5, 4), zeros(4), zeros(5)),
    (r"hidden_bias: \[4\], got \[5\]", models.RBM, zeros(5, 4), zeros(5), zeros(5)),
    ("visible_bias: NaN", models.RBM, zeros(5, 4), with_nan(5), zeros(4)),
    ("v: expected 5 values", RBM_5_4.log_unnormalized, zeros(3, 4).double()),
    ("h: expected 4 values", RBM_5_4.log_unnormalized_hidden, zeros(5).double()),
    ("h: expected 4 values", RBM_5_4.log_unnormalized_flips, zeros(5).double()),
    (r"visible_bias: \[5\], got \[4\]", annealing.BaseRatePath, RBM_5_4, zeros(4)),
    ("visible_bias: 5 NaN or infinite", annealing.BaseRatePath, RBM_5_4, full((5,), math.inf)),
    ("rbm_b: num_visible 5 .* got 6", PAIR, random_rbm(6, 4, seed=1)),
    ("rbm_b: float64", PAIR, RBM_5_4.to(dtype=torch.float32)),
    ("burn_in: at least 1, got 0", partial(PAIR, RBM_5_4, burn_in=0)),
    ("sample_a: 0.5", started_at, lambda n, g: full((n, 5), 0.5)),
    (r"sample_a: \[3, 5\]", started_at, lambda n, g: zeros(n, 4)),
    ("betas: from 0 to 1, got 0.1 first", estimators.ais, PATH, [0.1, 1], 10),
    ("betas: 0.9 last", estimators.ais, PATH, [0, 0.9], 10),
    ("betas: 0.7 then 0.3 at index 2", estimators.ais, PATH, [0, 0.7, 0.3, 1], 10),
    ("betas: strictly increasing", estimators.ais, PATH, [0, 0.5, 0.5, 1], 10),
    ("betas: NaN", estimators.ais, PATH, [0, NAN, 1], 10),
    ("betas: at least two", estimators.ais, PATH, [0.0], 10),
    (r"betas: \[2, 2\]", estimators.ais, PATH, zeros(2, 2), 10),
    ("betas: str|betas", estimators.ais, PATH, "uniform", 10),
    ("num_steps: at least 1, got 0", annealing.uniform_betas, 0),
    (r"fraction: \(0, 1\], got 0", annealing.salakhutdinov_murray_betas, 0),
    ("num_chains: at least 1", estimators.importance_sampling, PATH, 0),
    ("path: finite log-weights", estimators.ais, annealing.BaseRatePath(HUGE), [0, 1], 3),
    (r"rbm: 2\^30 = 1.1e\+09 states", estimators.exact_log_z, WIDE),
    (r"rbm: 1500 visible and 1100 hidden: 2\^1100 states", estimators.exact_log_z, WIDER),
    ("dtype: torch.float32 or .*float16", partial(RBM_5_4.to, dtype=torch.float16)),
    ("rbm: at most 25 units", estimators.exact_hidden_samples, WIDE, 10),
    ("rbm: hidden as visible", estimators.exact_hidden_samples, RBM_5_4.transposed(), 10),
    ("num_samples: at least 1", estimators.exact_hidden_samples, RBM_5_4, 0),
    ("train: 0.3", trained_on, full((4, 5), 0.3)),
    ("train: nan", trained_on, with_nan(4, 5)),
    (r"train: \[0, 5\]", trained_on, zeros(0, 5)),
    (r"train: \[5\]", trained_on, zeros(5)),
    ("images: 0, 1.*255", datasets.binarize, full((2, 2), 255.0), 0),
    ("images: NaN", datasets.binarize, with_nan(2, 2), 0),
    ("images: at least one", datasets.binarize, zeros(0, 4), 0),
    ("train: 255", datasets.base_rate_bias, full((2, 2), 255.0)),
    (r"train: \[0, 4\]", datasets.base_rate_bias, zeros(0, 4)),
    (
        "pseudo_on, pseudo_off: 5 always off",
        partial(datasets.base_rate_bias, zeros(4, 5), pseudo_on=0),
    ),
    (
        "pseudo_on, pseudo_off: 2 pixels are always on",
        partial(datasets.base_rate_bias, 1 - zeros(3, 2), pseudo_on=0),
    ),
    ("pseudo_on: at least 0, got -1", partial(datasets.base_rate_bias, zeros(4, 5), pseudo_on=-1)),
    (r"visible_starts: \[5\]", models.log_z_lower_bound, RBM_5_4, zeros(5)),
    ("visible_starts: 1 NaN or infinite of 15", models.log_z_lower_bound, RBM_5_4, with_nan(3, 5)),
    (
        "path: expected an AnnealingPath, such as BaseRatePath.rbm., got RBM",
        estimators.ais_run,
        RBM_5_4,
        [0, 1],
        3,
        1,
    ),
    ("profile: digits, paper, got 'imagenet'", get_profile, "imagenet"),
    ("model_id: mnist-cd1-20", recipe, "mnist-cd7-3"),
    ("model_id: got 'x'", load_model, "x", torch.float64),
    ("dataset: digits, mnist, omniglot, mnist-2008, got 'cifar'", datasets.binary_images, "cifar"),
    ("rbm: an RBM, got NoneType", annealing.mean_field_bias, None),
    ("logits: expected shape", models.BernoulliMixture, zeros(3), zeros(3)),
    ("log_mixing_weights: expected", models.BernoulliMixture, zeros(3, 2), zeros(2)),
    ("logits: finite", models.BernoulliMixture, full((3, 2), math.inf), zeros(3)),
    ("v: 4 values in the last dimension", MIXTURE.log_prob, zeros(2, 3)),
    ("num_samples: a whole number", MIXTURE.sample, 0, seeded_generator(0)),
    ("train: at least 4 images", learning.train_mixture, zeros(3, 4), learning.MixtureEM(4), 0),
    ("train: only 0 and 1", learning.train_mixture, full((5, 4), 0.5), learning.MixtureEM(2), 0),
    (
        r"weights_2: shape \[2, any\], got \[3, 2\]",
        models.DBM,
        zeros(3, 2),
        zeros(3, 2),
        zeros(3),
        zeros(2),
        zeros(2),
    ),
    (
        r"hidden_bias_2: shape \[4\]",
        models.DBM,
        zeros(3, 2),
        zeros(2, 4),
        zeros(3),
        zeros(2),
        zeros(2),
    ),
    ("v: only 0 and 1", DBM_3_2.log_unnormalized, EVERY_3 / 2),
    (r"v: shape \[any, 3\]", DBM_3_2.log_unnormalized, EVERY_3[:, :2]),
    ("max_updates: a whole number", partial(DBM_3_2.mean_field, EVERY_3, max_updates=0)),
    (r"visible_bias: shape \[3\]", annealing.DBMPath, DBM_3_2, zeros(5)),
    (r"hidden_bias_2: shape \[2\]", annealing.DBMPath, DBM_3_2, None, zeros(3)),
    ("hidden_bias_2: finite", annealing.DBMPath, DBM_3_2, None, [0.0, NAN]),
    ("model: an RBM, DBM or DBN, got BaseRatePath", annealing.base_rate_path, PATH, EVERY_3),
    (r"train: shape \[any, 3\]", annealing.base_rate_path, DBM_3_2, EVERY_3[:, :2]),
    (r"train: values in \[0, 1\]", annealing.base_rate_path, DBM_3_2, EVERY_3 * 2),
    ("generator: a torch.Generator", annealing.base_rate_path, DBM_3_2, EVERY_3, "5"),
    (
        r"v: shape \[any, 3\]",
        estimators.raise_log_prob,
        annealing.DBMPath(DBM_3_2),
        all_states(5),
        [0, 1],
        1,
    ),
    (
        r"v: shape \[any, 3\]",
        estimators.raise_log_prob,
        annealing.DBNPath(DBN_3_3),
        all_states(4),
        [0, 1],
        1,
    ),
    ("layers: at least one RBM", models.DBN, []),
    ("layers: 3 visible", models.DBN, [random_rbm(4, 3, 0), random_rbm(4, 3, 0)]),
    (
        "layers: torch.float64",
        models.DBN,
        [random_rbm(4, 3, 0), random_rbm(3, 2, 0, dtype=torch.float32)],
    ),
    ("v: only 0 and 1", estimators.dbn_lower_bound, DBN_3_3, EVERY_3 / 2, 0.0),
    (r"v: shape \[any, 3\]", estimators.dbn_lower_bound, DBN_3_3, EVERY_3[:0], 0.0),
    (r"v: shape \[any, 3\]", estimators.dbn_lower_bound, DBN_3_3, EVERY_3[:, :2], 0.0),
    ("log_z: finite", estimators.dbn_lower_bound, DBN_3_3, EVERY_3, NAN),
    ("num_samples: a whole number", estimators.dbn_lower_bound, DBN_3_3, EVERY_3, 0.0, 0),
    (
        "log_z: an estimate for the top RBM with 4 visible and 3 hidden units, got one for 5",
        estimators.dbn_lower_bound,
        DBN_3_3,
        EVERY_3,
        estimators.ais(PATH, [0, 1], 2),
    ),
    ("hidden: 1 layers", DBN_3_3.log_joint_unnormalized, EVERY_3, []),
    ("path: a .safetensors file", DBN_3_3.save, "model.npz"),
    (
        "layers_below: 4 visible units in layer 0, got 5",
        partial(trained_on, layers_below=[RBM_5_4]),
        zeros(3, 4),
    ),
    (r"initial.weights: shape \[4, 2\]", partial(trained_on, initial=RBM_5_4), zeros(3, 4)),
    (r"transition: shape \[any, any\], got \[2\]", mcmc.MarkovChain, [0.5, 0.5]),
    (r"transition: shape \[1, 1\], got \[1, 2\]", mcmc.MarkovChain, [[0.5, 0.5]]),
    ("transition, row 0: probabilities .* got sum 0.9", mcmc.MarkovChain, [[0.5, 0.4], [0.0, 1.0]]),
    ("transition, row 1: minimum -0.5", mcmc.MarkovChain, [[1.0, 0.0], [1.5, -0.5]]),
    ("transition: finite numbers", mcmc.MarkovChain, [[NAN, 1.0], [0.0, 1.0]]),
    (r"start: shape \[3\]", CHAIN.distributions, full((2,), 0.5), 1),
    ("start: probabilities", CHAIN.distributions, full((3,), 1.0), 1),
    ("num_steps: a whole number of at least 1", CHAIN.sample, zeros(1), 0),
    (r"other: shape \[3, 3\]", CHAIN.then, mcmc.MarkovChain(torch.eye(4))),
    (r"values: shape \[3\]", CHAIN.variance_of_mean, full((4,), 1.0), 2),
    ("log_target: a power of two values", mcmc.gibbs_update, zeros(6), [0]),
    ("block: units from 0 to 2", mcmc.gibbs_update, zeros(8), [3]),
    ("log_target: finite", mcmc.gibbs_update, [0.0, math.inf], [0]),
    (r"log_target: shape \[3\]", mcmc.acceptance_matrix, zeros(4), CHAIN),
    (r"starts: shape \[any, any\]", mcmc.metropolis_samples, torch.sum, torch.sub, zeros(3), 1),
    (r"values: shape \[any, any\]", mcmc.autocorrelation, zeros(5)),
    ("values: at least two different ones", mcmc.autocorrelation_time, zeros(2, 5)),
    ("values: finite", mcmc.autocorrelation, with_nan(1, 2)),
    (
        "couplings: a symmetric matrix",
        mcmc.loopy_belief_propagation,
        [[0.0, 1.0], [2.0, 0.0]],
        zeros(2),
    ),
    ("couplings: zero diagonal", mcmc.loopy_belief_propagation, [[1.0, 1.0], [1.0, 0.0]], zeros(2)),
    (r"couplings: shape \[2, 2\]", mcmc.loopy_belief_propagation, [[0.0]], zeros(2)),
    ("biases: finite", mcmc.loopy_belief_propagation, [[0.0]], [math.inf]),
    (r"log_weights: shape \[any\], got \[0\]", estimators.certified_lower_bound, []),
    (r"log_weights: shape \[any\]", estimators.certified_lower_bound, [[0.0]]),
    *(
        ("log_weights: got 1 others of 2", estimators.certified_lower_bound, [0.0, wrong])
        for wrong in (NAN, math.inf)
    ),
    ("log_weights: an array of numbers", estimators.certified_lower_bound, "abc"),
    *(
        ("level: between 0 and 1", estimators.certified_lower_bound, [0.0], level)
        for level in (1.0, 0, NAN, "high", True)
    ),
    # estimators
    ("path: one that can be walked back.*reverse_transition", partial(RAISE, path=Coins())),
    ("path: one that can start at a test vector.*state_at", partial(RAISE, path=NoWayIn())),
    ("path: one whose start has a known partition", partial(RAISE, path=PAIR(RBM_5_4))),
    (r"x_batch: shape \[2\], got \[1\]", CONTROL, [1.0, 2.0], [1.0], [1.0, 2.0]),
    ("y: at least 2 cases", CONTROL, [1.0], [1.0], [1.0, 2.0]),
    ("y: at least 2 cases and no more than the 1", CONTROL, [1.0, 2.0], [1.0, 2.0], [1.0]),
    ("y: finite", CONTROL, [1.0, NAN], [1.0, 2.0], [1.0, 2.0]),
    ("alpha: a number", CONTROL, [1.0, 2.0], [1.0, 1.0], [1.0, 1.0], None),
    ("alpha: finite", CONTROL, [1.0, 2.0], [1.0, 2.0], [1.0, 2.0], math.inf),
    ("batch_weights, all_weights: both or none, got one", partial(WEIGHTED, batch_weights=[1] * 3)),
    (
        "batch_weights: expected shape",
        partial(WEIGHTED, batch_weights=[1] * 2, all_weights=[1] * 4),
    ),
    ("all_weights: numbers above 0", partial(WEIGHTED, batch_weights=[1] * 3, all_weights=[0] * 4)),
    ("batch_weights: finite", partial(WEIGHTED, batch_weights=[1, 1, NAN], all_weights=[1] * 4)),
    (r"log_unnormalized: shape \[any\]", bracketed, zeros(5, 1)),
    ("log_unnormalized: finite", bracketed, with_nan(5)),
    (r"chosen: shape \[3\]", bracketed, None, (4, 1)),
    ("chosen: indices from 0 to 4", bracketed, None, (4, 1, 62)),
    ("chain_steps: a whole number of at least 1000, got 999", partial(TEMPERING, chain_steps=999)),
    ("chain_steps: at least 5940", partial(TEMPERING, num_replicas=99)),
    ("chain_steps: at least", partial(TEMPERING, betas=torch.linspace(0, 1, 99))),
    ("path: one that can be identified", Coins().checksum),
    ("path: checksum", partial(TEMPERING, path=Coins(), checkpoint="a.safetensors")),
    ("path: finite log-weights", partial(TEMPERING, path=annealing.BaseRatePath(HUGE))),
    ("forward: finite .* got 1 NaN or infinite of 1", estimators.bennett, [NAN], [0.0]),
    ("reverse: finite", estimators.bennett, [0.0], [math.inf]),
    ("forward: draws that overlap", estimators.bennett, [-math.inf], [-math.inf]),
    (
        "num_batches: a whole number of at least 2",
        partial(estimators.bennett, [0.0], [0.0], num_batches=1),
    ),
    (
        "num_batches: at most one for each draw",
        partial(estimators.bennett, [0.0], [0.0], num_batches=2),
    ),
    *(
        ("level: a number between 0 and 1", estimators.bennett([0.0], [0.0]).interval, level)
        for level in (0, 1, 1.5, NAN, "most", True)
    ),
    (
        "path: a path that can be identified.*sample_a",
        estimators.ais_run,
        PAIR(RBM_5_4, lambda n, g: zeros(n, 5)),
        [0, 1],
        3,
        1,
    ),
    (
        "device: a device that torch finds .* 'cuda:99'",
        kept,
        estimators.raise_run(PATH, V, [0, 1], 3, 1, device="cuda:99"),
        None,
    ),
    # models and what learns them
    (
        r"mean_field.logits_2: shape \[8, 2\]",
        partial(
            DBM_3_2.log_unnormalized_bound, EVERY_3, mean_field=DBM_3_2.mean_field(EVERY_3[:5])
        ),
    ),
    (
        r"mean_field.logits_2: shape \[8, 2\]",
        partial(DBM_3_2.log_unnormalized, EVERY_3, mean_field=DBM_3_2.mean_field(EVERY_3[:5])),
    ),
    ("path: a .safetensors file", MIXTURE.save, "mixture.npz"),
    *(
        ("path: a .safetensors, .npz or .mat file", RBM_5_4.save, name)
        for name in ("model.pt", "model")
    ),
    (
        "dtype (weights stored as torch.float16): finite",
        partial(LARGE.save, "model.safetensors", dtype=torch.float16),
    ),
    *(
        ("dtype: one of torch.float", partial(RBM_5_4.save, name, dtype=dtype))
        for name, dtype in NOT_STORED
    ),
    ("train: only 0 and 1", partial(learning.train_dbm, full((4, 5), 0.5), DEEP(CD(), CD(), 1), 0)),
    # planted models
    ("num_blocks: at most 5", planted.block_diagonal, 9, 5, 6),
    ("rbm: at most 20 units", planted.block_diagonal, 90, 50, 1),
    ("values: whole", partial(planted.low_rank, values=(0.5, 1))),
    ("visible_factors: counts", partial(planted.low_rank, values=(50,))),
    ("rbm: expected", planted.from_components, None),
    ("rbm: 30 visible and 21 hidden", planted.hidden_mode, random_rbm(30, 21, 1)),
    ("num_draws: expected", planted.ising_2d(3).draws, 0),
    ("num_draws: expected", planted.low_rank(9, 6).draws, 1.5),
    ("generator: expected", planted.block_diagonal(9, 7, 3).draws, 3, "1"),
    ("num_draws: expected", planted.hidden_mode(RBM_5_4).draws, True),
    ("path: a .npz file", planted.write_planted, "model.mat", planted.low_rank(9, 6)),
    ("model: expected", planted.write_planted, "model.npz", RBM_5_4),
    ("path: expected", planted.read_planted, "nowhere.npz"),
    # variational
    *(
        ("rbm: an RBM, got str", method, "model")
        for method in (vi.mean_field_log_z, vi.tap_log_z, pair_free_energy.bethe_log_z)
    ),
    ("weights: shape", BinarySparseCoding, zeros(3), [0.0], [1.0]),
    ("hidden_bias: expected", BinarySparseCoding, zeros(3, 2), [0.0], [1.0] * 3),
    ("precision: a positive number", BinarySparseCoding, zeros(1, 1), [0.0], [0.0]),
    ("weights: finite", BinarySparseCoding, with_nan(1, 1), [0.0], [1.0]),
    (
        "model: at most 16 hidden units",
        BinarySparseCoding(zeros(1, 17), [0.0] * 17, [1.0]).log_prob,
        X[:, :1],
    ),
    ("v: 3 values in the last dimension", SPARSE.log_joint, X[:, :2], zeros(4)),
    ("num_samples: a whole number", SPARSE.sample, 0, seeded_generator(0)),
    ("rate: a positive number", LaplaceSparseCoding, [[1.0]], [0.0], 0.0, 1.0),
    ("v: shape", vi.mean_field, SPARSE, X[0]),
    (r"start: means in \[0, 1\]", vi.mean_field, SPARSE, X, full((6, 4), 2.0)),
    ("start: shape", vi.mean_field, SPARSE, X, zeros(3, 4)),
    ("max_sweeps: a whole number", partial(vi.mean_field, SPARSE, X, max_sweeps=0)),
    (r"step: a number in \(0, 1\]", vi.block_mean_field, SPARSE, X, 1.5),
    (
        "weights: no column of zeros",
        vi.map_codes,
        LaplaceSparseCoding([[0.0]], [0.0], 1.0, 1.0),
        X[:, :1],
    ),
    ("v: at least 3 vectors", vi.learn_dictionary, full((9, 2), 1.0), 3, 1.0, 1.0, 1, 0),
    ("visible_bias: shape", SigmoidBeliefNet, zeros(4, 3), zeros(3), zeros(3)),
    (
        "model: at most 12 hidden units",
        SigmoidBeliefNet(zeros(2, 13), zeros(2), zeros(13)).log_prob,
        zeros(1, 2),
    ),
    ("v: shape", NET.log_prob, zeros(4)),
    ("widths: at least two", Network, [3], seeded_generator(0)),
    ("model: one or two latent dimensions", VAE(5, 3, 7, seeded_generator(0)).log_prob_on_grid, V),
    # the tool
    *(
        (sentence, partial(call, **options))
        for call in (EVALUATE, COMPARE)
        for sentence, options in (
            ("steps: a whole number of at least 32, got 31", {"steps": 31}),
            ("steps: a whole number of at least 32", {"steps": 1.5}),
            ("steps: a whole number of at least 32", {"steps": True}),
            ("tempering_steps: a whole number of at least", {"steps": 64, "tempering_steps": 100}),
            ("tempering_steps: together with steps", {"tempering_steps": 9_000}),
        )
    ),
    *(
        ("model: an RBM, DBM or DBN, or what read_model returns", evaluation.evaluate, model, V)
        for model in ("m.npz", dict(RBM_5_4.tensors()), tuple(RBM_5_4.tensors().values()))
    ),
    ("first: an RBM, DBM or DBN", evaluation.compare, "a.npz", RBM_5_4, V),
    ("second: an RBM, DBM or DBN", evaluation.compare, RBM_5_4, "b.npz", V),
    ("models: an RBM, DBM or DBN", evaluation.evaluate_training, [RBM_5_4, "b.npz"], V),
    ("minutes: a positive number, got '2'", partial(EVALUATE, minutes="2")),
    ("test: numbers, got ndarray of type object", evaluation.evaluate, RBM_5_4, OBJECTS),
    *(
        ("seed: a whole number", run, seed)
        for run in (
            partial(estimators.ais_run, PATH, [0, 1], 5),
            partial(estimators.raise_run, PATH, V, [0, 1], 5),
            partial(estimators.csl_run, RBM_5_4, V, 5, 5),
        )
        for seed in (None, True, 1.0, seeded_generator(1))
    ),
    *(("rbm: an RBM, got", annealing.BaseRatePath, value) for value in (None, PATH, DBM_3_2)),
    ("dbm: a DBM, got RBM", annealing.DBMPath, RBM_5_4),
    ("dbn: a DBN, got RBM", annealing.DBNPath, RBM_5_4),
    ("rbm_b: an RBM, got NoneType", annealing.RBMPairPath, RBM_5_4, None),
    ("rbm: a model such as an RBM, got BaseRatePath", estimators.exact_log_z, PATH),
    *(
        (f"checkpoint: {expected}", partial(TEMPERING, checkpoint=file))
        for expected, file in (
            ("a path, got int", 5),
            ("a file, got the folder", "."),
            (r"a \.safetensors file, got x\.pt", "x.pt"),
            ("a folder that can be written to, got /dev/null", "/dev/null/x.safetensors"),
        )
    ),
    ("second: 5 visible units", evaluation.compare, RBM_5_4, random_rbm(7, 5, seed=1), V),
    ("width: at most 24 units, whose states fit into memory, got 30", numerics.all_states, 30),
    ("claimed_log_z, claimed_log_prob: one of the two, got both or none", AUDIT),
    (
        "claimed_log_z, claimed_log_prob: got both or none",
        partial(AUDIT, claimed_log_z=1.0, claimed_log_prob=1.0),
    ),
    ("tolerance: a number of", partial(AUDIT, claimed_log_z=1.0, tolerance=-1.0)),
    *(
        ("tolerance: a number of at least 0", partial(EVALUATE, tolerance=wrong))
        for wrong in (-1.0, NAN)
    ),
    *(
        ("models: a sequence of at least one", evaluation.evaluate_training, rbms, V)
        for rbms in ([], "RBM.h5")
    ),
    (
        r"test: expected shape \[any, 6\]",
        evaluation.evaluate_training,
        [RBM_5_4, random_rbm(6, 3, 1)],
        V,
    ),
    ("test: at least two images", evaluation.evaluate_training, [RBM_5_4], V[:1]),
    ("test: expected", evaluation.evaluate_training, [RBM_5_4], V[:, :3]),
    ("test: expected", evaluation.evaluate_training, [RBM_5_4], V * 0.5),
    ("train: expected", ALONG, V * 3.0),
    ("names: 1", partial(ALONG, names=["a", "b"])),
    ("minutes: expected", partial(ALONG, minutes=NAN)),
    ("models: an archive", CHECKPOINTS, []),
    ("path: a file, found none", CHECKPOINTS, ["a.npz", "b.npz"]),
    ("models: an archive of rbms, a folder, or at least two", CHECKPOINTS, ["a.npz"]),
    ("updates: none", partial(CHECKPOINTS, ["a.npz", "b.npz"], updates=[1])),
    # studies
    ("repeats: expected", partial(STUDY, budgets={2_000: 0})),
    ("profile: expected", known_models.known_models, "huge"),
    ("runs: at least two, got 1", tempering_runs.error_row, [{}], 0.0),
    (
        "tables: names among raise-table-1, .* got 'x'",
        lambda: list(open_brackets.open_brackets(get_profile("digits"), ["x"])),
    ),
    ("row: one of cd1-20, .*, got 'cd1-30'", training_paths.training_path, "cd1-30", 0),
    ("seed: expected", training_paths.training_path, "cd1-20", -1),
    ("v: expected", log_probability_store.log_unnormalized_run, DBM_3_2, [[0.5, 0, 1]], 30, 1),
    ("num_samples: expected", log_probability_store.log_unnormalized_run, DBM_3_2, EVERY_3, 0, 1),
    # records and players
    ("captions: one for each of at least one frame", FRAMES, [], []),
    ("captions: got 1 for 2 frames", FRAMES, [zeros(2, 64)] * 2, ["one"]),
    (r"frames: shape \[2, 64\]", FRAMES, [zeros(2, 63)], ["one"]),
    ("frames: shape", FRAMES, [zeros(2, 64), zeros(3, 64)], ["one", "two"]),
    *(
        (r"frames: values in \[0, 1\]", FRAMES, [full((1, 64), value)], ["one"])
        for value in (1.5, NAN)
    ),
    ("chains: at least one", chains.chain_player, {}, [], zeros(0), 1, ""),
    (
        r"chains: shape \[2, 2\]",
        chains.chain_player,
        {"a": ring(3)},
        ["0", "1"],
        full((2,), 0.5),
        1,
        "",
    ),
    (
        r"target: shape \[3\]",
        chains.chain_player,
        {"a": ring(3)},
        ["0", "1", "2"],
        full((2,), 0.5),
        1,
        "",
    ),
    ("runs: at least one", partial(some_traces, runs={})),
    ("runs: at least one update", partial(some_traces, runs=some_runs(0))),
    ("limits: two increasing numbers", partial(some_traces, limits=(0.0, -1.0))),
    ("means of step <0.5>: shape", partial(some_traces, exact=zeros(3))),
    (
        "visited: at least one step at two temperatures, got 0",
        tempering.tempering_player,
        some_visits(0),
        THRICE,
        "",
    ),
    (
        "visited: at least one step at two temperatures, got 1 at 1",
        tempering.tempering_player,
        [[0], [0]],
        [0.0],
        "",
    ),
    ("visited: shape", tempering.tempering_player, some_visits(), [0.0, 1.0], ""),
    *(
        (
            "visited: each temperature once in every row",
            tempering.tempering_player,
            [[0, 1], row],
            [0.0, 1.0],
            "",
        )
        for row in ([1, 1], [0, 2], [0, NAN])
    ),
    (
        "captions: one for each of at least two betas",
        particles.particle_run,
        "run",
        [0.0],
        [[0]],
        [[0.0]],
        ["a"],
    ),
    (
        "captions: got 1 for 2",
        particles.particle_run,
        "run",
        [0.0, 1.0],
        [[0], [1]],
        [[0.0], [0.0]],
        ["a"],
    ),
    (
        "log_weights: shape",
        particles.particle_run,
        "run",
        [0.0, 1.0],
        [[0], [1]],
        [[0.0, 0.0]] * 2,
        ["a", "b"],
    ),
    ("places: shape", particles.particle_run, "run", [0.0, 1.0], [[0]], [[0.0]], ["a", "b"]),
    ("runs: places from 0 to 4", particles.particle_player, [WALK], FLAT, FLAT, "", "AIS"),
    (
        "runs: at least one, all of one size",
        particles.particle_player,
        [WALK, LONGER],
        FLAT * 2,
        FLAT * 2,
        "",
        "AIS",
    ),
    ("runs: at least one, all of one size", particles.particle_player, [], FLAT, FLAT, "", "AIS"),
    ("target: shape", particles.particle_player, [WALK], FLAT, [0.0], "", "AIS"),
    ("steps: at least two", brackets.bracket_player, [1], [1.0], [0.0], 0.5, ""),
    ("steps: got 2, 1 and 2", brackets.bracket_player, [1, 2], [1.0], [0.0, 0.0], 0.5, ""),
    *(
        ("steps: increasing", brackets.bracket_player, steps, [1.0, 1.0], [0.0, 0.0], 0.5, "")
        for steps in ([2, 2], [0, 2])
    ),
    (
        "above: finite numbers",
        brackets.bracket_player,
        [1, 2],
        [(0, 1, 2), (0, math.inf, math.inf)],
        [(0, 0, 0)] * 2,
        0.5,
        "",
    ),
]


CASES += [
    (
        sentence if ": " in sentence else f"{sentence}: expected",
        partial(call, **{sentence.split(": ")[0]: value}),
    )
    for call, wrong in ONE_WRONG
    for sentence, values in wrong.items()
    for value in (values if isinstance(values, tuple) else (values,))
]


@pytest.mark.parametrize(
    ("sentence", "call", "arguments"),
    [(c[0], c[1], c[2:]) for c in CASES],
    ids=[c[0] for c in CASES],
)
def test_wrong_argument_is_named(sentence, call, arguments, tmp_path, monkeypatch):
    """In one line, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    name, message = sentence.split(": ", 1)
    with pytest.raises(InputError, match=f"^{re.escape(name)}.*: (?s:.*){message}") as raised:
        call(*arguments)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_an_array_too_many_is_named(tmp_path):
    """What lacks one is told in the words of `test_hostile_files`."""
    names = ("weights", "visible_bias", "hidden_bias", "lateral")
    (tmp_path / "model.npz").write_bytes(as_npz(dict.fromkeys(names, np.zeros((2, 2)))))
    with pytest.raises(InputError, match=r"^path: expected .*got hidden_bias, lateral, "):
        models.RBM.load(tmp_path / "model.npz")


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
