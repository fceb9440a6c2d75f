"""What learned inference loses, and networks that are trained for a model that stays as it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from paperlib.numerics import all_states, log_mean_exp, softplus
from paperlib.variational import (
    RecognitionWeights,
    ascend,
    evidence_lower_bound,
    kl_divergence,
)
from paperlib.variational.mean_field import MeanFieldTrace
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet

Row = dict[str, Any]


def gap_rows(traces: Mapping[str, MeanFieldTrace], log_evidence: Tensor) -> list[Row]:
    """What each start of mean field loses of ln p(v) [N], split by the best bound of all starts."""
    best = torch.stack([trace.lower_bound for trace in traces.values()]).amax(0)
    return [
        {
            "start": name,
            "gap": (log_evidence - trace.bounds[0]).mean(),
            "family": (log_evidence - best).mean(),
            "network": (best - trace.bounds[0]).mean(),
            "one": (log_evidence - trace.bounds[1]).mean(),
            "end": (log_evidence - trace.lower_bound).mean(),
        }
        for name, trace in traces.items()
    ]


def no_opinion(num_visible: int, num_hidden: int) -> RecognitionWeights:
    """A network that says 1/2 for every unit."""
    zeros = torch.zeros(num_visible, num_hidden, dtype=torch.float64)
    return RecognitionWeights(zeros, torch.zeros(num_hidden, dtype=torch.float64))


class Assessment(NamedTuple):
    """Averages over visible vectors, in nats."""

    log_prob: float  # ln p(v)
    bound: float
    gap: float  # KL(q || p)
    reverse: float  # KL(p || q)


def assess(model: SigmoidBeliefNet, q: RecognitionWeights, v: Tensor) -> Assessment:
    """A network beside the exact posterior, at visible vectors [N, D], all by enumeration."""
    log_joint = model.log_joint_table(v)
    log_q = _log_q_table(q.logits(v))
    log_posterior = log_joint.log_softmax(-1)
    values = (
        log_joint.logsumexp(-1),
        evidence_lower_bound(log_joint, log_q),
        kl_divergence(log_q, log_posterior),
        kl_divergence(log_posterior, log_q),
    )
    return Assessment(*(value.mean().item() for value in values))


def epoch_row(model: SigmoidBeliefNet, q: RecognitionWeights, v: Tensor, dreams: Tensor) -> Row:
    """A network beside the exact posterior at images [N, D] and at dreams [S, D]."""
    log_prob, bound, gap, _ = assess(model, q, v)
    reverse = assess(model, q, dreams).reverse
    return {"log_prob": log_prob, "bound": bound, "gap": gap, "dreamt": reverse}


def _log_q_table(logits: Tensor) -> Tensor:
    """ln q(h) at every state, [N, 2^M], by one matrix product."""
    return logits @ all_states(logits.shape[-1]).T - softplus(logits).sum(-1, keepdim=True)


def trained_by_bound(model: SigmoidBeliefNet, v: Tensor) -> RecognitionWeights:
    """The network with the best average bound over visible vectors [N, D]."""
    start = no_opinion(model.num_visible, model.num_hidden)
    leaves = [start.weights.requires_grad_(), start.bias.requires_grad_()]
    log_joint = model.log_joint_table(v)

    def bound() -> Tensor:
        log_q = _log_q_table(RecognitionWeights(*leaves).logits(v))
        return evidence_lower_bound(log_joint, log_q).mean()

    ascend(leaves, bound, 150, 0.1)
    return RecognitionWeights(*(leaf.detach() for leaf in leaves))


def directed_row(errors: Tensor, rbm_errors: Tensor) -> Row:
    """Errors of ln p(v) from single chains [10, N], from all ten together, and for an RBM [M]."""
    num_chains, num_images = errors.shape
    from_ten = log_mean_exp(errors, 0)
    return {
        "one": errors.mean(),
        "one_error": (errors.var(0) / num_chains).sum().sqrt() / num_images,
        "ten": from_ten.mean(),
        "above": (from_ten > 0).sum() * 100 / num_images,
        "rbm": rbm_errors.mean(),
        "rbm_error": rbm_errors.std() / math.sqrt(len(rbm_errors)),
    }
