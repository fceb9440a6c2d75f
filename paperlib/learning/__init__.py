"""Learning procedures that make models.

All have the form `train_*(train, recipe, seed)`: binary images, a frozen dataclass of numbers, and
the seed of every draw. `train_rbm` runs contrastive divergence, `train_dbn` stacks RBMs,
`train_dbm` follows the mean-field bound with persistent chains, and `train_mixture` runs EM.
Recipes are plain data, so a model file can carry its own recipe. If unsure: `train_rbm`, with the
recipe that `paperlib.learning.contrastive_divergence` suggests.
"""

from paperlib.learning.contrastive_divergence import ContrastiveDivergence as ContrastiveDivergence
from paperlib.learning.contrastive_divergence import train_rbm as train_rbm
from paperlib.learning.deep_boltzmann import DeepBoltzmannLearning as DeepBoltzmannLearning
from paperlib.learning.deep_boltzmann import pretrain_dbm as pretrain_dbm
from paperlib.learning.deep_boltzmann import train_dbm as train_dbm
from paperlib.learning.greedy import train_dbn as train_dbn
from paperlib.learning.mixture_em import MixtureEM as MixtureEM
from paperlib.learning.mixture_em import train_mixture as train_mixture
