"""A model is read as what its file holds, in whatever format and under whatever names.

Or it is refused by the name of what is wrong. What is read has the parameters that the file holds,
to the last bit. Advice that is followed to the letter ends in that model or in a refusal.
"""

import gzip
import re
import shlex

import numpy as np
import pytest
import scipy.sparse
import skops.io
import torch
from evaluations import recorded
from sklearn.neural_network import BernoulliRBM
from writers import (
    as_hdf5,
    as_julia,
    as_mat,
    as_matlab_73,
    as_npy,
    as_npz,
    as_pt,
    as_rbms,
    as_safetensors,
    as_torch,
    rbms_update,
)

from boltzmann_likelihood.files import read_checkpoints, read_model
from paperlib.errors import InputError
from paperlib.models import DBM, DBN, RBM

RNG = np.random.default_rng(1)
D = 6
M = 4
K = 3
W = RNG.normal(0, 1, (D, M))
B = RNG.normal(0, 0.5, D)
A = RNG.normal(0, 0.5, M)
W2 = RNG.normal(0, 1, (M, K))
B2 = RNG.normal(0, 0.5, M)
A2 = RNG.normal(0, 0.5, K)
SQUARE = RNG.normal(0, 1, (D, D))
C = RNG.normal(0, 0.5, D)
IMAGES = RNG.integers(0, 2, (40, D)).astype(np.uint8)

MODEL = RBM(W, B, A)
TURNED = ("weights: [hidden, visible] in the file, transposed",)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


# ---- every format writes the same arrays


