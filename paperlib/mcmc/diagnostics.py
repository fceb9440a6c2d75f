"""Autocorrelations, and the autocorrelation time, which says what a correlated sample is worth.

The variance of the mean of N successive values is Var(f) tau / N for large N, with the *integrated
autocorrelation time*

    tau = 1 + 2 sum_{k >= 1} rho_k,        effective sample size = N / tau,

the limit of the lecture's variance formula (CS281 lecture 22, "Properties"). Estimated
autocorrelations at large lags are noise, and the sum has to stop before they take over. In a
reversible chain the sums of neighbours, rho_{2m} + rho_{2m+1}, are positive (Geyer 1992); the
estimate stops before the first one that is not.

This is not the effective sample size of importance weights (`paperlib.estimators`), where draws are
independent and unevenly weighted.

Used in chapter: markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.validation import ArrayLike, as_double


def autocorrelation(values: ArrayLike) -> Tensor:
    """Estimated autocorrelations of stationary chains with the same distribution.

    Parameters
    ----------
    values : array or Tensor, shape [chains, N]
        f along each chain; at least two values that are not all the same.

    Returns
    -------
    Tensor
        float64 [N]: rho_0 = 1, rho_1, ...; averaged over chains, with deviations from the mean over
        all of them.

    Raises
    ------
    InputError
        If the shape does not fit, or values are not finite or all the same.

    Examples
    --------
    >>> autocorrelation([[1.0, 1.0, -1.0, -1.0]])
    tensor([ 1.0000,  0.2500, -0.5000, -0.2500], dtype=torch.float64)
    """
    values = as_double("values", values, [None, None])
    centred = values - values.mean()
    count = values.shape[1]
    if not bool((centred != 0).any()):
        raise InputError("values: expected at least two different ones, got only one")
    # Products at every lag are a convolution; zeros keep its two ends apart.
    spectrum = torch.fft.rfft(centred, 2 * count)
    products = torch.fft.irfft(spectrum.abs() ** 2, 2 * count)[:, :count]
    covariances = products.mean(0) / count
    return covariances / covariances[0]


def autocorrelation_time(values: ArrayLike) -> float:
    """Estimated integrated autocorrelation time, in steps; `values` as in `autocorrelation`.

    Examples
    --------
    >>> values = torch.randn(4, 500, generator=torch.Generator().manual_seed(0))
    >>> 0.8 < autocorrelation_time(values) < 1.2  # independent draws
    True
    """
    correlations = autocorrelation(values)
    neighbours = correlations[: len(correlations) // 2 * 2].view(-1, 2).sum(1)
    positive = neighbours > 0
    cutoff = len(positive) if bool(positive.all()) else int(positive.long().argmin())
    return max(2 * neighbours[:cutoff].sum().item() - 1, 1 / len(correlations))
