"""Greedy learning of a DBN, one RBM after another (Hinton, Osindero & Teh 2006).

Each RBM learns from draws of the one below. Salakhutdinov & Murray (2008), section 4.1: freeze W^1,
and train the next RBM with draws from Q(h^1 | v) as its data. That raises the second term of the
bound of eq. 19. If the second layer starts as the first one turned upside down, the bound begins at
ln p(v) of the RBM below, so raising it cannot make the model worse than that; otherwise it may
start anywhere.

If unsure: start at random with as many hidden units as you can afford, and let `dbn_lower_bound`
judge. Used in chapter: deep-belief-networks.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from paperlib.learning.contrastive_divergence import ContrastiveDivergence, train_rbm
from paperlib.models import DBN, RBM
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike


@plain_torch()
def train_dbn(
    train: ArrayLike,
    recipes: Sequence[ContrastiveDivergence],
    seed: int,
    *,
    layers_below: Sequence[RBM] = (),
    start_transposed: bool = False,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: bool | None = None,
) -> DBN:
    """Train a DBN layer by layer.

    Parameters
    ----------
    train : array or Tensor, shape [N, D]
        Binary training data of any type.
    recipes : sequence of ContrastiveDivergence
        One for each layer to be trained, from the bottom up.
    seed : int
        Seed for the first trained layer; the next layers use the numbers that follow.
    layers_below : sequence of RBM
        Layers that exist already and stay as they are.
    start_transposed : bool
        Start every layer above the lowest at the parameters of the layer below with its sides
        exchanged. Its recipe must then ask for as many hidden units as the layer below has visible
        ones.
    dtype, device, progress
        As in `train_rbm`.

    Returns
    -------
    DBN
        The layers below, followed by those trained.

    Raises
    ------
    InputError
        As in `train_rbm`, or if there is no layer at all.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> recipes = [ContrastiveDivergence(units, epochs=1) for units in (8, 4)]
    >>> train_dbn(binary_images("digits").train[:100], recipes, seed=0, progress=False)
    DBN(64-8-4, torch.float32, cpu)
    """
    layers = [layer.to(device, dtype) for layer in layers_below]
    for number, recipe in enumerate(recipes):
        initial = layers[-1].transposed() if start_transposed and layers else None
        layer, _ = train_rbm(
            train,
            recipe,
            seed + number,
            layers_below=layers,
            initial=initial,
            dtype=dtype,
            device=device,
            progress=progress,
        )
        layers.append(layer)
    return DBN(layers)
