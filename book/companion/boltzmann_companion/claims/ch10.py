"""What chapter 10 claims of deep Boltzmann machines, of RAISE for deep models, and of Table 2 and Figure 7."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.rows import grouped
from boltzmann_companion.studies.deep_brackets import exact_log_unnormalized
from paperlib.annealing import DBMPath
from paperlib.estimators import exact_log_z
from paperlib.models import DBM, DBN, RBM
from paperlib.models.dbm import MeanField
from paperlib.numerics import all_states, softplus


def joint_rbm(dbm: DBM) -> Claims:
    """A small DBM as an RBM whose visible units are v and h2, by enumeration."""
    table, every_x = _table(dbm), all_states(dbm.num_visible + dbm.num_hidden_2)
    by_rbm = dbm.joint_rbm.log_unnormalized(every_x).view(len(table), -1)
    same = torch.allclose(by_rbm, table.logsumexp(1), rtol=0, atol=1e-12)
    yield f"p*(v, h2) of the DBM and of the RBM agree in all {by_rbm.numel()} states", same
    log_z = table.flatten().logsumexp(0).item()
    same = math.isclose(exact_log_z(dbm.joint_rbm), log_z, rel_tol=1e-12)
    yield f"ln Z of the RBM is the sum over all {table.numel()} states of the DBM", same


def _table(dbm: DBM) -> Tensor:
    """-E for every state [v, h1, h2]."""
    v, h1, h2 = map(all_states, (dbm.num_visible, dbm.num_hidden_1, dbm.num_hidden_2))
    return -dbm.energy(v[:, None, None], h1[None, :, None], h2[None, None])


def posterior(dbm: DBM) -> Claims:
    """The posterior of a small DBM, by enumeration."""
    table, h1 = _table(dbm), all_states(dbm.num_hidden_1)
    joint = table.flatten(1).softmax(1).view_as(table)  # p(h1, h2 | v)
    given_v = _largest_covariance(joint.sum(2), h1)
    with_h2 = joint.permute(0, 2, 1).flatten(0, 1) / joint.sum(1).flatten()[:, None]
    yield "units of h1 depend on each other, given v", given_v > 0.01
    yield "they are independent, given v and h2", _largest_covariance(with_h2, h1) < 1e-12
    clamped = _clamped_log_z(dbm, all_states(dbm.num_visible))
    same = torch.allclose(clamped, table.logsumexp((1, 2)), rtol=0, atol=1e-12)
    yield "p*(v) is the partition function of the RBM of the two hidden layers", same


def _largest_covariance(probs: Tensor, states: Tensor) -> float:
    """Between two different units, over rows of probabilities [n, S] of all states [S, M]."""
    means = probs @ states
    products = torch.einsum("ns,si,sj->nij", probs, states, states)
    products = products - means[:, :, None] * means[:, None]
    off_diagonal = products - torch.diag_embed(products.diagonal(dim1=1, dim2=2))
    return off_diagonal.abs().max().item()


def _clamped_log_z(dbm: DBM, images: Tensor) -> Tensor:
    """ln p*(v) [N], each by the partition function of its own RBM between the hidden layers."""
    found = []
    for v in images:
        upper = RBM(dbm.weights_2, dbm.hidden_bias_1 + v @ dbm.weights_1, dbm.hidden_bias_2)
        found.append(exact_log_z(upper) + (v @ dbm.visible_bias).item())
    return torch.tensor(found, dtype=torch.float64)


def one_by_one(dbm: DBM, v: Tensor, log_f: Tensor) -> Claims:
    """The enumeration for five images at once [5, D], with its ln p*(v) [5]."""
    same = torch.allclose(log_f, _clamped_log_z(dbm, v), rtol=0, atol=1e-9)
    yield "the first five images, each by its own partition function, agree", same


def bound(dbm: DBM, v: Tensor, bounds: Tensor, log_f: Tensor, field: MeanField) -> Claims:
    """The bound after each update [updates, N], beside the exact ln p*(v) [N] and the library's mean field."""
    yield "the bound never falls, for any image", (bounds.diff(dim=0) > -1e-10).all()
    yield "the bound lies below the exact ln p*(v), for all images", (bounds[-1] < log_f).all()
    by_library = dbm.log_unnormalized_bound(v, field)
    same = torch.allclose(by_library, bounds[-1], rtol=0, atol=1e-6)
    yield "the library stops at the same bound", same
    yield "and reports that all images have converged", field.warnings == ()


