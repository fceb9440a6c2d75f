"""Named arrays from a file of any format. Its first bytes tell the format, and not its name.

`read_stored` gives a mapping from names to arrays, numbers and texts. Groups, structs and nested
dictionaries are flattened, with dots between the names: `rbm.weights`. A list or a MATLAB cell
counts from 0. A format without names, such as `.npy`, gives one array under the empty name. A file
may be gzipped. What an HDF5 or `.safetensors` file says of its arrays has a name with an @ if it
tells of another model: `W@beta`, `@visible_type`.

Every format has one reader, `_READERS`. Nothing is ever unpickled.

Files from elsewhere are not trusted. No array is read that is many times larger than its file, and
of HDF5 only plain data of the file itself: no links to other files, no virtual or external data.
"""

from __future__ import annotations

import codecs
import io
import math
import os
import pickle
import re
import warnings
import zipfile
from collections import Counter, UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.files import Entry, first_line, printable, read_metadata, read_safetensors

_Source: TypeAlias = Path | io.BytesIO

_HDF5 = b"\x89HDF\r\n\x1a\n"
_NPY = b"\x93NUMPY"
_MATLAB_73 = b"MATLAB 7.3 MAT-file"
# What torch.save wrote before it wrote zip files.
_OLD_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# What a number of numpy's is made of in a file of torch, in which nothing else of numpy is allowed.
_SCALAR = np.float64(0).__reduce__()[0]
_NUMPY_SCALARS = [_SCALAR, (_SCALAR, "numpy.core.multiarray.scalar"), np.dtype]
_NUMPY_SCALARS += [type(np.dtype(kind)) for kind in "?bhilqBHILQefd"]
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_HDF5_SUFFIXES: tuple[str, ...] = (".h5", ".hdf5")
_TORCH_SUFFIXES: tuple[str, ...] = (".pt", ".pth", ".th", ".ckpt")
#: Suffixes of files that may hold models; the contents are looked at.
MODEL_SUFFIXES: tuple[str, ...] = (
    ".safetensors",
    ".npz",
    ".mat",
    ".skops",
    *_HDF5_SUFFIXES,
    *_TORCH_SUFFIXES,
)
_SUFFIXES = (*MODEL_SUFFIXES, ".npy", ".csv")
# The formats that are not named by a suffix.
_FORMAT_OF_SUFFIX: dict[str, str] = {
    **dict.fromkeys(_HDF5_SUFFIXES, "HDF5"),
    **dict.fromkeys(_TORCH_SUFFIXES, "torch"),
}
_OCTAVE = (
    "a file in a format of Octave's own: write it there with save -v7 FILE.mat NAME, with the "
    "names of the variables"
)
_NO_SEQUENCES = (
    "only models of binary units are read, and rows of 0 and 1 for them, as in a .npy file"
)
_GIT_LFS = "a Git LFS pointer, which stands for the file: fetch that with git lfs pull"
# How files begin that are no arrays, in lower case. Others are refused as none of ours.
_NO_ARRAYS = {
    rb"version https://git-lfs": _GIT_LFS,
    rb"<!doctype|<html": "a web page",
    rb"# created by octave|octave-1-": _OCTAVE,
    rb"(;[^\n\0]*\n\s*)*>[^\0]*\Z|(;[^;\n\0]*\n)+[a-z]": f"sequences in FASTA: {_NO_SEQUENCES}",
    rb"# stockholm": f"sequences in Stockholm format: {_NO_SEQUENCES}",
    rb"[-.*a-z]{500}|([-.*a-z]{5,}\r?\n){2}": f"sequences, one in each line: {_NO_SEQUENCES}",
}
#: What to do with data some of whose values are missing.
COMPLETE = "images have to be complete: leave out those that are not"
# Tables in a zip file.
_TABLES = (".csv", ".tsv", ".txt", ".dat", ".data")
# With so many columns, a line of numbers that grow from each to the next is no image.
_MANY_COLUMNS = 10
_PICKLE = (
    "a pickle, which can run any code when it is read. Where you trust it, write its arrays anew: "
    "torch.save(model.state_dict(), 'model.pt'), or numpy.savez('model.npz', weights=W, "
    "visible_bias=..., hidden_bias=...) with W [visible, hidden], or "
    "numpy.save('images.npy', images)"
)
_DEEPEST = 8
#: How texts call units that are not binary.
OTHER_UNITS = re.compile("gauss|relu", re.IGNORECASE)
# What a file may say of its arrays: the kind of units, and factors of the energy.
_TELLING = re.compile(
    r"((model|rbm|visible|hidden|unit|layer)s?_?)?(type|units?|kind)"
    r"|beta|(inverse_)?temperature|scale_factor",
    re.IGNORECASE,
)
# So many different words may stand for the values of bits, with a column of labels.
_FEW_WORDS = 6
# What stands for a missing value in a table.
_MISSING = {"", "NA", "N/A", "null", "None", "?", "-"}
# Words in the names of what accompanies each parameter during training.
_COMPANION_WORDS = {
    "momentum", "velocity", "optimizer", "optimiser", "optim", "scheduler", "grad", "lr", "adam",
    "exp", "init", "initial", "update", "updates",
}  # fmt: skip
# Other words of the training.
_TRAINING_WORDS = {
    "epoch", "epochs", "iteration", "iterations", "loss", "losses", "err", "error", "errors",
    "seed", "time", "learningtime", "species", "provenance", "draws", "chain", "chains",
    "batchsize", "nlayers", "layersize", "maxepochs", "maxepoch", "numcases", "numbatches",
    "history",
}  # fmt: skip
# Whole names that have nothing to do with the energy.
_HARMLESS = {
    "numbatchestracked", "learningrate", "nvisible", "nhidden", "numvisible", "numhidden", "nv",
    "nh", "nvis", "nhid", "numdims", "numhid", "numpen", "vishidinc", "hidbiasinc", "visbiasinc",
    "hidpeninc", "penbiasinc", "nfeaturesin", "hsamples", "randomstate", "logz",
}  # fmt: skip


