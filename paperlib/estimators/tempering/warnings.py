"""Reasons not to believe an estimate from parallel tempering.

Each is a text that says what was seen and what to do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.estimators.tempering.replicas import Record
from paperlib.numerics import student_quantile

FEWEST_ROUND_TRIPS = 10
# With 1,000 chain-steps, intervals of 95 % on models with two phases hold in 94 %, and the narrower
# half of them in 89 %. With 2,000 it is the same, with 5,000 it is 96 and 94 %. No other warning
# tells these runs apart.
_FEWEST_CHAIN_STEPS = 1_500
# Above this rate of rejected swaps, hardly any chain gets past the link.
_NEARLY_ONE = 0.9
# Above this error in nats, first-order formulas for it fail.
_LARGE_ERROR = 0.5
# The probability with which a sound run passes a test.
_LEVEL = 0.999
_MORE = "Use more chain_steps"


def find_tempering_warnings(
    record: Record,
    rates: Tensor,
    trips: int,
    series: Tensor,
    std_error: float,
    degrees_of_freedom: float,
    chain_steps: int,
) -> tuple[str, ...]:
    """Reasons to doubt the estimate.

    `record` is that of the T steps that count, `rates` and `trips` are its rejection rates and its
    number of round trips. `series` [T, R] has the contribution of each step of each replica to the
    error of ln Z, in nats; its mean is zero. `chain_steps` are all that were spent.
    """
    warnings = []
    if trips < FEWEST_ROUND_TRIPS:
        warnings.append(
            f"Chains made {trips} round trips between the start and the target, and ten are few. "
            f"Modes may be missing, and the error may be too small. {_MORE}, or a start nearer to "
            "the target."
        )
    worst = int(rates.argmax())
    if rates[worst] > _NEARLY_ONE:
        low, high = record.betas[worst : worst + 2].tolist()
        warnings.append(
            f"Nearly all swaps between beta = {low:.3f} and {high:.3f} were rejected "
            f"({rates[worst]:.0%}). {_MORE}, so that temperatures are placed better, "
            "or a start nearer to the target."
        )
    longest = _longest_stay(record.ends[:, :, 1])
    if len(series) > 1 and longest > len(series) // 2:
        warnings.append(
            f"One chain stayed at the target for {longest} of {len(series)} steps. "
            f"What it has not seen is missing. {_MORE}."
        )
    if not math.isfinite(std_error):
        warnings.append(f"There are too few steps to tell an error. {_MORE}.")
        return tuple(warnings)
    if std_error > _LARGE_ERROR:
        warnings.append(
            f"The error is large, {std_error:.1f} nats, and then not well known. {_MORE}."
        )
    if _replicas_disagree(series, std_error, degrees_of_freedom):
        warnings.append(
            f"Replicas disagree by more than the error allows. Each may know other modes. {_MORE}."
        )
    half = len(series) // 2
    difference = abs(series[:half].mean() - series[half:].mean()).item() if half else 0.0
    # The difference of two halves has twice the error of their mean.
    if difference > 2 * std_error * student_quantile(_LEVEL, degrees_of_freedom):
        warnings.append(
            "The first and the second half of the run disagree by more than the error allows: "
            f"the chains have not equilibrated. {_MORE}."
        )
    if chain_steps < _FEWEST_CHAIN_STEPS:
        warnings.append(
            f"With {chain_steps:,} chain-steps, narrow intervals often miss ln Z. "
            "Use 5,000 or more."
        )
    return tuple(warnings)


def _replicas_disagree(series: Tensor, std_error: float, degrees_of_freedom: float) -> bool:
    from scipy.special import fdtri

    replicas = series.shape[1]
    if replicas < 2 or std_error == 0:
        return False
    # A single replica's error is larger by the square root of the number of replicas.
    ratio = series.mean(0).var().item() / (std_error**2 * replicas)
    freedom = min(degrees_of_freedom, 1e6)
    return ratio > float(fdtri(replicas - 1, freedom, _LEVEL))


def _longest_stay(chains: Tensor) -> int:
    """The most steps in a row with one chain at a temperature, from the chains there, [T, R]."""
    steps = len(chains)
    longest = 0
    for replica in chains.T:
        changes = (replica[1:] != replica[:-1]).nonzero().flatten() + 1
        edges = torch.cat([torch.tensor([0]), changes, torch.tensor([steps])])
        longest = max(longest, int(edges.diff().max()))
    return longest
