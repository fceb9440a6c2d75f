"""What chapter 11 claims of its small models, whose truth is known."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows
from boltzmann_companion.rows import grouped, where
from paperlib.variational.sparse_coding import BinarySparseCoding, LaplaceSparseCoding


def sparse_codes(dictionary: LaplaceSparseCoding, patches: Tensor, codes: Tensor) -> Claims:
    """A learned dictionary, and its codes [N, M] of patches [N, D]."""
    zeros = (codes == 0).double().mean().item()
    inverse = torch.linalg.pinv(dictionary.weights).T
    none = ((patches - dictionary.visible_bias) @ inverse != 0).all().item()
    claim = "more than half of the codes are exactly zero; of the shortest codes without a prior, none is"
    yield claim, zeros > 0.5 and none


def two_directions(rows: Rows) -> Claims:
    """Of `inference-kl-direction`: three starts for each separation, left, in the valley and right."""
    seek, _ = grouped(rows, "divergence").values()
    left, valley, right = where(seek, separation=5.0)
    one_each = abs(left["mean"] + 2.5) < 0.05 and abs(right["mean"] - 2.5) < 0.05
    yield "KL(q || p): from left and right, one mode each", one_each
    cost = (left["value"] + math.log(0.6), right["value"] + math.log(0.4))
    claim = "the cost is the weight that is left out, -ln 0.6 and -ln 0.4"
    yield claim, all(abs(off) < 0.01 for off in cost)
    worse = valley["value"] > max(left["value"], right["value"])
    yield "what lies between the modes is worse than either", worse


def damped_updates(rows: Rows, stable: Tensor, ascent_gap: float) -> Claims:
    """Of `inference-damping`; the largest stable steps of vectors that cycle without damping [N], and coordinate ascent's gap."""
    claim = (
        "undamped, most of the vectors that never converge have a fixed point that needs no damping"
    )
    yield claim, (stable > 1).double().mean().item() > 0.5
    gentle = rows[-2]
    claim = "with a step of 0.2 no bound ever falls, and the average gap is that of coordinate ascent, to a tenth"
    yield claim, gentle["fell"] == 0 and gentle["gap"] < 1.1 * ascent_gap


def poor_q(
    rows: Rows, broad: BinarySparseCoding, binary: BinarySparseCoding, course: Rows
) -> Claims:
    """Of `inference-poor-q`; what mean-field EM learned with noise 0.25 and 0.2, and its rounds from the truth."""
    truths, exact, fields = grouped(rows, "model").values()
    tight = min(row["gap"] for row in truths) > 0.5 and max(row["gap"] for row in fields) < 0.03
    claim = (
        "at the truth mean field loses more than half a nat, after learning with it less than 0.03"
    )
    yield claim, tight
    pairs = zip(fields, truths, strict=True)
    preferred = all(field["bound"] - truth["bound"] > 0.5 for field, truth in pairs)
    claim = "the bound prefers what was learned to the truth by more than half a nat"
    yield claim, preferred
    pairs = zip(fields, exact, strict=True)
    worse = all(em["log_prob"] - field["log_prob"] > 0.1 for field, em in pairs)
    yield "yet its likelihood is worse than exact EM's by 0.1 nats or more", worse
    noise = broad.precision.item() ** -0.5
    yield "noise 0.25: bumps have become noise, more than double", noise > 2 * 0.25
    found = binary.weights[0].abs().sort().values.tolist()
    near = all(abs(a - b) < 0.15 for a, b in zip(found, (0, 1, 2), strict=False))
    yield "noise 0.2: weights of about 0, 1 and 2", len(found) == 3 and near
    rise, fall = (course[-1][key] - course[0][key] for key in ("bound", "likelihood"))
    claim = (
        "from the truth the bound rises by more than a tenth of a nat, while the likelihood sinks"
    )
    yield claim, rise > 0.1 and fall < -0.01