class NoDataError(InputError):
    """A name stands for an empty group, such as Keras writes for its inputs."""


def read_stored(name: str, path: str | os.PathLike[str]) -> Mapping[str, Entry]:
    """Everything in a file, by name."""
    path = Path(path)
    if os.path.isdir(path):  # false for a name that is too long
        pictures = "; of pictures make one array [images, pixels] for numpy.save"
        note = "" if name == "path" else pictures
        raise InputError(f"{name}: expected a file, got the folder {path}{note}")
    if not storage.is_file(path):
        note = ""
        if str(path)[0] == "~":
            note = "; only a ~ that begins a word is replaced by the shell: write the whole path"
        raise InputError(f"{name}: expected a file, found none at {path}{note}")
    kind = "file"
    try:
        source = io.BytesIO(storage.read_bytes(path)) if storage.is_gzip(path) else path
        kind = _format(source, path)
        if isinstance(source, io.BytesIO):
            source.seek(0)
        with warnings.catch_warnings():
            # numpy warns of files that Python 2 wrote and of empty text, and torch of its own old
            # formats.
            warnings.simplefilter("ignore", UserWarning)
            stored = _READERS[kind](source, path)
        if isinstance(stored, _Hdf5):
            stored.argument = name
        return stored
    except InputError as error:
        raise InputError(f"{name}: {str(error).removeprefix('path: ')}") from error
    except ImportError as error:
        raise InputError(
            f"{name}: expected the package {error.name} to be installed to read {path} "
            f"(pip install {error.name})"
        ) from error
    except PermissionError as error:
        raise InputError(f"{name}: expected a readable file at {path}: {error.strerror}") from error
    except Exception as error:  # each format's reader has its own exceptions
        reason = first_line(error)
        if "pickle" in reason.lower() or "Python objects" in reason:
            reason = "it holds pickled objects, which can run any code"
        if kind == ".mat":
            reason += "; save -v7 in MATLAB or Octave writes a file that can be read"
        raise InputError(
            f"{name}: expected an undamaged {kind} file, could not read {path}: {reason}"
        ) from error


def untyped_bytes_note(array: np.ndarray) -> str:
    """A note on bytes without a type, as numpy writes numbers of a type that it does not know."""
    if array.dtype.kind != "V" or array.dtype.names:
        return ""
    return ", bytes without a type, as which numpy writes bfloat16: save it as float32"


