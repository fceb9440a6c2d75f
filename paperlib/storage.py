"""Where files are, and how they are kept whole: folders, atomic replacement, checksums."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import site
import sysconfig
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paperlib.errors import InputError

# How many times larger than a packed file its contents may be. Binary images in which most pixels
# are off come close to it.
_LARGEST_RATIO = 100
# So many bytes may come out of any packed file.
_SMALLEST_LIMIT = 2**26
# How many bytes are unpacked at a time.
_PIECE = 2**20


def is_checkout(folder: Path) -> bool:
    """Whether this folder is a clone of the companion's repository."""
    return (folder / "data" / "published.csv").is_file() and (folder / "_toc.yml").is_file()


def repository_root() -> Path:
    """The checkout that holds the chapters, published numbers and results.

    It is looked for above this package (an editable installation), then above the current folder.
    """
    for folder in (*Path(__file__).resolve().parents, Path.cwd(), *Path.cwd().parents):
        if is_checkout(folder):
            return folder
    raise InputError(
        "expected to run inside a clone of the companion's repository (with _toc.yml and "
        f"data/published.csv), found none above {Path(__file__).parent} or {Path.cwd()}"
    )


def companion_folder() -> Path:
    """The folder with `data/` and `figures/`, which the chapters read.

    That is the checkout, or else the copy of it that an installed wheel carries.
    """
    try:
        return repository_root()
    except ValueError as error:
        for prefix in (sysconfig.get_path("data"), site.getuserbase()):
            folder = Path(prefix) / "share" / "paperlib"
            if (folder / "data" / "published.csv").is_file():
                return folder
        raise InputError(f"{error}; nor does the installation carry a copy of its data") from error


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file that takes the place of `path` when the block ends without an exception.

    An exception, Ctrl-C included, removes the temporary file and leaves what was at `path`
    untouched.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "text.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('text.txt', 'whole')]
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix is kept, since writers such as numpy and matplotlib choose the format by it.
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes files private; the finished file gets the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], value: object, allow_nan: bool = False) -> None:
    """Write a value as JSON, whole or not at all.

    Infinite numbers and NaN, which not every program reads, are refused unless `allow_nan` is set.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder) / "one.json", {"log_z": 1.5})
    ...     json.loads((Path(folder) / "one.json").read_text())
    {'log_z': 1.5}
    """
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, allow_nan=allow_nan) + "\n")


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is an ordinary file of this name, and not a folder, device or pipe.

    False for a name that no file can have.

    Examples
    --------
    >>> is_file(__file__), is_file("/"), is_file("x" * 10_000)
    (True, False, False)
    """
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def file_and_member(location: str) -> tuple[str, str]:
    """The two parts of `FILE:NAME`, the name of an array in a file; without one the name is empty.

    Both parts may have colons: the file ends before the first colon that leaves the name of a file.

    Examples
    --------
    >>> file_and_member(f"{__file__}:T=2.0:x")[1], file_and_member("C:/missing.npy")
    ('T=2.0:x', ('C:/missing.npy', ''))
    """
    if is_file(location):
        return location, ""
    for n, letter in enumerate(location):
        if letter == ":" and is_file(location[:n]):
            return location[:n], location[n + 1 :]
    return location, ""


def unpacked_limit(path: Path) -> int:
    """How many bytes may come out of a packed file: a hundred times its size, at least 64 MiB."""
    return max(_LARGEST_RATIO * path.stat().st_size, _SMALLEST_LIMIT)


def require_modest(path: Path, size: int) -> None:
    """Raise an InputError if a packed file holds more than `unpacked_limit` bytes."""
    limit = unpacked_limit(path)
    if size > limit:
        # who stops reading one byte beyond the limit does not know the size
        number = "more" if size == limit + 1 else size
        raise InputError(
            f"expected at most {limit} bytes in the packed file {path}, a hundred times its size, "
            f"got {number}; if you trust it, write its content without compression"
        )


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed by gzip, or has the name of such a file."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b" or path.suffix.lower() == ".gz"


def read_bytes(path: Path) -> bytes:
    """The contents of a file, decompressed if it is a gzip file.

    Raises
    ------
    InputError
        If a gzip file is damaged, or holds more than `unpacked_limit` bytes.
    """
    if not is_gzip(path):
        return path.read_bytes()
    limit = unpacked_limit(path)
    content = bytearray()
    try:
        with gzip.open(path) as file:
            while len(content) <= limit:
                piece = file.read(_PIECE)
                if not piece:
                    break
                content += piece
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"expected a whole gzip file at {path}, it is damaged ({error})"
        ) from error
    require_modest(path, min(len(content), limit + 1))
    return bytes(content)


def sha256(data: bytes) -> str:
    """SHA-256 of `data` as a hexadecimal string.

    Examples
    --------
    >>> sha256(b"abc")[:8]
    'ba7816bf'
    """
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's contents as a hexadecimal string."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
