"""RBMs from the files of other programs.

- `read_archive`: HDF5 archives, as written by the Python package `rbms` and the Julia package RestrictedBoltzmannMachines.
- `read_state_dict`: named tensors written by `torch.save`.
- `binary_from_spins`: a model with units -1 and 1 as a model with units 0 and 1.

Nothing is unpickled except what PyTorch's restricted reader allows. A model with units that the library does not have is refused with
an error that names its type.
"""

from paperlib.models.foreign.archives import archive_updates, read_archive
from paperlib.models.foreign.foreign_rbm import ForeignRBM
from paperlib.models.foreign.spins import binary_from_spins
from paperlib.models.foreign.state_dicts import read_state_dict

__all__ = [
    "ForeignRBM",
    "archive_updates",
    "binary_from_spins",
    "read_archive",
    "read_state_dict",
]
