"""What a file holds decides what its model is. Advice that is followed to the letter ends in that model or in a refusal."""

import re
import shlex

import numpy as np
import pytest
import torch
from evaluations import run
from test_model_files import AUTHORS_DBM, IMAGES, MODEL, TENSORS, A, B, D, W, write
from writers import as_hdf5, as_mat, as_npy, as_npz, as_pt, rbms_update

from paperlib.errors import InputError
from paperlib.evaluation import read_checkpoints, read_model
from paperlib.models import DBM, DBN, RBM, PottsRBM

RNG = np.random.default_rng(2)
M, K = len(A), 3
W2, A2, B2 = RNG.normal(0, 1, (M, K)), RNG.normal(0, 1, K), RNG.normal(0, 1, M)
SQUARE, C = RNG.normal(0, 1, (D, D)), RNG.normal(0, 1, D)
IN_SQUARE = RBM(SQUARE, B, C)
NAMED = {"W": W, "vbias": B, "hbias": A}
DBN_ = DBN([MODEL, RBM(W2, B2, A2)])
DBM_ = DBM(W, W2, B, A, A2)
POTTS = PottsRBM(RNG.normal(0, 1, (4, 3, 2)), RNG.normal(0, 1, (4, 3)), np.zeros(2))
AUTHORS_DBN = {"vishid": W, "visbiases": B, "hidrecbiases": A, "hidpen": W2, "hidgenbiases": B2, "penrecbiases": A2}  # fmt: skip
ARRAYS = {model.called: {n: t.numpy() for n, t in model.tensors().items()} for model in (DBN_, DBM_, POTTS)}  # fmt: skip
STACK = {f"rbm{n}.{key}": value for n, layer in enumerate(DBN_.layers, 1) for key, value in layer.tensors().items()}  # fmt: skip
NO_VISIBLE, NO_HIDDEN = RBM(W, 0 * B, A), RBM(W, B, 0 * A)


def keras(*layers):
    """As Keras writes layers, behind the empty group of an input."""

    def of_input(file, name):
        file.create_group(name)

    return as_hdf5({"model_weights/input_1": of_input} | {
        f"model_weights/{layer}/{layer}/{name}:0": array
        for layer, arrays in layers
        for name, array in arrays.items()
    })  # fmt: skip


def tensors(arrays):
    return {name: torch.as_tensor(array) for name, array in arrays.items()}


def suffixed(end, arrays=None):
    return {f"{name}{end}": array for name, array in (arrays or NAMED).items()}


