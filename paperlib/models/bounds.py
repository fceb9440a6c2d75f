"""Bounds that hold whatever the sampler did: a proven lower bound on ln Z, to catch estimates that are too low.

For any factorial distribution over the hidden units with means m, and the best distribution over
the visible units,

    ln Z >= sum_i softplus(b_i + (W m)_i) + a' m + H(m),

the mean-field bound (chapter 19 of Goodfellow, Bengio & Courville, eq. 19.7, for Z instead of
p(v)). Since Z is a sum of positive terms, ln Z >= ln sum_h f(h) also holds for any set of distinct
hidden states h; the set is found by flipping single units of the best states so far. The larger of
the two bounds, over many starting points, is returned. Neither needs representative samples. Both
come within a nat of ln Z where a few hidden states hold most of Z, the case in which AIS fails
silently.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.memory import give_back_at_once, parts
from paperlib.models.rbm import RBM, in_double
from paperlib.numerics import seeded_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import (
    ArrayLike,
    as_states,
    as_tensor,
    require_finite,
    require_shape,
)

_RANDOM_STARTS = 64
_MAX_UPDATES = 200
_MAX_STATES = 1024
_SAME_MEAN = 1e-3
_MAX_ROUNDS = 30  # of single flips; models with few hidden units need fewer


@plain_torch()
def log_z_lower_bound(rbm: RBM, visible_starts: ArrayLike) -> float:
    """A proven lower bound on ln Z, in nats, by mean field and local search from many starting points.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64.
    visible_starts : array or Tensor, shape [N, D]
        Visible vectors of any type near which to look for modes, such as the final states of AIS;
        at most the first 64 are used. The search also starts from random hidden states, all hidden
        units off, all on, and each one on alone.

    Raises
    ------
    InputError
        If `visible_starts` has the wrong shape, or holds NaN or infinite values.

    Notes
    -----
    Deterministic: the random starting points have a fixed seed.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> bound = log_z_lower_bound(rbm, torch.zeros(1, 3))
    >>> print(f"{bound:.6f} <= {exact_log_z(rbm):.6f}")
    5.132410 <= 5.132410
    """
    give_back_at_once(rbm.weights)
    model = in_double(rbm)
    v = as_tensor("visible_starts", visible_starts)
    require_shape("visible_starts", v, [None, None])
    v = as_states("visible_starts", v[:_RANDOM_STARTS], model.weights, model.num_visible)
    require_finite("visible_starts", v)
    starts = torch.cat([model._hidden_probs(v), search_points(model)])
    # The bound holds for any means. Single precision is enough to find good ones, and twice as
    # fast.
    single = rbm if rbm.dtype == torch.float32 else rbm.to(dtype=torch.float32)
    found, *_ = mean_field_optima(single, starts.float())
    means = found.double()
    states = torch.cat([starts.round(), means.round()])
    mean_field = max(
        _mean_field_bound(model, part).max().item() for part in _parts_of(model, means)
    )
    return max(mean_field, _sum_over_best_states(model, states))


def mean_field_optima(model: RBM, means: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """Local optima of the mean-field bound from means [N, M], the bounds there, whether each came to rest, and the number of updates."""
    of_parts = [_optima_of(model, part) for part in _parts_of(model, means)]
    optima, bounds, at_rest, updates = zip(*of_parts, strict=True)
    return torch.cat(optima), torch.cat(bounds), torch.cat(at_rest), max(updates)


def _optima_of(model: RBM, means: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """The same, of all means at once."""
    means = means.clone()
    at_rest = torch.zeros(len(means), dtype=torch.bool, device=means.device)
    moving = torch.arange(len(means), device=means.device)
    updates = 0
    while len(moving) and updates < _MAX_UPDATES:
        updates += 1
        # Each half-update is the exact optimum given the other layer, so the bound never falls.
        updated = model._hidden_probs(model._visible_probs(means[moving]))
        still = (updated - means[moving]).abs().amax(1) < 1e-6
        means[moving] = updated
        at_rest[moving] = still
        moving = moving[~still]
    return means, _mean_field_bound(model, means), at_rest, updates


def _mean_field_bound(model: RBM, means: Tensor) -> Tensor:
    """The bound at any means of the hidden units [..., M], in nats."""
    entropy = (torch.special.entr(means) + torch.special.entr(1 - means)).sum(-1)
    return model._log_unnormalized_hidden(means) + entropy


def _parts_of(model: RBM, states: Tensor) -> tuple[Tensor, ...]:
    """Parts of hidden states [N, M] whose visible units fit into a block."""
    return parts(states, states.element_size() * max(model.weights.shape))


def distinct(points: Tensor, values: Tensor) -> Tensor:
    """Indices of the points [N, n] that are not within a thousandth of a better one in every coordinate, the largest value first."""
    return far_apart(torch.cdist(points, points, p=torch.inf), values)


def far_apart(distances: Tensor, values: Tensor) -> Tensor:
    """The same, from the largest difference of any coordinate for each pair of points, [N, N]."""
    near = (distances <= _SAME_MEAN).cpu().numpy()
    kept: list[int] = []
    for place in values.argsort(descending=True, stable=True).tolist():
        if not near[place, kept].any():
            kept.append(place)
    return torch.tensor(kept, dtype=torch.long, device=values.device)


def search_points(model: RBM) -> Tensor:
    """Hidden states from which to look for modes, [starts, M]: random ones, each unit on alone, all off, and all on."""
    units = model.num_hidden
    generator = seeded_generator(0, model.device)
    # Random states of every density, from nearly empty to nearly full.
    density = torch.linspace(0.05, 0.95, _RANDOM_STARTS).to(model.weights)
    alone = torch.eye(min(_RANDOM_STARTS, units), units).to(model.weights)
    return torch.cat(
        [
            bernoulli(density[:, None].expand(-1, units), generator),
            alone,
            torch.zeros_like(alone[:1]),
            torch.ones_like(alone[:1]),
        ]
    )


def _sum_over_best_states(model: RBM, states: Tensor) -> float:
    """ln sum_h f(h) over the best distinct hidden states that single flips reach from `states` [N, M]."""
    # A state's key is the sum of its units' random numbers. Should two states have one key, one of
    # them is left out of the sum, which is then still a lower bound.
    numbers = torch.randint(2**62, (model.num_hidden,), generator=seeded_generator(0))
    numbers = numbers.to(states.device)
    num_parents = max(1, _MAX_STATES // model.num_hidden)
    of_parts = [model.log_unnormalized_hidden(part) for part in _parts_of(model, states)]
    log_masses = torch.cat(of_parts)
    # What is on, a byte for each unit. Of states that a flip reaches only the best become rows.
    states = states.bool()
    parents = states[:0]
    keys = torch.where(states, numbers, 0).sum(-1)
    searched = keys[:0]
    total = improved = -math.inf
    for _ in range(_MAX_ROUNDS):
        kept = _first_of_each(keys)
        kept = kept[log_masses[kept].topk(min(_MAX_STATES, len(kept))).indices]
        states = _with_flips(states, parents, kept)
        keys = keys[kept]
        log_masses = log_masses[kept]
        improved = torch.logsumexp(log_masses, 0).item()
        if improved - total < 1e-6:
            break
        total = improved
        new = ~torch.isin(keys[:num_parents], searched)
        parents = states[:num_parents][new]
        of_parents = keys[:num_parents][new]
        searched = torch.cat([searched, of_parents])
        changes = torch.where(parents, -numbers, numbers)
        keys = torch.cat([keys, (of_parents[:, None] + changes).flatten()])
        of_flips = model.log_unnormalized_flips(parents.to(model.weights))
        log_masses = torch.cat([log_masses, of_flips.flatten()])
    return improved


def _with_flips(states: Tensor, parents: Tensor, places: Tensor) -> Tensor:
    """The rows at these places of the states [N, M] and, behind them, of each parent [P, M] with each of its units flipped."""
    units = states.shape[1]
    flipped = places >= len(states)
    rows = states[torch.where(flipped, 0, places)]
    flips = places[flipped] - len(states)
    children = parents[flips // units]
    children[torch.arange(len(flips), device=flips.device), flips % units] ^= True
    rows[flipped] = children
    return rows


def _first_of_each(keys: Tensor) -> Tensor:
    """Indices of the first occurrence of each value."""
    in_order, places = keys.sort(stable=True)
    first = torch.ones_like(keys, dtype=torch.bool)
    first[1:] = in_order[1:] != in_order[:-1]
    return places[first]
