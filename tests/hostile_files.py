"""Files that are no model and no images, broken by accident or made to do harm, and what is said of them."""

import gzip
import json
import os
import pickle
import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import h5py
import numpy as np
import skops.io
import torch
from sklearn.neural_network import BernoulliRBM
from writers import (
    RBMS_NAMES,
    as_hdf5,
    as_idx,
    as_mat,
    as_npy,
    as_npz,
    as_pt,
    as_safetensors,
)

D, M = 6, 4
ARRAYS = {
    "weights": np.full((D, M), 0.5),
    "visible_bias": np.zeros(D),
    "hidden_bias": np.zeros(M),
}
MATLAB = dict(zip(("vishid", "visbiases", "hidbiases"), ARRAYS.values(), strict=True))
TENSORS = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
# What a bomb unpacks to.
BOMB = 2**27


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return print, ("unpickled",)


class Untrusted:
    """Of a type that no reader of a model file has reason to trust."""


def write(folder, name, content):
    """The path of a file; its content may be bytes, nothing at all, or a function that makes something of the path."""
    path = folder / name.partition(",")[0]
    if callable(content):
        content(path)
    elif content is not None:
        path.write_bytes(content)
    return path


# ---- pieces of content


def cut(content, keep=0.5):
    return content[: int(len(content) * keep)]


