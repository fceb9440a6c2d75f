"""What is known of an RBM that another program has written."""

from __future__ import annotations

from dataclasses import dataclass

from paperlib.models.dbm import DBM
from paperlib.models.dbn import DBN
from paperlib.models.potts_rbm import PottsRBM
from paperlib.models.rbm import RBM


@dataclass(frozen=True)
class ForeignRBM:
    """An RBM as this library has it, and how it came from the file.

    Attributes
    ----------
    rbm : RBM, PottsRBM, DBM or DBN
        With units 0 and 1, or with categorical visible units. The last two come from this library's own files only.
    origin : str
        What was read.
    spin_visible : bool
        Whether the file's own visible units are -1 and 1, and with them the images that belong to it.
    log_z_offset : float
        ln Z of the file's own model less that of `rbm`, in nats; 0 unless units are -1 and 1.
    stored_log_z : float or None
        ln Z of the file's own model as the file gives it, if it does. Nobody has checked it.
    notes : tuple of str
        What was changed on the way, for the user to see.

    Examples
    --------
    >>> import torch
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> ForeignRBM(rbm, "an example").log_z_offset
    0.0
    """

    rbm: RBM | PottsRBM | DBM | DBN
    origin: str
    spin_visible: bool = False
    log_z_offset: float = 0.0
    stored_log_z: float | None = None
    notes: tuple[str, ...] = ()
