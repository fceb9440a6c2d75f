"""Kinds of files that gave a wrong number, or no way to one.

Each is read as what it is, or the question has the option that answers it.
"""

import io
import re
import shlex
from itertools import pairwise

import h5py
import numpy as np
import pytest
import safetensors.numpy
import torch
from writers import as_mat, as_npy, as_npz, as_pt, as_safetensors

from boltzmann_likelihood.files import read_checkpoints, read_images, read_model
from paperlib.errors import InputError
from paperlib.models import DBM, DBN, RBM

RNG = np.random.default_rng(5)


def arrays_of(visible, hidden):
    return RNG.normal(size=(visible, hidden)), RNG.normal(size=visible), RNG.normal(size=hidden)


def model_in(folder, content, names="", width=6):
    (folder / "m").write_bytes(content)
    return read_model(folder / "m", names, lambda: width)


def enumerated(layers):
    """ln p of all visible states of a DBN, from its definition and no code of the library."""

    def states(count):
        return ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(float)

    weights, visible, hidden = layers[-1]
    above = states(len(visible))
    log_p = above @ visible + np.logaddexp(0, above @ weights + hidden).sum(1)
    log_p -= np.logaddexp.reduce(log_p)
    for weights, visible, _ in layers[-2::-1]:
        below = states(len(visible))
        logits = above @ weights.T + visible
        log_given = below @ logits.T - np.logaddexp(0, logits).sum(1)
        log_p = np.logaddexp.reduce(log_given + log_p, 1)
        above = below
    return log_p


def layer_arrays(model):
    return [tuple(t.numpy() for t in layer.tensors().values()) for layer in model.layers]


# ---- one file, one orientation

