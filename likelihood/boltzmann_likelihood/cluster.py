"""The workers of a Dask cluster, as an executor: of a running one, or of one on this machine.

Each task sent there is a pure function of the data sent with it. So it does not matter which worker
computes it, in which order, or how often: if a worker dies, its unfinished tasks are done again by
another one. The sender keeps the results (`boltzmann_likelihood.store`).

Workers need this version of paperlib and of its draws, and nothing else. The environment variable
`PAPERLIB_CLUSTER` names the cluster to which chapters send their shards.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import cache
from typing import Any, ParamSpec, TypeVar

from paperlib.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

# The address that stands for a cluster of this machine's own cores.
LOCAL = "local"
VARIABLE = "PAPERLIB_CLUSTER"


class ClusterExecutor(Executor):
    """The workers of a Dask cluster, as an executor that sends what many tasks share only once.

    Parameters
    ----------
    address : str
        Address of a running Dask scheduler, such as `tcp://10.0.0.1:8786`; or `local`, for one
        single-threaded worker process on each core of this machine. These end with the executor.

    Attributes
    ----------
    client : distributed.Client
        The connection.
    address : str
        The scheduler's address, also of a local cluster.

    Raises
    ------
    InputError
        If the package distributed is not installed, or no scheduler answers at the address within
        half a minute.

    Examples
    --------
    >>> try:
    ...     ClusterExecutor("no-such-address")
    ... except InputError as error:
    ...     print(str(error)[:21])
    cluster: expected the
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise InputError(
                "cluster: expected the package distributed to be installed "
                "(pip install 'boltzmann-likelihood[cluster]')"
            ) from error
        try:
            if address == LOCAL:
                self.client = distributed.Client(threads_per_worker=1, dashboard_address=None)
            else:
                self.client = distributed.Client(address, timeout=30)
        except (OSError, ValueError) as error:
            raise InputError(
                "cluster: expected the address of a running Dask scheduler (tcp://HOST:PORT) or "
                f"`{LOCAL}`, got {address!r}: {error}"
            ) from error
        self.address = str(self.client.scheduler_info()["address"])
        self._executor = self.client.get_executor()
        self._shared: tuple[Any, Any] = (None, None)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As in any executor.

        The first argument of `fn` is sent again only if it is another object than in the last call.
        """
        from dask import config

        shared, *others = args
        if self._shared[0] is not shared:
            # The scheduler keeps the inputs of tasks, so what they share is not lost with a worker
            # that dies.
            with config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
                self._shared = shared, self.client.submit(_itself, shared, pure=False)
        return self._executor.submit(fn, self._shared[1], *others, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the connection, and a local cluster with it."""
        self.client.close()


def _itself(shared: Any) -> Any:
    return shared


def from_environment() -> Executor | None:
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


_connected = cache(ClusterExecutor)
