"""Figures of chapter 05: estimates of ln Z against the number of runs."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import draw_runs
from boltzmann_companion.rows import by_model


def more_runs(points: Rows, zeros: Mapping[str, float], ylabel: str) -> Figure:
    """A panel for each model: ln Z less its zero, with 3-sigma intervals, against the number of AIS runs."""
    groups = by_model(points)
    figure, (panels,) = plt.subplots(1, len(groups), figsize=(7.0, 3.0), squeeze=False)
    for panel, (model, own) in zip(panels, groups.items(), strict=True):
        draw_runs(panel, own, zeros[model])
        panel.set_title(model)
    panels[0].set_ylabel(ylabel)
    return figure
