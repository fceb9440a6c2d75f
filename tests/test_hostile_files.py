"""Files that are no model and no images, broken by accident or made to do harm.

Each is refused in one sentence that names the argument.
"""

import gzip
import pickle
import re
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
import skops.io
import torch
from enumeration import random_rbm
from sklearn.neural_network import BernoulliRBM
from test_training_likelihood import write_archive
from writers import (
    RBMS_NAMES,
    as_hdf5,
    as_idx,
    as_mat,
    as_npy,
    as_npz,
    as_pt,
    as_safetensors,
    zipped,
)

from boltzmann_likelihood.files import read_images, read_model
from paperlib.errors import InputError
from paperlib.models import RBM

D = 6
M = 4
ARRAYS = {
    "weights": np.full((D, M), 0.5),
    "visible_bias": np.zeros(D),
    "hidden_bias": np.zeros(M),
}
MATLAB = dict(zip(("vishid", "visbiases", "hidbiases"), ARRAYS.values(), strict=True))
TENSORS = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
# More than may come out of a small file, in zeros.
BOMB = np.zeros((2**21, M + 1))


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return print, ("unpickled",)


class Untrusted:
    """Of a type that no reader of a model file has reason to trust."""


def write(folder, name, content):
    """The path of a file of this content: bytes, None for no file, or a function of the path."""
    path = folder / name.partition(",")[0]
    if callable(content):
        content(path)
    elif content is not None:
        path.write_bytes(content)
    return path


# ---- pieces of content


def cut(content, keep=0.5):
    return content[: int(len(content) * keep)]


def npz(**changes):
    arrays = ARRAYS | changes
    return as_npz({name: array for name, array in arrays.items() if array is not None})


def mat(**changes):
    return as_mat(MATLAB | changes, do_compression=True)


def pt(**changes):
    return as_pt(TENSORS | changes)


