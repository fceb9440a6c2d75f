"""What an evaluation has to know about each kind of model: which part is annealed, from which start, and what ln p*(v) is.

- *RBM*, with binary or categorical visible units: the model itself is annealed, from the base rates. ln p*(v) is exact.
- *DBM*: the RBM over (v, h2) and h1, which has the same ln Z, is annealed. ln p*(v) is enumerated where h1 is small. Otherwise it is
  estimated by importance sampling from mean field, and errs low (Burda, Grosse & Salakhutdinov 2015, section 5.2).
- *DBN*: the top RBM, which has the same ln Z, is annealed. ln p*(v) is enumerated where the layers are small. Otherwise it is estimated by
  importance sampling from the recognition distribution, and errs low (section 5.3).
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from paperlib.annealing import BaseRatePath, DBMPath, DBNPath, PottsPath
from paperlib.datasets import base_rate_bias, site_frequency_bias
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.evaluation.enumeration import can_enumerate, enumerated_log_unnormalized
from paperlib.evaluation.weighting import total_weight
from paperlib.models import DBM, DBN, RBM, PottsRBM
from paperlib.validation import as_binary, as_tensor, blocks

Model: TypeAlias = RBM | PottsRBM | DBM | DBN

#: Draws of the hidden units for each image, where ln p*(v) is an estimate.
POSTERIOR_DRAWS = 100
_MEAN_FIELD_IMAGES = 5_000
_HIGHEST_RATE = 1 - 1e-4
# The worst rounding of ln p*(v) that is put up with, in nats. It is reached only if all terms have one sign.
_LEAST_DIGIT = 0.05


def describe_model(model: Model) -> str:
    """The kind of a model and its sizes.

    Examples
    --------
    >>> describe_model(RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)))
    'RBM with 3 visible and 2 hidden units'
    """
    if isinstance(model, PottsRBM):
        return (
            f"RBM with {model.num_sites:,} visible sites of {model.num_states} states and "
            f"{model.num_hidden:,} hidden units"
        )
    layers = " + ".join(f"{units:,}" for units in hidden_layers(model))
    kind = type(model).__name__
    return f"{kind} with {model.num_visible:,} visible and {layers} hidden units"


def hidden_layers(model: Model) -> list[int]:
    """How many units each hidden layer has, from the bottom up."""
    if isinstance(model, DBM):
        return [model.num_hidden_1, model.num_hidden_2]
    if isinstance(model, DBN):
        return [layer.num_hidden for layer in model.layers]
    return [model.num_hidden]


def annealed(model: Model) -> RBM | PottsRBM:
    """The RBM whose ln Z is that of the model."""
    if isinstance(model, DBM):
        return model.joint_rbm
    return model.top if isinstance(model, DBN) else model


def path_to(model: Model, bias: Tensor | None) -> BaseRatePath | PottsPath:
    """The path from independent units to the annealed part of a model; `bias` belongs to the annealed units, of an RBM its visible ones."""
    if isinstance(model, PottsRBM):
        return PottsPath(model, None if bias is None else bias.view(model.visible_bias.shape))
    if isinstance(model, DBN):
        return DBNPath(model, bias)
    if isinstance(model, DBM):
        width = model.num_visible
        return DBMPath(model, *((None, None) if bias is None else (bias[:width], bias[width:])))
    return BaseRatePath(model, bias)


def as_rows(name: str, values: object, model: Model) -> Tensor:
    """Test or training data for a model as bits [N, D].

    Raises
    ------
    InputError
        If the data have the wrong width, are not binary or, for categorical units, are neither state numbers [N, L] nor bits with exactly
        one on at each site.

    Examples
    --------
    >>> potts = PottsRBM(torch.zeros(2, 3, 1), torch.zeros(2, 3), torch.zeros(1))
    >>> as_rows("test", [[2, 0]], potts)
    tensor([[0, 0, 1, 1, 0, 0]], dtype=torch.uint8)
    """
    if not isinstance(model, PottsRBM):
        return as_binary(name, values, model.num_visible)
    rows = as_tensor(name, values)
    if rows.ndim == 2 and rows.shape[1] == model.num_sites:
        try:
            return model.one_hot(rows)
        except InputError as error:
            raise InputError(f"{name}: {str(error).partition(': ')[2]}") from error
    bits = as_binary(name, rows, model.num_visible)
    by_site = bits.unflatten(-1, (model.num_sites, model.num_states))
    if bool((by_site.sum(-1) != 1).any()):
        raise InputError(
            f"{name}: expected one bit on of each site's {model.num_states}, got another number"
        )
    return bits


def base_rates(images: Tensor, weights: Tensor | None = None) -> Tensor:
    """Biases with the base rates of images, smoothed from both sides, since a pixel may be always on as well as always off."""
    if weights is not None:
        images = pixel_means(images, weights)[None]
    return base_rate_bias(images, pseudo_off=0.05)


def pixel_means(images: Tensor, weights: Tensor | None = None) -> Tensor:
    """Weighted mean of each pixel, float64 [D]."""
    total, start = torch.zeros(images.shape[1], dtype=torch.float64), 0
    for block in blocks(images):
        rows = block.cpu().double()
        part = slice(start, start + len(rows))
        total += rows.sum(0) if weights is None else weights[part] @ rows
        start += len(rows)
    return total / total_weight(len(images), weights)


def sum_of_parameters(model: Model) -> float:
    """The sum of the absolute values of all weights and biases; no energy is larger.

    Examples
    --------
    >>> sum_of_parameters(RBM([[1.0, -2.0]], [0.5], [0.0, 0.0]))
    3.5
    """
    return sum(tensor.double().abs().sum().item() for tensor in model.tensors().values())


def with_enough_digits(model: Model) -> tuple[Model, tuple[str, ...]]:
    """The model in a type that leaves digits behind the point of ln p*(v), and a sentence if that is not its own.

    The sum of all weights and biases bounds ln p*(v) up to M ln 2.

    Raises
    ------
    InputError
        If float64 leaves none, or the sum overflows.
    """
    largest = sum_of_parameters(model)
    if not largest * 2.0**-53 < _LEAST_DIGIT:
        raise InputError(
            f"model: expected weights and biases of which ln p*(v) has digits behind the point, got sums of up to {largest:.1g}; did the training "
            "diverge, or do biases come from the logarithm of zero?"
        )
    if model.dtype == torch.float64 or largest * 2.0**-24 < _LEAST_DIGIT:
        return model, ()
    return model.to(dtype=torch.float64), (
        f"Weights and biases add up to {largest:.1g}, of which float32 keeps no digit behind the point: everything was computed in float64.",
    )


def start_bias(
    model: Model, images: Tensor, weights: Tensor | None, generator: torch.Generator
) -> Tensor:
    """Biases of the annealed units, from images [N, D]; the chains start there."""
    if isinstance(model, PottsRBM):
        return site_frequency_bias(model.sequences(images), model.num_states).flatten()
    if isinstance(model, DBN):
        return _unit_bias(_recognition_rates(model, images, generator))
    pixels = base_rates(images, weights)
    if not isinstance(model, DBM):
        return pixels
    some = torch.randperm(len(images), generator=generator, device=model.device)
    some = images[some[:_MEAN_FIELD_IMAGES].to(images.device)].to(model.device, model.dtype)
    above = torch.sigmoid(model.mean_field(some).logits_2).double().mean(0)
    return torch.cat([pixels.to(above), _unit_bias(above)])


def _recognition_rates(model: DBN, images: Tensor, generator: torch.Generator) -> Tensor:
    """How often each unit of the layer below the top one is on."""
    total = torch.zeros(model.top.num_visible, dtype=torch.float64, device=model.device)
    for block in blocks(images):
        rows = block.to(model.device, model.dtype)
        total += [rows, *model.recognize(rows, generator)][-1].double().sum(0)
    return total / len(images)


def _unit_bias(rates: Tensor) -> Tensor:
    return base_rate_bias(rates.clamp(max=_HIGHEST_RATE)[None]).round(decimals=2)


def log_unnormalized_of(
    model: Model, images: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """ln p*(v) of any number of images [N, D], float64 [N] on the CPU, in nats.

    For a DBM or a DBN it is an estimate from draws with this generator; for any other model it is exact.

    Examples
    --------
    >>> log_unnormalized_of(RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)), torch.eye(3))[0].isclose(
    ...     torch.tensor(4.0).double().log()
    ... )
    tensor(True)
    """
    # Written in place: keeping small results between large blocks that come and go would leave gigabytes of holes in memory.
    result, start = torch.empty(len(images), dtype=torch.float64), 0
    for block in blocks(images):
        if isinstance(model, DBM | DBN):
            log_masses = model.log_unnormalized(block, POSTERIOR_DRAWS, generator)
        else:
            log_masses = model.log_unnormalized(block.to(model.device, model.dtype))
        result[start : start + len(block)] = log_masses
        start += len(block)
    return result


def is_estimated(model: Model, num_images: int) -> bool:
    """Whether ln p*(v) of this many images is an estimate."""
    return isinstance(model, DBM | DBN) and not can_enumerate(model, num_images)


def best_log_unnormalized(model: Model, images: Tensor, generator: torch.Generator) -> Tensor:
    """ln p*(v) of images [N, D], exact where possible."""
    if isinstance(model, DBM | DBN) and not is_estimated(model, len(images)):
        return enumerated_log_unnormalized(model, images)
    return log_unnormalized_of(model, images, generator)


def smaller_layer(model: Model) -> int:
    """How many units have to be enumerated for an exact ln Z."""
    whole = annealed(model)
    if isinstance(whole, PottsRBM):
        return whole.num_hidden
    return min(whole.num_visible, whole.num_hidden)


def enumerated(model: Model, images: Tensor) -> tuple[float, Tensor]:
    """Exact ln Z, and exact ln p*(v) of images [N, D], float64 [N]."""
    double = model.to(dtype=torch.float64)
    log_z = exact_log_z(annealed(double))
    if isinstance(double, DBM | DBN):
        return log_z, enumerated_log_unnormalized(double, images)
    return log_z, log_unnormalized_of(double, images)
