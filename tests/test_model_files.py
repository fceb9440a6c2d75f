"""A model is read as what its file holds, in whatever format and under whatever names, or it is refused by the name of what is wrong.

What is read has the parameters that the file holds, to the last bit.
"""

import gzip

import numpy as np
import pytest
import skops.io
import torch
from evaluations import recorded
from sklearn.neural_network import BernoulliRBM
from writers import (
    as_hdf5,
    as_idx,
    as_julia,
    as_mat,
    as_matlab_73,
    as_npy,
    as_npz,
    as_pt,
    as_safetensors,
    as_torch,
    rbms_update,
)

from paperlib.datasets import binarize
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.evaluation import read_images, read_model, read_sequences
from paperlib.models import DBM, DBN, RBM, PottsRBM

RNG = np.random.default_rng(1)
D, M, K = 6, 4, 3
W, B, A = RNG.normal(0, 1, (D, M)), RNG.normal(0, 0.5, D), RNG.normal(0, 0.5, M)
W2, A2 = RNG.normal(0, 1, (M, K)), RNG.normal(0, 0.5, K)
SQUARE = RNG.normal(0, 1, (D, D))
C = RNG.normal(0, 0.5, D)
IMAGES = RNG.integers(0, 2, (40, D)).astype(np.uint8)


MODEL = RBM(W, B, A)
DEEP = DBN([MODEL, RBM(W2, A, A2)])
TURNED = ("weights: [hidden, visible] in the file, transposed",)


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
    """Names tell nothing that shapes and the width of the images do not; the suffix tells nothing at all."""
    arrays = dict(zip(names, (W.T if turned else W, B[None], A), strict=True))
    path = tmp_path / "model.csv"
    for content in (write(arrays), gzip.compress(write(arrays))):
        path.write_bytes(content)
        found = read_model(path, width=lambda: D)
        assert found.rbm.checksum() == MODEL.checksum()
        assert found.notes == (TURNED if turned else ())


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
        # A number is no parameter, and spoils a model only if it says that the arrays are not all of it.
        number = shape == () and extra not in ("sigma", "log_std_features", "temperature")
        spoilt = spoilt and not number
    elif rng.random() < 0.3:
        arrays.pop(names[rng.integers(3)])
        spoilt = True
    order = map(str, rng.permutation(list(arrays)))
    write = list(FORMATS.values())[rng.integers(len(FORMATS))]
    path = tmp_path / "model"
    path.write_bytes(write({name: arrays[name] for name in order}))
    # A file that does not tell how a square matrix lies, which array is the matrix, or what is a bias of one unit, may be refused.
    told = visible != hidden and (
        min(visible, hidden) > 1 or (names[0] != "interactions" and extra not in harmful)
    )
    try:
        model = read_model(path, width=lambda: int(visible)).rbm
    except InputError as error:
        model, refusal = None, str(error)
    if model is None:
        assert (spoilt or not told, refusal.count("\n")) == (True, 0), refusal
        return
    assert not spoilt, arrays
    matrix, *biases = values
    matrix = matrix if matrix.shape == (visible, hidden) else matrix.T
    expected = matrix, *(bias.ravel() for bias in biases)
    for tensor, array in zip(model.tensors().values(), expected, strict=True):
        np.testing.assert_allclose(tensor, array.astype(float), rtol=1e-6)


# ---- kinds of models


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


AUTHORS_DBM = {"vishid": W, "hidpen": W2, "visbiases": B[None], "hidbiases": A[None]} | {
    "penbiases": A2[None]
}
LAYERS = [{"vishid": W, "visbiases": B, "hidbiases": A}, {"vishid": W2, "visbiases": A, "hidbiases": A2}]  # fmt: skip


def cell(items):
    found = np.empty((1, len(items)), object)
    found[0, :] = items
    return found


