"""What is known about an RBM that another program has written."""

from __future__ import annotations

from dataclasses import dataclass

from paperlib.models.dbm import DBM
from paperlib.models.dbn import DBN
from paperlib.models.rbm import RBM


@dataclass(frozen=True)
class ForeignRBM:
    """An RBM as this library represents it, and how it was obtained from the file.

    Attributes
    ----------
    rbm : RBM, DBM or DBN
        With units 0 and 1.
    origin : str
        What was read.
    spin_visible : bool
        Whether the visible units of the model in the file, and the images that belong to it, have values -1 and 1.
    log_z_offset : float
        ln Z of the model in the file minus that of `rbm`, in nats; 0 unless units are -1 and 1.
    stored_log_z : float or None
        ln Z of the model in the file as the file states it, if it does. It has not been checked.
    notes : tuple of str
        What was changed in the conversion, to be shown to the user.
    """

    rbm: RBM | DBM | DBN
    origin: str
    spin_visible: bool = False
    log_z_offset: float = 0.0
    stored_log_z: float | None = None
    notes: tuple[str, ...] = ()
