"""What somebody else wrote: models, images and weights of images, from files of almost any program.

- `read_model`, `read_images`, `read_weights`, `read_checkpoints`: what the command reads.
- `model_of`: any named arrays, from whatever file, if they are the parameters of a model and
  nothing else.
- `from_archive`: HDF5 archives, as written by the Python package `rbms` and the Julia package
  RestrictedBoltzmannMachines.
- `binary_from_spins`: a model with units -1 and 1 as a model with units 0 and 1.

A model with units that the library does not have is refused with an error that names its type.
"""

from boltzmann_likelihood.files.archives import archive_updates as archive_updates
from boltzmann_likelihood.files.archives import from_archive as from_archive
from boltzmann_likelihood.files.archives import is_archive as is_archive
from boltzmann_likelihood.files.checkpoint_files import read_checkpoints as read_checkpoints
from boltzmann_likelihood.files.inputs import read_images as read_images
from boltzmann_likelihood.files.inputs import read_model as read_model
from boltzmann_likelihood.files.inputs import read_weights as read_weights
from boltzmann_likelihood.files.naming import model_of as model_of
from boltzmann_likelihood.files.naming import parse_names as parse_names
from boltzmann_likelihood.files.spins import binary_from_spins as binary_from_spins
from boltzmann_likelihood.sources import ForeignRBM as ForeignRBM
from boltzmann_likelihood.sources import Images as Images