def plain_name(name: str) -> str:
    """The last part of a name in lower case, without signs and without a leading `rbm`."""
    return re.sub("[^a-z0-9]", "", name.rpartition(".")[2].lower()).removeprefix("rbm")


def training_level(name: str) -> int:
    """How surely what has this name is of the training and not of the model.

    0: not at all. 1: a word such as `epoch` has a number, as in `W_epoch100`, and may say when a
    parameter was stored. 2: it has none, as in `epoch_errors`. 3: the name is that of what
    accompanies a parameter, such as `W_momentum`.
    """
    lower = re.sub("([a-z])([A-Z])", r"\1 \2", name).lower()
    words = set(re.findall("[a-z]+", lower))
    alone = set(re.findall("[a-z]+", re.sub(r"[a-z]+(?=[ _=-]*\d)", "", lower)))
    if alone & _COMPANION_WORDS or plain_name(name) in _HARMLESS:
        return 3
    if alone & _TRAINING_WORDS:
        return 2
    return 1 if words & (_TRAINING_WORDS | _COMPANION_WORDS) else 0


def listed(arrays: Mapping[str, Entry]) -> str:
    """Names and shapes for a message. A name in a file may hold any characters."""
    parts = [
        f"{name or 'an array'} {list(value.shape)}"
        if isinstance(value, np.ndarray | Tensor) and value.ndim
        else name
        for name, value in sorted(arrays.items())
    ]
    return printable(", ".join(parts) or "no arrays")


def _format(source: _Source, path: Path) -> str:
    """The format of a file, by its first bytes, or by its suffix where these say nothing."""
    with _opened(source) as file:
        head = file.read(520)
    start = head.lstrip(b"\xef\xbb\xbf \r\n\t").lower()
    for beginning, content in _NO_ARRAYS.items():
        if re.match(beginning, start):
            raise InputError(f"expected arrays, got {content} ({path})")
    if head.startswith(b"PK") and zipfile.is_zipfile(source):
        return _format_of_zip(source, path)
    return _format_of_head(head, path) or _format_of_suffix(head, path)


def _format_of_head(head: bytes, path: Path) -> str | None:
    """The format whose files begin with these bytes; None if they say nothing."""
    # The length of its header comes first, in eight bytes of which the last is zero.
    is_safetensors = head[7:9] == b"\0{"
    if head[:1] == b"\x80" and not head.startswith(_OLD_TORCH) and not is_safetensors:
        raise InputError(f"expected arrays, got {_PICKLE} ({path})")
    beginnings = {
        "HDF5": head.startswith(_HDF5),
        "MATLAB 7.3": head.startswith(_MATLAB_73) and head[512:] == _HDF5,
        "torch": head.startswith(_OLD_TORCH),
        ".safetensors": is_safetensors,
        ".npy": head.startswith(_NPY),
        ".mat": head[126:128] in (b"IM", b"MI"),
        "IDX": head[:2] == b"\0\0" and len(head) >= 4 and head[2] in _IDX_TYPES,
    }
    for kind, fits in beginnings.items():
        if fits:
            return kind
    return None


def _format_of_suffix(head: bytes, path: Path) -> str:
    """The format of a file by its suffix; any text is a table."""
    is_torch = _FORMAT_OF_SUFFIX.get(path.suffix.lower()) == "torch"
    if is_torch and head and not head.startswith(b"PK"):
        raise InputError(
            "expected a file that torch.save wrote, got bytes that it never begins with, in "
            f"{path}: it is damaged, or of another program (such as TensorFlow); numpy.savez "
            "writes arrays"
        )
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _FORMAT_OF_SUFFIX.get(suffixes[-1], suffixes[-1])
    if head and _is_text(head):
        return ".csv"
    raise InputError(
        f"expected a {', '.join(_SUFFIXES)} or IDX file, got {path.name!r}, which is none of "
        "these; numpy.savez writes arrays"
    )


def _is_text(head: bytes) -> bool:
    try:
        # The last character may be cut.
        return "\0" not in codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False


def _opened(source: _Source) -> BinaryIO:
    return source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getvalue())


def _contents(source: _Source) -> bytes:
    with _opened(source) as file:
        return file.read()