SIZES = {"in the middle": (6, 5, 5, 3), "first": (6, 6, 4), "last": (6, 4, 4), "two": (6, 5, 5, 5)}
LOCAL = [
    ("weights", "visible_bias", "hidden_bias"),
    ("W", "v_bias", "h_bias"),
    ("w", "one", "two"),
    ("weight", "bn", "bp"),
]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("local", LOCAL, ids="-".join)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("group", ["{}", "layers.{}", "dbn.rbm_{}"])
def test_a_square_layer_lies_as_its_neighbours_do(tmp_path, sizes, local, turned, group):
    layers = [arrays_of(*pair) for pair in pairwise(sizes)]
    stored = {
        f"{group.format(n)}.{name}": torch.tensor(array.T.copy() if turned else array)
        for n, layer in enumerate(layers)
        for name, array in zip(local, layer, strict=True)
    }
    read = model_in(tmp_path, as_pt(stored)).rbm
    np.testing.assert_allclose(enumerated(layer_arrays(read)), enumerated(layers), atol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_all_square_is_a_question_with_options(tmp_path, turned):
    layers = [arrays_of(4, 4) for _ in range(3)]
    stored = {
        f"step{n}.{name}": array.T if turned else array
        for n, layer in enumerate(layers)
        for name, array in zip(("W", "vb", "hb"), layer, strict=True)
    }
    with pytest.raises(InputError) as refusal:
        model_in(tmp_path, as_npz(stored), width=4)
    last, stack = (
        shlex.split(option)[0] for option in re.findall(r"--names (\S+)", str(refusal.value))
    )
    last = last.rstrip(";")
    stack = stack.rstrip(";")
    end = ".T" if turned else ""
    one = model_in(tmp_path, as_npz(stored), f"{last},weights=step2.W{end}", 4).rbm
    assert one.checksum() == RBM(*layers[2]).checksum()
    with pytest.raises(InputError, match=re.escape("layers.0.weights=step0.W.T if")):
        model_in(tmp_path, as_npz(stored), stack, 4)
    # said of one layer, it holds for the file
    read = model_in(tmp_path, as_npz(stored), f"{stack},layers.1.weights=step1.W{end}", 4).rbm
    assert read.checksum() == DBN([RBM(*layer) for layer in layers]).checksum()


@pytest.mark.parametrize("group", ["step{}", "snap_{}", "model{}", "t{}", "{}"])
@pytest.mark.parametrize("hidden", [6, 4])
def test_snapshots_are_no_layers(tmp_path, group, hidden):
    models = [arrays_of(6, hidden) for _ in range(3)]
    stored = {
        f"{group.format(n)}.{name}": array
        for n, model in enumerate(models)
        for name, array in zip(("weights", "visible_bias", "hidden_bias"), model, strict=True)
    }
    with pytest.raises(InputError, match="one RBM at several times, choose one") as refusal:
        model_in(tmp_path, as_npz(stored))
    option = re.search(r"--names (\S+?);?( |$)", str(refusal.value))[1]
    read = model_in(tmp_path, as_npz(stored), option).rbm
    assert read.checksum() == RBM(*models[2]).checksum()


def test_layers_without_groups(tmp_path):
    """No group tells which arrays are a layer; the options do, and one vector may be two biases."""
    (w1, b0, b1) = arrays_of(6, 4)
    (w2, _, b2) = arrays_of(4, 3)
    names = "layers.0.weights=W1,layers.0.visible=b0,layers.0.hidden=b1"
    names += ",layers.1.weights=W2.T,layers.1.visible=b1,layers.1.hidden=b2"
    stored = as_npz({"W1": w1, "W2": w2.T, "b0": b0, "b1": b1, "b2": b2})
    read = model_in(tmp_path, stored, names).rbm
    assert read.checksum() == DBN([RBM(w1, b0, b1), RBM(w2, b1, b2)]).checksum()


# ---- what stands beside the arrays

W, B, A = arrays_of(6, 4)
PARAMETERS = {"W": W, "vbias": B, "hbias": A}


@pytest.mark.parametrize("name", ["stddev", "sd", "sigmav", "kT", "gain", "slope", "x"])
def test_numbers_beside_the_arrays(tmp_path, name):
    """Said by name and value; refused as a tensor in a module.

    There a number may be a parameter.
    """
    notes = model_in(tmp_path, as_npz(PARAMETERS | {name: 1.25})).notes
    assert notes[-1] == f"not used: {name} = 1.25"
    tensors = {key: torch.tensor(array) for key, array in (PARAMETERS | {name: 1.25}).items()}
    with pytest.raises(InputError, match=f"got .*{name} as well.*standard deviation"):
        model_in(tmp_path, as_pt(tensors))
    read = model_in(tmp_path, as_pt(tensors), f"ignore={name}")
    assert read.rbm.checksum() == RBM(W, B, A).checksum()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("visible_units", "linear"),
        ("v_type", "real"),
        ("unit", "continuous"),
        ("vartype", "SPIN"),
        ("activation", "tanh"),
    ],
)
def test_text_beside_the_arrays(tmp_path, name, text):
    notes = model_in(tmp_path, as_npz(PARAMETERS | {name: text})).notes
    assert notes[-1] == f"not used: {name} = {text}"


def described(write, descriptions):
    """A file of the arrays that says this of them, in HDF5 or as safetensors."""
    if write == "safetensors":
        return safetensors.numpy.save(PARAMETERS, {k: str(v) for k, v in descriptions.items()})
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for name, array in PARAMETERS.items():
            file[name] = array
        (file["W"] if write == "of an array" else file).attrs.update(descriptions)
    return content.getvalue()