TENSORS = {"W": torch.tensor(W.T.copy()), "v_bias": torch.tensor(B), "h_bias": torch.tensor(A)}
LINEAR = {"up.weight": TENSORS["W"], "up.bias": torch.tensor(A), "vbias": torch.tensor(B)}
SKLEARN = BernoulliRBM(M)
SKLEARN.components_, SKLEARN.intercept_visible_, SKLEARN.intercept_hidden_ = W.T, B, A
# Files and the models in them.
KINDS = {
    "the authors' DBM": (as_mat(AUTHORS_DBM | {"epoch": 300.0}), DBM(W, W2, B, A, A2)),
    "the authors' DBN": (
        as_mat(
            {"vishid": W, "visbiases": B, "hidrecbiases": A}
            | {"hidpen": W2, "hidgenbiases": A, "penrecbiases": A2}
        ),
        DEEP,
    ),
    "a struct of layers": (
        as_mat({"DN": {"L": cell(LAYERS), "nlayers": 2, "layersize": [4, 3], "err": [1.0]}}),
        DEEP,
    ),
    "a nested state dict": (as_pt({"rbm_am": TENSORS, "time": 3}), MODEL),
    "a checkpoint": (
        as_pt({"model_state_dict": TENSORS, "optimizer": {"state": {0: TENSORS}}, "epoch": 3}),
        MODEL,
    ),
    "nn.Linear inside": (as_pt(LINEAR), MODEL),
    "a list": (as_pt({"parameters": list(TENSORS.values())}), MODEL),
    "long doubles": (as_npz({"W": W.astype(np.longdouble), "vb": B, "hb": A}), MODEL),
    "records": (as_npz({"W": W.astype([("x", "f8")]), "vb": B, "hb": A}), MODEL),
    "skops": (skops.io.dumps(SKLEARN), MODEL),
    "turned weights of scikit-learn": (
        as_npz({"components_": W, "intercept_visible_": B, "intercept_hidden_": A}),
        MODEL,
    ),
}


@pytest.mark.parametrize(("content", "model"), KINDS.values(), ids=KINDS)
def test_kinds(tmp_path, content, model):
    found = read_model(write(tmp_path, "model.h5", content), width=lambda: D).rbm
    assert type(found) is type(model)
    assert found.checksum() == model.checksum()


def test_three_files_of_numpy(tmp_path):
    for name, array in (("rbm_weights", W), ("rbm_visible_bias", B[None]), ("rbm_hidden_bias", A)):
        np.save(tmp_path / f"{name}.npy", array)
    files = ",".join(str(tmp_path / f"rbm_{name}.npy") for name in ("weights", "visible_bias", "hidden_bias"))  # fmt: skip
    assert read_model(files).rbm.checksum() == MODEL.checksum()


@pytest.mark.parametrize("states_first", [True, False])
def test_the_oldest_archives_of_rbms(tmp_path, states_first):
    """They do not say which kind of model it is; categorical weights add up to zero over the states, which come first."""
    weights, fields = RNG.normal(0, 1, (3, 2, M)), RNG.normal(0, 1, (3, 2))
    weights -= weights.mean(0)
    stored = weights if states_first else weights + 1
    older = rbms_update((stored, fields, A), 7)
    older = {name.replace("/params", ""): array for name, array in older.items()}
    path = write(tmp_path, "old.h5", as_hdf5(older))
    if not states_first:
        with pytest.raises(InputError, match="expected data as model_type"):
            read_model(path)
        return
    found = read_model(path)
    assert found.rbm.checksum() == PottsRBM(weights.swapaxes(0, 1), fields.T, A).checksum()
    assert "no model_type" in found.notes[0]


def julia(**changes):
    return as_julia((W, B, A), **changes)