def _format_of_zip(source: _Source, path: Path) -> str:
    with zipfile.ZipFile(source) as file:
        names = file.namelist()
        size = sum(member.file_size for member in file.infolist())
    storage.require_modest(path, size)
    if any(re.search(r"(^|/)code/.*\.py$|(^|/)constants\.pkl$", name) for name in names):
        raise InputError(
            f"expected named tensors, got a TorchScript archive ({path}): save its tensors, "
            "torch.save(torch.jit.load('FILE').state_dict(), 'model.pt')"
        )
    if any(name.endswith("data.pkl") for name in names):
        return "torch"
    if "schema.json" in names:
        return ".skops"
    return ".npz"


# ---- one reader for each format


def _read_npy(source: _Source, path: Path) -> Mapping[str, Entry]:
    # Private pages, since torch wants arrays that it may write to.
    mode = "c" if isinstance(source, Path) else None
    with np.errstate(over="ignore"):
        return {"": np.load(source, mmap_mode=mode, allow_pickle=False)}


def _read_npz(source: _Source, path: Path) -> Mapping[str, Entry]:
    with np.load(source, allow_pickle=False) as stored:
        if {"data", "format", "shape"} <= set(stored.files):
            return {"": _from_scipy(stored, path)}
        entries: dict[str, Any] = _flat({name: stored[name] for name in stored.files})
    for name, content in list(entries.items()):
        # What is no array is there as bytes, and stays so if it is no table.
        if isinstance(content, bytes) and name.lower().endswith(_TABLES):
            with suppress(ValueError):
                table = _read_text(io.BytesIO(content), path / name)
                if np.size(table[""]):
                    entries |= {f"{name}.{key}".removesuffix("."): table[key] for key in table}
    return entries


def _from_scipy(stored: Mapping[str, np.ndarray], path: Path) -> np.ndarray:
    """The dense form of a sparse matrix, as scipy's `save_npz` writes it in rows or columns."""
    from scipy.sparse import csc_matrix, csr_matrix

    kind = stored["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise InputError(
            f"expected an array in {path}, got a sparse matrix in the format {printable(kind)}: "
            "save its toarray()"
        )
    shape = tuple(int(length) for length in stored["shape"])
    data = stored["data"]
    storage.require_modest(path, math.prod(shape) * data.dtype.itemsize)
    matrix_type = csr_matrix if kind == "csr" else csc_matrix
    matrix = matrix_type((data, stored["indices"], stored["indptr"]), shape=shape)
    # scipy would write wherever a damaged file says.
    matrix.check_format()
    return matrix.toarray()


def _read_matlab(source: _Source, path: Path) -> Mapping[str, Entry]:
    from scipy.io import loadmat
    from scipy.sparse import issparse

    variables = {name: value for name, value in loadmat(source).items() if name[:2] != "__"}
    entries: dict[str, Any] = _flat(variables)
    for name, value in entries.items():
        if issparse(value):
            storage.require_modest(path, math.prod(value.shape) * value.dtype.itemsize)
            columns = value.tocsc()
            # scipy would write wherever a damaged file says.
            columns.check_format()
            entries[name] = columns.toarray()
    return entries


def _read_safetensors(source: _Source, path: Path) -> Mapping[str, Entry]:
    if not isinstance(source, Path):
        return read_safetensors(source.getvalue())
    return {**read_safetensors(source), **_described("", read_metadata(source))}


