"""Models from the files of other programs.

- `model_of`: any named arrays, from whatever file, if they are the parameters of a model and nothing else.
- `from_archive`: HDF5 archives, as written by the Python package `rbms` and the Julia package RestrictedBoltzmannMachines.
- `binary_from_spins`: a model with units -1 and 1 as a model with units 0 and 1.

A model with units that the library does not have is refused with an error that names its type.
"""

from paperlib.models.foreign.archives import archive_updates as archive_updates
from paperlib.models.foreign.archives import from_archive as from_archive
from paperlib.models.foreign.archives import is_archive as is_archive
from paperlib.models.foreign.foreign_rbm import ForeignRBM as ForeignRBM
from paperlib.models.foreign.naming import model_of as model_of
from paperlib.models.foreign.naming import parse_names as parse_names
from paperlib.models.foreign.spins import binary_from_spins as binary_from_spins