def header_of(shape):
    """Of `.npy`, without the numbers."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


CYCLIC: dict = {}
CYCLIC["state_dict"] = CYCLIC


# ---- archives in the layout of rbms

PARAMS = "update_3/params"
WEIGHTS = f"{PARAMS}/weight_matrix"


def h5(kind="BBRBM", without=None, log_z=None, **changes):
    """An archive with other arrays; a function in place of an array gets the file and the name."""
    arrays = dict(zip(RBMS_NAMES, ARRAYS.values(), strict=True)) | changes
    content = {"model_type": kind} | {f"{PARAMS}/{n}": a for n, a in arrays.items() if n != without}
    return as_hdf5(content | ({} if log_z is None else {"update_3/log_z": log_z}))


def h5_with(content):
    return as_hdf5({"model_type": "BBRBM"} | content)


def dataset(*arguments, **options):
    return lambda file, name: file.create_dataset(name, *arguments, **options)


def same_as(other):
    return lambda file, name: file.__setitem__(name, file[other])


def virtual(file, name):
    layout = h5py.VirtualLayout((D, M), "f8")
    layout[:] = h5py.VirtualSource("other.h5", WEIGHTS, (D, M))
    file.create_virtual_dataset(name, layout)


# ---- the table: what is said, and of which files; a name is that of the file, and says what is
# wrong with it; those of images begin with a t

FILES = {
    "expected a file, found none at": {
        "m.npz, missing": None,
        f"{'m' * 5_000}.npz, too long a name": None,
        "m\0.npz, a name with a null": None,
        "t.npy, missing": None,
    },
    "expected a file, got the folder": {"m.npz, a folder": Path.mkdir},
    # code
    "got a pickle, which can run any code when it is read": {
        "m.pkl, a pickle": pickle.dumps(Code())
    },
    "got pickled objects, which can run any code": {
        "m.pt, code": pt(x=Code()),
        "m.pt, code of old": as_pt(TENSORS | {"x": Code()}, _use_new_zipfile_serialization=False),
    },
    "it holds pickled objects, which can run any code": {
        "m.npz, objects": npz(weights=np.array([Code(), None], dtype=object)),
        "t.npy, objects": as_npy(np.array([Code(), None], dtype=object)),
    },
    "expected a BernoulliRBM that skops can load without trusting anything": {
        "m.skops, a type": skops.io.dumps(BernoulliRBM(M, random_state=Untrusted())),
    },
    # too much
    "expected at most 67108864 bytes in the packed file": {
        "m.npz, a bomb": zipped({"weights.npy": as_npy(BOMB)}),
        "m.h5, a bomb": h5_with({WEIGHTS: dataset(data=BOMB, compression="gzip")}),
        "t.npy.gz, a bomb": gzip.compress(as_npy(BOMB)),
        "t.npy.gz, a bomb, cut": cut(gzip.compress(as_npy(BOMB)), 0.99),
    },
    "expected at most 8 levels of names": {"m.pt, in itself": as_pt(CYCLIC)},
    # damage
    "expected an undamaged .npz file": {
        "m.npz, nothing": b"",
        "m.npz, cut": cut(npz()),
        "m.npz, a huge shape": zipped({"weights.npy": header_of((10**6, 10**6))}),
    },
    "; save -v7 in MATLAB or Octave writes a file that can be read": {
        "m.mat, text": b"not a MATLAB file at all" * 10,
        "m.mat, cut": cut(mat()),
    },
    "expected an undamaged torch file": {
        "m.pt, cut": cut(pt()),
        "m.pt, a pickle in a zip": zipped({"data.pkl": pickle.dumps(TENSORS)}),
    },
    "expected an undamaged .safetensors file": {
        "m.safetensors, cut": cut(as_safetensors(ARRAYS)),
        "m.safetensors, no JSON": struct.pack("<Q", 4) + b"{{{{",
    },
    "expected an undamaged HDF5 file": {
        "m.h5, cut": h5()[:3_000],
        "m.h5, bad root": h5()[:24] + b"\xff" * 16 + h5()[40:],
        "m.h5, a kind that is not UTF-8": h5(kind=b"\xff\xfe\xfa"),
    },
    "expected an undamaged .npy file": {
        "t.npy, nothing": b"",
        "t.npy, cut": cut(as_npy(np.zeros((300, D)))),
        "t.npy, an overflowing shape": header_of((2**62, 2**62)),
    },
    "expected a whole gzip file at": {"t.csv.gz, cut": cut(gzip.compress(bytes(range(256))))},
    "expected a whole IDX file at": {"t-idx2-ubyte, cut": as_idx(np.zeros((3, D), "u1"))[:-1]},
    # what is there, and what it should be
    "which is none of these": {
        "model, no suffix": b"",
        "t.png, a picture": b"\x89PNG\r\n",
        "t-idx2-ubyte, of another kind": b"\0\0\7\2" + bytes(18),
    },
    "expected a fitted BernoulliRBM": {
        "m.skops, not fitted": skops.io.dumps(BernoulliRBM(M)),
        "m.skops, arrays": skops.io.dumps(ARRAYS),
    },
    "expected one matrix of weights, and a vector of biases for each of its sides, got": {
        "m.npz, text": npz(weights=np.array(["a", "b"])),
        "m.npz, four axes": npz(weights=np.zeros((1, D, M, 1))),
        "m.npz, an empty zip": zipped({}),
        "m.npz, a pickle in it": zipped({"weights.npy": pickle.dumps(Code())}),
        "m.mat, cells": mat(vishid=np.array([[1], ["a"]], dtype=object)),
        "m.pt, lines in names": as_pt({"a\nb": torch.zeros(2)}),
        "m.pt, many names": as_pt({f"layer{i}.weight": torch.zeros(1) for i in range(2_000)}),
    },
    "expected visible and hidden biases, got no arrays": {
        "m.npz, weights of scikit-learn": as_npz({"components_": np.zeros((M, D))}),
    },
    "if the model has none, say so: --names hidden=0": {
        "m.npz, no hidden bias": npz(hidden_bias=None)
    },
    "if the model has none, say so: --names visible=0,hidden=0": {
        "m.mat, no biases": as_mat({"W": np.eye(2)})
    },
    "expected a dense tensor of real numbers as weights": {
        "m.pt, expanded": pt(weights=torch.zeros(1).expand(2**14, 2**13)),
        "m.pt, no numbers": pt(weights=torch.zeros(D, M, device="meta")),
        "m.pt, sparse": pt(weights=torch.eye(D, M).to_sparse()),
        "m.pt, complex": pt(weights=torch.zeros(D, M, dtype=torch.cfloat)),
    },
    "weights: expected finite numbers, got 24 NaN or infinite of 24": {
        "m.npz, NaN": npz(weights=np.full((D, M), np.nan)),
    },
    "expected real numbers, got torch.complex128": {
        "m.npz, a complex bias": npz(visible_bias=np.zeros(D) * 1j)
    },
    "weights: expected an array of numbers": {
        "m.npz, dates": npz(weights=np.zeros((D, M), "M8[s]"))
    },
    "weights: expected shape [any, any], got [0, 4]": {
        "m.npz, empty": npz(weights=np.zeros((0, M)), visible_bias=np.zeros(0)),
    },
    "visible_bias: expected shape [6], got [5]": {
        "m.npz, a short bias": npz(visible_bias=np.zeros(D - 1))
    },
    "choose one by leaving out the others, for the last --names ignore=0": {
        "m.pt, two layers": as_pt({f"{n}.{k}": t for n in (0, 1) for k, t in TENSORS.items()}),
    },
    # archives of rbms
    "expected data as update_3.params.weight_matrix in m.h5, got": {
        "m.h5, no weights": h5(without="weight_matrix"),
        "m.h5, weights are a group": h5(weight_matrix=h5py.File.create_group),
    },
    "expected data as update_3.weight_matrix in m.h5, got nothing": {
        "m.h5, a cycle": h5_with({"update_3/x": 0.0, PARAMS: same_as("update_3")}),
        "m.h5, the root in itself": h5_with({"update_3": same_as("/")}),
    },
    "got SoftLink": {"m.h5, a link to itself": h5(vbias=h5py.SoftLink(f"/{PARAMS}/vbias"))},
    "got ExternalLink": {
        "m.h5, an external link": h5(weight_matrix=h5py.ExternalLink("other.h5", "x"))
    },
    "got data of other files": {
        "m.h5, a virtual array": h5(weight_matrix=virtual),
        "m.h5, an external array": h5(
            weight_matrix=dataset((D, M), "f8", external=[("x", 0, D * M * 8)])
        ),
    },
    "got no data": {"m.h5, null": h5(hbias=h5py.Empty("f8"))},
    "expected an array of real numbers as update_3.params.hbias": {
        "m.h5, a number": h5(hbias=0.5),
        "m.h5, empty": h5(hbias=np.zeros(0)),
        "m.h5, whole numbers": h5(hbias=np.zeros(M, int)),
    },
    "expected real numbers as update_3.params.weight_matrix": {
        "m.h5, records": h5(weight_matrix=dataset((D, M), [("x", "f8")])),
    },
    "hidden_bias: expected finite numbers, got 4 NaN or infinite of 4": {
        "m.h5, infinite": h5(hbias=np.full(M, -np.inf)),
    },
    "are the weights transposed": {"m.h5, turned": h5(weight_matrix=np.zeros((M, D)))},
    "expected a string as model_type": {"m.h5, a kind in rows": h5(kind=np.array([b"BBRBM"]))},
    "got model_type as well": {
        "m.h5, no updates": h5_with({f"params/{n}": a for n, a in ARRAYS.items()})
    },
    "expected a number as": {"m.h5, ln Z a matrix": h5(log_z=np.eye(2))},
    "got BGRBM, which needs Gaussian hidden units": {"m.h5, Gaussian units": h5(kind="BGRBM")},
    "got CEBM, which needs units that this library does not have": {
        "m.h5, other units": h5(kind="CEBM")
    },
    # images
    "expected rows of numbers": {
        "t.csv, words": b"a,b\nc,d\n",
        "t.csv, ragged": b"0,1,0,1,0,1\n0,1\n",
    },
    "expected a row of values for each image, got a single row": {
        "t.npy, a vector": as_npy(np.zeros(D)),
    },
    "expected at least one image, got an empty table": {
        "t.npy, no images": as_npy(np.zeros((0, D))),
        "t.csv, nothing": b"",
        "t.mat, no images": as_mat({"x": np.zeros((0, 0))}),
    },
    "expected numbers in": {
        "t.npy, complex": as_npy(np.zeros((3, D)) * 1j),
        "t.npy, dates": as_npy(np.zeros((3, D), "M8[s]")),
    },
    "expected one array in": {"t.npz, a vector": as_npz({"a": np.zeros(D)})},
    "--binarize SEED": {
        "t.csv, grey": b"0.5,0,0,0,0,0\n0,0,0,0,0,0\n",
        "t.npy, levels": as_npy(np.eye(D) * 200),
    },
    "expected only 0 and 1": {
        "t.npy, above 1": as_npy(np.eye(D) * 1.5),
        "t.npy, below 0": as_npy(np.eye(D) * -1.0),
    },
}
EVERY = [(message, *file) for message, files in FILES.items() for file in files.items()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("message", "name", "content"), EVERY, ids=[name[-40:] for _, name, _ in EVERY]
)
def test_refused(tmp_path, capsys, message, name, content):
    """By the tool in these words, and by `RBM.load` in others."""
    path = write(tmp_path, name, content)
    argument = "path"
    readers = [read_model, RBM.load]
    if name.startswith("t"):
        argument = "data"
        readers = [lambda path: read_images("data", path, D)]
    messages = []
    for read in readers:
        with pytest.raises(InputError, match=f"^{argument}: expected") as refusal:
            read(path)
        messages.append(str(refusal.value).replace(f"{tmp_path}/", ""))
    assert message in messages[0]
    for text in messages:
        assert "\n" not in text
        # a name in the message may be longer than that
        assert len(text) < 600 or "too long a name" in name
    # what a pickle would have printed
    assert capsys.readouterr().out == ""


# ---- commands


@pytest.fixture
def _folder(folder):
    random_rbm(5, 4, seed=2).save("narrow.npz")
    write_archive(folder / "RBM.h5")
    images = np.load("t.npy")
    np.save("one.npy", images[:1])
    np.save("seven.npy", images[:, :7])
    (folder / "folder").mkdir()


COMMANDS = {
    "evaluate m.npz --data no.npy": "data: expected a file, found none",
    "evaluate no.npz --data t.npy": "path: expected a file, found none",
    "evaluate m.npz --data one.npy": "data: expected at least two images, got 1",
    "evaluate m.npz --data seven.npy": (
        "data: expected images of 8 values, as many as the model has visible units, got 7"
    ),
    "evaluate narrow.npz --data t.npy": (
        "data: expected images of 5 values, as many as the model has visible units, got 8"
    ),
    "evaluate m.npz --data folder": "data: expected a file",
    "evaluate t.npy --data t.npy": (
        "path: expected a model in t.npy: expected visible and hidden biases"
    ),
    "evaluate m.npz --data t.npy --minutes 0": "minutes: expected a positive number",
    "evaluate m.npz --data t.npy --device tpu": "device: expected",
    "evaluate m.npz --data t.npy --train no.npy": "train: expected a file, found none",
    "evaluate m.npz --data t.npy --json no/r.json": "json: expected a file in a folder that exists",
    "evaluate m.npz --data t.npy --json folder": "json: expected to be able to write",
    "evaluate m.npz --data t.npy --plot r.txt": "plot: expected a .svg, .png or .pdf file",
    "evaluate m\udcff.npz --data t.npy": "path: expected a file, found none",
    "audit m.npz --data t.npy": "claimed-log-z: expected it",
    "compare m.npz no.npz --data t.npy": "path: expected a file, found none",
    "compare m.npz narrow.npz --data t.npy": "expected images of 5 values",
    "training folder --data t.npy": "models: expected a folder with at least two",
    "training no --data t.npy": "models: expected an archive of rbms",
    "training RBM.h5 --data seven.npy --updates 1,x": "updates: expected whole numbers",
    "training RBM.h5 --data seven.npy --updates 7": "update: expected one of 1, 5, 10, 200",
    "training RBM.h5 --data seven.npy --steps 5": "steps: expected",
    "training RBM.h5 --data seven.npy --plot r.gif": "plot: expected a .svg, .png or .pdf file",
    "training RBM.h5 --data seven.npy --csv no/r.csv": (
        "csv: expected a file in a folder that exists"
    ),
    "reproduce --only 99": "only: expected part of a chapter's name",
    "check 05 99": "names: expected part of a page's name",
    "reproduce --only 05 --device tpu": "device: expected cpu or cuda, got 'tpu'",
    "reproduce --set seed": "set: expected NAME=VALUE, got 'seed'",
    "reproduce --only 05 --set colour=1": "set: expected parameters of 05",
    "train digits-cd1-12 --output x.pkl": "output: expected a .safetensors file",
    "book --profile x": "profile: expected",
}


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("line", COMMANDS)
def test_refused_by_the_command(refusal, line):
    """In one sentence on standard error."""
    message, output = refusal(line)
    assert message.startswith("paperlib: ")
    assert COMMANDS[line] in message
    assert message.count("\n") == 1
    # before anything is computed that would then be lost
    assert "Verdict" not in output


NO_MODEL = "path: expected a file, found none at no.npz"
NO_IMAGES = "data: expected a file, found none at no.npy"
GREY = "expected only 0 and 1"
TOGETHER = {
    "evaluate no.npz --data no.npy": [NO_MODEL, NO_IMAGES],
    "audit no.npz --data no.npy --claimed-log-z 1": [NO_MODEL, NO_IMAGES],
    "compare no.npz nor.npz --data no.npy": [
        NO_MODEL,
        "path: expected a file, found none at nor.npz",
        NO_IMAGES,
    ],
    "compare m.npz no.npz --data no.npy": [NO_MODEL, NO_IMAGES],
    "training folder --data no.npy": ["models: expected a folder", NO_IMAGES],
    "evaluate no.npz --data grey.npy --train grey.npy": [
        NO_MODEL,
        f"data: {GREY}",
        f"train: {GREY}",
    ],
    "evaluate m.npz --data grey.npy --train no.npy": [
        f"data: {GREY}",
        "train: expected a file, found none at no.npy",
    ],
    "evaluate no.npz --data row.npy": [NO_MODEL, "data: expected a row of values"],
    "evaluate no.npz --data states.npy": [NO_MODEL, f"data: {GREY}"],
    # these may be spins, or become binary
    "evaluate no.npz --data spins.npy": [NO_MODEL],
    "evaluate no.npz --data grey.npy --threshold 0.2": [NO_MODEL],
    # only the images could tell which biases are visible
    "evaluate nameless.npz --data no.npy": [NO_IMAGES],
    "evaluate nameless.npz --data row.npy": [
        "path: .* and images of 1; say it",
        "data: expected a row of values",
    ],
}


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("line", TOGETHER)
def test_mistakes_are_said_together(refusal, line):
    images = np.load("t.npy")
    np.save("row.npy", images[0])
    np.save("grey.npy", images * 0.5)
    np.save("states.npy", 20 * images)
    np.save("spins.npy", 2.0 * images - 1)
    np.savez("nameless.npz", W=np.ones((8, 5)), b=np.ones(8), c=np.ones(5))
    lines = refusal(line)[0].splitlines()
    assert len(lines) == len(TOGETHER[line])
    for text, expected in zip(lines, TOGETHER[line], strict=True):
        assert re.match(f"paperlib: {expected}", text)


@pytest.mark.usefixtures("_folder")
def test_nothing_is_printed_of_what_is_no_model(refusal):
    assert refusal("evaluate t.npy --data t.npy --json r.json")[1] == ""


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("seed", [str(2**64), str(-(2**64)), "x"])
@pytest.mark.parametrize("option", ["--seed", "--binarize"])
def test_seeds(refusal, seed, option):
    refusal(f"evaluate m.npz --data t.npy {option} {seed}")