SETTINGS = {
    "batch_size": 64, "binarize": True, "dataset": "mnist", "lr_schedule": {15: 0.005}, "layers": [6, 4], "model_type": "RBM", "none": None,
    "fraction": np.float64(0.5), "steps": np.int64(3), "betas": (0.9, 0.999), "init_std": 0.01, "use_temperature": False, "device": torch.device("cpu"),
}  # fmt: skip
LIGHTNING = {
    "epoch": 9, "pytorch-lightning_version": "2.4.0", "state_dict": TENSORS, "lr_schedulers": [], "hparams_name": "kwargs", "loops": {"fit": {"x": 1}},
    "callbacks": {"ModelCheckpoint{'monitor': None}": {"path": "x.ckpt", "score": torch.tensor(1.0)}}, "hyper_parameters": {"n_vis": D, "k": 1},
    "optimizer_states": [{"state": {0: {"step": torch.tensor(3.0), "exp_avg": TENSORS["W"]}}}],
}  # fmt: skip
# Files, what the user says, and the models in them.
READ = {
    # what is ignored does not change what the model is
    **{f"{kind}, one array ignored": (as_npz(arrays | {"mean_image": B}), "ignore=mean_image", model)
       for kind, arrays, model in (("DBN", ARRAYS["a DBN"], DBN_), ("DBM", ARRAYS["a DBM"], DBM_), ("Potts", ARRAYS["a Potts RBM"], POTTS),
                                   ("a stack", STACK, DBN_), ("the authors' DBM", AUTHORS_DBM | {"hidpen": W2, "penbiases": A2}, DBM_),
                                   ("the authors' DBN", AUTHORS_DBN, DBN_))},
    "a group ignored beside a DBM": (as_pt({"model": tensors(ARRAYS["a DBM"]), "data": {"x": torch.tensor(IMAGES)}}), "ignore=data", DBM_),
    "an archive of rbms": (as_hdf5({"model_type": "BBRBM", "extra": C} | rbms_update((W, B, A), 3)), "ignore=extra", MODEL),
    # numbers and text are no parameters
    "settings": (as_pt({"model_state_dict": TENSORS, "config": SETTINGS, "free_energy": -657.9, "epoch": 39}), "", MODEL),
    "settings of Lightning": (as_pt(LIGHTNING), "", MODEL),
    "settings of MATLAB": (as_mat(NAMED | {"k": 1.0, "alphabet": "ABC", "accuracy": np.float32(0.5)}), "", MODEL),
    "settings in HDF5": (as_hdf5(NAMED | {"k": 1, "created": "today"}), "", MODEL),
    "settings beside a DBM": (as_mat(AUTHORS_DBM | {"accuracy": 0.5, "note": "x"}), "", DBM(W, AUTHORS_DBM["hidpen"], B, A, AUTHORS_DBM["penbiases"][0])),
    "settings beside a Potts RBM": (as_npz(ARRAYS["a Potts RBM"] | {"alphabet": np.array(list("ACG"))}), "", POTTS),
    "one hidden unit": (as_mat({"W": W[:, :1], "vbias": B, "hbias": A[:1]}), "", RBM(W[:, :1], B, A[:1])),
    # words of training in names
    **{f"_{end}": (as_npz(suffixed(f"_{end}")), "", MODEL) for end in ("epoch100", "seed0", "lr0.01", "time=3", "loss0.5", "momentum0.9", "best_epoch")},
    **{f"group {group}": (as_pt({group: tensors(NAMED), "epoch": 10}), "", MODEL) for group in ("epoch_10", "seed_3", "chain0", "last_epoch")},
    "square, told by names": (as_npz(suffixed("_epoch9", {"vishid": SQUARE, "vbias": B, "hbias": C})), "", IN_SQUARE),
    "epochs within a group": (as_pt({"epoch_10": tensors(NAMED | {"W_velocity": 0 * W, "chains": IMAGES[:5], "errors": C})}), "", MODEL),
    "some of the names": (as_npz({"W_epoch10": W, "vbias": B, "hbias_epoch10": A, "W_velocity": W}), "", MODEL),
    "named": (as_npz({f"{n}_epoch_{e}": a + e for n, a in NAMED.items() for e in (0, 1)}),
              "weights=W_epoch_0,visible=vbias_epoch_0,hidden=hbias_epoch_0,ignore=W_epoch_1,ignore=vbias_epoch_1,ignore=hbias_epoch_1", MODEL),
    "named momentum": (as_npz(suffixed("_momentum")), "weights=W_momentum,visible=vbias_momentum,hidden=hbias_momentum", MODEL),
    # Keras
    "Keras": (keras(("rbm", {"weights": W, "visible_bias": B, "hidden_bias": A})), "", MODEL),
    "Keras, square": (keras(("rbm", {"vishid": SQUARE, "vb": B, "hb": C})), "", IN_SQUARE),
    "Keras, nameless": (keras(("rbm", {"Variable": W.T, "Variable_1": B, "Variable_2": A})), "", MODEL),
    "Keras, a stack": (keras(*((name, layer.tensors()) for name, layer in zip(("rbm", "rbm_1"), DBN_.layers, strict=True))), "", DBN_),
    "Keras, a nameless stack": (keras(("RBM_1", {"x": W, "y": B, "z": A}), ("RBM_2", {"x": W2, "y": B2, "z": A2})), "", DBN_),
}  # fmt: skip


def found(folder, content, names=""):
    return read_model(write(folder, "model", content), names, lambda: D)


@pytest.mark.parametrize(("content", "names", "model"), READ.values(), ids=READ)
def test_read(tmp_path, content, names, model):
    read = found(tmp_path, content, names).rbm
    assert type(read) is type(model)
    for tensor, expected in zip(read.tensors().values(), model.tensors().values(), strict=True):
        torch.testing.assert_close(tensor.double(), expected.double(), rtol=0, atol=0)