FORMATS = {
    "npz": as_npz,
    "mat": as_mat,
    "torch": as_torch,
    "HDF5": as_hdf5,
    "MATLAB 7.3": as_matlab_73,
    "safetensors": as_safetensors,
}
NAMES = {
    "ours": ("weights", "visible_bias", "hidden_bias"),
    "authors": ("vishid", "visbiases", "hidbiases"),
    "rbms": ("weight_matrix", "vbias", "hbias"),
    "short": ("W", "bv", "bh"),
    "a visible": ("W", "a", "b"),
    "a hidden": ("W", "b", "a"),
    "strangers": ("interactions", "one", "two"),
    "prefixed": ("rbm_weights", "rbm_visible_bias", "rbm_hidden_bias"),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
def test_one_rule_for_every_format(tmp_path, write, names, turned):
    """Names and the suffix tell nothing that shapes and the width of the images do not."""
    arrays = dict(zip(names, (W.T if turned else W, B[None], A), strict=True))
    path = tmp_path / "model.csv"
    for content in (write(arrays), gzip.compress(write(arrays))):
        path.write_bytes(content)
        read = read_model(path, width=lambda: D)
        assert read.rbm.checksum() == MODEL.checksum()
        roles = [
            f"{role}={name}"
            for role, name in zip(("weights", "visible", "hidden"), names, strict=True)
        ]
        roles[0] += ".T" if turned else ""
        notes = () if names == NAMES["ours"] and not turned else (f"read as {','.join(roles)}",)
        assert read.notes == (*(TURNED if turned else ()), *notes)


@pytest.mark.parametrize("seed", range(150))
def test_random_files(tmp_path, seed):
    """Whatever is accepted has the parameters that the file holds, and no array is left unused."""
    rng = np.random.default_rng(seed)
    visible, hidden = rng.integers(1, 6, 2)
    kinds = rng.choice(["<f2", "<f4", "<f8", "<i2"], 3)
    shapes = (visible, hidden), (visible,), (hidden,)
    values = [
        np.asarray(3 * rng.normal(size=s), kind) for s, kind in zip(shapes, kinds, strict=True)
    ]
    if rng.random() < 0.4:
        values[0] = values[0].T.copy()
    for number in (1, 2):
        shape = [(-1,), (1, -1), (-1, 1)][rng.integers(3)]
        values[number] = values[number].reshape(shape)
    write = list(FORMATS.values())[seed % len(FORMATS)]
    known = list(NAMES.values())
    names = known[rng.integers(len(known))]
    arrays = dict(zip(names, values, strict=True))
    harmless = ["W_momentum", "num_batches_tracked", "epoch", "vishidinc"]
    harmful = ["sigma", "log_std_features", "lateral", "A", "temperature", "more.weights"]
    spoilt = rng.random() < 0.4
    extra = rng.choice(harmful if spoilt else harmless)
    shape = [(), (visible,), (visible, hidden)][rng.integers(3)]
    if spoilt or rng.random() < 0.5:
        arrays[extra] = rng.normal(size=shape)
        # A number is no parameter, and matters only if it says that the model has other parts.
        number = shape == () and extra not in ("sigma", "log_std_features", "temperature")
        # As a tensor beside the others it is one, and refused unless its name is known.
        a_tensor = write in (as_torch, as_safetensors)
        spoilt = spoilt and not (number and not a_tensor)
    elif rng.random() < 0.3:
        arrays.pop(names[rng.integers(3)])
        spoilt = True
    order = map(str, rng.permutation(list(arrays)))
    path = tmp_path / "model"
    path.write_bytes(write({name: arrays[name] for name in order}))
    # A file that does not tell how a square matrix lies, which array is the matrix, or what is a
    # bias of one unit, may be refused.
    is_certain = visible != hidden and (
        min(visible, hidden) > 1 or (names[0] != "interactions" and extra not in harmful)
    )
    try:
        model = read_model(path, width=lambda: int(visible)).rbm
    except InputError as error:
        model = None
        refusal = str(error)
    if model is None:
        assert (spoilt or not is_certain, refusal.count("\n")) == (True, 0), refusal
        return
    assert not spoilt, arrays
    matrix, *biases = values
    matrix = matrix if matrix.shape == (visible, hidden) else matrix.T
    expected = matrix, *(bias.ravel() for bias in biases)
    for tensor, array in zip(model.tensors().values(), expected, strict=True):
        np.testing.assert_allclose(tensor, array.astype(float), rtol=1e-6)


# ---- models and their files

IN_SQUARE = RBM(SQUARE, B, C)
NO_VISIBLE = RBM(W, np.zeros(D), A)
NO_HIDDEN = RBM(W, B, np.zeros(M))
DBN_ = DBN([MODEL, RBM(W2, B2, A2)])
DBM_ = DBM(W, W2, B, A, A2)
POTTS = {
    "weights": RNG.normal(0, 1, (4, 3, 2)),
    "visible_bias": RNG.normal(0, 1, (4, 3)),
    "hidden_bias": np.zeros(2),
}
NAMED = {"W": W, "vbias": B, "hbias": A}
TENSORS = {"W": torch.tensor(W.T.copy()), "v_bias": torch.tensor(B), "h_bias": torch.tensor(A)}
AUTHORS_DBM = {
    "vishid": W,
    "hidpen": W2,
    "visbiases": B[None],
    "hidbiases": A[None],
    "penbiases": A2[None],
}
AUTHORS_DBN = {
    "vishid": W,
    "visbiases": B,
    "hidrecbiases": A,
    "hidpen": W2,
    "hidgenbiases": B2,
    "penrecbiases": A2,
}
ARRAYS = {
    model.called: {n: t.numpy() for n, t in model.tensors().items()} for model in (DBN_, DBM_)
}
STACK = {
    f"rbm{n}.{key}": value
    for n, layer in enumerate(DBN_.layers, 1)
    for key, value in layer.tensors().items()
}
LAYERS = [
    {"vishid": W, "visbiases": B, "hidbiases": A},
    {"vishid": W2, "visbiases": B2, "hidbiases": A2},
]
SKLEARN = BernoulliRBM(M)
SKLEARN.components_ = W.T
SKLEARN.intercept_visible_ = B
SKLEARN.intercept_hidden_ = A


def cell(items):
    cell_array = np.empty((1, len(items)), object)
    cell_array[0, :] = items
    return cell_array


SQUARE_FILE = as_torch({"W": SQUARE, "a": B, "b": C, "beta": B})
CHECKPOINT = as_pt({"model": TENSORS, "args": {"x": torch.ones(9), "y": torch.ones(8)}})


def keras(*layers):
    """As Keras writes layers, behind the empty group of an input."""

    def input_layer(file, name):
        file.create_group(name)

    return as_hdf5(
        {"model_weights/input_1": input_layer}
        | {
            f"model_weights/{layer}/{layer}/{name}:0": array
            for layer, arrays in layers
            for name, array in arrays.items()
        }
    )


def tensors(arrays):
    return {name: torch.as_tensor(array) for name, array in arrays.items()}


def suffixed(end, arrays=None):
    return {f"{name}{end}": array for name, array in (arrays or NAMED).items()}


SETTINGS = {
    "batch_size": 64,
    "binarize": True,
    "dataset": "mnist",
    "lr_schedule": {15: 0.005},
    "layers": [6, 4],
    "model_type": "RBM",
    "none": None,
    "fraction": np.float64(0.5),
    "steps": np.int64(3),
    "betas": (0.9, 0.999),
    "init_std": 0.01,
    "use_temperature": False,
    "device": torch.device("cpu"),
}
LIGHTNING = {
    "epoch": 9,
    "pytorch-lightning_version": "2.4.0",
    "state_dict": TENSORS,
    "lr_schedulers": [],
    "hparams_name": "kwargs",
    "loops": {"fit": {"x": 1}},
    "callbacks": {
        "ModelCheckpoint{'monitor': None}": {"path": "x.ckpt", "score": torch.tensor(1.0)}
    },
    "hyper_parameters": {"n_vis": D, "k": 1},
    "optimizer_states": [{"state": {0: {"step": torch.tensor(3.0), "exp_avg": TENSORS["W"]}}}],
}
# Files, what the user says, and the models in them.
READ = {
    # kinds of models
    "the authors' DBM": (as_mat(AUTHORS_DBM | {"epoch": 300.0}), "", DBM_),
    "the authors' DBN": (as_mat(AUTHORS_DBN), "", DBN_),
    "a struct of layers": (
        as_mat({"DN": {"L": cell(LAYERS), "nlayers": 2, "layersize": [4, 3], "err": [1.0]}}),
        "",
        DBN_,
    ),
    "a nested state dict": (as_pt({"rbm_am": TENSORS, "time": 3}), "", MODEL),
    "a checkpoint": (
        as_pt({"model_state_dict": TENSORS, "optimizer": {"state": {0: TENSORS}}, "epoch": 3}),
        "",
        MODEL,
    ),
    "nn.Linear inside": (
        as_pt({"up.weight": TENSORS["W"], "up.bias": torch.tensor(A), "vbias": torch.tensor(B)}),
        "",
        MODEL,
    ),
    "a list": (as_pt({"parameters": list(TENSORS.values())}), "", MODEL),
    "long doubles": (as_npz({"W": W.astype(np.longdouble), "vb": B, "hb": A}), "", MODEL),
    "records": (as_npz({"W": W.astype([("x", "f8")]), "vb": B, "hb": A}), "", MODEL),
    "skops": (skops.io.dumps(SKLEARN), "", MODEL),
    "turned weights of scikit-learn": (
        as_npz({"components_": W, "intercept_visible_": B, "intercept_hidden_": A}),
        "",
        MODEL,
    ),
    "sparse": (
        as_mat({"vishid": scipy.sparse.csc_matrix(W), "visbiases": B, "hidbiases": A}),
        "",
        MODEL,
    ),
    **{
        f"HDF5, {place}": (
            as_hdf5({f"{place}{name}": array for name, array in NAMED.items()}),
            "",
            MODEL,
        )
        for place in ("rbm.", "v1.0/", "v1.0/rbm.", "a/b.c/")
    },
    # what the user says
    "names": (SQUARE_FILE, "weights=W,visible=a,hidden=b,ignore=beta", IN_SQUARE),
    "names, the other way round": (
        SQUARE_FILE,
        "weights=W.T,visible=b,hidden=a,ignore=beta",
        RBM(SQUARE.T, C, B),
    ),
    "names, no biases": (
        SQUARE_FILE,
        "weights=W,visible=0,hidden=b,ignore=a,ignore=beta",
        RBM(SQUARE, np.zeros(D), C),
    ),
    "a group ignored": (CHECKPOINT, "ignore=args", MODEL),
    # what is ignored does not change what the model is
    **{
        f"{kind}, one array ignored": (
            as_npz(arrays | {"mean_image": B}),
            "ignore=mean_image",
            model,
        )
        for kind, arrays, model in (
            ("DBN", ARRAYS["a DBN"], DBN_),
            ("DBM", ARRAYS["a DBM"], DBM_),
            ("a stack", STACK, DBN_),
            ("the authors' DBM", AUTHORS_DBM, DBM_),
            ("the authors' DBN", AUTHORS_DBN, DBN_),
        )
    },
    "a group ignored beside a DBM": (
        as_pt({"model": tensors(ARRAYS["a DBM"]), "data": {"x": torch.tensor(IMAGES)}}),
        "ignore=data",
        DBM_,
    ),
    "an archive of rbms": (
        as_hdf5({"model_type": "BBRBM", "extra": C} | rbms_update((W, B, A), 3)),
        "ignore=extra",
        MODEL,
    ),
    # numbers and text are no parameters
    "settings": (
        as_pt(
            {"model_state_dict": TENSORS, "config": SETTINGS, "free_energy": -657.9, "epoch": 39}
        ),
        "",
        MODEL,
    ),
    "settings of Lightning": (as_pt(LIGHTNING), "", MODEL),
    "settings of MATLAB": (
        as_mat(NAMED | {"k": 1.0, "alphabet": "ABC", "accuracy": np.float32(0.5)}),
        "",
        MODEL,
    ),
    "settings in HDF5": (as_hdf5(NAMED | {"k": 1, "created": "today"}), "", MODEL),
    "settings beside a DBM": (as_mat(AUTHORS_DBM | {"accuracy": 0.5, "note": "x"}), "", DBM_),
    "one hidden unit": (
        as_mat({"W": W[:, :1], "vbias": B, "hbias": A[:1]}),
        "",
        RBM(W[:, :1], B, A[:1]),
    ),
    # words of training in names
    **{
        f"_{end}": (as_npz(suffixed(f"_{end}")), "", MODEL)
        for end in ("epoch100", "seed0", "lr0.01", "time=3", "loss0.5", "momentum0.9", "best_epoch")
    },
    **{
        f"group {group}": (as_pt({group: tensors(NAMED), "epoch": 10}), "", MODEL)
        for group in ("epoch_10", "seed_3", "chain0", "last_epoch")
    },
    "square, told by names": (
        as_npz(suffixed("_epoch9", {"vishid": SQUARE, "vbias": B, "hbias": C})),
        "",
        IN_SQUARE,
    ),
    "epochs within a group": (
        as_pt(
            {"epoch_10": tensors(NAMED | {"W_velocity": 0 * W, "chains": IMAGES[:5], "errors": C})}
        ),
        "",
        MODEL,
    ),
    "some of the names": (
        as_npz({"W_epoch10": W, "vbias": B, "hbias_epoch10": A, "W_velocity": W}),
        "",
        MODEL,
    ),
    "named": (
        as_npz({f"{n}_epoch_{e}": a + e for n, a in NAMED.items() for e in (0, 1)}),
        (
            "weights=W_epoch_0,visible=vbias_epoch_0,hidden=hbias_epoch_0,"
            "ignore=W_epoch_1,ignore=vbias_epoch_1,ignore=hbias_epoch_1"
        ),
        MODEL,
    ),
    "named momentum": (
        as_npz(suffixed("_momentum")),
        "weights=W_momentum,visible=vbias_momentum,hidden=hbias_momentum",
        MODEL,
    ),
    # Keras
    "Keras": (keras(("rbm", {"weights": W, "visible_bias": B, "hidden_bias": A})), "", MODEL),
    "Keras, square": (keras(("rbm", {"vishid": SQUARE, "vb": B, "hb": C})), "", IN_SQUARE),
    "Keras, nameless": (
        keras(("rbm", {"Variable": W.T, "Variable_1": B, "Variable_2": A})),
        "",
        MODEL,
    ),
    "Keras, a stack": (
        keras(
            *(
                (name, layer.tensors())
                for name, layer in zip(("rbm", "rbm_1"), DBN_.layers, strict=True)
            )
        ),
        "",
        DBN_,
    ),
    "Keras, a nameless stack": (
        keras(("RBM_1", {"x": W, "y": B, "z": A}), ("RBM_2", {"x": W2, "y": B2, "z": A2})),
        "",
        DBN_,
    ),
}


def model_from(folder, content, names=""):
    return read_model(write(folder, "model", content), names, lambda: D)


@pytest.mark.parametrize(("content", "names", "model"), READ.values(), ids=READ)
def test_read(tmp_path, content, names, model):
    read = model_from(tmp_path, content, names).rbm
    assert type(read) is type(model)
    assert read.checksum() == model.checksum()


NOTES = {
    "momentum": (
        NAMED | {"W_velocity": W, "chains": IMAGES[:5], "epoch": 3, "note": "x"},
        "",
        ["passed over, by name: W_velocity, chains", "not used: note = x"],
    ),
    "a group": (
        {**{f"model.{n}": a for n, a in NAMED.items()}, "optimizer.x": W, "optimizer.y": B},
        "",
        ["passed over, by name: optimizer"],
    ),
    "a factor": (
        NAMED | {"W_mask": W > 0},
        "ignore=W_mask",
        ["left out, as --names says: W_mask; if the energy has it, this is another model"],
    ),
    "an inverse temperature": (
        NAMED | {"beta": 2.0},
        "ignore=beta",
        ["left out, as --names says: beta; if the energy has it, this is another model"],
    ),
    "settings": (
        NAMED | {"k": 3, "note": "x", "epoch": 4, "loss": 0.5},
        "",
        ["not used: k = 3, note = x"],
    ),
}


@pytest.mark.parametrize(("arrays", "names", "notes"), NOTES.values(), ids=NOTES)
def test_what_is_dropped_is_said(tmp_path, arrays, names, notes):
    all_notes = model_from(tmp_path, as_npz(arrays), names).notes
    assert [note for note in all_notes if not note.startswith("read as weights=")] == notes


def inside():
    matrix = np.zeros((D + 1, M + 1))
    matrix[1:, 1:] = W
    matrix[1:, 0] = B
    matrix[0, 1:] = A
    return matrix


def julia(**changes):
    return as_julia((W, B, A), **changes)


SYMMETRIC = SQUARE + SQUARE.T
np.fill_diagonal(SYMMETRIC, 0)
LEFT_OUT = "another model: store it in a file of its own"
REFUSED = {
    # a part of a model is another model
    **{
        f"{part} ignored": (as_npz(arrays), f"ignore={part}", LEFT_OUT)
        for part, arrays in (
            ("hidpen", AUTHORS_DBM),
            ("penbiases", AUTHORS_DBM),
            ("hidgenbiases", AUTHORS_DBN),
            ("weights_2", ARRAYS["a DBM"]),
            ("layers.1", ARRAYS["a DBN"]),
            ("rbm2", STACK),
        )
    },
    "all but the bottom": (
        as_npz(AUTHORS_DBN),
        "ignore=hidpen,ignore=hidgenbiases,ignore=penrecbiases",
        LEFT_OUT,
    ),
    "the bottom by its names": (
        as_mat(AUTHORS_DBM),
        "weights=vishid,visible=visbiases,hidden=hidbiases",
        LEFT_OUT,
    ),
    "numbered layers": (
        as_npz({"W1": W, "W2": W2, "b0": B, "b1": A, "b2": A2}),
        "weights=W1,visible=b0,hidden=b1,ignore=W2,ignore=b2",
        LEFT_OUT,
    ),
    # factors
    **{
        f"{name}, a factor": (as_npz(NAMED | {name: value}), "", f"got {name}.* changes the model")
        for name, value in (
            ("beta", 2.0),
            ("T", 0.5),
            ("config.temperature", 0.5),
            ("W_mask", W > 0),
            ("scale", B),
            ("visible_offset", B),
            ("temp", np.ones(1)),
        )
    },
    **{
        f"{name}, of Gaussian units": (
            as_npz(NAMED | {name: value}),
            "",
            f"got {name}.* Gaussian units",
        )
        for name, value in (
            ("sigma", 1.0),
            ("log_std", B),
            ("visible_type", "gaussian"),
            ("config.units", "Gaussian-Bernoulli"),
        )
    },
    "Gaussian units in a stack": (
        as_npz(STACK | {"rbm1.sigma": np.full(D, 0.1), "num_layers": 2}),
        "",
        "Gaussian units",
    ),
    "units of another kind": (
        as_npz(NAMED | {"model_type": "IIRBM"}),
        "",
        "got model_type as well",
    ),
    "pruned": (
        as_npz({"W_orig": W, "W_mask": W > 0, "vbias": B, "hbias": A}),
        "",
        "W_mask .* changes the model",
    ),
    # the training alone is no model
    "an optimiser": (
        as_pt({"state": {n: {"momentum_buffer": t} for n, t in enumerate(TENSORS.values())}}),
        "",
        "say which is which with --names weights=NAME",
    ),
    "snapshots": (
        as_npz(
            {
                f"epoch_{e}.{n}": a
                for e in (1, 2)
                for n, a in {"vishid": SQUARE, "vb": B, "hb": C}.items()
            }
        ),
        "",
        "say which is which",
    ),
    # shapes
    "biases inside": (as_npy(inside()), "", r"first row and column .* A for it, numpy.savez"),
    "biases inside, turned": (
        as_npy(inside().T),
        "",
        r"first row and column .* A for its transpose, numpy.savez",
    ),
    "biases inside a square": (as_npz({"w": np.eye(D + 1)}), "", "first row and column"),
    "one vector for both layers": (
        as_npz({"W": W, "b": np.r_[B, A]}),
        "",
        "as many numbers as both layers have units",
    ),
    "one vector, square": (as_npz({"W": SQUARE, "b": B}), "", "--names visible=NAME,hidden=NAME"),
    "three vectors": (as_npz({"W": W, "a": B, "b": A, "c": B}), "", "say which is which"),
    # kinds of files and of models
    "Gaussian units": (
        as_torch({"W": W.T, "v_bias": B, "h_bias": A, "log_std_features": B}),
        "",
        "log_std_features .* Gaussian units",
    ),
    "a scale for a missing bias": (
        as_npz({"W": W, "bh": A, "sigma": B}),
        "",
        "sigma .* Gaussian units",
    ),
    "lateral weights": (
        as_npz({"W": W, "bv": B, "bh": A, "lateral": SQUARE}),
        "",
        r"got lateral \[6, 6\] as well",
    ),
    "another model's arrays": (as_mat(AUTHORS_DBM | {"labpen": W2}), "", "hidpen .*labpen"),
    "square": (
        as_torch({"W": SQUARE, "v_bias": B, "h_bias": C}),
        "",
        r"\[visible, hidden\] or \[hidden, visible\].*--names weights=W.T",
    ),
    "square and nameless biases": (
        as_npz({"weights": SQUARE, "a": B, "b": C}),
        "",
        "--names visible=a,hidden=b or the other way round",
    ),
    "an axis more": (
        as_npz({"weights": W[None], "visible_bias": B[None], "hidden_bias": A}),
        "",
        r"got weights \[1, 6, 4\]; leave out the first",
    ),
    "couplings and fields": (
        as_npz({"J": SYMMETRIC, "h": B}),
        "",
        r"got J \[6, 6\], symmetric with a zero diagonal as the couplings",
    ),
    "couplings alone": (as_npy(SYMMETRIC), "", "fully visible Boltzmann machine"),
    "couplings, called an RBM": (
        as_npz({"J": SYMMETRIC}),
        "weights=J,visible=0,hidden=0",
        "fully visible Boltzmann machine",
    ),
    "two RBMs that are no DBN": (as_pt({"rbm_am": TENSORS, "rbm_ph": TENSORS}), "", "expected"),
    "a pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        "",
        "a Git LFS pointer",
    ),
    "a web page": (b"<!DOCTYPE html><title>Not found</title>", "", "a web page"),
    "JLD2": (
        b"HDF5-based Julia Data Format, version 0.1.1".ljust(512, b"\0") + as_hdf5({"x": W}),
        "",
        "which is none of these",
    ),
    "Julia, version": (
        julia(rbm_hdf5_file_format_version="2.0.0"),
        "",
        "version 1.0.0 in .*, got 2.0.0",
    ),
    "Julia, kind": (
        julia(rbm_type="CenteredRBM"),
        "",
        "expected rbm_type RBM in .*, got CenteredRBM",
    ),
    "Julia, visible": (
        julia(visible_type="ReLU"),
        "",
        "Binary or Spin visible units in .*, got ReLU",
    ),
    "Julia, hidden": (julia(hidden_type="xReLU"), "", "hidden units in .*, got xReLU"),
    "Julia, no weights": (julia(weights=None), "", "expected data as weights in .*, got nothing"),
    "Julia, not turned": (julia(weights=W), "", r"fit each other in .*, got shapes \[6, 4\]"),
    "Julia, two parameters": (julia(hidden_par=np.zeros((4, 2))), "", "fit each other"),
    "Julia, type a number": (julia(rbm_type=3.0), "", "expected a string as rbm_type"),
    # what the user says is not so
    "a group besides": (
        CHECKPOINT,
        "",
        r"got args.x \[9\], args.y \[8\] as well.*--names ignore=args$",
    ),
    "all of a file in one hint": (
        as_npz(
            NAMED | {"x": np.ones(9), "y": np.ones(8), "more.a": np.ones(9), "more.b": np.ones(9)}
        ),
        "",
        "--names ignore=x,ignore=y,ignore=more$",
    ),
    "no such array": (
        SQUARE_FILE,
        "weights=X",
        "names: expected an array of the file as weights, got 'X'",
    ),
    "no role": (SQUARE_FILE, "W", "names: expected weights=NAME"),
    "twice": (SQUARE_FILE, "weights=W,weights=a", "each once"),
    "one besides": (SQUARE_FILE, "weights=W,visible=a,hidden=b", r"got beta \[6\] as well"),
}


