"""RBMs from the files of other programs.

- `read_archive`: HDF5, as the Python package `rbms` and the Julia package RestrictedBoltzmannMachines write them.
- `read_state_dict`: named tensors that `torch.save` wrote.
- `binary_from_spins`: a model of units -1 and 1 as a model of units 0 and 1.

Nothing is unpickled but what PyTorch's restricted reader allows. A model with units that the library does not have is refused by name.
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