NOTES = {
    "momentum": (NAMED | {"W_velocity": W, "chains": IMAGES[:5], "epoch": 3, "note": "x"}, "", ["passed over, by name: W_velocity, chains"]),
    "a group": ({**{f"model.{n}": a for n, a in NAMED.items()}, "optimizer.x": W, "optimizer.y": B}, "", ["passed over, by name: optimizer"]),
    "a factor": (NAMED | {"W_mask": W > 0}, "ignore=W_mask", ["left out, as --names says: W_mask; if the energy has it, this is another model"]),
    "an inverse temperature": (NAMED | {"beta": 2.0}, "ignore=beta", ["left out, as --names says: beta; if the energy has it, this is another model"]),
    "settings": (NAMED | {"k": 3, "note": "x", "epoch": 4, "loss": 0.5}, "", []),
}  # fmt: skip


@pytest.mark.parametrize(("arrays", "names", "notes"), NOTES.values(), ids=NOTES)
def test_what_is_dropped_is_said(tmp_path, arrays, names, notes):
    assert [*found(tmp_path, as_npz(arrays), names).notes] == notes


def inside():
    matrix = np.zeros((D + 1, M + 1))
    matrix[1:, 1:], matrix[1:, 0], matrix[0, 1:] = W, B, A
    return matrix