@pytest.mark.parametrize(("content", "names", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, content, names, message):
    with pytest.raises(InputError, match=message) as refusal:
        model_from(tmp_path, content, names)
    assert "\n" not in str(refusal.value)
    assert "allow_pickle" not in str(refusal.value)


def followed(folder, content):
    """What comes of doing as the sentences say, word by word."""
    tried = []
    names = ""
    while names not in tried:
        tried.append(names)
        try:
            return model_from(folder, content, names).rbm
        except InputError as error:
            advice = re.search(r"--names ('[^']*'|\S+)", str(error))
            if advice:
                names = shlex.split(advice[1].rstrip(";,"))[0]
    return None


ADVISED = {
    "one vector, visible": ({"W": W, "b": B}, NO_HIDDEN),
    "one vector, hidden": ({"W": W, "b": A}, NO_VISIBLE),
    "a linear layer": ({"weight": W.T, "bias": A}, NO_VISIBLE),
    "one vector, a known name": ({"W": W.T, "vbias": B}, NO_HIDDEN),
    "one vector, and one more array": ({"W": W, "b": B, "test_result": np.ones(2)}, NO_HIDDEN),
    "names with spaces": ({"the W": W, "the b": B}, NO_HIDDEN),
    "none": ({"W": W}, RBM(W, np.zeros(D), np.zeros(M))),
    "none, turned": ({"W": W.T}, RBM(W, np.zeros(D), np.zeros(M))),
    "several arrays more": (
        NAMED | {"test_result": np.ones(2), "more.x": np.ones(9), "more.y": np.ones((9, 9))},
        MODEL,
    ),
    "an array beside a DBM": (AUTHORS_DBM | {"test_result": np.ones(2)}, DBM_),
    "an array beside a DBN": (AUTHORS_DBN | {"test_result": np.ones(2), "curve": np.ones(9)}, DBN_),
    "an array beside a stack": (STACK | {"curve": np.ones(9)}, DBN_),
    "label units": (AUTHORS_DBM | {"labpen": W2}, None),
    "a mask": (NAMED | {"W_mask": W > 0}, None),
    "offsets": (NAMED | {"ov": B, "oh": A}, None),
    "weights of a norm": ({"weight_g": A[:, None], "weight_v": W.T, "vbias": B, "hbias": A}, None),
    "numbered layers": ({"W1": W, "W2": W2, "b0": B, "b1": A, "b2": A2}, None),
    "numbered layers, known names": (
        {"vishid": W, "vbias": B, "hbias": A, "W2": W2, "b2": A2},
        None,
    ),
    "biases inside": ({"w": inside()}, None),
    "one vector, square": ({"W": SQUARE, "b": B}, None),
    "one vector for both": ({"W": W, "b": np.r_[B, A]}, None),
    "snapshots": (suffixed("_epoch_1") | suffixed("_epoch_2"), None),
}


@pytest.mark.parametrize(("arrays", "model"), ADVISED.values(), ids=ADVISED)
def test_advice_leads_to_the_model_or_nowhere(tmp_path, arrays, model):
    read = followed(tmp_path, as_npz(arrays))
    assert (read is None) == (model is None), read
    if read is not None:
        assert read.checksum() == model.checksum()


# ---- files that are named one by one


PLACES = {
    "T = 2.21": ("Weights/T = 2.21", "Vis Biases/T = 2.21", "Hid Biases/T = 2.21"),
    "epochs": ("epoch_3/W/x", "epoch_3/vbias/x", "epoch_3/hbias/x"),
    "two of one name": ("a/one", "b/one", "c/two"),
    "dots": ("W_lr0.01", "vbias_lr0.01", "hbias_lr0.01"),
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_files_of_one_name(tmp_path, places):
    files = [tmp_path / f"{place}.npy" for place in places]
    for file, array in zip(files, NAMED.values(), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, array)
    read = read_model(",".join(map(str, files)), width=lambda: D)
    assert read.rbm.checksum() == MODEL.checksum()
    with pytest.raises(InputError, match="expected different files"):
        read_model(f"{files[0]},{files[1]},{files[1]}", width=lambda: D)


@pytest.mark.parametrize("name", ["W", "T = 2.21", "W_epoch3", "a.b"])
def test_a_lone_array_has_the_name_of_its_file(tmp_path, name):
    path = write(tmp_path, f"{name}.npy", as_npy(SQUARE))
    with pytest.raises(InputError, match=re.escape(f"weights={name}.T")):
        read_model(path, "visible=0,hidden=0", lambda: D)
    for end, weights in (("", SQUARE), (".T", SQUARE.T)):
        read = read_model(path, f"weights={name}{end},visible=0,hidden=0", lambda: D)
        assert read.rbm.checksum() == RBM(weights, np.zeros(D), np.zeros(D)).checksum()


# ---- training


def test_checkpoints_of_lightning_and_their_kind(tmp_path):
    for number, suffix in ((9, "ckpt"), (10, "ckpt"), (11, "th")):
        write(tmp_path, f"epoch={number}.{suffix}", as_pt(LIGHTNING | {"epoch": number}))
    checkpoints = read_checkpoints([tmp_path], width=lambda: D)
    assert list(checkpoints) == ["epoch=9.ckpt", "epoch=10.ckpt", "epoch=11.th"]
    assert {one.rbm.checksum() for one in checkpoints.values()} == {MODEL.checksum()}


def test_training_takes_the_options_that_it_advises(tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    np.save("grey.npy", RNG.random((20, D)))
    for number in (1, 2):
        np.savez(f"e{number}.npz", W=SQUARE, first=B, second=C)
    line = "training e1.npz e2.npz --data grey.npy"
    message = ""
    for _ in range(3):
        message = refusal(line)[0]
        advised = re.findall(r"--(?:names|threshold) (?:T|\S+)", message)
        line += f" {advised[0]}".replace(" T", " 0.5")
        if "--threshold" in line:
            break
    output, stored = recorded(line)
    assert "2 " in output
    assert all(option in stored["run"]["repeat"] for option in ("--names", "--threshold"))


# ---- kinds that are gone


def older(arrays):
    return {name.replace("/params", ""): array for name, array in rbms_update(arrays, 7).items()}


POTTS_ARRAYS = [*POTTS.values()]
OF_JULIA = {
    "weights": POTTS["weights"].transpose(2, 0, 1),
    "visible_par": POTTS["visible_bias"][..., None],
    "hidden_par": np.zeros((2, 1)),
}
GONE = {
    "our names": (as_npz(POTTS), ""),
    "PyTorch": (as_torch(POTTS), ""),
    "safetensors": (as_safetensors(POTTS), ""),
    "in a group": (as_pt({"model": tensors(POTTS), "epoch": 3}), ""),
    "letters beside it": (as_npz(POTTS | {"alphabet": np.array(list("ACG"))}), ""),
    "an array ignored": (as_npz(POTTS | {"mean_image": B}), "ignore=mean_image"),
    "a part ignored": (as_npz(POTTS), "ignore=visible_bias"),
    "the weights alone": (as_npz({"W": POTTS["weights"]}), ""),
    "other names": (
        as_npz({"x": POTTS["weights"], "fields": POTTS["visible_bias"], "y": np.zeros(2)}),
        "",
    ),
    "weights by their name": (as_npz(POTTS), "weights=weights"),
    "rbms": (as_rbms(POTTS_ARRAYS, "PBRBM"), ""),
    "rbms, older": (as_hdf5({"model_type": "PBRBM"} | older(POTTS_ARRAYS)), ""),
    "rbms, oldest": (
        as_hdf5(older([POTTS["weights"].swapaxes(0, 1), POTTS["visible_bias"].T, np.zeros(2)])),
        "",
    ),
    "Julia": (julia(visible_type="Potts", **OF_JULIA), ""),
    "Julia, spins": (julia(visible_type="Potts", hidden_type="Spin", **OF_JULIA), ""),
    "Julia, sites in two axes": (
        julia(
            visible_type="Potts",
            **OF_JULIA
            | {
                "weights": OF_JULIA["weights"].reshape(2, 2, 2, 3),
                "visible_par": OF_JULIA["visible_par"].reshape(2, 2, 3, 1),
            },
        ),
        "",
    ),
}


@pytest.mark.parametrize(("content", "names"), GONE.values(), ids=GONE)
def test_kinds_that_are_gone(tmp_path, content, names):
    """The sentence names the kind and says what reads it."""
    with pytest.raises(InputError) as refusal:
        model_from(tmp_path, content, names)
    message = str(refusal.value)
    assert re.fullmatch(
        r"path: expected a model (in \S+: expected a model of binary units|of binary units in \S+),"
        r" got a Potts RBM \[L=4, q=3\]: "
        "only RBMs, DBMs and DBNs of binary units are read; version 0.4 of this program reads it",
        message,
    ), message


def test_an_rbm_may_have_symmetric_weights(tmp_path):
    """And an array of three axes beside it, as long as it has its own weights."""
    arrays = {"vishid": SYMMETRIC, "vb": B, "hb": C}
    assert model_from(tmp_path, as_npz(arrays)).rbm.checksum() == RBM(SYMMETRIC, B, C).checksum()
    samples = NAMED | {"samples_epoch": np.zeros((5, D, D))}
    assert model_from(tmp_path, as_npz(samples)).rbm.checksum() == MODEL.checksum()