REFUSED = {
    "Gaussian units": (as_torch({"W": W.T, "v_bias": B, "h_bias": A, "log_std_features": B}), "log_std_features .* Gaussian units"),
    "a scale for a missing bias": (as_npz({"W": W, "bh": A, "sigma": B}), "sigma .* Gaussian units"),
    "lateral weights": (as_npz({"W": W, "bv": B, "bh": A, "lateral": SQUARE}), r"got lateral \[6, 6\] as well"),
    "another model's arrays": (as_mat(AUTHORS_DBM | {"labpen": W2}), "hidpen .*labpen"),
    "square": (as_torch({"W": SQUARE, "v_bias": B, "h_bias": C}), r"\[visible, hidden\] or \[hidden, visible\].*--names weights=W.T"),
    "square and nameless biases": (as_npz({"weights": SQUARE, "a": B, "b": C}), "--names visible=a,hidden=b or the other way round"),
    "one site": (as_npz({"weights": W[None], "visible_bias": B[None], "hidden_bias": A}), r"got \[1, 6, 4\]"),
    "two RBMs that are no DBN": (as_pt({"rbm_am": TENSORS, "rbm_ph": TENSORS}), "expected"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
    "a web page": (b"<!DOCTYPE html><title>Not found</title>", "a web page"),
    "JLD2": (b"HDF5-based Julia Data Format, version 0.1.1".ljust(512, b"\0") + as_hdf5({"x": W}), "a JLD2 file: write"),
    "Julia, version": (julia(rbm_hdf5_file_format_version="2.0.0"), "version 1.0.0 in .*, got 2.0.0"),
    "Julia, kind": (julia(rbm_type="CenteredRBM"), "expected rbm_type RBM in .*, got CenteredRBM"),
    "Julia, visible": (julia(visible_type="ReLU"), "Binary or Spin or Potts visible units in .*, got ReLU"),
    "Julia, hidden": (julia(hidden_type="xReLU"), "hidden units in .*, got xReLU"),
    "Julia, no weights": (julia(weights=None), "expected data as weights in .*, got nothing"),
    "Julia, not turned": (julia(weights=W), r"fit each other in .*, got shapes \[6, 4\]"),
    "Julia, two parameters": (julia(hidden_par=np.zeros((4, 2))), "fit each other"),
    "Julia, type a number": (julia(rbm_type=3.0), "expected a string as rbm_type"),
}  # fmt: skip


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".h5", ""])
@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_by_name(tmp_path, content, message, suffix):
    with pytest.raises(InputError, match=message) as refusal:
        read_model(write(tmp_path, f"m{suffix}", content), width=lambda: D)
    assert "\n" not in str(refusal.value)
    assert "allow_pickle" not in str(refusal.value)


def test_names_that_the_user_gives(tmp_path):
    square = write(tmp_path, "square.pt", as_torch({"W": SQUARE, "a": B, "b": C, "beta": B}))
    for text, expected in (
        ("weights=W,visible=a,hidden=b,ignore=beta", (SQUARE, B, C)),
        ("weights=W.T,visible=b,hidden=a,ignore=beta", (SQUARE.T, C, B)),
        ("weights=W,visible=0,hidden=b,ignore=a,ignore=beta", (SQUARE, np.zeros(D), C)),
    ):
        assert read_model(square, text).rbm.checksum() == RBM(*expected).checksum()
    checkpoint = as_pt({"model": TENSORS, "args": {"x": torch.ones(9), "y": torch.ones(8)}})
    path = write(tmp_path, "checkpoint.pt", checkpoint)
    with pytest.raises(
        InputError, match=r"got args.x \[9\], args.y \[8\] as well.*--names ignore=args$"
    ):
        read_model(path)
    assert read_model(path, "ignore=args").rbm.checksum() == MODEL.checksum()
    for text, message in (
        ("weights=X", "names: expected an array of the file as weights, got 'X'"),
        ("W", "names: expected weights=NAME"),
        ("weights=W,weights=a", "each once"),
        ("weights=W,visible=a,hidden=b", r"got beta \[6\] as well"),
    ):
        with pytest.raises(InputError, match=message):
            read_model(square, text)


# ---- images


def test_one_of_several_arrays(tmp_path):
    np.savez(tmp_path / "all.npz", x_train=1 - IMAGES, x_test=IMAGES)
    found = read_images("data", f"{tmp_path}/all.npz:x_test", D)
    np.testing.assert_array_equal(found, IMAGES)
    with pytest.raises(InputError, match=r"got x_test \[40, 6\], x_train \[40, 6\]; choose with"):
        read_images("data", tmp_path / "all.npz", D)


def csv(separator=",", header="", label=False, mark=b""):
    rows = np.column_stack([np.arange(40) % 10, IMAGES]) if label else IMAGES
    text = "\r\n".join(separator.join(map(str, row)) for row in rows)
    return mark + f"{header}{text}\n".encode()