def zeros(start=b"", size=BOMB):
    """A beginning and so many zeros, in pieces."""
    yield start
    for _ in range(size // 2**20):
        yield bytes(2**20)


def zipped(members):
    """A zip with these names; their contents come in pieces, when it is written."""

    def make(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            for member, pieces in members.items():
                with file.open(member, "w", force_zip64=True) as inside:
                    for piece in [pieces] if isinstance(pieces, bytes) else pieces():
                        inside.write(piece)

    return make


def gz(pieces):
    def make(path):
        with gzip.open(path, "wb", compresslevel=1) as file:
            for piece in pieces():
                file.write(piece)

    return make


def sparse(beginning):
    """A gigabyte that takes no room, after the beginning of something."""

    def make(path):
        path.write_bytes(beginning)
        os.truncate(path, 2**30)

    return make


def npz(**changes):
    arrays = ARRAYS | changes
    return as_npz({name: array for name, array in arrays.items() if array is not None})


def npy_header(shape, kind="<f8"):
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


def npy_bomb():
    return zeros(npy_header((BOMB // 8 // M, M)))


def encrypted(content):
    """By what a zip says of its members."""
    data = bytearray(content)
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(mark)
        while start >= 0:
            data[start + place] |= 1
            start = data.find(mark, start + 4)
    return bytes(data)


def idx_header(*shape, kind=8):
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape)


def mat(**changes):
    return as_mat(MATLAB | changes, do_compression=True)


def mat_of(shape, size=192):
    """A matrix `vishid` of level 5 with this shape, and so many zeros as its numbers."""

    def element(kind, content):
        return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)

    def make(path):
        body = element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<ii", *shape))
        body += element(1, b"vishid") + struct.pack("<II", 9, size) + bytes(size)
        packed = zlib.compress(struct.pack("<II", 14, len(body)) + body, 1)
        start = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
        path.write_bytes(start + struct.pack("<II", 15, len(packed)) + packed)

    return make


def pt(**changes):
    return as_pt(TENSORS | changes)


def pt_bomb(path):
    """As torch writes it, with the storage compressed."""
    stored = zipfile.ZipFile(BytesIO(pt(weights=torch.zeros(BOMB // 8 // M, M).double())))
    zipped({name: stored.read(name) for name in stored.namelist()})(path)


def nested_in(name, levels):
    stored = TENSORS
    for _ in range(levels):
        stored = {name: stored}
    return stored


CYCLIC: dict = {}
CYCLIC["state_dict"] = CYCLIC


def st(header, content=b"", length=None):
    packed = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(packed) if length is None else length) + packed + content


def st_weights(shape):
    return {"weights": {"dtype": "F64", "shape": shape, "data_offsets": [0, 192]}}


# ---- archives in the layout of rbms

PARAMS = "update_3/params"
WEIGHTS = f"{PARAMS}/weight_matrix"


def h5(kind="BBRBM", without=None, log_z=None, **changes):
    """An archive with other arrays; a function of file and name is called in the place of an array."""
    arrays = dict(zip(RBMS_NAMES, ARRAYS.values(), strict=True)) | changes
    content = {"model_type": kind} | {f"{PARAMS}/{n}": a for n, a in arrays.items() if n != without}
    return as_hdf5(content | ({} if log_z is None else {"update_3/log_z": log_z}))


def h5_with(content):
    """An archive of these names only, beside its kind; of links to other files a path is needed."""

    def make(path):
        stored = {"model_type": "BBRBM"} | (content(path) if callable(content) else content)
        path.write_bytes(as_hdf5(stored))

    return make


def dataset(*arguments, **options):
    return lambda file, name: file.create_dataset(name, *arguments, **options)


def same_as(other):
    return lambda file, name: file.__setitem__(name, file[other])


def sparse_chunk(file, name):
    """An array of 6 x 4 numbers in one chunk of a hundred megabytes."""
    chunked = dataset(
        (D, M), "f8", maxshape=(None, None), chunks=(2**13, 2**11), compression="gzip"
    )
    chunked(file, name).id.write_direct_chunk((0, 0), zlib.compress(bytes(BOMB), 1))


def elsewhere(path):
    """Weights that a link brings in from another file."""
    path.with_name("other.h5").write_bytes(h5())
    return {f"{PARAMS}/x": 0.0, WEIGHTS: h5py.ExternalLink("other.h5", WEIGHTS)}


def virtual(path):
    path.with_name("other.h5").write_bytes(h5())
    layout = h5py.VirtualLayout((D, M), "f8")
    layout[:] = h5py.VirtualSource(str(path.with_name("other.h5")), WEIGHTS, (D, M))
    return {WEIGHTS: lambda file, name: file.create_virtual_dataset(name, layout)}


def external(path):
    numbers = path.with_name("numbers")
    numbers.write_bytes(bytes(D * M * 8))
    return {WEIGHTS: dataset((D, M), "f8", external=[(str(numbers), 0, D * M * 8)])}


def updates_without_content(file, name):
    for number in range(2_000):
        file.create_group(f"update_{10_000 + number}")


def inflated(file, name):
    """A hundred megabytes of zeros, compressed to a hundred kilobytes."""
    data = np.zeros((12_500, 1_000))
    file.create_dataset(name, data=data, compression="gzip", chunks=(12_500, 100))


def thirty_megabytes(file, name):
    file.create_dataset(name, data=np.zeros((4, 10**6)), compression="gzip", chunks=(4, 10**5))


# ---- the tables: what is said, and of which files; a name is that of the file, and says what is wrong with it

MODEL_FILES = {
    "expected a file, found none at": {
        "m.npz, missing": None,
        "m.npz, zeros without end": lambda path: path.symlink_to("/dev/zero"),
        "m.npz, a pipe": os.mkfifo,
        "m.npz, a link to itself": lambda path: path.symlink_to(path),
        "m.npz, a folder": Path.mkdir,
        f"{'m' * 5_000}.npz, too long a name": None,
        "m\0.npz, a name with a null": None,
        os.fsdecode(b"m\xff.npz") + ", a name that is not UTF-8": None,
    },
    "got a pickle, which can run any code when it is read": {
        "m.pkl, a pickle": pickle.dumps(Code()),
        "m.pt, a plain pickle": pickle.dumps(TENSORS),
    },
    "got pickled objects, which can run any code": {
        "m.pt, code": pt(x=Code()),
        "m.pt, code of old": as_pt(TENSORS | {"x": Code()}, _use_new_zipfile_serialization=False),
    },
    "expected at most 67108864 bytes in the packed file": {
        "m.npz, a bomb": zipped({"weights.npy": npy_bomb}),
        "m.npz, a bomb beside a model": zipped(
            {f"{name}.npy": as_npy(array) for name, array in ARRAYS.items()} | {"x.npy": npy_bomb}
        ),
        "m.mat, a bomb": mat_of((BOMB // 8 // M, M), BOMB),
        "m.mat, a hidden bomb": mat_of((D, M), BOMB),
        "m.pt, a bomb": pt_bomb,
        "m.skops, a bomb": zipped({"schema.json": zeros}),
        "m.h5, a chunk of a hundred megabytes": h5(weight_matrix=sparse_chunk),
        "m.h5, text of 200 MB": h5(kind=dataset((), "S200000000")),
        "m.h5, two hundred terabytes": h5(
            weight_matrix=dataset((5_000_000,) * 2, "f8", chunks=True)
        ),
        "m.h5, a hundred megabytes of zeros": h5_with({WEIGHTS: inflated}),
        "m.h5, three times thirty": h5(**dict.fromkeys(RBMS_NAMES, thirty_megabytes)),
    },
    "expected at most 8 levels of names": {
        "m.pt, in itself": as_pt(CYCLIC),
        "m.pt, deep": as_pt(nested_in("model", 300)),
    },
    # damage
    "expected an undamaged .npz file": {
        "m.npz, nothing": b"",
        "m.npz, cut": cut(npz()),
        "m.npz, cut at the end": cut(npz(), 0.97),
        "m.npz, not a zip": b"PK\x03\x04 and nothing more",
        "m.npz, a sparse gigabyte": sparse(npz()),
        "m.npz, encrypted": encrypted(npz()),
        "m.npz, a huge shape": zipped({"weights.npy": npy_header((10**6, 10**6))}),
        "m.npz, a header that runs code": zipped({"weights.npy": npy_header("__import__('os')")}),
    },
    "expected an undamaged .mat file": {
        "m.mat, nothing": b"",
        "m.mat, text": b"not a MATLAB file at all" * 10,
        "m.mat, zeros": bytes(4_096),
        "m.mat, cut": cut(mat()),
        "m.mat, cut at the end": cut(mat(), 0.9),
        "m.mat, a huge shape": mat_of((2**30, 2**30)),
    },
    "expected an undamaged torch file": {
        "m.pt, cut": cut(pt()),
        "m.pt, the beginning of a zip": b"PK\x03\x04",
        "m.pt, a pickle in a zip": zipped({"data.pkl": pickle.dumps(TENSORS)}),
    },
    "expected an undamaged .safetensors file": {
        "m.safetensors, nothing": b"",
        "m.safetensors, cut": cut(as_safetensors(ARRAYS)),
        "m.safetensors, cut at the end": cut(as_safetensors(ARRAYS), 0.9),
        "m.safetensors, no JSON": st(b"{{{{"),
        "m.safetensors, a long header": st(b"{}", length=2**62),
        "m.safetensors, beyond the end": st(st_weights([D, M]), bytes(10)),
        "m.safetensors, a huge shape": st(st_weights([2**40, 2**40]), bytes(192)),
        "m.safetensors, a sparse gigabyte": sparse(st(b"{}")),
    },
    "expected an undamaged HDF5 file": {
        "m.h5, nothing": b"",
        "m.h5, no archive": b"no archive",
        "m.h5, cut": h5()[:3_000],
        "m.h5, bad root": h5()[:24] + b"\xff" * 16 + h5()[40:],
        "m.h5, long and without an end": sparse(h5()[:512]),
        "m.h5, a kind that is not UTF-8": h5(kind=b"\xff\xfe\xfa"),
        "m.h5, a name that is not UTF-8": h5_with({b"update_\xff\xfe/x": 0.0}),
    },
    "expected a BernoulliRBM that skops can load without trusting anything": {
        "m.skops, not a zip": b"PK",
        "m.skops, a type": skops.io.dumps(BernoulliRBM(M, random_state=Untrusted())),
    },
    "expected a fitted BernoulliRBM": {
        "m.skops, not fitted": skops.io.dumps(BernoulliRBM(M)),
        "m.skops, arrays": skops.io.dumps(ARRAYS),
    },
    # what is there, and what it should be
    "expected one matrix of weights, and a vector of biases for each of its sides, got": {
        "m.npz, other names": as_npz({"a": np.zeros(2)}),
        "m.npz, text": npz(weights=np.array(["a", "b"])),
        "m.npz, flat weights": npz(weights=ARRAYS["weights"].ravel()),
        "m.npz, four axes": npz(weights=np.zeros((1, D, M, 1))),
        "m.npz, an empty zip": zipped({}),
        "m.npz, no arrays in it": zipped({"weights.npy": b"not an array"}),
        "m.npz, a pickle in it": zipped({"weights.npy": pickle.dumps(Code())}),
        "m.mat, text as weights": mat(vishid="weights"),
        "m.mat, cells": mat(vishid=np.array([[1], ["a"]], dtype=object)),
        "m.mat, a struct": mat(vishid={"a": 1}),
        "m.pt, a list": as_pt([1, 2]),
        "m.pt, a number": pt(weights=torch.tensor(1.0)),
        "m.pt, lines in names": as_pt({"a\nb": torch.zeros(2)}),
        "m.pt, many names": as_pt({f"layer{i}.weight": torch.zeros(1) for i in range(2_000)}),
        "m.skops, no schema": zipped({"x.npy": b""}),
    },
    "--names visible=0,hidden=0": {
        "m.mat, no biases": as_mat({"W": np.eye(2)}),
        "m.safetensors, no biases": st({"w": st_weights([D, M])["weights"]}, bytes(192)),
    },
    "expected a dense tensor of real numbers as weights": {
        "m.pt, expanded": pt(weights=torch.zeros(1).expand(2**14, 2**13)),
        "m.pt, no numbers": pt(weights=torch.zeros(D, M, device="meta")),
        "m.pt, sparse": pt(weights=torch.eye(D, M).to_sparse()),
        "m.pt, bits": pt(weights=torch.zeros(D, M, dtype=torch.bits8)),
        "m.pt, complex": pt(weights=torch.zeros(D, M, dtype=torch.cfloat)),
    },
    # archives of rbms
    "expected data as update_3.params.weight_matrix in m.h5, got nothing": {
        "m.h5, no weights": h5(without="weight_matrix"),
        "m.h5, a visible bias alone": h5_with({f"{PARAMS}/vbias": np.zeros(3)}),
    },
    "expected data as update_3.weight_matrix in m.h5, got nothing": {
        "m.h5, an update is data": h5_with({"update_3": np.zeros(3)}),
        "m.h5, params is text": h5_with({PARAMS: "x"}),
        "m.h5, a cycle": h5_with({"update_3/x": 0.0, PARAMS: same_as("update_3")}),
        "m.h5, the root in itself": h5_with({"update_3": same_as("/")}),
        "m.h5, an update elsewhere": h5_with({"update_3": h5py.ExternalLink("m.h5", "/")}),
    },
    "got data of other files": {
        "m.h5, a virtual array": h5_with(virtual),
        "m.h5, an external array": h5_with(external),
    },
    "expected an array of real numbers as update_3.params.weight_matrix": {
        "m.h5, booleans": h5(weight_matrix=dataset((D, M), "?")),
        "m.h5, text": h5(weight_matrix="x"),
        "m.h5, objects": h5(weight_matrix=np.array([b"a", b"b"], dtype=object)),
    },
    "expected an array of real numbers as update_3.params.hbias": {
        "m.h5, a number": h5(hbias=0.5),
        "m.h5, empty": h5(hbias=np.zeros(0)),
        "m.h5, whole numbers": h5(hbias=np.zeros(M, int)),
    },
    "expected real numbers as update_3.params.weight_matrix": {
        "m.h5, references": h5(weight_matrix=dataset((D, M), h5py.ref_dtype)),
        "m.h5, records": h5(weight_matrix=dataset((D, M), [("x", "f8")])),
        "m.h5, ragged": h5(weight_matrix=dataset((D, M), h5py.vlen_dtype("f8"))),
        "m.h5, opaque": h5(weight_matrix=dataset((D, M), "V8")),
        "m.h5, complex": h5(weight_matrix=np.zeros((D, M)) * 1j),
    },
}

BITS = np.eye(D, dtype=np.uint8)

IMAGE_FILES = {
    "expected a file, found none at": {
        "t.npy, missing": None,
        "t.npz, a folder": Path.mkdir,
    },
    "which is none of these": {
        "t, nothing": b"",
        "t.png, a picture": b"\x89PNG\r\n",
        "t-ubyte, a short header": b"\x00\x00\x08",
        "t-idx2-ubyte, of another kind": idx_header(3, D, kind=7) + bytes(18),
    },
    "expected at most 67108864 bytes in the packed file": {
        "t.npz, a bomb": zipped({"a.npy": npy_bomb}),
        "t.csv.gz, a bomb": gz(lambda: (b"0,0,0,0,0,0\n" * 2**16 for _ in range(170))),
        "t-idx3-ubyte.gz, a bomb": gz(lambda: zeros(idx_header(2, BOMB // D, D))),
    },
    "expected an undamaged .npy file": {
        "t.npy, nothing": b"",
        "t.npy, cut": cut(as_npy(np.zeros((300, D)))),
        "t.npy, a huge shape": npy_header((10**9, D)),
        "t.npy, an overflowing shape": npy_header((2**62, 2**62)),
    },
    "expected a whole gzip file at": {
        "t.csv.gz, cut": cut(gzip.compress(os.urandom(9_999))),
        "t-ubyte.gz, cut": cut(gzip.compress(as_idx(BITS))),
    },
    "expected a whole IDX file at": {
        "t-idx2-ubyte, cut": idx_header(3, D) + b"\0\1",
        "t-idx4-ubyte, an overflowing shape": idx_header(*[2**16] * 4),
    },
    "expected rows of numbers": {
        "t.csv, words": b"a,b\nc,d\n",
        "t.csv, ragged": b"0,1,0,1,0,1\n0,1\n",
    },
    "expected shape [any, any], got": {
        "t.npy, no images": as_npy(np.zeros((0, D))),
        "t.npy, a number": as_npy(np.float64(3)),
        "t.npy, a vector": as_npy(np.zeros(D)),
        "t.csv, a word": b"0,1,zero\n",
        "t.csv, nothing": b"",
        "t-idx0-ubyte, no axes": idx_header() + b"\1",
        "t.mat, no images": as_mat({"x": np.zeros((0, 0))}),
    },
    "expected numbers in": {
        "t.npy, complex": as_npy(np.zeros((3, D)) * 1j),
        "t.npy, dates": as_npy(np.zeros((3, D), "M8[s]")),
        "t.npy, records": as_npy(np.zeros((3, D), [("x", "<f8")])),
        "t.npy, words": as_npy(BITS.astype(str)),
    },
    "expected finite numbers, got": {
        "t.npy, NaN": as_npy(np.full((3, D), np.nan)),
        "t.npy, infinite": as_npy(np.full((3, D), np.inf)),
        "t.csv, NaN": b"nan,0,0,0,0,0\n0,0,0,0,0,0\n",
    },
    "expected images of 6 values, as many as the model has visible units, got": {
        "t.npy, wide": as_npy(np.zeros((3, D + 1))),
        "t.npy, narrow": as_npy(np.zeros((3, D - 1))),
        "t.npy, much too wide": as_npy(np.zeros((3, D + 9))),
    },
    "is the array transposed?": {
        "t.npy, turned": as_npy(np.zeros((D, 20))),
        "t.h5, a model": h5(),
    },
    "expected one array in": {
        "t.npz, two arrays": as_npz({"a": np.eye(D), "b": np.eye(D)}),
        "t.npz, a vector": as_npz({"a": np.zeros(D)}),
    },
    "--binarize SEED": {
        "t.csv, grey": b"0.5,0,0,0,0,0\n0,0,0,0,0,0\n",
        "t.npy, grey": as_npy(BITS * 0.5),
        "t.npy, levels": as_npy(BITS * 200),
    },
    "expected only 0 and 1": {
        "t.npy, above 1": as_npy(BITS * 1.5),
        "t.npy, below 0": as_npy(BITS * -1.0),
    },
}

#: Of what is said of one file only: the file, its content, and what is said.
OF_THEIR_OWN = [
    ("model, no suffix", b"", "which is none of these"),
    ("m.npz, objects", npz(weights=np.array([Code(), None], dtype=object)), "it holds pickled objects, which can run any code"),
    ("m.mat, a sparse gigabyte", sparse(mat()[:512]), "expected matrices in the MATLAB file"),
    ("m.npz, weights of scikit-learn", as_npz({"components_": np.zeros((M, D))}), "expected visible and hidden biases, got no arrays"),
    ("m.npz, no hidden bias", npz(hidden_bias=None), "expected hidden biases, got no arrays besides the rest of an RBM; if the model has none, say so: --names hidden=0"),
    ("m.npz, no visible bias", npz(visible_bias=None), "expected visible biases, got no arrays besides the rest of an RBM; if the model has none, say so: --names visible=0"),
    ("m.npz, NaN", npz(weights=np.full((D, M), np.nan)), "weights: expected finite numbers, got 24 NaN or infinite of 24"),
    ("m.h5, infinite", h5(vbias=np.full(D, np.inf)), "visible_bias: expected finite numbers, got 6 NaN or infinite of 6"),
    ("m.h5, minus infinity", h5(hbias=np.full(M, -np.inf)), "hidden_bias: expected finite numbers, got 4 NaN or infinite of 4"),
    ("m.npz, complex weights", npz(weights=ARRAYS["weights"] * 1j), "weights: expected real numbers, got torch.complex128"),
    ("m.npz, a complex bias", npz(visible_bias=np.zeros(D) * 1j), "expected real numbers, got torch.complex128"),
    ("m.npz, dates", npz(weights=np.zeros((D, M), "M8[s]")), "weights: expected an array of numbers"),
    ("m.mat, a complex bias", mat(visbiases=np.zeros(D) * 1j), "expected real numbers, got torch.complex128"),
    ("m.npz, empty", npz(weights=np.zeros((0, M)), visible_bias=np.zeros(0)), "weights: expected shape [any, any], got [0, 4]"),
    ("m.npz, a short bias", npz(visible_bias=np.zeros(D - 1)), "visible_bias: expected shape [6], got [5]"),
    ("m.pt, biases expanded", pt(visible_bias=torch.zeros(1, dtype=torch.uint8).expand(2**28)), "expected a dense tensor of real numbers as visible_bias"),
    ("m.pt, two layers", as_pt({f"{n}.{k}": t for n in (0, 1) for k, t in TENSORS.items()}), "layers: expected 4 visible units in layer 1"),
    ("m.pt, weights that do not fit", pt(weights=torch.zeros(3, 3)), "expected a model in"),
    ("m.h5, no visible bias", h5(without="vbias"), "expected data as update_3.params.vbias in m.h5, got nothing"),
    ("m.h5, no hidden bias", h5(without="hbias"), "expected data as update_3.params.hbias in m.h5, got nothing"),
    ("m.h5, weights are a group", h5(weight_matrix=h5py.File.create_group), "expected data as update_3.params.weight_matrix in m.h5, got a group"),
    ("m.h5, many updates without content", h5_with({"updates": updates_without_content}), "expected data as update_11999.weight_matrix in m.h5, got nothing"),
    ("m.h5, a link to itself", h5(vbias=h5py.SoftLink(f"/{PARAMS}/vbias")), "expected data of the file itself as update_3.params.vbias in m.h5, got SoftLink"),
    ("m.h5, an external link", h5_with(elsewhere), "expected data of the file itself as update_3.params.weight_matrix in m.h5, got ExternalLink"),
    ("m.h5, null", h5(hbias=h5py.Empty("f8")), "got no data"),
    ("m.h5, a short bias", h5(hbias=np.zeros(3)), "hidden_bias: expected shape [4], got [3]"),
    ("m.h5, turned", h5(weight_matrix=np.zeros((M, D))), "are the weights transposed"),
    ("m.h5, three axes", h5(weight_matrix=np.zeros((2, 3, 4))), "weights: expected shape"),
    ("m.h5, a kind in rows", h5(kind=np.array([b"BBRBM"])), "expected a string as model_type"),
    ("m.h5, no updates", h5_with({f"params/{n}": array for n, array in ARRAYS.items()}), "got model_type as well"),
    ("m.h5, ln Z a matrix", h5(log_z=np.eye(2)), "expected a number as"),
    ("m.h5, Gaussian units", h5(kind="BGRBM"), "got BGRBM, which needs Gaussian hidden units"),
    ("m.h5, units of another kind", h5(kind="CEBM"), "got CEBM, which needs units that this library does not have"),
    ("t.csv, bytes", bytes(range(128, 256)), "got a pickle, which can run any code when it is read"),
    ("t.npy, objects", npy_header((2, D), "|O") + pickle.dumps(Code()), "it holds pickled objects, which can run any code"),
    ("t-idx-ubyte, of 255 axes", idx_header(*[1] * 255) + b"\1", "expected an undamaged IDX file"),
]  # fmt: skip


#: All of them, models and images.
EVERY = [
    (name, content, message)
    for message, files in [*MODEL_FILES.items(), *IMAGE_FILES.items()]
    for name, content in files.items()
] + OF_THEIR_OWN
