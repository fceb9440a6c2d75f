"""The start that serves best in practice, for each kind of model."""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.annealing.deep_paths import DBMPath, DBNPath
from paperlib.annealing.rbm_paths import BaseRatePath
from paperlib.datasets.binarization import base_rate_bias
from paperlib.errors import InputError
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import resolve_generator
from paperlib.validation import as_float_tensor, blocks, require_shape

# Mean field costs as much as dozens of draws, and a few thousand images tell how often a unit is on.
_MEAN_FIELD_IMAGES = 5_000
_HIGHEST_RATE = 1 - 1e-4


def base_rate_path(
    model: RBM | DBM | DBN, train: object, generator: torch.Generator | None = None
) -> BaseRatePath:
    """A path to a model from the base rates of its units on the training images.

    For an RBM those of the pixels (Salakhutdinov & Murray 2008, section 3.3). For a DBM those of the pixels and of h2, by mean
    field of up to 5,000 images chosen at random. For a DBN those of h^{L-1}, as its recognition distribution draws it.

    Parameters
    ----------
    model : RBM, DBM or DBN
        The target.
    train : array or Tensor, shape [N, D]
        Training images, binary or intensities in [0, 1].
    generator : torch.Generator, optional
        Source of the choice and of the draws; not used for an RBM. None: a fresh one from system entropy.

    Returns
    -------
    BaseRatePath
        For a DBM a `DBMPath`, for a DBN a `DBNPath`. Biases of hidden units are rounded to two decimals: any start will do, and
        so rounding errors of matrix products do not reach it.

    Raises
    ------
    InputError
        If `model` is of another kind, or `train` has another width, no images, or values outside [0, 1].

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> path = base_rate_path(rbm, train=[[1, 1, 0], [1, 0, 0], [0, 1, 0]])
    >>> path.log_start([[1, 1, 0]]).exp() > path.log_start([[0, 1, 1]]).exp()
    tensor([True])
    """
    if not isinstance(model, RBM | DBM | DBN):
        raise InputError(f"model: expected an RBM, DBM or DBN, got {type(model).__name__}")
    images = train if isinstance(train, Tensor) else as_float_tensor("train", train)
    require_shape("train", images, [None, model.num_visible])
    pixels = base_rate_bias(images)
    if isinstance(model, RBM):
        return BaseRatePath(model, pixels)
    generator = resolve_generator(generator, model.device)
    if isinstance(model, DBM):
        some = torch.randperm(len(images), generator=generator, device=model.device)
        some = images[some[:_MEAN_FIELD_IMAGES].to(images.device)].to(model.device, model.dtype)
        return DBMPath(model, pixels, _hidden_bias(torch.sigmoid(model.mean_field(some).logits_2)))
    counts = [
        model.recognize(block.to(model.device, model.dtype), generator)[-1].double().sum(0)
        for block in blocks(images)
    ]
    return DBNPath(model, _hidden_bias(torch.stack(counts).sum(0)[None] / len(images)))


def _hidden_bias(probabilities: Tensor) -> Tensor:
    """From rates [N, M] of the units; one that was on in every draw is not held on for ever."""
    rates = probabilities.double().mean(0, keepdim=True).clamp(max=_HIGHEST_RATE)
    return base_rate_bias(rates).round(decimals=2)