def draws(bound_error: float, errors: Mapping[int, Tensor]) -> Claims:
    """The average error of the bound, and the errors [N] of importance sampling for each number of draws."""
    few, many = errors[1].mean().item(), errors[500].mean().item()
    yield "a single draw of h2 is closer on average than the bound", abs(few) < abs(bound_error) / 2
    yield "500 draws are within 0.01 nats on average", abs(many) < 0.01
    yield "and within 0.3 nats for every image", errors[500].abs().max() < 0.3


def levels(rows: Rows) -> Iterator[str]:
    """A line for each level of the test average that the text names."""
    labels = {
        "pre-trained": ("100 epochs", 0),
        "after joint training": ("100 epochs", 30),
        "pre-trained for one epoch": ("1 epoch", 0),
        "after joint training from there": ("1 epoch", 30),
        "RBM with 16 hidden units": ("RBM of the first layer", 0),
        "put together without doubling": ("put together without doubling", 0),
    }
    test = _by_epoch(rows, "test")
    yield from (f"{label}: about {test[key]:.0f} nats" for label, key in labels.items())


def learning(rows: Rows) -> Claims:
    """What joint training and pre-training are worth."""
    test, spread = _by_epoch(rows, "test"), _by_epoch(rows, "weights_2")
    before, after = test["100 epochs", 0], test["100 epochs", 30]
    yield "joint training adds more than half a nat", after > before + 0.5
    yield "it passes the RBM", before < test["RBM of the first layer", 0] < after
    silent = spread["1 epoch", 30] < 0.1 * spread["100 epochs", 30]
    yield "without pre-training h2 stays silent: W2 is less than a tenth", silent


def centred(test: float, without: float) -> Claims:
    """The test averages in nats by the centred gradient and by the plain one."""
    claim = "after 100 epochs of pre-training both gradients end within 0.2 nats of each other"
    yield claim, abs(test - without) < 0.2


def _by_epoch(rows: Rows, column: str) -> dict[tuple[str, int], float]:
    return {(row["model"], row["epoch"]): row[column] for row in rows if column in row}


def expected_weights(
    dbm: DBM, start_bias: Tensor, truth: Tensor, expected: Tensor, heated: Tensor
) -> Claims:
    """p_ann(v) and E[w] for all images [V], and E[w] of the heating alone, from a start with biases [D + M2]."""
    yield "p_ann adds up to 1 over all images", math.isclose(truth.sum().item(), 1, rel_tol=1e-12)
    same = torch.allclose(expected, truth, rtol=1e-12, atol=0)
    yield "the expected weight is p_ann(v), for all 8 images", same
    log_z_start = softplus(start_bias).sum() + dbm.num_hidden_1 * math.log(2)
    clamped, log_f = heated.log() + log_z_start, _table(dbm).logsumexp((1, 2))
    same = torch.allclose(clamped, log_f, rtol=0, atol=1e-12)
    yield "the expected weight of the heating alone is p*(v) / Z_0", same


def balance(path: DBMPath, start_bias: Tensor, kernel: Callable[[float, bool], Tensor]) -> Claims:
    """Kernels T[x, x'] [S, S] at a beta, of all units or with v held fixed."""
    every_x = all_states(len(start_bias))
    log_p = path.log_ratio(path.state_at(every_x), 0, 0.5) + every_x @ start_bias
    for kind, fixed_v in (("of all units", False), ("with v held fixed", True)):
        flow = kernel(0.5, fixed_v) * log_p.exp()[:, None]
        symmetric = torch.allclose(flow, flow.T, rtol=1e-12, atol=0)
        yield f"the kernel {kind} satisfies detailed balance", symmetric


