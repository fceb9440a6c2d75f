"""Images of handwritten characters, binarisation, and the base rates of a training set.

`load_*()` returns an `ImageDataset` of grey images as rows, and `binary_images(name)` the same
images binarised once, which are what every model is trained and evaluated on. If unsure:
`binary_images("digits")` to try something out, and `"mnist-2008"` for the very images of
Salakhutdinov & Murray (2008).

The digits of `load_digits` are bundled with scikit-learn and need no network. `load_mnist` and
`load_omniglot` look in the folder named by the environment variable `PAPERLIB_DATA`, then in the
cache; MNIST is downloaded if it is in neither.
"""

from paperlib.datasets.authors_release import load_authors_rbm as load_authors_rbm
from paperlib.datasets.binarization import BinaryImages as BinaryImages
from paperlib.datasets.binarization import base_rate_bias as base_rate_bias
from paperlib.datasets.binarization import binarize as binarize
from paperlib.datasets.binary_images import binary_images as binary_images
from paperlib.datasets.digits import load_digits as load_digits
from paperlib.datasets.images import ImageDataset as ImageDataset
from paperlib.datasets.images import cache_folder as cache_folder
from paperlib.datasets.mnist import load_mnist as load_mnist
from paperlib.datasets.mnist_2008 import load_mnist_2008 as load_mnist_2008
from paperlib.datasets.omniglot import load_omniglot as load_omniglot
