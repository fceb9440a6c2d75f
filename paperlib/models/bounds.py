"""A proven lower bound on ln Z, which catches estimates that are too low whatever the sampler did.

For any factorial distribution over the hidden units with means m, and the best distribution over
the visible units,

    ln Z >= sum_i softplus(b_i + (W m)_i) + a' m + H(m),

the mean-field bound (chapter 19 of Goodfellow, Bengio & Courville, eq. 19.7, for Z instead of
p(v)). Since Z is a sum of positive terms, ln Z >= ln sum_h f(h) also holds for any set of distinct
hidden states h, where f(h) = sum_v exp(-E(v, h)); the set is found by flipping single units of the
best states so far. `log_z_lower_bound` returns the larger of the two bounds over many starting
points. Neither needs representative samples. Both come within a nat of ln Z where a few hidden
states hold most of Z, the case in which AIS fails silently.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.memory import give_back_at_once, parts
from paperlib.models.rbm import RBM, in_double
from paperlib.numerics import seeded_generator
from paperlib.threads import one_thread
from paperlib.torch_settings import plain_torch
from paperlib.validation import (
    ArrayLike,
    as_states,
    as_tensor,
    require_finite,
    require_shape,
)

_RANDOM_STARTS = 64
_MAX_UPDATES = 200  # of mean field, for both layers
_MAX_STATES = 1024  # in the sum over hidden states
_SAME_MEAN = 1e-3  # the largest difference between coordinates of two points that are the same
_MAX_ROUNDS = 30  # of single flips; models with few hidden units need fewer


@plain_torch()
@one_thread()  # several would wait for each other at each of hundreds of small products
def log_z_lower_bound(rbm: RBM, visible_starts: ArrayLike) -> float:
    """A proven lower bound on ln Z, in nats, by mean field and local search from many starts.

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
    v = as_states("visible_starts", v[:_RANDOM_STARTS], model.visible_bias, model.num_visible)
    require_finite("visible_starts", v)
    starts = torch.cat([model._hidden_probs(v), search_points(model)])
    # The bound holds for any means, and single precision finds good ones in half the time.
    single = rbm if rbm.dtype == torch.float32 else rbm.to(dtype=torch.float32)
    optima, *_ = mean_field_optima(single, starts.float())
    means = optima.double()
    states = torch.cat([starts.round(), means.round()])
    mean_field = max(_mean_field_bound(model, part).max().item() for part in _parts(model, means))
    return max(mean_field, _sum_over_best_states(model, states))


def mean_field_optima(model: RBM, means: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """Climb to local optima of the mean-field bound from means [N, M] of the hidden units.

    Returns
    -------
    optima : Tensor, shape [N, M]
        The means that were reached.
    bounds : Tensor, shape [N]
        The bounds on ln Z there, in nats.
    at_rest : Tensor, shape [N]
        Whether the means had stopped moving.
    updates : int
        Largest number of updates of both layers.
    """
    results = [_climb(model, part) for part in _parts(model, means)]
    optima, bounds, at_rest, updates = zip(*results, strict=True)
    return torch.cat(optima), torch.cat(bounds), torch.cat(at_rest), max(updates)


def _climb(model: RBM, means: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """`mean_field_optima` from all means at once."""
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


def _parts(model: RBM, states: Tensor) -> tuple[Tensor, ...]:
    """Parts of hidden states [N, M] whose visible units fit into a block."""
    return parts(states, states.element_size() * max(model.weights.shape))


def distinct(points: Tensor, values: Tensor) -> Tensor:
    """Indices of the points [N, n] that differ from all better ones, the largest value first.

    Two points are the same if no coordinate differs by more than a thousandth.
    """
    return far_apart(torch.cdist(points, points, p=torch.inf), values)


def far_apart(distances: Tensor, values: Tensor) -> Tensor:
    """`distinct`, from the largest difference of any coordinate for each pair of points, [N, N]."""
    near = (distances <= _SAME_MEAN).cpu().numpy()
    indices: list[int] = []
    for index in values.argsort(descending=True, stable=True).tolist():
        if not near[index, indices].any():
            indices.append(index)
    return torch.tensor(indices, dtype=torch.long, device=values.device)


def search_points(model: RBM) -> Tensor:
    """Hidden states from which to look for modes, [starts, M].

    They are random states, each unit on alone, all units off, and all on.
    """
    units = model.num_hidden
    generator = seeded_generator(0, model.device)
    # Random states of every density, from nearly empty to nearly full.
    density = torch.linspace(0.05, 0.95, _RANDOM_STARTS).to(model.hidden_bias)
    random_states = bernoulli(density[:, None].expand(-1, units), generator)
    single_units = torch.eye(min(_RANDOM_STARTS, units), units).to(model.hidden_bias)
    all_off = torch.zeros_like(single_units[:1])
    all_on = torch.ones_like(single_units[:1])
    return torch.cat([random_states, single_units, all_off, all_on])


def _sum_over_best_states(model: RBM, states: Tensor) -> float:
    """ln sum_h f(h) over the best hidden states that single flips reach from `states` [N, M]."""
    # A state's key is the sum of its units' random numbers. Should two states have one key, one of
    # them is left out of the sum, which is then still a lower bound.
    numbers = torch.randint(2**62, (model.num_hidden,), generator=seeded_generator(0))
    numbers = numbers.to(states.device)
    num_parents = max(1, _MAX_STATES // model.num_hidden)
    log_masses = torch.cat([model.log_unnormalized_hidden(part) for part in _parts(model, states)])
    # A byte for each unit. Behind the states, `keys` and `log_masses` also hold those of all
    # children, the parents with one unit flipped; only the best children become rows of `states`.
    states = states.bool()
    parents = states[:0]
    keys = torch.where(states, numbers, 0).sum(-1)
    searched_keys = keys[:0]
    total = -math.inf
    for _ in range(_MAX_ROUNDS):
        best = _first_of_each(keys)
        best = best[log_masses[best].topk(min(_MAX_STATES, len(best))).indices]
        states = _states_or_children(states, parents, best)
        keys = keys[best]
        log_masses = log_masses[best]
        previous = total
        total = torch.logsumexp(log_masses, 0).item()
        if total - previous < 1e-6:
            break
        new = ~torch.isin(keys[:num_parents], searched_keys)
        parents = states[:num_parents][new]
        parent_keys = keys[:num_parents][new]
        searched_keys = torch.cat([searched_keys, parent_keys])
        changes = torch.where(parents, -numbers, numbers)
        keys = torch.cat([keys, (parent_keys[:, None] + changes).flatten()])
        child_masses = model.log_unnormalized_flips(parents.to(model.hidden_bias))
        log_masses = torch.cat([log_masses, child_masses.flatten()])
    return total


def _states_or_children(states: Tensor, parents: Tensor, indices: Tensor) -> Tensor:
    """Rows of the states [N, M] or, numbered behind them, of the parents' [P, M] children."""
    units = states.shape[1]
    flipped = indices >= len(states)
    rows = states[torch.where(flipped, 0, indices)]
    flips = indices[flipped] - len(states)
    children = parents[flips // units]
    children[torch.arange(len(flips), device=flips.device), flips % units] ^= True
    rows[flipped] = children
    return rows


def _first_of_each(keys: Tensor) -> Tensor:
    """Indices of the first occurrence of each value."""
    ordered, indices = keys.sort(stable=True)
    first = torch.ones_like(keys, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return indices[first]
