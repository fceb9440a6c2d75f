"""Images of handwritten characters, binarisation, and the base rates of a training set.

The digits of `load_digits` are bundled with scikit-learn and need no network. `load_mnist` and `load_omniglot` look in the
folder named by the environment variable `PAPERLIB_DATA`, then in the cache; MNIST is downloaded if it is in neither.
"""

from paperlib.datasets.authors_release import load_authors_rbm
from paperlib.datasets.binarization import BinaryImages, base_rate_bias, binarize
from paperlib.datasets.binary_images import binary_images
from paperlib.datasets.digits import load_digits
from paperlib.datasets.images import ImageDataset, cache_folder
from paperlib.datasets.mnist import load_mnist
from paperlib.datasets.mnist_2008 import load_mnist_2008
from paperlib.datasets.omniglot import load_omniglot
from paperlib.datasets.sequences import site_frequency_bias
from paperlib.surroundings import undisturbed_in

__all__ = [
    "BinaryImages",
    "ImageDataset",
    "base_rate_bias",
    "binarize",
    "binary_images",
    "cache_folder",
    "load_authors_rbm",
    "load_digits",
    "load_mnist",
    "load_mnist_2008",
    "load_omniglot",
    "site_frequency_bias",
]

undisturbed_in(__name__)