LEFT_OUT = "another model: store it in a file of its own"
REFUSED = {
    # a part of a model is another model
    **{f"{part} ignored": (as_npz(arrays), f"ignore={part}", LEFT_OUT) for part, arrays in (
        ("hidpen", AUTHORS_DBM), ("penbiases", AUTHORS_DBM), ("hidgenbiases", AUTHORS_DBN), ("weights_2", ARRAYS["a DBM"]), ("layers.1", ARRAYS["a DBN"]),
        ("rbm2", STACK), ("visible_bias", ARRAYS["a Potts RBM"]))},
    "all but the bottom": (as_npz(AUTHORS_DBN), "ignore=hidpen,ignore=hidgenbiases,ignore=penrecbiases", LEFT_OUT),
    "the bottom by its names": (as_mat(AUTHORS_DBM), "weights=vishid,visible=visbiases,hidden=hidbiases", LEFT_OUT),
    "numbered layers": (as_npz({"W1": W, "W2": W2, "b0": B, "b1": A, "b2": A2}), "weights=W1,visible=b0,hidden=b1,ignore=W2,ignore=b2", LEFT_OUT),
    # factors
    **{f"{name}, a factor": (as_npz(NAMED | {name: value}), "", f"got {name}.* changes the model") for name, value in (
        ("beta", 2.0), ("T", 0.5), ("config.temperature", 0.5), ("W_mask", W > 0), ("scale", B), ("visible_offset", B), ("temp", np.ones(1)))},
    **{f"{name}, of Gaussian units": (as_npz(NAMED | {name: value}), "", f"got {name}.* Gaussian units") for name, value in (
        ("sigma", 1.0), ("log_std", B), ("visible_type", "gaussian"), ("config.units", "Gaussian-Bernoulli"))},
    "Gaussian units in a stack": (as_npz(STACK | {"rbm1.sigma": np.full(D, 0.1), "num_layers": 2}), "", "Gaussian units"),
    "units of another kind": (as_npz(NAMED | {"model_type": "IIRBM"}), "", "got model_type as well"),
    "pruned": (as_npz({"W_orig": W, "W_mask": W > 0, "vbias": B, "hbias": A}), "", "W_mask .* changes the model"),
    # the training alone is no model
    "an optimiser": (as_pt({"state": {n: {"momentum_buffer": t} for n, t in enumerate(TENSORS.values())}}), "", "say which is which with --names weights=NAME"),
    "snapshots": (as_npz({f"epoch_{e}.{n}": a for e in (1, 2) for n, a in {"vishid": SQUARE, "vb": B, "hb": C}.items()}), "", "say which is which"),
    # shapes
    "biases inside": (as_npy(inside()), "", r"first row and column .* A for it, numpy.savez"),
    "biases inside, turned": (as_npy(inside().T), "", r"first row and column .* A for its transpose, numpy.savez"),
    "biases inside a square": (as_npz({"w": np.eye(D + 1)}), "", "first row and column"),
    "one vector for both layers": (as_npz({"W": W, "b": np.r_[B, A]}), "", "as many numbers as both layers have units"),
    "one vector, square": (as_npz({"W": SQUARE, "b": B}), "", "--names visible=NAME,hidden=NAME"),
    "three vectors": (as_npz({"W": W, "a": B, "b": A, "c": B}), "", "say which is which"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "names", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, content, names, message):
    with pytest.raises(InputError, match=message) as refusal:
        found(tmp_path, content, names)
    assert "\n" not in str(refusal.value)


def followed(folder, content):
    """What comes of doing as the sentences say, word by word."""
    said, names = [], ""
    while names not in said:
        said.append(names)
        try:
            return found(folder, content, names).rbm
        except InputError as error:
            if advice := re.search(r"--names ('[^']*'|\S+)", str(error)):
                names = shlex.split(advice[1].rstrip(";,"))[0]
    return None


ADVISED = {
    "one vector, visible": ({"W": W, "b": B}, NO_HIDDEN),
    "one vector, hidden": ({"W": W, "b": A}, NO_VISIBLE),
    "a linear layer": ({"weight": W.T, "bias": A}, NO_VISIBLE),
    "one vector, a known name": ({"W": W.T, "vbias": B}, NO_HIDDEN),
    "one vector, and one more array": ({"W": W, "b": B, "test_result": np.ones(2)}, NO_HIDDEN),
    "names with spaces": ({"the W": W, "the b": B}, NO_HIDDEN),
    "none": ({"W": W}, RBM(W, 0 * B, 0 * A)),
    "none, turned": ({"W": W.T}, RBM(W, 0 * B, 0 * A)),
    "several arrays more": (NAMED | {"test_result": np.ones(2), "more.x": np.ones(9), "more.y": np.ones((9, 9))}, MODEL),
    "an array beside a DBM": (AUTHORS_DBM | {"hidpen": W2, "penbiases": A2, "test_result": np.ones(2)}, DBM_),
    "an array beside a DBN": (AUTHORS_DBN | {"test_result": np.ones(2), "curve": np.ones(9)}, DBN_),
    "an array beside a stack": (STACK | {"curve": np.ones(9)}, DBN_),
    "label units": (AUTHORS_DBM | {"labpen": W2}, None),
    "a mask": (NAMED | {"W_mask": W > 0}, None),
    "offsets": (NAMED | {"ov": B, "oh": A}, None),
    "weights of a norm": ({"weight_g": A[:, None], "weight_v": W.T, "vbias": B, "hbias": A}, None),
    "numbered layers": ({"W1": W, "W2": W2, "b0": B, "b1": A, "b2": A2}, None),
    "numbered layers, known names": ({"vishid": W, "vbias": B, "hbias": A, "W2": W2, "b2": A2}, None),
    "biases inside": ({"w": inside()}, None),
    "one vector, square": ({"W": SQUARE, "b": B}, None),
    "one vector for both": ({"W": W, "b": np.r_[B, A]}, None),
    "snapshots": (suffixed("_epoch_1") | suffixed("_epoch_2"), None),
}  # fmt: skip


@pytest.mark.parametrize(("arrays", "model"), ADVISED.values(), ids=ADVISED)
def test_advice_leads_to_the_model_or_nowhere(tmp_path, arrays, model):
    read = followed(tmp_path, as_npz(arrays))
    assert (read is None) == (model is None), read
    if read is not None:
        for tensor, expected in zip(read.tensors().values(), model.tensors().values(), strict=True):
            torch.testing.assert_close(tensor.double(), expected.double(), rtol=0, atol=0)


def test_all_that_is_left_over_stands_in_one_hint(tmp_path):
    arrays = NAMED | {"x": np.ones(9), "y": np.ones(8), "more.a": np.ones(9), "more.b": np.ones(9)}
    with pytest.raises(InputError, match=r"--names ignore=x,ignore=y,ignore=more$"):
        found(tmp_path, as_npz(arrays))


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
    found = read_checkpoints([tmp_path], width=lambda: D)
    assert list(found) == ["epoch=9.ckpt", "epoch=10.ckpt", "epoch=11.th"]
    assert {one.rbm.checksum() for one in found.values()} == {MODEL.checksum()}


def test_training_takes_the_options_that_it_advises(tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    np.save("grey.npy", RNG.random((20, D)))
    for number in (1, 2):
        np.savez(f"e{number}.npz", W=SQUARE, first=B, second=C)
    line = "training e1.npz e2.npz --data grey.npy"
    said = ""
    for _ in range(3):
        said = refusal(line)[0]
        advised = re.findall(r"--(?:names|threshold) (?:T|\S+)", said)
        line += f" {advised[0]}".replace(" T", " 0.5")
        if "--threshold" in line:
            break
    assert "2 " in run(line)
