"""Sequences of categorical units, such as aligned proteins: the frequencies at which annealing may start."""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.validation import ArrayLike, as_categories, as_tensor, require_count


def site_frequency_bias(train: ArrayLike, num_states: int, pseudo_count: float = 0.05) -> Tensor:
    """Visible biases of independent sites with the smoothed frequencies of a training set.

    With n training sequences of which c_is have state s at site i, the frequency is (c_is + p n / q) / (n + p n), where p is the
    pseudo-count, and the bias is its logarithm.

    Parameters
    ----------
    train : array or Tensor, shape [N, L]
        Whole numbers from 0 to q - 1.
    num_states : int
        The number of states of a site, q.
    pseudo_count : float
        Imagined sequences of uniformly random states, as a fraction of n; more than 0 and finite.

    Returns
    -------
    Tensor, shape [L, q]
        float64.

    Raises
    ------
    InputError
        If there are no sequences, or they hold other numbers, or an argument is not as described.

    Examples
    --------
    >>> site_frequency_bias([[0, 1], [0, 2]], 3, pseudo_count=1.0).exp()
    tensor([[0.6667, 0.1667, 0.1667],
            [0.1667, 0.4167, 0.4167]], dtype=torch.float64)
    """
    num_states = require_count("num_states", num_states, 2)
    numbers = as_tensor("train", train)
    if numbers.ndim != 2 or numbers.numel() == 0:
        raise InputError(f"train: expected shape [any, any], got {list(numbers.shape)}")
    if not 0 < pseudo_count < float("inf"):
        raise InputError(f"pseudo_count: expected a positive finite number, got {pseudo_count}")
    states = as_categories("train", numbers, num_states)
    counts = torch.zeros(states.shape[1], num_states, dtype=torch.float64, device=states.device)
    counts.scatter_add_(1, states.T, torch.ones_like(states.T, dtype=torch.float64))
    return ((counts / len(states) + pseudo_count / num_states) / (1 + pseudo_count)).log()