def indices(rows: Rows) -> Claims:
    """The expected weight with the indices of the proof (first row) and with the printed ones."""
    right, *wrong = rows
    largest = max(right[f"error_{steps}"] for steps in (4, 40, 400))
    yield "with the indices of the proof there is no error", largest < 1e-10
    large = all(row["error_4"] > 0.1 for row in wrong)
    yield "each of the other three combinations errs by more than 0.1 nats at K = 4", large
    yield "and its weights add up to more than 1", all(row["total_4"] > 1.1 for row in wrong)
    falls = all(5 < row["error_40"] / row["error_400"] < 20 for row in wrong)
    yield "their errors fall about tenfold with tenfold K", falls


def simulated(truth: Tensor, runs: Mapping[str, Tensor], as_printed: Tensor) -> Claims:
    """Log-weights of RAISE [V, chains] by name, and those with the printed index, beside p_ann(v) [V]."""
    for name, log_w in runs.items():
        within = (_standard_errors(log_w, truth) < 4).all()
        claim = "mean weights within 4 standard errors of p_ann, for all images"
        yield f"{name}: {claim}", within
    outside = (_standard_errors(as_printed, truth) > 4).any()
    yield "with the printed index of the heating, some mean lies outside", outside


def _standard_errors(log_w: Tensor, truth: Tensor) -> Tensor:
    """How far the mean weights of [V, chains] are from the truth [V], in standard errors."""
    weights = log_w.exp()
    error = weights.std(1) / math.sqrt(weights.shape[1])
    return (weights.mean(1) - truth).abs() / error


def heating(rows: Rows, on_digits: bool) -> Claims:
    """Heating beside importance sampling, and beside the exact values on digits."""
    for row in rows:
        # both logarithms err low; a difference of a quarter of a nat would show that one of them is at its end
        agree = abs(row["difference"]) < 0.25
        claim = "heating and importance sampling agree to a quarter of a nat"
        yield Check(f"{row['model']}: {claim}", agree, required=on_digits)
        if on_digits:
            near = abs(row["heating"] - row["exact"]) < 0.1
            yield f"{row['model']}: heating within 0.1 nats of the exact value", near


def unrolled(dbn: DBN, log_w: Tensor, probs: Mapping[int, Tensor]) -> Claims:
    """Log-weights of RAISE with K = 4 for all images [V, chains], beside p_ann(v) [V] for K = 4 and 400."""
    truth = probs[4]
    yield "p_ann adds up to 1", math.isclose(truth.sum().item(), 1, rel_tol=1e-12)
    within = (_standard_errors(log_w, truth) < 4).all()
    yield "mean weights within 4 standard errors of p_ann, for all images", within
    below = (log_w.mean(1) < truth.log()).all()
    yield "the average of ln w lies below ln p_ann, for all images", below
    log_f, log_z = exact_log_unnormalized(dbn, all_states(dbn.layers[0].num_visible))
    model = (log_f - log_z).exp()
    few, many = (0.5 * (probs[steps] - model).abs().sum().item() for steps in (4, 400))
    claim = "with 100 times as many layers p_ann is at least 20 times closer to the DBN"
    yield claim, 20 * many < few


def starts(rows: Rows, on_digits: bool) -> Claims:
    """How much AIS's weights vary from each start."""
    spread = {(row["model"], row["start"], row["steps"]): row["spread"] for row in rows}
    for name, start, steps in spread:
        if start == "uniform":
            best = spread[name, "base rates of v and h2", steps]
            others = spread[name, start, steps], spread[name, "base rates of v", steps]
            claim = "with the base rates of both layers the weights vary least"
            yield Check(f"{name}, K = {steps}: {claim}", best < min(others), required=on_digits)


@of_stored("dbm-starts", required=False)
def stored_starts(rows: Rows) -> Claims:
    """ln Z-hat from the other starts beside that from the base rates of both layers."""
    log_z = {(row["model"], row["start"], row["steps"]): row["log_z"] for row in rows}
    for name, start, steps in log_z:
        if start != "base rates of v and h2":
            apart = log_z[name, start, steps] - log_z[name, "base rates of v and h2", steps]
            claim = f"{apart:+.1f} nats, no higher than from the base rates of both"
            where = f"{name}, K = {steps:,}, {start}"
            yield f"{where}: {claim}", apart < 0.5


