"""A Dask cluster for what one machine takes too long for: an existing one by its address, or one on this machine.

What is sent there is a pure function of what is sent along, so that it does not matter which worker computes it, in which order, or
how often: a worker that dies loses what it was computing, and another one does it again. Whoever sent it keeps the results.

Workers need this version of paperlib. Shards need nothing else, and are sent to the cluster that the environment variable
`PAPERLIB_CLUSTER` names. Chapters and training (`--cluster` on the command line) write files: for them the workers must see the
same checkout, data and cache under the same paths.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

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
        Of a running Dask scheduler, such as `tcp://10.0.0.1:8786`; or `local`, for one worker process of one thread on each core
        of this machine, which end with the connection.

    Raises
    ------
    ValueError
        If the package distributed is not installed, or no scheduler answers at the address within half a minute.
    """
    try:
        import distributed
    except ImportError as error:
        raise ValueError(
            "cluster: expected the package distributed to be installed (pip install 'paperlib[cluster]')"
        ) from error
    if address == LOCAL:
        return distributed.Client(threads_per_worker=1, dashboard_address=None)
    try:
        return distributed.Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"cluster: expected the address of a running Dask scheduler (tcp://HOST:PORT) or `{LOCAL}`, got {address!r}: {error}"
        ) from error


def from_environment() -> Client | None:
    """The cluster that the environment variable `PAPERLIB_CLUSTER` names, connected once for each process; None without it."""
    address = os.environ.get(VARIABLE)
    return _connected(address) if address else None


@cache
def _connected(address: str) -> Client:
    return connect(address)
