"""Test sets as people keep them: each is read as what it is, or refused in one sentence.

Whoever does what that sentence says gets the right rows.
"""

import gzip
import re
import struct

import h5py
import numpy as np
import pytest
import scipy.sparse
import torch
from writers import as_hdf5, as_idx, as_mat, as_matlab_73, as_npy, as_npz, as_pt, zipped

from boltzmann_likelihood.files import read_images
from boltzmann_likelihood.files.inputs import RowsFile
from paperlib.datasets import binarize
from paperlib.errors import InputError

D = 6
RNG = np.random.default_rng(1)
X = RNG.integers(0, 2, (40, D)).astype(np.uint8)
GREY = RNG.integers(0, 256, (40, D))
SQUARES = X.reshape(40, 2, 3)


def table(rows, first="", separator=","):
    text = "\n".join(separator.join(map(str, row)) for row in np.asarray(rows).tolist())
    return f"{first}{text}\n".encode()


def npy_of_python_2(array):
    """As numpy of Python 2 wrote it, with long whole numbers."""
    shape = "".join(f"{length}L, " for length in array.shape)
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


def cells(images):
    cell_array = np.empty((len(images) // 8, 8), object)
    for place, image in zip(np.ndindex(cell_array.shape), images, strict=True):
        cell_array[place] = image
    return cell_array


def compressed(array, **options):
    return as_hdf5({"test": lambda file, name: file.create_dataset(name, data=array, **options)})


def octave_group(file, name):
    file.create_group(name).attrs["OCTAVE_NEW_FORMAT"] = 1
    file[f"{name}/value"] = X.T


def unknown_filter(file, name):
    """Compressed by a program that is not here."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(X.shape)
    made.set_filter(32_001, h5py.h5z.FLAG_OPTIONAL)
    space = h5py.h5s.create_simple(X.shape)
    dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_UINT8, space, made)
    dataset.write_direct_chunk((0, 0), X.tobytes())


TEMPERATURES = {"T=2.000000": 1 - SQUARES, "T=2.269000": SQUARES}
NO_ARRAYS = {
    "meta": np.zeros(3, [("a", "f8")]),
    "null": h5py.Empty("f8"),
    "link": h5py.SoftLink("/T=2.0"),
}
NUMBERED = ",".join(map(str, range(D))) + "\n"
# Of X[0] as the names of columns.
MANGLED = "0,1,1.1,1.2,0.1,0.2\n"
READ = {
    # HDF5 with dots in its names
    "one of two temperatures": (as_hdf5(TEMPERATURES), ":T=2.269000"),
    "a dot in a group": (as_hdf5({"group/x.test": X}), ""),
    "a group with a dot": (as_hdf5({"v1.0/x": X, "v1.1/x": 1 - X}), ":v1.0.x"),
    "a path": (as_hdf5({"v1.0/x.test": X, "v1.1/x.test": 1 - X}), ":/v1.0/x.test"),
    "a dot or a group": (as_hdf5({"a.b": X, "a/b": 1 - X}), ":a.b"),
    "a group or a dot": (as_hdf5({"a.b": 1 - X, "a/b": X}), ":a/b"),
    "a colon": (as_hdf5({"x:0": X, "x:1": 1 - X}), ":x:0"),
    "a name beside what is no array": (as_hdf5(NO_ARRAYS | {"T=2.0": X}), ":T=2.0"),
    "a plain name beside a dot": (as_hdf5({"T=2.0": 1 - X, "test": X}), ":test"),
    # formats, under any name
    **{
        f"npy of {kind}": (as_npy(X.astype(kind)), "")
        for kind in ("u1", "u2", "u4", "u8", "i8", "?", "f2", ">u2", ">f4")
    },
    "npy, compressed": (gzip.compress(as_npy(SQUARES)), ""),
    "npz beside labels": (as_npz({"anything": X, "labels": np.arange(40)}), ""),
    "one of an npz": (as_npz({"x_train": 1 - X, "x_test": X}), ":x_test"),
    "mat": (as_mat({"testdata": X}), ""),
    "torch, beside labels": (as_pt((torch.from_numpy(X), torch.arange(40))), ""),
    "IDX": (as_idx(SQUARES), ""),
    "IDX, compressed": (gzip.compress(as_idx(SQUARES)), ""),
    "csv": (table(X), ""),
    "csv of Excel": (b"\xef\xbb\xbf" + table(X).replace(b"\n", b"\r\n"), ""),
    "black and white": (as_npy(X * 255), ""),
    "black and white in numbers": (as_npy(X * 255.0), ""),
    # numpy of Python 2
    "npy of Python 2": (npy_of_python_2(X), ""),
    "npz of Python 2": (
        zipped({"x_test.npy": npy_of_python_2(X), "y.npy": npy_of_python_2(X[:, 0])}),
        "",
    ),
    "npy of Python 2, compressed": (gzip.compress(npy_of_python_2(X)), ""),
    # containers
    "a zip of a table": (zipped({"test.csv": table(X)}), ""),
    "a zip of two": (zipped({"train.csv": table(1 - X), "test.csv": table(X)}), ":test.csv"),
    "a zip of a table with labels": (
        zipped({"t.csv": table(np.c_[X[:, 0], X], "label,a,b,c,d,e,f\n")}),
        "",
    ),
    "a zip of macOS": (
        zipped({"__MACOSX/._t.txt": b"\0\5\26\7", "t.txt": table(X, separator=" ")}),
        "",
    ),
    "a zip with a text": (zipped({"README.txt": "two words", "sub/test.csv": table(X)}), ""),
    "cells": (as_mat({"dat": cells(SQUARES), "classcounts": cells(X[:, :1]), "n": 36}), ""),
    "cells of all images": (as_mat({"dat": cells(SQUARES)}), ":dat"),
    "cells by name": (as_mat({"dat": cells(SQUARES), "other": cells(1 - SQUARES)}), ":dat"),
    "a list": (as_pt({"images": list(torch.from_numpy(SQUARES)), "labels": [1, 2, 3]}), ""),
    "groups with numbers": (as_hdf5({f"images/{n}": image for n, image in enumerate(SQUARES)}), ""),
    "sparse": (as_mat({"x": scipy.sparse.csc_matrix(X.astype(float))}), ""),
    "sparse, logical": (as_mat({"x": scipy.sparse.csc_matrix(X.astype(bool)), "y": 3}), ":x"),
    "bfloat16": (as_pt(torch.from_numpy(X).bfloat16()), ""),
    "with a gradient": (as_pt({"x": torch.from_numpy(X).float().requires_grad_()}), ""),
    # tables
    "numbers as names": (table(X, NUMBERED), ""),
    "numbers from 1": (table(X, "1;2;3;4;5;6\n", ";"), ""),
    "numbers in quotes": (table(X, '"0","1","2","3","4","5"\n'), ""),
    "numbers of some columns": (table(X, "12\t13\t14\t40\t41\t45\n", "\t"), ""),
    "numbers with points": (table(X, "0.0 1.0 2.0 3.0 4.0 5.0\n", " "), ""),
    "numbers and labels": (table(np.c_[X, X[:, 0]], "0,1,2,3,4,5,label\n"), ""),
    "an image for a header": (table(X, MANGLED), ""),
    "columns x, y, z": (table(X, "x,y,z,u,v,w\n"), ""),
    "a unit called class": (table(X, "a,b,c,d,e,class\n"), ""),
    "a label": (table(np.c_[X[:, 0], X], "label,a,b,c,d,e,f\n"), ""),
    "a label besides a unit y": (table(np.c_[X, X[:, 0]], "x,b,z,u,v,w,y\n"), ""),
    "words in quotes": (table(X, '"V1","V2","V3","V4","V5","V6"\n').replace(b"1", b'"1"'), ""),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("content", "member"), READ.values(), ids=READ)
def test_read(tmp_path, content, member):
    (tmp_path / "t").write_bytes(content)
    pixels = read_images("data", f"{tmp_path}/t{member}", D).pixels
    assert pixels.dtype == torch.uint8
    np.testing.assert_array_equal(pixels, X)


@pytest.mark.parametrize("kind", ["?", "u1", "i8", "f4", "f8"])
def test_images_that_compress_well(tmp_path, kind):
    rows = np.zeros((2_000, 784), kind)
    rows[:, 350:380] = RNG.random((2_000, 30)) < 0.3
    content = compressed(rows, compression="gzip")
    (tmp_path / "t").write_bytes(content)
    assert kind == "?" or rows.nbytes > 60 * len(content)
    np.testing.assert_array_equal(read_images("data", tmp_path / "t", 784).pixels, rows)


@pytest.mark.parametrize("first", ["", NUMBERED, MANGLED])
@pytest.mark.parametrize("options", [{"threshold": 0.5}, {"binarize_seed": 0}])
def test_a_header_is_no_image(tmp_path, first, options):
    (tmp_path / "t").write_bytes(table(X, first))
    images = read_images("data", tmp_path / "t", D, **options)
    np.testing.assert_array_equal(images.pixels, X)
    assert images.notes == (("data: the first line is a header and was left out",) if first else ())


@pytest.mark.parametrize("options", [{"threshold": 99}, {"binarize_seed": 0}])
def test_a_header_of_grey_levels(tmp_path, options):
    """With few columns it may be an image: the user is asked, and both answers are right."""
    wide = np.repeat(GREY, 3, 1)
    right = read_images("data", write(tmp_path, as_npy(wide)), 18, **options).pixels
    numbered = table(wide, ",".join(map(str, range(18))) + "\n")
    images = read_images("data", write(tmp_path, numbered), 18, **options)
    np.testing.assert_array_equal(images.pixels, right)
    for first in (NUMBERED, MANGLED):
        with pytest.raises(
            InputError, match=r"plainly a header or plainly an image.*remove a header"
        ):
            read_images("data", write(tmp_path, table(GREY, first)), D, **options)
    images = read_images(
        "data", write(tmp_path, table(GREY, f"a,b,c,d,e,f\n{NUMBERED}")), D, **options
    )
    assert len(images.pixels) == 41


def write(folder, content):
    (folder / "t").write_bytes(content)
    return folder / "t"


def test_one_row_is_no_header(tmp_path):
    weights, _ = RowsFile("weights", write(tmp_path, b"1,2,3\n")).rows(fewest_axes=1)
    np.testing.assert_array_equal(weights, [[1, 2, 3]])
    for row in ("0,1", "0,1,0", "1,0,2", "-1,0,1"):
        rows, _ = RowsFile("data", write(tmp_path, f"{row}\n{row}\n".encode())).rows()
        assert len(rows) == 2


def ratings(*values):
    """Images with these values in the place of a few."""
    rated = X.astype(float)
    for place, value in enumerate(values):
        rated[place, place] = value
    return rated


OF_LABELS = "visible units for labels"
REFUSED = {
    "which temperature": (
        as_hdf5(TEMPERATURES),
        r"got T=2.000000 \[40, 2, 3\], T=2.269000 \[40, 2, 3\]; choose with .*t:NAME",
    ),
    "which of what is no array": (
        as_hdf5(NO_ARRAYS | {"T=2.0": X}),
        r"as (link|meta|null) in .*of T=2.0, link, meta, null choose one with .*t:NAME",
    ),
    "which of several": (
        as_npz({"x_train": X, "x_test": X}),
        r"got x_test \[40, 6\], x_train \[40, 6\]; choose with",
    ),
    "half a name": (
        as_hdf5(TEMPERATURES),
        ":T=2",
        "expected images of 6 values|expected one array",
    ),
    "another compression": (
        as_hdf5({"x": unknown_filter}),
        "compressed by gzip, lzf or not at all",
    ),
    "three values": (
        as_npy(np.where(GREY > 180, -1, X.astype(int))),
        "missing value .*have to be complete: leave out",
    ),
    "three values, as bytes": (
        as_npy(np.where(GREY > 180, 255, X).astype(np.uint8)),
        "255 beside .*missing value .*have to be complete",
    ),
    "stars and -1": (as_npy(5 * X.astype(int) - (X == 0)), "missing value .*have to be complete"),
    "not rated": (as_npy(ratings(-1, -1, -1)), "missing value .*have to be complete"),
    "not rated, tables": (
        table(ratings(-1, -1).astype(int)),
        "missing value .*have to be complete",
    ),
    "NaN": (as_npy(ratings(np.nan)), "got 1 NaN or infinite of 240; images have to be complete"),
    "an empty cell": (table(X).replace(b",1,", b",,", 1), "images have to be complete"),
    "NA": (b"NA,0,1,0,1,1\n" + table(X), "images have to be complete"),
    "strings of bits": (table(X, separator=""), "got 1 in .*commas between"),
    "strings of bits of numpy": (
        as_npy(np.array(["010101", "111000"])),
        "make a row of numbers each",
    ),
    "a file in a zip": (zipped({"t.mat": as_mat({"x": X})}), ":t.mat", "unpack that file first"),
    "a broken table in a zip": (
        zipped({"t.csv": b"0,1\n0,1,1\n", "u.csv": b"0,NA,1,0\n"}),
        ":t.csv",
        "unpack that file first",
    ),
    "cells of several sizes": (
        as_mat({"dat": cells([*SQUARES[:-1], X[:5, :5]])}),
        "expected one array",
    ),
    "sparse of torch": (as_pt(torch.from_numpy(X).to_sparse()), "data: expected a dense tensor"),
    "sparse, 7.3": (as_matlab_73({"x/jc": X[0], "x/ir": X[0], "x/data": X[0]}), "save it with -v7"),
    "text of Octave": (
        b"# Created by Octave 8.4.0, Sat Nov 28 2026 <u@h>\n# name: x\n# type: matrix\n# rows: 2\n",
        "save -v7",
    ),
    "text of Octave, compressed": (
        gzip.compress(b"# Created by Octave 6.1.0\n# name: x\n"),
        "save -v7",
    ),
    "bytes of Octave": (b"Octave-1-L\0\1\0\0\0x", "save -v7"),
    "HDF5 of Octave": (as_hdf5({"x": octave_group}), "save -v7"),
    # of no kind that is known, and not read as anything else
    "libsvm": (b"3 1:-0.103956 7:1\n1 2:0.5\n", "expected rows of numbers"),
    "libsvm, several labels": (b"0,3 1:-0.1 2:1\n", "expected rows of numbers"),
    "counts": (b"89|0,0,1,0,1,1\n1|0,1,1,0,1,1\n", "expected rows of numbers"),
    "JSON": (b'{"images": [[0, 1]]}', "expected rows of numbers .* none below the first line"),
    "a printed list": (b"[[0, 1, 0, 1, 1, 0],\n [1, 1, 0, 0, 1, 0]]\n", "expected rows of numbers"),
    "Clustal": (
        b"CLUSTAL W (1.83) multiple sequence alignment\n\ns0 ACD\n",
        "expected rows of numbers",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, case):
    content, *member, message = case
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(InputError, match=message) as refusal:
        read_images("data", f"{tmp_path}/t{''.join(member)}", D)
    sentence = str(refusal.value)
    assert sentence.startswith("data: expected")
    assert "\n" not in sentence
    assert not re.search(r"undamaged|\(x \+ 1\)|units for labels|white|threshold", sentence)


def test_mat_files_of_version_4(tmp_path):
    """Which are told by their names alone."""
    (tmp_path / "t.mat").write_bytes(as_mat({"x": X.astype(float)}, format="4"))
    np.testing.assert_array_equal(read_images("data", tmp_path / "t.mat", D).pixels, X)


@pytest.mark.parametrize(
    ("shape", "kind", "width", "hint"),
    [
        ((40, 1), "u1", 20, "commas"),
        ((40, 1), "f8", 2, "commas"),
        ((40, 1), "u1", 8, "packed"),
        ((40, 3), "u1", 20, "packed"),
        ((40, 98), "u1", 784, "packed"),
        ((40, 3), "i8", 6, None),
        ((40, 3), "f8", 23, None),
        ((40, 12), "u1", 15, OF_LABELS),
        ((40, 784), "u1", 794, OF_LABELS),
        ((40, 62), "u1", 64, "2 " + OF_LABELS),
        ((40, 63), "u1", 64, "was a column left out"),
        ((40, 63), "f8", 64, "was a column left out"),
        ((40, 7), "u1", 6, "label in the first or last"),
        ((6, 40), "u1", 6, "transposed"),
    ],
)
def test_hints_where_they_are_plausible(tmp_path, shape, kind, width, hint):
    with pytest.raises(
        InputError, match=f"as many as the model has visible units, got {shape[1]} in"
    ) as refusal:
        read_images("data", write(tmp_path, as_npy(np.ones(shape, kind))), width)
    assert ("(" in str(refusal.value)) == (hint is not None)
    assert (hint or "") in str(refusal.value)


def test_scales(tmp_path):
    """Where it is not clear what is white, the user is asked."""
    for scaled in (GREY.astype(np.uint8), GREY, GREY.astype(float), GREY / 255):
        images = read_images("data", write(tmp_path, as_npy(scaled)), D, binarize_seed=3)
        np.testing.assert_array_equal(images.pixels, binarize(GREY / 255, 3))
    sixteen = np.minimum(GREY // 15, 16)
    path = write(tmp_path, as_npy(sixteen))
    np.testing.assert_array_equal(read_images("data", path, D, threshold=8).pixels, sixteen > 8)
    for message, options in (
        (r"not clear which value is white: divide by it \(by 16", {"binarize_seed": 3}),
        ("threshold: expected a number from 0 to below 16", {"threshold": 16}),
        ("threshold: expected it or a seed", {"threshold": 3, "binarize_seed": 3}),
    ):
        with pytest.raises(InputError, match=message):
            read_images("data", path, D, **options)


def test_spins_are_still_told(tmp_path):
    spins = 2 * X.astype(int) - 1
    with pytest.raises(
        InputError, match=r"store \(x \+ 1\) / 2; a model of spins .*binary_from_spins"
    ):
        read_images("data", write(tmp_path, as_npy(spins)), D)
    for numbers in (spins, X):
        images = read_images("data", write(tmp_path, as_npy(numbers)), D, spins=True)
        np.testing.assert_array_equal(images.pixels, X)
    spins[0, 0] = 0
    for are_spins, message in ((False, ""), (True, "expected -1 and 1 throughout.*")):
        with pytest.raises(InputError, match=f"{message}missing value .*have to be complete"):
            read_images("data", write(tmp_path, as_npy(spins)), D, spins=are_spins)


@pytest.mark.parametrize("missing", [-1, 255])
@pytest.mark.parametrize("options", [{}, {"binarize_seed": 0}])
def test_no_advice_makes_a_number_of_missing_values(tmp_path, missing, options):
    """And those who leave such images out get the others."""
    rated = np.where(GREY > 250, missing, X.astype(int))
    with pytest.raises(InputError, match=f"{missing} beside .*have to be complete: leave out"):
        read_images("data", write(tmp_path, as_npy(rated)), D, **options)
    complete = ~(rated == missing).any(1)
    images = read_images("data", write(tmp_path, as_npy(rated[complete])), D, **options)
    np.testing.assert_array_equal(images.pixels, X[complete])


# ---- models


@pytest.mark.parametrize("member", ["", ":dat"])
def test_cells_tell_which_layer_is_visible(tmp_path, member):
    """As all images do: where neither the names of biases nor a width that is known help."""
    (tmp_path / "t").write_bytes(as_mat({"dat": cells(SQUARES)}))
    rows, _ = RowsFile("data", f"{tmp_path}/t{member}").rows()
    assert rows.shape == (40, D)


# ---- sequences

ROWS = {"s0": "ACDEF", "s1": "A-DEF", "s2": "--WYV"}
FASTA = "".join(f">{name}\n{row}\n" for name, row in ROWS.items())
STOCKHOLM = "# STOCKHOLM 1.0\n#=GF ID x\n\n" + "\n".join(map("  ".join, ROWS.items())) + "\n//\n"
SEQUENCES = {
    "plain": (FASTA, "sequences in FASTA"),
    "a comment first": (";made by hand\n" + FASTA, "sequences in FASTA"),
    "several comments": (";one\n\n;two\n" + FASTA, "sequences in FASTA"),
    "blank lines first": ("\n\n" + FASTA, "sequences in FASTA"),
    "line ends of Windows": ((";x\n" + FASTA).replace("\n", "\r\n"), "sequences in FASTA"),
    "lower case": (FASTA.lower(), "sequences in FASTA"),
    "semicolons for names": (FASTA.replace(">", ";"), "sequences in FASTA"),
    "short": (">a\nAC\n", "sequences in FASTA"),
    "long": (f">a\n{'ACDEF' * 400}\n" * 3, "sequences in FASTA"),
    "Stockholm": (STOCKHOLM, "sequences in Stockholm format"),
    "without names": ("\n".join(ROWS.values()) + "\n", "sequences, one in each line"),
    "long, without names": ("ACDEF" * 400 + "\n", "sequences, one in each line"),
}


@pytest.mark.parametrize(("text", "kind"), SEQUENCES.values(), ids=SEQUENCES)
@pytest.mark.parametrize("suffix", ["", ".csv", ".gz"])
def test_sequences_are_refused(tmp_path, text, kind, suffix):
    """In a sentence that names the kind and says what is read."""
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix == ".gz" else text.encode())
    with pytest.raises(InputError) as refusal:
        read_images("data", path, D)
    assert str(refusal.value) == (
        f"data: expected arrays, got {kind}: only models of binary units are read,"
        f" and rows of 0 and 1 for them, as in a .npy file ({path})"
    )


@pytest.mark.parametrize("split", [False, True])
def test_letters_in_an_array(tmp_path, split):
    letters = np.array([list(row) for row in ROWS.values()] if split else [*ROWS.values()])
    with pytest.raises(InputError, match=r"^data: expected numbers in .*, got letters: a model of"):
        read_images("data", write(tmp_path, as_npy(letters)), D)


def test_a_header_that_begins_like_sequences_is_none(tmp_path):
    """The length of a .safetensors file's header, its first byte, may be that of any sign."""
    for sign in b">;-":
        header = b'{"x":{"dtype":"U8","shape":[2,6],"data_offsets":[0,12]}}'
        length = next(n for n in range(len(header), len(header) + 256) if n % 256 == sign)
        content = length.to_bytes(8, "little") + header.ljust(length) + bytes(X[:2].tobytes())
        images = read_images("data", write(tmp_path, content), D)
        np.testing.assert_array_equal(images.pixels, X[:2])


# ---- paths


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("~/t.npy", r"found none at ~/t.npy; only a ~ that begins a word"),
        ("C:\\data\\t.npy", r"found none at C:\\data\\t.npy$"),
        ("C:/t.npz:x_test", "found none at C:/t.npz:x_test$"),
        ("t.npz:x", "found none at t.npz:x$"),
        ("no.npy", "found none at no.npy$"),
    ],
)
def test_paths(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^data: expected a file, {message}"):
        read_images("data", path, D)
