"""Chapter 16: the ends of brackets beside parallel tempering, and errors against cost."""

from __future__ import annotations

from itertools import product

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import label_logarithmic, look_of
from boltzmann_companion.published import LATER_PAPERS, find, load_published
from boltzmann_companion.rows import by_model, columns, where
from boltzmann_companion.studies.tempering_runs import AIS_CHAINS, ESTIMATORS


def error_against_cost(rows: Rows, with_published: bool) -> Figure:
    """Root mean square errors against chain-steps, one line for each model and estimator.

    The second model, or the published errors, are hollow. Published are AIS and RTS, which is of
    the kind of parallel tempering; they belong beside our errors of CD25(500).
    """
    curves = {}
    for model, points in by_model(rows).items():
        for estimator in ESTIMATORS:
            errors = where(points, estimator=estimator)
            curves[model, estimator] = columns(errors, "chain_steps", "rmse")
    if with_published:
        for estimator in ("RTS", "AIS"):
            chain_steps, errors = zip(*_published_errors(estimator), strict=True)
            curves["Carlson et al. 2016", estimator] = [list(chain_steps), list(errors)]
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    first_model = next(iter(curves))[0]
    for (model, estimator), points in curves.items():
        name = "AIS" if estimator == "AIS" else "parallel tempering"
        look = look_of(name, hollow=model != first_model)
        axes.plot(*points, label=f"{'RTS' if estimator == 'RTS' else name}, {model}", **look)
    axes.set(xscale="log", yscale="log", xlabel="chain-steps", ylabel="error (nats)")
    label_logarithmic(axes.xaxis, between=not with_published)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


def bracket_ends(rows: Rows, *tables: Rows) -> Figure:
    """AIS and RAISE less parallel tempering, a line for each model of `tempering-brackets`.

    The rows of RAISE's two tables have both starts; the uniform one is hollow. Bars are three
    standard errors, and for parallel tempering its interval.
    """
    figure, axes = plt.subplots(figsize=(5.2, 1.2 + 0.36 * len(rows)))
    ends = by_model([row for table in tables for row in table])
    for y, row in enumerate(rows):
        [table] = ends[row["model"]]
        (low, high) = row["interval"]
        look = look_of("parallel tempering")
        axes.errorbar(
            0, y, xerr=(high - low) / 2, **look, label=None if y else "parallel tempering"
        )
        for start, name in product(("base_rate", "uniform"), ("AIS", "RAISE")):
            key = f"{start}_{name.lower()}"
            hollow = start == "uniform"
            place = y + (0.15 if hollow else -0.15)
            label = f"{name}, uniform start" if hollow else name
            look = look_of(name, hollow=hollow)
            reach = 3 * table[f"{key}_error"]
            off = table[key] - row["ladder"]
            axes.errorbar(off, place, xerr=reach, **look, label=None if y else label)
        if row["exact"] is not None:
            axes.plot(row["exact"] - row["ladder"], y, "k|", markersize=12)
    axes.axvspan(-1, 1, color="0.5", alpha=0.12, linewidth=0)
    axes.set_xscale("symlog", linthresh=1, linscale=1.5)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(rows)), [row["model"] for row in rows])
    axes.set(xlabel="less parallel tempering (nats)", ylim=(len(rows) - 0.5, -0.5))
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _published_errors(estimator: str) -> list[tuple[int, float]]:
    """Chain-steps and errors that Carlson et al. (2016) print for CD25(500), by `RTS` or `AIS`."""
    return [
        (int(entry.row.split()[0].replace(",", "")) * AIS_CHAINS, entry.value)
        for entry in find(load_published(papers=LATER_PAPERS), column=f"{estimator}, RMSE")
        if entry.value is not None
    ]