@pytest.mark.parametrize("write", ["safetensors", "of all", "of an array"])
@pytest.mark.parametrize(
    ("name", "value"), [("visible_units", "gaussian"), ("beta", 2.0), ("scale_factor", 0.5)]
)
def test_what_a_file_says_of_its_arrays(tmp_path, write, name, value):
    content = described(write, {name: value})
    full_name = f"W@{name}" if write == "of an array" else f"@{name}"
    with pytest.raises(InputError, match=f"got {full_name} as well"):
        model_in(tmp_path, content)
    read = model_in(tmp_path, content, f"ignore={full_name}")
    assert read.rbm.checksum() == RBM(W, B, A).checksum()
    harmless = {"format": "pt", "MATLAB_class": "double", "epochs": 30, "beta": 1.0}
    harmless |= {"VERSION": "2.4", "model_type": "BernoulliRBM", "initializer": "gaussian"}
    assert model_in(tmp_path, described(write, harmless)).notes == (
        "read as weights=W,visible=vbias,hidden=hbias",
    )


@pytest.mark.parametrize("affix", ["v{}", "d{}", "{}_m", "{}Inc", "prev_{}"])
@pytest.mark.parametrize("group", ["", "dbn.rbm.0."])
def test_copies_of_all_parameters_are_of_the_training(tmp_path, affix, group):
    """As velocities are, whatever letters stand before or behind the names."""
    layers = [arrays_of(6, 4), arrays_of(4, 3)] if group else [arrays_of(6, 4)]
    stored: dict = {"dbn.sizes": np.array([[6.0, 4, 3]])} if group else {}
    for number, (weights, visible, hidden) in enumerate(layers):
        arrays = {"W": weights.T, "b": visible, "c": hidden}
        arrays |= {affix.format(name): array / 9 for name, array in arrays.items()}
        stored |= {f"{group.replace('0', str(number))}{name}": a for name, a in arrays.items()}
    model = model_in(tmp_path, as_npz(stored))
    each = [RBM(*layer) for layer in layers]
    assert model.rbm.checksum() == (DBN(each) if group else each[0]).checksum()


@pytest.mark.parametrize(
    ("name", "shape"),
    [("chain_coupling", (6, 6)), ("time_delay", (6, 6)), ("lateral_chain", (4, 4))],
)
def test_a_word_of_the_training_hides_no_part_of_the_energy(tmp_path, name, shape):
    with pytest.raises(InputError, match=f"got {name} .*may act on them"):
        model_in(tmp_path, as_npz(PARAMETERS | {name: RNG.normal(size=shape)}))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("W_err", RNG.normal(size=(6, 4))),
        ("epoch_errors", RNG.normal(size=6)),
        ("hbias_history", RNG.normal(size=(50, 4))),
        ("reconstruction_error", RNG.normal(size=(50, 6))),
        ("chain_levels", RNG.integers(0, 255, (6, 6))),
        ("chains_v", RNG.integers(0, 2, (20, 6))),
        ("chains_of_spins", 2 * RNG.integers(0, 2, (20, 6)) - 1),
    ],
)
def test_what_is_of_the_training_is_passed_over(tmp_path, name, array):
    read = model_in(tmp_path, as_npz(PARAMETERS | {name: array}))
    assert read.notes[-1] == f"passed over, by name: {name}"
    assert read.rbm.checksum() == RBM(W, B, A).checksum()


def advised(message):
    """What the last option of a message says about names."""
    return shlex.split(message[message.rindex("--names") :])[1]


@pytest.mark.parametrize("groups", [("chain.0", "chain.1"), ("bottom", "top")])
def test_layers_in_groups_of_any_name(tmp_path, groups):
    layers = [arrays_of(6, 4), arrays_of(4, 3)]
    stored = as_npz(
        {
            f"{group}.{name}": array
            for group, layer in zip(groups, layers, strict=True)
            for name, array in zip(PARAMETERS, layer, strict=True)
        }
    )
    with pytest.raises(InputError, match="of the layers of a DBN, from the images up") as refusal:
        model_in(tmp_path, stored)
    read = model_in(tmp_path, stored, advised(str(refusal.value))).rbm
    assert read.checksum() == DBN([RBM(*layer) for layer in layers]).checksum()
    first = ",".join(
        f"{role}={groups[0]}.{name}"
        for role, name in zip(("weights", "visible", "hidden"), PARAMETERS, strict=True)
    )
    with pytest.raises(InputError):
        model_in(tmp_path, stored, first)