def table(points: Rows, on_digits: bool) -> Claims:
    """The brackets of this run, of which those with the most distributions are in Table 2."""
    for (name, start), own in grouped(points, "model", "start").items():
        claim = f"{name}, {start}: more distributions, a smaller gap"
        yield Check(claim, own[-1]["gap"] < own[0]["gap"], required=on_digits)
    if not on_digits:
        return
    for (name, start), own in grouped(points, "model", "start").items():
        last = own[-1]
        yield f"{name}, {start}: AIS and RAISE agree to half a nat", abs(last["gap"]) < 0.5
        if last["exact"] is not None:
            # 4 standard errors of each side, and 0.02 nats for the estimated ln p*(v)
            high = last["ais"] + 4 / 3 * (last["ais"] - last["ais_interval"][0]) + 0.02
            low = last["raise"] - 4 * last["raise_error"] - 0.02
            claim = f"{name}, {start}: the exact value lies in the bracket"
            yield claim, low <= last["exact"] <= high


def gaps(rows: Rows) -> Iterator[str]:
    """A line for each bracket of Table 2."""
    for row, key in _starts_of(rows):
        word = row[f"{key}_verdict"].partition(":")[0]
        where = f"{row['model']}, {key.replace('_', ' ')}, K = {row['steps']:,}"
        yield f"{where}: gap {row[f'{key}_gap']:.1f} nats, {word}"


@of_stored("raise-table-2")
def closed(rows: Rows) -> Claims:
    """Every closed bracket has a small gap, and an error that is small enough to say so, as in `Bracket.verdict`."""
    explained = all(
        abs(row[f"{key}_gap"]) <= max(1, 3 * row[f"{key}_gap_error"])
        and row[f"{key}_gap_error"] <= 0.5
        for row, key in _starts_of(rows)
        if row[f"{key}_verdict"].partition(":")[0] == "closed"
    )
    yield "where it is closed, its error or a nat explains the gap", explained


def _starts_of(rows: Rows) -> list[tuple[Mapping[str, Any], str]]:
    """The rows of Table 2 with each start for which they have a gap."""
    keys = ("uniform", "base_rate")
    return [(row, key) for row in rows for key in keys if row.get(f"{key}_gap") is not None]


def curves(points: Rows, on_digits: bool) -> Claims:
    """The curves of Figure 7 from this run."""
    found = grouped(points, "model", "start")
    for (name, start), own in found.items():
        low, final = own[0], own[-1]
        noise = 3 * math.hypot(low["raise_error"], final["raise_error"])
        claim = f"{name}, {start}: RAISE with the smallest K not above its final value"
        yield Check(claim, low["raise"] < final["raise"] + noise, required=on_digits)
    if on_digits:
        uniform, base_rates = (found["DBM", start][0] for start in ("uniform", "base rates"))
        too_low = uniform["raise"] < uniform["exact"] - 1
        yield "DBM, uniform, smallest K: RAISE more than a nat too low", too_low
        yield "DBM, smallest K: base rates halve the gap", base_rates["gap"] < uniform["gap"] / 2


@of_stored("raise-figure-7", required=False)
def stored_curves(points: Rows) -> Claims:
    """The curves of Figure 7 at the paper's size."""
    for (name, start), own in grouped(points, "model", "start").items():
        lowest = min(point["ais"] for point in own)
        conservative = all(row["raise"] - 3 * row["raise_error"] <= lowest for row in own)
        claim = "RAISE never exceeds the lowest AIS estimate by more than its error"
        yield f"{name}, {start}: {claim}", conservative
        yield f"{name}, {start}: AIS comes down as K grows", own[-1]["ais"] < own[0]["ais"]


def published_excess(averages: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """A line for each of the published averages of the Omniglot DBM, by method and start."""
    lowest = min(averages["AIS"].values())
    yield f"published, lowest AIS average: {lowest} nats, from the uniform start"
    for start, average in averages["RAISE"].items():
        yield f"RAISE from {start}: {average - lowest:.1f} nats above it"


def published_crossed(averages: Mapping[str, Mapping[str, float]]) -> Claims:
    """The published averages of the Omniglot DBM, by method and start."""
    above, below = averages["AIS"], averages["RAISE"]
    lowest = above["uniform"]
    crossed = lowest == min(above.values()) and min(below.values()) - lowest > 6
    yield "both of them are more than 6 nats above that estimate", crossed