SQUARES = IMAGES.reshape(40, 2, 3)
# The same images in every format, whatever the file is called; and in every type of number.
FORMS = {
    "npy": as_npy(SQUARES),
    "npy, compressed": gzip.compress(as_npy(SQUARES)),
    "npz beside labels": as_npz({"anything": IMAGES, "labels": np.arange(40)}),
    "mat": as_mat({"testdata": IMAGES}),
    "torch, beside labels": as_pt((torch.from_numpy(IMAGES), torch.arange(40))),
    "IDX": as_idx(SQUARES),
    "IDX, compressed": gzip.compress(as_idx(SQUARES)),
    "csv": csv(),
    "csv of Excel": csv(mark=b"\xef\xbb\xbf"),
    "semicolons": csv(";"),
    "tabs": csv("\t"),
    "a header": csv(header="p0,p1,p2,p3,p4,p5\r\n"),
    "a header and labels": csv(header="label,p0,p1,p2,p3,p4,p5\n", label=True),
} | {
    kind: as_npy(IMAGES.astype(kind))
    for kind in ("u1", "u2", "u4", "u8", "i8", "?", "f2", ">u2", ">f4")
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_images_in_every_form(tmp_path, content):
    found = read_images("data", write(tmp_path, "T.CSV", content), D)
    assert found.dtype == torch.uint8
    np.testing.assert_array_equal(found, IMAGES)


def test_a_label_column_without_a_header_is_guessed(tmp_path):
    with pytest.raises(InputError, match="is there a label in the first or last column"):
        read_images("data", write(tmp_path, "t.csv", csv(label=True)), D)
    with pytest.raises(InputError, match="2 visible units for labels"):
        read_images("data", write(tmp_path, "t.csv", csv()), D + 2)


def test_scales(tmp_path):
    """Two values are binary on any usual scale; where it is not clear what is white, the user is asked."""
    grey = RNG.integers(0, 256, (40, D))
    grey[0, 0] = 255
    for scaled in (grey.astype(np.uint8), grey, grey.astype(float), grey / 255):
        found = read_images("data", save(tmp_path, scaled), D, binarize_seed=3)
        np.testing.assert_array_equal(found, binarize(grey / 255, 3))
    for black_and_white in (IMAGES * 255, IMAGES * 255.0):
        np.testing.assert_array_equal(read_images("data", save(tmp_path, black_and_white), D), IMAGES)  # fmt: skip
    sixteen = np.minimum(grey // 15, 16)
    with pytest.raises(InputError, match=r"not clear which value is white: divide by it \(by 16"):
        read_images("data", save(tmp_path, sixteen), D, binarize_seed=3)
    found = read_images("data", save(tmp_path, sixteen), D, threshold=8)
    np.testing.assert_array_equal(found, sixteen > 8)
    with pytest.raises(InputError, match="threshold: expected a number from 0 to below 16"):
        read_images("data", save(tmp_path, sixteen), D, threshold=16)
    with pytest.raises(InputError, match="threshold: expected it or a seed"):
        read_images("data", save(tmp_path, sixteen), D, threshold=3, binarize_seed=3)
    with pytest.raises(
        InputError, match=r"store \(x \+ 1\) / 2; a model of spins .*binary_from_spins"
    ):
        read_images("data", save(tmp_path, 2 * IMAGES.astype(int) - 1), D)


def save(folder, array):
    np.save(folder / "t.npy", array)
    return folder / "t.npy"


def test_aligned_sequences(tmp_path):
    model = PottsRBM(np.zeros((3, 21, 2)), np.zeros((3, 21)), np.zeros(2))
    path = write(tmp_path, "a.fasta", b">one\nA-\nY\n>two words\nCDE\n")
    expected = model.one_hot([[1, 0, 20], [2, 3, 4]])
    np.testing.assert_array_equal(read_sequences("data", path, model), expected)
    for text, message in (
        (
            b">one\nAXY\n",
            "letters of the alphabet -ACDEFGHIKLMNPQRSTVWY .*, got X in 1 of 1 sequences",
        ),
        (b">one\nAY\n>two\nA\n", "aligned sequences of one length .*, got lengths from 1 to 2"),
    ):
        with pytest.raises(InputError, match=message):
            read_sequences("data", write(tmp_path, "a.fasta", text), model)
    with pytest.raises(InputError, match=r"expected numbers in .*, got letters"):
        read_images("data", write(tmp_path, "b.fasta", b">one\nACD\n"), 3)


# ---- the command


def test_the_command_asks_and_takes_the_answer(tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    np.save("t.npy", IMAGES)
    write(tmp_path, "m.pt", as_torch({"W": SQUARE, "v_bias": B, "h_bias": C}))
    assert "--names weights=W.T" in refusal("evaluate m.pt --data t.npy")[0]
    output, record = recorded("evaluate m.pt --data t.npy --names weights=W.T")
    assert f"ln Z = {exact_log_z(RBM(SQUARE.T, B, C)):.3f}, exact." in output
    assert "--names weights=W.T" in record["run"]["repeat"]