@pytest.mark.parametrize("groups", [("model", "ema"), ("best", "last"), ("online", "target")])
def test_one_rbm_in_two_groups(tmp_path, groups):
    stored = {
        f"{group}.{name}": torch.tensor(array * factor)
        for group, factor in zip(groups, (1, 0.5), strict=True)
        for name, array in PARAMETERS.items()
    }
    with pytest.raises(InputError, match="one RBM at several times, choose one") as refusal:
        model_in(tmp_path, as_pt(stored))
    read = model_in(tmp_path, as_pt(stored), advised(str(refusal.value))).rbm
    assert read.checksum() == RBM(W, B, A).checksum()


def test_the_arrays_of_a_dbm_have_their_names(tmp_path):
    stored = as_npz({"W1": W, "W2": W.T, "b0": B, "b1": A, "b2": B})
    with pytest.raises(InputError, match="a DBM is read if its arrays are called vishid"):
        model_in(tmp_path, stored)


@pytest.mark.parametrize("number", [np.float64(0.5), np.array([0.5])])
@pytest.mark.parametrize("name", ["vbias", "hbias"])
def test_one_number_is_no_bias_of_each_unit(tmp_path, name, number):
    message = rf"got one number, {name} = 0.5; .* store numpy.full\(N, 0.5\)"
    with pytest.raises(InputError, match=message):
        model_in(tmp_path, as_npz(PARAMETERS | {name: number}))
    rest = {key: array for key, array in PARAMETERS.items() if key != name}
    with pytest.raises(InputError, match=r"got one number, b = 0\.5"):
        model_in(tmp_path, as_npz(rest | {"b": number}))


@pytest.mark.parametrize("name", ["use_bias", "bias_decay", "num_biases", "hidden_bias_decay"])
def test_settings_of_biases_are_none(tmp_path, name):
    notes = model_in(tmp_path, as_npz(PARAMETERS | {name: 1.0})).notes
    assert notes[-1] == f"not used: {name} = 1"


@pytest.mark.parametrize("kind", ["DBN", "DBM"])
def test_a_deep_model_with_one_unit_on_top(tmp_path, kind):
    (w1, b0, b1), (w2, _, b2) = arrays_of(6, 4), arrays_of(4, 1)
    model = DBN([RBM(w1, b0, b1), RBM(w2, b1, b2)])
    if kind == "DBM":
        model = DBM(w1, w2, b0, b1, b2)
    model.save(tmp_path / "m.safetensors")
    assert read_model(tmp_path / "m.safetensors").rbm.checksum() == model.checksum()