def _read_torch(source: _Source, path: Path) -> Mapping[str, Entry]:
    try:
        with torch.serialization.safe_globals(_NUMPY_SCALARS):
            stored = torch.load(source, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        match = re.search(r"GLOBAL ([\w.]+)|type ([\w.]+)", str(error))
        kind = match[1] or match[2] if match else ""
        if kind.startswith("numpy"):
            raise InputError(
                f"expected tensors, numbers and text in {path}, got arrays of numpy (of {kind}), "
                "which are pickled objects, which can run any code: save them as tensors, "
                "torch.as_tensor(array)"
            ) from error
        kinds = f", of {kind}" if match else ""
        raise InputError(
            f"expected named tensors in {path}, got pickled objects, which can run any code when "
            f"they are read{kinds}; save the tensors, of a module with "
            "torch.save(model.state_dict(), 'model.pt'), of images with "
            "torch.save(images, 'images.pt')"
        ) from error
    return _flat({"": stored} if isinstance(stored, Tensor) else stored)


def _read_skops(source: _Source, path: Path) -> Mapping[str, Entry]:
    import skops.io

    try:
        data = _contents(source)
        estimator = skops.io.loads(data, trusted=[])
    except Exception as error:  # skops raises whatever its parts raise
        raise InputError(
            "expected a BernoulliRBM that skops can load without trusting anything, "
            f"could not read {path}: {first_line(error)}"
        ) from error
    fitted = {
        name: value
        for name, value in getattr(estimator, "__dict__", {}).items()
        if name.endswith("_")
    }
    if "components_" not in fitted:
        raise InputError(
            f"expected a fitted BernoulliRBM in {path}, got {type(estimator).__name__}"
        )
    return _flat(fitted)


def _read_idx(source: _Source, path: Path) -> Mapping[str, Entry]:
    """An array in the format of MNIST's files; its numbers are big-endian."""
    data = _contents(source)
    start = 4 + 4 * data[3]
    shape = np.frombuffer(data[4:start], ">u4") if len(data) >= start else None
    kind = np.dtype(_IDX_TYPES[data[2]])
    if shape is None or len(data) - start != math.prod(shape.tolist()) * kind.itemsize:
        raise InputError(f"expected a whole IDX file at {path}, its length does not fit its header")
    numbers = np.frombuffer(data, kind, offset=start).reshape(shape)
    return {"": numbers.astype(kind.newbyteorder("="))}


def _read_text(source: _Source, path: Path) -> Mapping[str, Entry]:
    """Rows of numbers, with a header or without one."""
    text = _contents(source).decode("utf-8-sig").lstrip("\r\n")
    first = text.partition("\n")[0]
    separator = _separator(first)
    if separator and first.rstrip(" \r").endswith(separator):
        # some programs write the sign behind each number
        lines = [line.rstrip(" ") for line in text.splitlines() if line.strip()]
        if all(line.endswith(separator) for line in lines):
            text = "\n".join(line.removesuffix(separator) for line in lines)
            first = text.partition("\n")[0]
    header = [word.strip().strip("\"'") for word in first.split(separator)]
    # A single row is no header.
    has_rows = bool(text[len(first) :].strip())
    has_column_numbers = _are_numbers_of_columns(header) and has_rows
    # Names of columns differ from each other; a line with NA in it may be an image.
    numbers = sum(map(_is_number, header))
    are_different = len(set(header)) == len(header)
    has_column_names = numbers < len(header) and (numbers == 0 or are_different)
    skipped = int(has_column_numbers or has_column_names)
    expected = f"expected rows of numbers with commas between them in {path}"
    try:
        rows = np.loadtxt(
            io.StringIO(text), delimiter=separator, ndmin=2, skiprows=skipped, quotechar='"'
        )
    except ValueError as error:
        raise InputError(f"{expected}: {_why_no_table(text, skipped)}") from error
    if not rows.size and has_column_names and len(header) > 1:
        raise InputError(f"{expected}, got no rows: none below the first line")
    if not rows.size and skipped:
        raise InputError(f"{expected}, got none below the first line")
    is_short = len(header) < _MANY_COLUMNS
    if has_column_numbers and is_short and not np.isin(rows, (-1, 0, 1)).all():
        raise InputError(
            f"expected a first line in {path} that is plainly a header or plainly an image, got "
            f"{first.strip()}, which may be both: remove a header, or put a line with names of the "
            "columns before an image"
        )
    entries: dict[str, Entry] = {"": rows}
    if skipped:
        entries["header"] = "\n".join(header)
    return entries


def _separator(line: str) -> str | None:
    """The first of these signs that is in a line; None stands for white space."""
    return next((mark for mark in ",;\t" if mark in line), None)


def _why_no_table(text: str, skipped: int) -> str:
    """What keeps lines from being rows of as many numbers each."""
    lines = [
        (number, [word.strip().strip("\"'") for word in line.split(_separator(line))])
        for number, line in enumerate(text.splitlines(), start=1)
        if line.partition("#")[0].strip()
    ][skipped:]
    no_numbers = [
        (number, word) for number, words in lines for word in words if not _is_number(word)
    ]
    if no_numbers:
        number, word = no_numbers[0]
        reason = f"got {printable(word)[:40] or 'nothing'!r} in line {number}"
        different = sorted({word for _, word in no_numbers})
        if set(different) & _MISSING:
            return f"{reason}; {COMPLETE}"
        if len(different) <= _FEW_WORDS and all(word.isalpha() for word in different):
            reason += (
                f"; the words are {printable(', '.join(different))}: write 0 and 1 for them, and "
                "leave out a column of labels"
            )
        return reason
    lengths = [len(words) for _, words in lines]
    if len(set(lengths[1:])) == 1 and lengths[0] != lengths[1]:
        return (
            f"the first line has {lengths[0]} numbers, and the others have {lengths[1]}: leave "
            "out a first line that only gives sizes"
        )
    other = next((n for n, length in enumerate(lengths) if length != lengths[0]), 0)
    return (
        f"got {lengths[other]} numbers in line {lines[other][0]}, and {lengths[0]} in the lines "
        "before"
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _are_numbers_of_columns(words: Sequence[str]) -> bool:
    """Whether words are what pandas writes over columns without names.

    These are growing whole numbers, or a first image, whose second 0 it makes a 0.1.
    """
    if len(words) < 3 or not all(map(_is_number, words)):
        return False
    values = [float(word) for word in words]
    if all(value.is_integer() for value in values):
        return values[0] >= 0 and all(one < another for one, another in pairwise(values))
    count: Counter[str] = Counter()
    for word in words:
        name = word.partition(".")[0]
        if word != (f"{name}.{count[name]}" if name in count else name):
            return False
        count[name] += 1
    return True


def _read_matlab_73(source: _Source, path: Path) -> Mapping[str, Entry]:
    """MATLAB's HDF5 files have their axes in the opposite order."""
    file = _Hdf5(source, path)
    if any(name.startswith("#") or name.endswith(".jc") for name in file):
        raise InputError(
            f"expected plain matrices in the MATLAB 7.3 file {path}, got cells, structs or sparse "
            "matrices; save it with -v7"
        )
    entries: dict[str, Entry] = {}
    for name, value in file.items():
        entries[name] = value.T if isinstance(value, np.ndarray) else value
    return entries


class _Hdf5(UserDict[str, Entry]):
    """The data of an HDF5 file by name, each read when it is needed, if it is plain data."""

    # The argument that the file was given for.
    argument = "path"

    def __init__(self, source: _Source, path: Path) -> None:
        from h5py import HardLink

        super().__init__()
        self._source = source
        self.path = path
        with self._opened() as file:
            places = list(_places_below(file, "", set()))
            groups = {""}
            for place in places:
                groups.update(place[: sign.start()] for sign in re.finditer("/", place))
            descriptions: dict[str, float | str] = {}
            for place in sorted(groups) + places:
                if not place or isinstance(file.get(place, getlink=True), HardLink):
                    attributes = file[place or "/"].attrs
                    descriptions |= _described(place.replace("/", "."), attributes)
        # A name may have dots of its own, and `a.b` may stand beside the group `a` with a `b`: then
        # each has its path as its name.
        names = Counter(place.replace("/", ".") for place in places)
        for place in places:
            name = place.replace("/", ".")
            self.data[name if names[name] == 1 else place] = place
        self._descriptions = {name: descriptions[name] for name in descriptions.keys() - self.data}
        self.data |= self._descriptions

    def _opened(self) -> Any:
        import h5py

        return h5py.File(self._source, "r")

    def _error(self, name: str, expected: str, got: object) -> InputError:
        return InputError(f"expected {expected} as {name} in {self.path}, got {got}")

    def __getitem__(self, name: str) -> Entry:
        if name not in self:
            raise KeyError(name)
        if name in self._descriptions:
            return self._descriptions[name]
        try:
            with self._opened() as file:
                return self._read(file, name)
        except InputError as error:
            raise type(error)(f"{self.argument}: {error}") from error
        except Exception as error:  # h5py raises many kinds of exceptions for damaged files
            expected = "an undamaged HDF5 file"
            if re.search("filter|plugin", str(error)):
                expected = "data that are compressed by gzip, lzf or not at all"
            raise InputError(
                f"{self.argument}: expected {expected}, could not read {name} in {self.path}: "
                f"{first_line(error)}"
            ) from error

    def _read(self, file: Any, name: str) -> Entry:
        import h5py

        place = self.data[name]
        link = file.get(place, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise self._error(name, "data of the file itself", type(link).__name__)
        data = file[place]
        if not isinstance(data, h5py.Dataset):
            raise NoDataError(str(self._error(name, "data", "a group")))
        if data.is_virtual or data.external:
            raise self._error(name, "data of the file itself", "data of other files")
        if data.shape is None:
            raise self._error(name, "numbers", "no data")
        storage.require_modest(self.path, data.nbytes)
        if h5py.check_string_dtype(data.dtype) is not None:
            text = data.asstr()[()]
            return text if data.shape == () else np.asarray(text, "U")
        if data.dtype.kind not in "biuf":
            raise self._error(name, "real numbers", f"{data.dtype} {list(data.shape)}")
        return np.asarray(data[()])


def _described(name: str, attributes: Mapping[str, Any]) -> dict[str, float | str]:
    """What a file says of an array, or of all, if it tells of another model, by `name@key`.

    Other kinds of units than binary ones, and factors of the energy other than one.
    """
    descriptions: dict[str, float | str] = {}
    with suppress(Exception):  # h5py raises many kinds of exceptions for damaged files
        for key in filter(_TELLING.fullmatch, attributes):
            value = attributes[key]
            text = value.decode() if isinstance(value, bytes) else str(value)
            is_factor = _is_number(text) and float(text) != 1
            if is_factor or OTHER_UNITS.search(text):
                descriptions[f"{name}@{key}"] = float(text) if is_factor else text
    return descriptions


def _places_below(group: Any, prefix: str, seen: set[int]) -> Iterator[str]:
    """Paths of all data below a group.

    A link, and a group that was met before, stand for themselves and are not followed.
    """
    from h5py import Group, HardLink, h5o  # pyright: ignore[reportAttributeAccessIssue]

    if "OCTAVE_NEW_FORMAT" in group.attrs:
        raise InputError(f"expected arrays, got {_OCTAVE}")
    seen.add(h5o.get_info(group.id).addr)
    for name in group.keys():  # noqa: SIM118
        item = group[name] if isinstance(group.get(name, getlink=True), HardLink) else None
        if isinstance(item, Group) and len(item) and h5o.get_info(item.id).addr not in seen:
            yield from _places_below(item, f"{prefix}{name}/", seen)
        else:
            yield f"{prefix}{name}"


_READERS: Mapping[str, Callable[[_Source, Path], Mapping[str, Entry]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_matlab,
    "MATLAB 7.3": _read_matlab_73,
    ".safetensors": _read_safetensors,
    "torch": _read_torch,
    ".skops": _read_skops,
    "HDF5": _Hdf5,
    "IDX": _read_idx,
    ".csv": _read_text,
}


def _flat(value: object, prefix: str = "", depth: int = 0) -> dict[str, Entry]:
    """The leaves of nested dictionaries, lists, structs and cells, by names with dots between."""
    inside: Mapping[Any, object] | None = None
    if isinstance(value, Mapping):
        inside = value
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        inside = dict(enumerate(value))
    elif isinstance(value, np.ndarray) and value.dtype.names:
        inside = {name: value[name] for name in value.dtype.names}
        if value.size == 1:
            # a field may be an array, which has the axes of the structure before its own
            for name, item in inside.items():
                axes = item.shape[value.ndim :]
                inside[name] = item.reshape(axes) if axes else item.item()
    elif isinstance(value, np.ndarray) and value.dtype == object:
        inside = dict(enumerate(value.flat))
    if inside is None:
        return {} if value is None else {prefix.removesuffix("."): value}  # pyright: ignore
    # The depth is limited, since a dictionary may contain itself.
    if depth > _DEEPEST:
        raise InputError(f"expected at most {_DEEPEST} levels of names, got more below {prefix}")
    leaves: dict[str, Entry] = {}
    for key, item in inside.items():
        leaves |= _flat(item, f"{prefix}{key}.", depth + 1)
    return leaves
