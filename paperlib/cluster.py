"""A Dask cluster for work that takes one machine too long: a running one, or one on this machine.

Each task sent there is a pure function of the data sent with it. So it does not matter which worker
computes it, in which order, or how often: if a worker dies, its unfinished tasks are done again by
another one. The sender keeps the results.

Workers need this version of paperlib and of its draws. Shards need nothing else; they are sent to
the cluster that the environment variable `PAPERLIB_CLUSTER` names. Chapters and training
(`--cluster` on the command line) write files, so for them the workers must see the same checkout,
data and cache under the same paths.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from paperlib.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

# The address that stands for a cluster of this machine's own cores.
LOCAL = "local"
VARIABLE = "PAPERLIB_CLUSTER"


def connect(address: str) -> Client:
    """A connection to a cluster, to be closed after use (it is a context manager).

    Parameters
    ----------
    address : str
        Address of a running Dask scheduler, such as `tcp://10.0.0.1:8786`; or `local`, for one
        single-threaded worker process on each core of this machine. These end with the connection.

    Raises
    ------
    InputError
        If the package distributed is not installed, or no scheduler answers at the address within
        half a minute.

    Examples
    --------
    >>> try:
    ...     connect("no-such-address")
    ... except InputError as error:
    ...     print(str(error)[:21])
    cluster: expected the
    """
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            "cluster: expected the package distributed to be installed "
            "(pip install 'boltzmann-likelihood[cluster]')"
        ) from error
    if address == LOCAL:
        return distributed.Client(threads_per_worker=1, dashboard_address=None)
    try:
        return distributed.Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise InputError(
            "cluster: expected the address of a running Dask scheduler (tcp://HOST:PORT) or "
            f"`{LOCAL}`, got {address!r}: {error}"
        ) from error


def from_environment() -> Client | None:
    """The cluster that the environment variable `PAPERLIB_CLUSTER` names; None if it is not set.

    Each process connects to it once.

    Examples
    --------
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, {VARIABLE: ""}):
    ...     print(from_environment())
    None
    """
    address = os.environ.get(VARIABLE)
    return _connected(address) if address else None


@cache
def _connected(address: str) -> Client:
    return connect(address)