def test_a_gaussian_layer_of_an_array_in_groups(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for name, array in PARAMETERS.items():
            file[f"run/rbm/{name}"] = array
        file.attrs["visible_units"] = "gaussian"
        file["run/rbm/hbias"].attrs["VERSION"] = "2.4"
    with pytest.raises(InputError, match="got @visible_units as well"):
        read_model(tmp_path / "m.h5")
    assert read_model(tmp_path / "m.h5", "ignore=@visible_units").rbm.checksum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_single_number_of_any_tensor(tmp_path, dtype):
    """The bias of the only hidden unit, and ln Z, which numpy may not take."""
    arrays = {"W": torch.ones(6, 1), "vbias": torch.ones(6), "hbias": torch.ones(1)}
    arrays["log_z"] = torch.tensor(3.0)
    stored = {name: torch.nn.Parameter(array.to(dtype)) for name, array in arrays.items()}
    read = model_in(tmp_path, as_pt(stored))
    assert (read.rbm.num_hidden, read.stored_log_z) == (1, 3.0)
    stored["W"] = torch.ones(6, 4, dtype=dtype)
    with pytest.raises(InputError, match="got one number, hbias = 1; if all N units"):
        model_in(tmp_path, as_pt(stored))


def test_biases_of_one_layer_in_the_weights(tmp_path):
    below = as_npz({"W": np.r_[W, A[None]], "vbias": B})
    with pytest.raises(InputError, match="if a row of it has the hidden biases"):
        model_in(tmp_path, below)
    beside = as_npz({"W": np.c_[W, B], "hbias": A})
    with pytest.raises(InputError, match="if a column of it has the visible biases"):
        model_in(tmp_path, beside)


def test_a_structure_of_arrays(tmp_path):
    kinds = [("W", float, W.shape), ("b", float, B.shape), ("a", float, A.shape)]
    read = model_in(tmp_path, as_npz({"rbm": np.array([(W, B, A)], kinds)}))
    assert read.rbm.checksum() == RBM(W, B, A).checksum()


@pytest.mark.parametrize("biases", [{"b": B, "a": A}, {"b": [B, B], "a": [A, A]}])
def test_models_along_a_first_axis(tmp_path, biases):
    stored = as_npz({"W": [W, W]} | biases)
    with pytest.raises(InputError, match="if the first axis counts models"):
        model_in(tmp_path, stored)


@pytest.mark.parametrize("count", [2, 3])
def test_the_authors_layers_in_files_of_their_own(tmp_path, count):
    layers = [arrays_of(6, 5), arrays_of(5, 4), arrays_of(4, 3)][:count]
    names = [
        ("vishid", "visbiases", "hidrecbiases"),
        ("hidpen", "hidgenbiases", "penrecbiases"),
        ("hidpen2", "hidgenbiases2", "penrecbiases2"),
    ]
    files = []
    for number, layer in enumerate(layers):
        files.append(tmp_path / f"mnist{number}.mat")
        files[-1].write_bytes(as_mat(dict(zip(names[number], layer, strict=True)) | {"epoch": 50}))
    read = read_model(",".join(map(str, files)), width=lambda: 6).rbm
    np.testing.assert_allclose(enumerated(layer_arrays(read)), enumerated(layers), atol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_labels_of_which_one_is_on(tmp_path, turned):
    labels = RNG.normal(size=(4, 10) if turned else (10, 4))
    stored = as_npz({"W": W, "U": labels, "b": B, "c": A, "d": np.zeros(10)})
    with pytest.raises(InputError, match="sum over labels y"):
        model_in(tmp_path, stored)


def test_sizes_are_no_biases(tmp_path):
    read = model_in(tmp_path, as_mat(PARAMETERS | {"sizes": np.array([6.0, 4.0])})).rbm
    assert read.checksum() == RBM(W, B, A).checksum()


def test_units_within_a_word(tmp_path):
    with pytest.raises(InputError, match="Gaussian units"):
        model_in(tmp_path, as_npz(PARAMETERS | {"model": "GaussianRBM"}))


@pytest.mark.parametrize("write", [as_mat, as_npz, as_safetensors])
def test_a_suffix_of_torch_hides_no_other_format(tmp_path, write):
    (tmp_path / "m.pt").write_bytes(write(PARAMETERS))
    assert read_model(tmp_path / "m.pt", width=lambda: 6).rbm.checksum() == RBM(W, B, A).checksum()


# ---- data

X = RNG.integers(0, 2, (8, 6))


def text(rows, first=""):
    return (first + "\n".join(",".join(map(str, row)) for row in rows) + "\n").encode()


IMAGES = {
    "counts": (text(np.c_[[9, 40, 3, 1, 7, 2, 5, 6], X]), "file of its own for --weights"),
    "labels in columns": (as_npy(np.c_[X, np.eye(8, dtype=int)]), "last 8 columns .* as labels"),
    "labels first": (as_npy(np.c_[np.eye(8, dtype=int), X]), "first 8 columns .* as labels"),
    "sizes first": (text(X, "8,6,2\n"), "the first line has 3 numbers, and the others have 6"),
    "bag of words": (
        text(X[:, :3], "8\n6\n24\n"),
        "got 3 numbers in line 4, and 1 in the lines before",
    ),
    "ragged": (text([*X, [0, 1]]), "got 2 numbers in line 9, and 6 in"),
    "y and n": (text(np.where(X, "y", "n")), "none below|write 0 and 1 for them"),
    "x and o": (text(np.where(X, "x", "o")), "write 0 and 1 for them"),
    "votes": (text(np.c_[["republican"] * 8, np.where(X, "y", "n")]), "write 0 and 1 for them"),
    "one and two": (as_npy(X + 1), "subtract 1, or .*--threshold 1"),
    "two and four": (as_npy(2 * X + 2), "--threshold 2"),
    "bfloat16": (as_npy(np.zeros((8, 6), "V2")), "bfloat16: save it as float32"),
    "empty": (as_npy(X[:0]), "got an empty table"),
    "one image": (as_npy(X[0]), "a single row of 6"),
    "one pixel": (as_npy(X[0, 0]), "a single number in "),
    "random bytes": (as_npy(X)[7:], "which is none of these"),
    "nearly binary": (as_npy(X * (1 - 1e-7)), "for example 0.9999999"),
}


@pytest.mark.parametrize(("content", "message"), IMAGES.values(), ids=IMAGES)
def test_advice_on_images(tmp_path, content, message):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(InputError, match=message) as refusal:
        read_images("data", tmp_path / "t", 6)
    assert not re.search(
        r"usecols|\[any|divide by it|weights_only|float64 at row", str(refusal.value)
    )


@pytest.mark.parametrize("sign", [",", ", ", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_sign_behind_each_number_of_a_table(tmp_path, sign, end):
    lines = ("".join(f"{value}{sign}" for value in row) + end for row in X)
    (tmp_path / "t").write_bytes("".join(lines).encode())
    assert read_images("data", tmp_path / "t", 6).pixels.tolist() == X.tolist()


@pytest.mark.parametrize("suffix", ["pt", "pth", "ckpt"])
@pytest.mark.parametrize("head", [b"\0\0\xe6\x01\n", b"\x13\x07\xff", b"some words\n"])
def test_no_pickle_where_there_is_none(tmp_path, suffix, head):
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(head + bytes(range(256)) * 4)
    with pytest.raises(InputError, match="bytes that it never begins with"):
        read_model(path)


@pytest.mark.parametrize(
    "numbers",
    [
        ("2.5", "3.032", "3.286", "3.54", "10.0"),
        ("9", "10", "100"),
        ("1.2.9", "1.2.10"),
        ("0.5", "1", "1.5"),
        ("5e2", "1e3", "2e3", "1e4"),
        ("500", "1k", "2.5k", "10k", "1M"),
        # what looks like a power of ten is none
        ("0e1", "0e2", "0e10"),
        ("1-1e-05", "1-1e-10"),
        ("2024-01-05", "2024-01-12", "2024-02-01"),
    ],
)
@pytest.mark.parametrize("before", ["", "rbm_", "epoch"])
def test_the_order_of_checkpoints(tmp_path, numbers, before):
    for number in reversed(numbers):
        np.savez(tmp_path / f"{before}{number}.npz", **PARAMETERS)
    assert list(read_checkpoints([tmp_path])) == [f"{before}{number}.npz" for number in numbers]


@pytest.mark.parametrize(
    "names",
    [
        ("rbm_T2.5", "rbm_T3.54", "rbm_T10.0"),
        ("stage1e10", "stage1e50", "stage2e5"),
        ("v1.2e3", "v1.2e10", "v1.3e1"),
        ("layer1k", "layer2"),
    ],
)
def test_letters_that_are_no_factor(tmp_path, names):
    for name in reversed(names):
        np.savez(tmp_path / f"{name}.npz", **PARAMETERS)
    assert list(read_checkpoints([tmp_path])) == [f"{name}.npz" for name in names]
