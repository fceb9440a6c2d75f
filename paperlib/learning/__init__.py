"""Learning procedures that make models. Recipes are plain data, so a model file can carry its own recipe."""

from paperlib.learning.contrastive_divergence import ContrastiveDivergence, train_rbm
from paperlib.learning.deep_boltzmann import DeepBoltzmannLearning, pretrain_dbm, train_dbm
from paperlib.learning.greedy import train_dbn
from paperlib.learning.mixture_em import MixtureEM, train_mixture
from paperlib.surroundings import undisturbed_in

__all__ = [
    "ContrastiveDivergence",
    "DeepBoltzmannLearning",
    "MixtureEM",
    "pretrain_dbm",
    "train_dbm",
    "train_dbn",
    "train_mixture",
    "train_rbm",
]

undisturbed_in(__name__)
