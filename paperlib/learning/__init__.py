"""Learning: procedures that make models. Recipes are plain data, so that a model file can carry its own."""

from paperlib.learning.contrastive_divergence import ContrastiveDivergence, train_rbm
from paperlib.learning.greedy import train_dbn

__all__ = ["ContrastiveDivergence", "train_dbn", "train_rbm"]
