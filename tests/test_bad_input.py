"""Wrong input: a ValueError that names the argument, what was expected and what came, before any work starts."""

import math
import re

import numpy as np
import pytest
import torch
from enumeration import random_rbm

from boltzmann_companion.profiles import get_profile
from boltzmann_companion.recipes import load_model, recipe
from paperlib.annealing import (
    BaseRatePath,
    RBMPairPath,
    salakhutdinov_murray_betas,
    uniform_betas,
)
from paperlib.datasets import base_rate_bias, binarize, binary_images, load_digits
from paperlib.estimators import (
    ais,
    ais_in_shards,
    exact_hidden_samples,
    exact_log_z,
    importance_sampling,
)
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import RBM, log_z_lower_bound

RBM_5_4 = random_rbm(5, 4, seed=1)
PATH = BaseRatePath(RBM_5_4)
WIDE = RBM(torch.zeros(40, 30), torch.zeros(40), torch.zeros(30))
DATA = torch.zeros(4, 5, dtype=torch.uint8)
NAN = float("nan")


def with_nan(*shape):
    tensor = torch.zeros(*shape)
    tensor.view(-1)[0] = NAN
    return tensor


# (what is called, the message's beginning, what else it must say)
CASES = {
    "weights not numbers": (lambda: RBM("abc", [0], [0]), "weights", "array of numbers"),
    "weights in one dimension": (
        lambda: RBM(torch.zeros(5), torch.zeros(5), torch.zeros(4)),
        "weights",
        r"\[5\]",
    ),
    "weights empty": (
        lambda: RBM(torch.zeros(5, 0), torch.zeros(5), torch.zeros(0)),
        "weights",
        r"\[5, 0\]",
    ),
    "weights complex": (
        lambda: RBM(torch.zeros(2, 2, dtype=torch.cfloat), [0, 0], [0, 0]),
        "weights",
        "real",
    ),
    "weights NaN": (
        lambda: RBM(with_nan(5, 4), torch.zeros(5), torch.zeros(4)),
        "weights",
        "1 NaN or infinite of 20",
    ),
    "weights infinite": (
        lambda: RBM(np.full((2, 2), np.inf), [0, 0], [0, 0]),
        "weights",
        "4 NaN or infinite",
    ),
    "ragged weights": (lambda: RBM([[1.0], [1.0, 2.0]], [0, 0], [0]), "weights", "list"),
    "biases exchanged": (
        lambda: RBM(torch.zeros(5, 4), torch.zeros(4), torch.zeros(5)),
        "visible_bias",
        r"\[5\], got \[4\]",
    ),
    "hidden bias too long": (
        lambda: RBM(torch.zeros(5, 4), torch.zeros(5), torch.zeros(5)),
        "hidden_bias",
        r"\[4\], got \[5\]",
    ),
    "bias NaN": (
        lambda: RBM(torch.zeros(5, 4), with_nan(5), torch.zeros(4)),
        "visible_bias",
        "NaN",
    ),
    "v of another width": (
        lambda: RBM_5_4.log_unnormalized(torch.zeros(3, 4).double()),
        "v",
        "expected 5 values",
    ),
    "h of another width": (
        lambda: RBM_5_4.log_unnormalized_hidden(torch.zeros(5).double()),
        "h",
        "expected 4 values",
    ),
    "h of another width, flipped": (
        lambda: RBM_5_4.log_unnormalized_flips(torch.zeros(5).double()),
        "h",
        "expected 4 values",
    ),
    "base rates too short": (
        lambda: BaseRatePath(RBM_5_4, torch.zeros(4)),
        "visible_bias",
        r"\[5\], got \[4\]",
    ),
    "base rates infinite": (
        lambda: BaseRatePath(RBM_5_4, torch.full((5,), math.inf)),
        "visible_bias",
        "5 NaN or infinite",
    ),
    "pair of other widths": (
        lambda: RBMPairPath(RBM_5_4, random_rbm(6, 4, seed=1)),
        "rbm_b",
        "num_visible 5 .* got 6",
    ),
    "pair of other types": (
        lambda: RBMPairPath(RBM_5_4, RBM_5_4.to(dtype=torch.float32)),
        "rbm_b",
        "float64",
    ),
    "pair burn-in": (
        lambda: RBMPairPath(RBM_5_4, RBM_5_4, burn_in=0),
        "burn_in",
        "at least 1, got 0",
    ),
    "pair start not binary": (
        lambda: ais(RBMPairPath(RBM_5_4, RBM_5_4, lambda n, g: torch.full((n, 5), 0.5)), [0, 1], 3),
        "sample_a",
        "0.5",
    ),
    "pair start of wrong shape": (
        lambda: ais(RBMPairPath(RBM_5_4, RBM_5_4, lambda n, g: torch.zeros(n, 4)), [0, 1], 3),
        "sample_a",
        r"\[3, 5\]",
    ),
    "betas not from 0": (lambda: ais(PATH, [0.1, 1], 10), "betas", "from 0 to 1, got 0.1 first"),
    "betas not to 1": (lambda: ais(PATH, [0, 0.9], 10), "betas", "0.9 last"),
    "betas unsorted": (lambda: ais(PATH, [0, 0.7, 0.3, 1], 10), "betas", "0.7 then 0.3 at index 2"),
    "betas repeated": (lambda: ais(PATH, [0, 0.5, 0.5, 1], 10), "betas", "strictly increasing"),
    "betas with NaN": (lambda: ais(PATH, [0, NAN, 1], 10), "betas", "NaN"),
    "one beta": (lambda: ais(PATH, [0.0], 10), "betas", "at least two"),
    "betas in two dimensions": (lambda: ais(PATH, torch.zeros(2, 2), 10), "betas", r"\[2, 2\]"),
    "betas as text": (lambda: ais(PATH, "uniform", 10), "betas", "str|betas"),
    "K = 0": (lambda: uniform_betas(0), "num_steps", "at least 1, got 0"),
    "K not whole": (lambda: uniform_betas(2.5), "num_steps", "2.5"),
    "schedule fraction": (lambda: salakhutdinov_murray_betas(0), "fraction", r"\(0, 1\], got 0"),
    "no chains": (lambda: ais(PATH, [0, 1], 0), "num_chains", "at least 1, got 0"),
    "negative chains": (lambda: ais(PATH, [0, 1], -5), "num_chains", "got -5"),
    "chains not whole": (lambda: ais(PATH, [0, 1], 10.0), "num_chains", "got 10.0"),
    "no samples": (lambda: importance_sampling(PATH, 0), "num_chains", "at least 1"),
    "generator is a seed": (
        lambda: ais(PATH, [0, 1], 10, 42),
        "generator",
        "torch.Generator or None, got int",
    ),
    "weights overflow": (
        lambda: ais(
            BaseRatePath(RBM(torch.full((5, 4), 3e38), torch.zeros(5), torch.zeros(4))), [0, 1], 3
        ),
        "path",
        "finite log-weights",
    ),
    "enumeration too large": (lambda: exact_log_z(WIDE), "rbm", r"2\^30 = 1.1e\+09 states"),
    "enumeration of more states than a float counts": (
        lambda: exact_log_z(RBM(torch.zeros(1500, 1100), torch.zeros(1500), torch.zeros(1100))),
        "rbm",
        r"1500 visible and 1100 hidden: 2\^1100 states",
    ),
    "half precision": (
        lambda: RBM_5_4.to(dtype=torch.float16),
        "dtype",
        "torch.float32 or .*float16",
    ),
    "whole numbers as a model's type": (
        lambda: RBM_5_4.to(dtype=torch.int32),
        "dtype",
        "torch.float32 or .*int32",
    ),
    "exact samples too large": (lambda: exact_hidden_samples(WIDE, 10), "rbm", r"at most 25 units"),
    "exact samples of a wide model": (
        lambda: exact_hidden_samples(RBM_5_4.transposed(), 10),
        "rbm",
        "hidden as visible",
    ),
    "no exact samples": (lambda: exact_hidden_samples(RBM_5_4, 0), "num_samples", "at least 1"),
    "training data grey": (
        lambda: train_rbm(torch.full((4, 5), 0.3), ContrastiveDivergence(2, 1), 0),
        "train",
        "0.3",
    ),
    "training data NaN": (
        lambda: train_rbm(with_nan(4, 5), ContrastiveDivergence(2, 1), 0),
        "train",
        "nan",
    ),
    "training data empty": (
        lambda: train_rbm(torch.zeros(0, 5), ContrastiveDivergence(2, 1), 0),
        "train",
        r"\[0, 5\]",
    ),
    "training data in one dimension": (
        lambda: train_rbm(torch.zeros(5), ContrastiveDivergence(2, 1), 0),
        "train",
        r"\[5\]",
    ),
    "no hidden units": (lambda: ContrastiveDivergence(0, 1), "num_hidden", "at least 1"),
    "no epochs": (lambda: ContrastiveDivergence(2, 0), "epochs", "at least 1"),
    "no CD steps": (lambda: ContrastiveDivergence(2, 1, cd_steps=0), "cd_steps", "at least 1"),
    "learning rate": (
        lambda: ContrastiveDivergence(2, 1, learning_rate=-1),
        "learning_rate",
        "positive number, got -1",
    ),
    "momentum": (
        lambda: ContrastiveDivergence(2, 1, final_momentum=1.0),
        "final_momentum",
        r"\[0, 1\)",
    ),
    "weight cost": (lambda: ContrastiveDivergence(2, 1, weight_cost=NAN), "weight_cost", "nan"),
    "intensities above 1": (lambda: binarize(torch.full((2, 2), 255.0), 0), "images", "0, 1.*255"),
    "intensities NaN": (lambda: binarize(with_nan(2, 2), 0), "images", "NaN"),
    "no images": (lambda: binarize(torch.zeros(0, 4), 0), "images", "at least one"),
    "base rates of 255": (lambda: base_rate_bias(torch.full((2, 2), 255.0)), "train", "255"),
    "base rates of nothing": (lambda: base_rate_bias(torch.zeros(0, 4)), "train", r"\[0, 4\]"),
    "base rates without smoothing": (
        lambda: base_rate_bias(DATA, pseudo_on=0),
        "pseudo_on, pseudo_off",
        "5 always off",
    ),
    "base rates always on": (
        lambda: base_rate_bias(torch.ones(3, 2), pseudo_on=0),
        "pseudo_on, pseudo_off",
        "2 pixels are always on",
    ),
    "starts of a bound in one dimension": (
        lambda: log_z_lower_bound(RBM_5_4, torch.zeros(5)),
        "visible_starts",
        r"\[5\]",
    ),
    "starts of a bound NaN": (
        lambda: log_z_lower_bound(RBM_5_4, with_nan(3, 5)),
        "visible_starts",
        "1 NaN or infinite of 15",
    ),
    "a model in the place of a path, in shards": (
        lambda: ais_in_shards(RBM_5_4, [0, 1], 3, 1, "unused"),
        "path",
        "expected an AnnealingPath, such as BaseRatePath.rbm., got RBM",
    ),
    "negative smoothing": (
        lambda: base_rate_bias(DATA, pseudo_on=-1),
        "pseudo_on",
        "at least 0, got -1",
    ),
    "split of the digits": (lambda: load_digits(test_fraction=1.0), "test_fraction", "1.0"),
    "unknown profile": (
        lambda: get_profile("imagenet"),
        "profile",
        "digits, paper, got 'imagenet'",
    ),
    "unknown model": (lambda: recipe("mnist-cd7-3"), "model_id", "mnist-cd1-20"),
    "unknown model to load": (lambda: load_model("x", torch.float64), "model_id", "got 'x'"),
    "unknown data set": (
        lambda: binary_images("cifar"),
        "dataset",
        "digits, mnist, omniglot, mnist-2008, got 'cifar'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_argument_is_named(case):
    call, name, message = CASES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(name)}.*: (?s:.*){message}"):
        call()


@pytest.mark.parametrize("name", ["model.pt", "model"])
def test_unknown_format_is_not_written(tmp_path, name):
    with pytest.raises(ValueError, match=r"^path: expected a .safetensors, .npz or .mat file"):
        RBM_5_4.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_overflow_the_storage_type_are_not_written(tmp_path):
    huge = RBM(torch.full((2, 2), 1e6), torch.zeros(2), torch.zeros(2))
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
