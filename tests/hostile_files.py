"""Files that are no model and no images: broken by accident, or made to do harm. Each function writes one and returns its path.

`python tests/hostile_files.py` reads files that are named on its standard input, and says of each what came out and what it took of memory.
"""

import gzip
import io
import json
import os
import pickle
import resource
import struct
import sys
import zipfile
import zlib
from importlib import import_module
from pathlib import Path

import h5py
import numpy as np
import torch

D, M = 6, 4
ARRAYS = {
    "weights": np.full((D, M), 0.5),
    "visible_bias": np.zeros(D),
    "hidden_bias": np.zeros(M),
}
RBMS = dict(zip(("weight_matrix", "vbias", "hbias"), ARRAYS.values(), strict=True))
MATLAB = dict(zip(("vishid", "visbiases", "hidbiases"), ARRAYS.values(), strict=True))
TENSORS = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
# What a bomb unpacks to.
BOMB = 2**27
_ZEROS = bytes(2**20)


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return print, ("unpickled",)


def many_zeros(count=BOMB):
    for _ in range(count // len(_ZEROS)):
        yield _ZEROS


# ---- HDF5


def archive(path, change=lambda file: None, arrays=RBMS, group="update_3/params"):
    """An archive of rbms, and what `change` does to it."""
    with h5py.File(path, "w", track_order=False) as file:
        file["model_type"] = "BBRBM"
        for name, array in arrays.items():
            file[f"{group}/{name}"] = array
        change(file)
    return path


def h5(change, arrays=RBMS):
    return lambda folder: archive(folder / "m.h5", change, arrays)


def h5_without(name):
    return h5(lambda file: None, {key: value for key, value in RBMS.items() if key != name})


def _instead(name, value):
    def change(file):
        del file[name]
        file[name] = value

    return h5(change)


def _cycle(file):
    del file["update_3/params"]
    file["update_3/params"] = file["update_3"]


def _root_cycle(file):
    del file["update_3"]
    file["update_3"] = file["/"]


def _other_file(file):
    del file["update_3"]
    file["update_3"] = h5py.ExternalLink(file.filename, "/")


def _soft_cycle(file):
    del file["update_3/params/vbias"]
    file["update_3/params/vbias"] = h5py.SoftLink("/update_3/params/vbias")


def _sparse_chunk(file):
    """An array of 6 x 4 numbers in one chunk of a hundred megabytes."""
    del file["update_3/params/weight_matrix"]
    data = file.create_dataset(
        "update_3/params/weight_matrix",
        (D, M),
        "f8",
        maxshape=(None, None),
        chunks=(2**13, 2**11),
        compression="gzip",
    )
    data.id.write_direct_chunk((0, 0), zlib.compress(bytes(BOMB), 1))


def _of_kind(kind):
    def change(file):
        del file["update_3/params/weight_matrix"]
        file.create_dataset("update_3/params/weight_matrix", (D, M), kind)

    return h5(change)


def _long_text(file):
    del file["model_type"]
    file.create_dataset("model_type", (), "S200000000")


def _bytes_as_text(file):
    del file["model_type"]
    file["model_type"] = b"\xff\xfe\xfa"


def _name_of_bytes(file):
    file.create_group(b"update_\xff\xfe")
    del file["update_3"]


def _many_updates(file):
    for number in range(2_000):
        file.create_group(f"update_{10_000 + number}")


def overwritten(place, content):
    """An archive with other bytes somewhere."""

    def make(folder):
        path = archive(folder / "m.h5")
        data = bytearray(path.read_bytes())
        data[place : place + len(content)] = content
        path.write_bytes(data)
        return path

    return make


HDF5 = {
    "h5 no weights": h5_without("weight_matrix"),
    "h5 no visible bias": h5_without("vbias"),
    "h5 no hidden bias": h5_without("hbias"),
    "h5 update is data": _instead("update_3", np.zeros(3)),
    "h5 params is text": _instead("update_3/params", "x"),
    "h5 weights are a group": h5(
        lambda file: (
            file.move("update_3/params/weight_matrix", "x"),
            file.create_group("update_3/params/weight_matrix"),
        )
    ),
    "h5 cycle": h5(_cycle),
    "h5 root in itself": h5(_root_cycle),
    "h5 soft link to itself": h5(_soft_cycle),
    "h5 update elsewhere": h5(_other_file),
    "h5 chunk of a hundred megabytes": h5(_sparse_chunk),
    "h5 text of 200 MB": h5(_long_text),
    "h5 kind not UTF-8": h5(_bytes_as_text),
    "h5 names not UTF-8": h5(_name_of_bytes),
    "h5 booleans": _of_kind("?"),
    "h5 references": _of_kind(h5py.ref_dtype),
    "h5 records": _of_kind(np.dtype([("x", "f8")])),
    "h5 ragged": _of_kind(h5py.vlen_dtype("f8")),
    "h5 opaque": _of_kind("V8"),
    "h5 half infinite": h5(lambda file: file["update_3/params/vbias"].write_direct(np.full(D, np.inf))),
    "h5 negative infinite": h5(lambda file: file["update_3/params/hbias"].write_direct(np.full(M, -np.inf))),
    "h5 many updates, empty": h5(_many_updates),
    "h5 bad version": overwritten(8, b"\x63"),
    "h5 bad root": overwritten(24, b"\xff" * 16),
    "h5 long file, no end": lambda folder: _sparse(archive(folder / "m.h5"), cut=True),
}  # fmt: skip


def _sparse(path, cut=False):
    """A file of a gigabyte that takes no room, with the beginning of another one."""
    if cut:
        path.write_bytes(path.read_bytes()[:512])
    with path.open("r+b") as file:
        file.truncate(2**30)
    return path


# ---- numpy


def npz(**changes):
    def make(folder):
        np.savez(folder / "m.npz", **(ARRAYS | changes))
        return folder / "m.npz"

    return make


def npz_of(*members, method=zipfile.ZIP_DEFLATED):
    """A zip with these (name, content); content may come in pieces."""

    def make(folder, name="m.npz"):
        with zipfile.ZipFile(folder / name, "w", method, compresslevel=1) as file:
            for member, content in members:
                with file.open(member, "w", force_zip64=True) as inside:
                    for piece in [content] if isinstance(content, bytes) else content():
                        inside.write(piece)
        return folder / name

    return make


def npy_header(shape, kind="<f8", order="False"):
    text = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


def npy(shape, kind="<f8", content=b"", order="False"):
    def make(folder):
        (folder / "t.npy").write_bytes(npy_header(shape, kind, order) + content)
        return folder / "t.npy"

    return make


def _bomb():
    yield npy_header((BOMB // 8 // M, M))
    yield from many_zeros()


def _encrypted(folder):
    path = npz()(folder)
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(mark)
        while start >= 0:
            data[start + place] |= 1
            start = data.find(mark, start + 4)
    path.write_bytes(data)
    return path


def cut(make, keep=0.5):
    def made(folder):
        path = make(folder)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])
        return path

    return made


def text(name, content):
    def make(folder):
        (folder / name).write_bytes(content)
        return folder / name

    return make


def gz(name, pieces):
    def make(folder):
        with gzip.open(folder / name, "wb", compresslevel=1) as file:
            for piece in pieces():
                file.write(piece)
        return folder / name

    return make


def _sklearn(**changes):
    names = {"components_": np.zeros((M, D)), "intercept_visible_": np.zeros(D)}
    arrays = names | {"intercept_hidden_": np.zeros(M)} | changes

    def make(folder):
        np.savez(folder / "m.npz", **{k: v for k, v in arrays.items() if v is not None})
        return folder / "m.npz"

    return make


NUMPY = {
    "npz no weights": lambda folder: (np.savez(folder / "m.npz", a=np.zeros(2)), folder / "m.npz")[1],
    "npz objects": npz(weights=np.array([Code(), None], dtype=object)),
    "npz text": npz(weights=np.array(["a", "b"])),
    "npz dates": npz(weights=np.zeros((D, M), "M8[s]")),
    "npz complex": npz(visible_bias=np.zeros(D) * 1j),
    "npz nan": npz(weights=np.full((D, M), np.nan)),
    "npz infinite": npz(hidden_bias=np.full(M, np.inf)),
    "npz empty": npz(weights=np.zeros((0, M)), visible_bias=np.zeros(0)),
    "npz four axes": npz(weights=np.zeros((1, D, M, 1))),
    "npz short bias": npz(visible_bias=np.zeros(D - 1)),
    "npz records": npz(weights=np.zeros((D, M), [("x", "f8")])),
    "npz cut": cut(npz()),
    "npz cut at the end": cut(npz(), 0.97),
    "npz encrypted": _encrypted,
    "npz a pickle": text("m.npz", pickle.dumps(Code())),
    "npz not a zip": text("m.npz", b"PK\x03\x04 and nothing more"),
    "npz empty zip": npz_of(),
    "scikit-learn complex": _sklearn(components_=np.zeros((M, D)) * 1j),
    "scikit-learn one axis": _sklearn(components_=np.zeros(M)),
    "scikit-learn no biases": _sklearn(intercept_visible_=None),
    "scikit-learn turned": _sklearn(components_=np.zeros((D, M))),
    "npz no arrays in it": npz_of(("weights.npy", b"not an array")),
    "npz pickle in it": npz_of(("weights.npy", pickle.dumps(Code()))),
    "npz bomb": npz_of(("weights.npy", _bomb)),
    "npz bomb beside a model": lambda folder: npz_of(
        *((f"{name}.npy", _npy_bytes(array)) for name, array in ARRAYS.items()), ("x.npy", _bomb)
    )(folder),
    "npz huge shape": npz_of(("weights.npy", npy_header((10**6, 10**6)))),
    "npz negative shape": npz_of(("weights.npy", npy_header((-6, -4)) + bytes(192))),
    "npz shape is text": npz_of(("weights.npy", npy_header("'ab'") + bytes(192))),
    "npz header runs code": npz_of(("weights.npy", npy_header("__import__('os')"))),
}  # fmt: skip


def _npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


IMAGES = {
    "npy objects": npy((2, D), "|O", pickle.dumps(Code())),
    "npy huge shape": npy((10**9, D)),
    "npy overflowing shape": npy((2**62, 2**62)),
    "npy negative shape": npy((-3, D), content=bytes(8 * 3 * D)),
    "npy no images": npy((0, D)),
    "npy a number": npy((), content=bytes(8)),
    "npy complex": npy((3, D), "<c16", bytes(16 * 3 * D)),
    "npy dates": npy((3, D), "<M8[s]", bytes(8 * 3 * D)),
    "npy records": npy((3, D), [("x", "<f8")], bytes(8 * 3 * D)),
    "npy nan": npy((3, D), content=np.full((3, D), np.nan).tobytes()),
    "npy infinite": npy((3, D), content=np.full((3, D), np.inf).tobytes()),
    "npy other width": npy((3, D + 1), content=bytes(8 * 3 * (D + 1))),
    "npy cut": cut(npy((300, D), content=bytes(8 * 300 * D))),
    "npy nothing": text("t.npy", b""),
    "npy is compressed": gz("t.npy.gz", lambda: [npy_header((3, D)) + bytes(8 * 3 * D)]),
    "npz two arrays": lambda folder: (np.savez(folder / "t.npz", a=np.eye(D), b=np.eye(D)), folder / "t.npz")[1],
    "npz images bomb": lambda folder: npz_of(("a.npy", _bomb))(folder, "t.npz"),
    "csv words": text("t.csv", b"0,1,zero\n"),
    "csv ragged": text("t.csv", b"0,1,0,1,0,1\n0,1\n"),
    "csv bytes": text("t.csv", bytes(range(128, 256))),
    "csv nothing": text("t.csv", b""),
    "csv nan": text("t.csv", b"nan,0,0,0,0,0\n0,0,0,0,0,0\n"),
    "csv grey": text("t.csv", b"0.5,0,0,0,0,0\n0,0,0,0,0,0\n"),
    "csv bomb": gz("t.csv.gz", lambda: (b"0,0,0,0,0,0\n" * 2**16 for _ in range(170))),
    "csv damaged gzip": cut(gz("t.csv.gz", lambda: [os.urandom(9_999)])),
    "IDX bomb": gz("t-idx3-ubyte.gz", lambda: (struct.pack(">BBBBII", 0, 0, 8, 2, BOMB // D, D), *many_zeros())),
    "IDX overflowing shape": text("t-idx4-ubyte", struct.pack(">BBBB4I", 0, 0, 8, 4, *[2**16] * 4)),
    "IDX no axes": text("t-idx0-ubyte", struct.pack(">BBBBB", 0, 0, 8, 0, 1)),
    "IDX 255 axes": text("t-idx-ubyte", b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"\1"),
    "IDX cut": text("t-idx2-ubyte", struct.pack(">BBBBII", 0, 0, 8, 2, 3, D) + b"\0\1"),
    "IDX other kind": text("t-idx2-ubyte", struct.pack(">BBBBII", 0, 0, 7, 2, 3, D) + bytes(18)),
    "IDX nothing": text("t", b""),
    "mat no images": lambda folder: _mat(folder / "t.mat", x=np.zeros((0, 0))),
    "images are a model": lambda folder: archive(folder / "t.h5"),
}  # fmt: skip


# ---- MATLAB


def _mat(path, **arrays):
    from scipy.io import savemat

    savemat(path, arrays, do_compression=True)
    return path


def mat(**changes):
    return lambda folder: _mat(folder / "m.mat", **(MATLAB | changes))


def _mat_element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def mat_of(shape, content_of, compressed=True):
    """A matrix `vishid` of level 5 with this shape, and these bytes as its numbers."""

    def make(folder):
        head = _mat_element(6, struct.pack("<II", 6, 0))
        head += _mat_element(5, struct.pack("<ii", *shape)) + _mat_element(1, b"vishid")
        numbers = content_of()
        body = head + struct.pack("<II", 9, len(numbers)) + numbers
        element = struct.pack("<II", 14, len(body)) + body
        if compressed:
            packed = zlib.compress(element, 1)
            element = struct.pack("<II", 15, len(packed)) + packed
        start = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
        (folder / "m.mat").write_bytes(start + element)
        return folder / "m.mat"

    return make


MATLAB_FILES = {
    "mat no weights": lambda folder: _mat(folder / "m.mat", x=np.eye(2)),
    "mat text": mat(vishid="weights"),
    "mat cells": mat(vishid=np.array([[1], ["a"]], dtype=object)),
    "mat struct": mat(vishid={"a": 1}),
    "mat complex": mat(visbiases=np.zeros(D) * 1j),
    "mat nan": mat(vishid=np.full((D, M), np.nan)),
    "mat cut": cut(mat()),
    "mat nothing": text("m.mat", b""),
    "mat zeros": text("m.mat", bytes(4_096)),
    "mat version 7.3": lambda folder: archive(folder / "m.h5").rename(folder / "m.mat"),
    "mat bomb": mat_of((BOMB // 8 // M, M), lambda: bytes(BOMB)),
    "mat hidden bomb": mat_of((D, M), lambda: bytes(BOMB)),
    "mat huge shape": mat_of((2**30, 2**30), lambda: bytes(192)),
    "mat negative shape": mat_of((-D, -M), lambda: bytes(192)),
}


# ---- torch and safetensors


def pt(stored, **options):
    def make(folder):
        torch.save(stored, folder / "m.pt", **options)
        return folder / "m.pt"

    return make


def _cyclic():
    stored = {}
    stored["state_dict"] = stored
    return stored


def _deep():
    stored = TENSORS
    for _ in range(300):
        stored = {"model": stored}
    return stored


def _pt_bomb(folder):
    """As torch writes it, with the storage compressed."""
    torch.save(TENSORS | {"weights": torch.zeros(BOMB // 8 // M, M).double()}, folder / "x.pt")
    with (
        zipfile.ZipFile(folder / "x.pt") as stored,
        zipfile.ZipFile(folder / "m.pt", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
    ):
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    (folder / "x.pt").unlink()
    return folder / "m.pt"


def st(header, content=b"", length=None):
    def make(folder):
        packed = header if isinstance(header, bytes) else json.dumps(header).encode()
        size = len(packed) if length is None else length
        (folder / "m.safetensors").write_bytes(struct.pack("<Q", size) + packed + content)
        return folder / "m.safetensors"

    return make


def _st(shape, offsets, kind="F64"):
    return {"weights": {"dtype": kind, "shape": shape, "data_offsets": offsets}}


TENSOR_FILES = {
    "pt code": pt(TENSORS | {"x": Code()}),
    "pt old code": pt(TENSORS | {"x": Code()}, _use_new_zipfile_serialization=False),
    "pt plain pickle": text("m.pt", pickle.dumps(TENSORS)),
    "pt in itself": pt(_cyclic()),
    "pt deep": pt(_deep()),
    "pt cut": cut(pt(TENSORS)),
    "pt bomb": _pt_bomb,
    "pt expanded": pt(TENSORS | {"weights": torch.zeros(1).expand(2**14, 2**13)}),
    "pt biases expanded": pt(TENSORS | {"visible_bias": torch.zeros(1, dtype=torch.uint8).expand(2**28)}),
    "pt no numbers": pt(TENSORS | {"weights": torch.zeros(D, M, device="meta")}),
    "pt sparse": pt(TENSORS | {"weights": torch.eye(D, M).to_sparse()}),
    "pt bits": pt(TENSORS | {"weights": torch.zeros(D, M, dtype=torch.bits8)}),
    "pt complex": pt(TENSORS | {"hidden_bias": torch.zeros(M, dtype=torch.cfloat)}),
    "pt nan": pt(TENSORS | {"weights": torch.full((D, M), torch.nan)}),
    "pt a number": pt(TENSORS | {"weights": torch.tensor(1.0)}),
    "pt lines in names": pt({"a\nb": torch.zeros(2)}),
    "pt many names": pt({f"layer{i}.weight": torch.zeros(1) for i in range(2_000)}),
    "safetensors nothing": text("m.safetensors", b""),
    "safetensors no JSON": st(b"{{{{"),
    "safetensors long header": st(b"{}", length=2**62),
    "safetensors beyond the end": st(_st([D, M], [0, 192]), bytes(10)),
    "safetensors huge shape": st(_st([2**40, 2**40], [0, 192]), bytes(192)),
    "safetensors negative shape": st(_st([-6, -4], [0, 192]), bytes(192)),
    "safetensors unknown type": st(_st([D, M], [0, 192], "F96"), bytes(192)),
    "safetensors no weights": st({"w": _st([D, M], [0, 192])["weights"]}, bytes(192)),
}  # fmt: skip


# ---- names, devices and suffixes


def _fifo(folder):
    os.mkfifo(folder / "m.npz")
    return folder / "m.npz"


def _link(target, name):
    def make(folder):
        (folder / name).symlink_to(target)
        return folder / name

    return make


def _folder(name):
    def make(folder):
        (folder / name).mkdir()
        return folder / name

    return make


def _loop(folder):
    (folder / "m.npz").symlink_to(folder / "m.npz")
    return folder / "m.npz"


PLACES = {
    "zeros without end": _link("/dev/zero", "m.npz"),
    "zeros as an archive": _link("/dev/zero", "m.h5"),
    "zeros as tensors": _link("/dev/zero", "m.pt"),
    "pipe": _fifo,
    "link to itself": _loop,
    "folder as npz": _folder("m.npz"),
    "folder as h5": _folder("m.h5"),
    "folder as pt": _folder("m.pt"),
    "pickle": text("m.pkl", pickle.dumps(Code())),
    "joblib": text("m.joblib", pickle.dumps(Code())),
    "no suffix": text("model", b""),
    "wrong suffix": lambda folder: npz()(folder).rename(folder / "m.safetensors"),
    "pt as npz": lambda folder: pt(TENSORS)(folder).rename(folder / "m.npz"),
    "npz as pt": lambda folder: npz()(folder).rename(folder / "m.pt"),
    "npz as h5": lambda folder: npz()(folder).rename(folder / "m.h5"),
    "npz as mat": lambda folder: npz()(folder).rename(folder / "m.mat"),
    "skops not a zip": text("m.skops", b"PK"),
    "skops no schema": lambda folder: npz_of(("x.npy", b""))(folder, "m.skops"),
    "skops bomb": lambda folder: npz_of(("schema.json", lambda: (b" " * 2**20 for _ in range(128))))(folder, "m.skops"),
    "name too long": lambda folder: folder / ("m" * 5_000 + ".npz"),
    "name with a null": lambda folder: Path(f"{folder}/m\0.npz"),
    "name not UTF-8": lambda folder: folder / os.fsdecode(b"m\xff.npz"),
    "sparse gigabyte as npz": lambda folder: _sparse(npz()(folder)),
    "sparse gigabyte as mat": lambda folder: _sparse(mat()(folder), cut=True),
    "sparse gigabyte as safetensors": lambda folder: _sparse(st(b"{}")(folder)),
}  # fmt: skip

MODEL_FILES = {**HDF5, **NUMPY, **MATLAB_FILES, **TENSOR_FILES, **PLACES}
IMAGE_FILES = IMAGES


def _memory(line):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(row.split()[1]) * 1024 for row in status if row.startswith(line))


def _read_all():
    """What comes out of each [kind, path] on standard input, one line of JSON for each."""
    from paperlib.evaluation import read_images, read_model

    linux = sys.platform == "linux"
    # What a reader imports at its first file is the library's memory, and not the file's.
    for library in ("h5py", "scipy.io", "skops.io"):
        import_module(library)
    for line in sys.stdin:
        kind, path = json.loads(line)
        before = 0
        if linux:
            # the peak is counted anew
            Path("/proc/self/clear_refs").write_text("5")
            before = _memory("VmRSS")
        try:
            if kind == "model":
                came = repr(read_model(path))
            else:
                came = f"{tuple(read_images('data', path, D).shape)}"
            outcome = ["read", came]
        except Exception as error:
            outcome = [type(error).__name__, str(error)]
        peak = _memory("VmHWM") if linux else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([*outcome, peak - before if linux else 0]), flush=True)


if __name__ == "__main__":
    _read_all()
