"""From a model to the path that anneals it, and the start that works best in practice.

If unsure: `base_rate_path(model, train)`, which chooses both. `path_to` makes the path of each kind
of model, and `start_bias` finds the base rates of its units. Where there are no training images,
`mean_field_bias` finds a start for an RBM.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing.deep_paths import DBMPath, DBNPath
from paperlib.annealing.rbm_paths import BaseRatePath
from paperlib.datasets.binarization import base_rate_bias, pixel_means
from paperlib.errors import InputError
from paperlib.models import DBM, DBN, RBM
from paperlib.models.bounds import distinct, mean_field_optima, search_points
from paperlib.models.rbm import as_rbm
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import as_float_tensor, blocks, require_shape

# Mean field costs as much as dozens of draws, and a few thousand images are enough to tell how
# often a unit is on.
_MEAN_FIELD_IMAGES = 5_000
# Rows on which the path of a model is compared with the model.
_FEW_ROWS = 8
# How far the two may be apart, in nats.
_SAME = 1e-4
# The highest rate of a hidden unit at the start, so that its bias is finite.
_HIGHEST_RATE = 1 - 1e-4
# The lowest mean of a pixel at a start from mean field, which is overconfident.
_LOWEST_MEAN = 1e-3


@plain_torch(gradients=False)
def base_rate_path(
    model: UnnormalizedModel, train: object, generator: torch.Generator | int | None = None
) -> BaseRatePath:
    """A path to a model from the base rates of its units on the training images.

    For an RBM these are the rates of the pixels (Salakhutdinov & Murray 2008, section 3.3). For a
    DBM they are the rates of the pixels and of h2, from mean field on up to 5,000 images chosen at
    random. For a DBN they are the rates of h^{L-1}, drawn from its recognition distribution.

    Parameters
    ----------
    model : RBM, DBM or DBN
        The target.
    train : array or Tensor, shape [N, D]
        Training images, binary or intensities in [0, 1].
    generator : torch.Generator or int, optional
        Source of randomness for the choice and for the draws; not used for an RBM. None: a fresh
        one from system entropy.

    Returns
    -------
    BaseRatePath
        A `DBMPath` for a DBM, a `DBNPath` for a DBN. Biases of hidden units are rounded to two
        decimals, which keeps the rounding errors of matrix products out of the start; any start
        will do.

    Raises
    ------
    InputError
        If `model` is of another kind, or `train` has the wrong width, no images, or values outside
        [0, 1].

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> path = base_rate_path(rbm, train=[[1, 1, 0], [1, 0, 0], [0, 1, 0]])
    >>> path.log_start([[1, 1, 0]]).exp() > path.log_start([[0, 1, 1]]).exp()
    tensor([True])
    """
    if not isinstance(model, UnnormalizedModel):
        raise InputError(f"model: expected an RBM, DBM or DBN, got {type(model).__name__}")
    images = train if isinstance(train, Tensor) else as_float_tensor("train", train)
    require_shape("train", images, [None, model.num_visible])
    pixel_means(images)  # refuses values outside [0, 1]
    generator = resolve_generator(generator, model.device)
    return path_to(model, start_bias(model, images, generator, pseudo_off=0.0))


@singledispatch
def path_to(model: UnnormalizedModel, bias: Tensor | None) -> BaseRatePath:
    """A path to a model from independent units; a new kind of model registers its own.

    Parameters
    ----------
    model : RBM, DBM or DBN
        The target.
    bias : Tensor, optional
        Biases of the start for the visible units of `model.annealed`, in one row, as `start_bias`
        finds them. None: the uniform start.

    Returns
    -------
    BaseRatePath
        A `DBMPath` for a DBM, a `DBNPath` for a DBN.

    Raises
    ------
    InputError
        If no path is known for a model of this kind, or the biases do not fit.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import DBM
    >>> sizes = [(4, 3), (3, 2), 4, 3, 2]
    >>> type(path_to(DBM(*(torch.zeros(size) for size in sizes)), None)).__name__
    'DBMPath'
    """
    kind = type(model).__name__
    raise InputError(
        f"model: expected one that can be annealed, got {kind}; "
        "tell path_to of its path with @path_to.register"
    )


@path_to.register
def _(model: RBM, bias: Tensor | None) -> BaseRatePath:
    return BaseRatePath(model, bias)


@path_to.register
def _(model: DBN, bias: Tensor | None) -> DBNPath:
    return DBNPath(model, bias)


@path_to.register
def _(model: DBM, bias: Tensor | None) -> DBMPath:
    width = model.num_visible
    return DBMPath(model) if bias is None else DBMPath(model, bias[:width], bias[width:])


def require_own_path(model: UnnormalizedModel, rows: Tensor) -> None:
    """Raise an InputError if the path of a model of a user's own does not end at the model.

    ln Z comes from `model.annealed` and ln p*(v) from the model, so that a constant that only one
    of them has would go unseen into every log-probability. A few rows [N, D] are compared, where
    the units of the path are those of the model and ln p*(v) is exact.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.ones(3, 2), torch.zeros(3), torch.zeros(2))
    >>> require_own_path(rbm, torch.tensor([[1, 1, 0], [1, 0, 0]]))
    """
    completes = type(model).completed is not UnnormalizedModel.completed
    if type(model) is RBM or completes or not model.is_exact(_FEW_ROWS):
        return
    double = model.to("cpu", torch.float64)
    few = rows[:_FEW_ROWS].cpu()
    path = path_to(double, None)
    path_values = path.log_f(path.state_at(few), 1.0)
    model_values = double.exact_log_unnormalized(few)
    difference = (path_values - model_values).abs()
    worst = int(difference.argmax())
    if difference[worst] > _SAME + double.largest_rounding:
        raise InputError(
            f"model: expected ln p*(v) of {type(model).__name__}.annealed "
            f"to be that of the model itself, got {path_values[worst].item():.6g} "
            f"for {model_values[worst].item():.6g}; ln Z would be wrong by the difference"
        )


@singledispatch
def start_bias(
    model: UnnormalizedModel,
    images: Tensor,
    generator: torch.Generator | int,
    weights: Tensor | None = None,
    pseudo_off: float = 0.05,
) -> Tensor:
    """Biases with which the visible units of `model.annealed` have their base rates on images.

    `path_to` makes a path that starts there.

    Parameters
    ----------
    model : RBM, DBM or DBN
        Determines what the units are: of a DBM, the pixels and h2; of a DBN, h^{L-1}.
    images : Tensor, shape [N, D]
        Binary images.
    generator : torch.Generator or int
        For the choice of images and for draws of hidden units; not used for an RBM.
    weights : Tensor, shape [N], optional
        Weights of the images, which count for pixels only.
    pseudo_off : float
        As for `paperlib.datasets.base_rate_bias`.

    Returns
    -------
    Tensor, shape [n]
        float64.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> torch.sigmoid(start_bias(rbm, torch.tensor([[1, 1, 0], [1, 0, 0]]), torch.Generator()))
    tensor([0.9545, 0.5000, 0.0455], dtype=torch.float64)
    """
    return base_rate_bias(images, pseudo_off=pseudo_off, weights=weights)


@start_bias.register
def _(model: DBN, images: Tensor, generator: torch.Generator | int, *_: Any, **__: Any) -> Tensor:
    """The rates of h^{L-1}, as Q draws it."""
    generator = resolve_generator(generator, model.device)
    counts = torch.zeros(model.top.num_visible, dtype=torch.float64, device=model.device)
    for block in blocks(images):
        counts += model.annealed_units(block, generator).double().sum(0)
    return _hidden_bias(counts / len(images))


@start_bias.register
def _(
    model: DBM,
    images: Tensor,
    generator: torch.Generator | int,
    weights: Tensor | None = None,
    pseudo_off: float = 0.05,
) -> Tensor:
    """The rates of the pixels, and those of h2 by mean field."""
    pixels = base_rate_bias(images, pseudo_off=pseudo_off, weights=weights)
    generator = resolve_generator(generator, model.device)
    some = torch.randperm(len(images), generator=generator, device=model.device)
    units = model.annealed_units(images[some[:_MEAN_FIELD_IMAGES].to(images.device)], generator)
    above = units[:, model.num_visible :].double().mean(0)
    return torch.cat([pixels.to(above), _hidden_bias(above)])


def _hidden_bias(rates: Tensor) -> Tensor:
    """Biases of units with these rates, finite even for a unit that was on in every draw."""
    return base_rate_bias(rates.clamp(max=_HIGHEST_RATE)[None]).round(decimals=2)


@plain_torch(gradients=False)
def mean_field_bias(rbm: RBM) -> Tensor:
    """Visible biases of a start that needs no data: the means of the RBM's pixels under mean field.

    Mean field has many optima. Their means are averaged, each weighted with the share of Z that its
    bound promises, so that the start lies between the modes and covers all that matter. For starts
    from mean field, see Mazzanti & Romero (2020) and Prat Pou, Romero, Marti & Mazzanti (2025).

    Parameters
    ----------
    rbm : RBM
        The target.

    Returns
    -------
    Tensor, shape [D]
        For the argument `visible_bias` of `BaseRatePath`, rounded to two decimals. A pixel that
        would always be on is off in one draw in a thousand, and vice versa.

    Raises
    ------
    InputError
        If `rbm` is not an RBM.

    Notes
    -----
    Deterministic, and as expensive as some hundred Gibbs steps of a hundred chains. Modes that mean
    field does not find are missing from the start.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> mean_field_bias(rbm)
    tensor([-0.1100,  2.6100, -0.1400], dtype=torch.float64)
    """
    rbm = as_rbm("rbm", rbm)
    # Not on a GPU, which would draw other random starting points: a start has to be the same
    # wherever it is used.
    model = rbm.to("cpu", torch.float64)
    optima, bounds, *_ = mean_field_optima(model, search_points(model))
    modes = distinct(model.visible_probs(optima), bounds)
    means = bounds[modes].softmax(0) @ model.visible_probs(optima[modes])
    bias = torch.logit(means.clamp(_LOWEST_MEAN, 1 - _LOWEST_MEAN)).round(decimals=2)
    return bias.to(rbm.device, rbm.dtype)
