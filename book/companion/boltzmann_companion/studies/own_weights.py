"""What Table 1 prints of CD25(500), whose weights its authors released, and what that says of ln Z.

Both printed averages are a mean of ln p* minus the same ln Z. With the authors' weights and images the mean is known, so that each of the two
says what ln Z is, to a hundredth of a nat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boltzmann_companion.published import find, load_published

SPLITS = ("train", "test")


def printed_averages() -> dict[str, float]:
    """The average log-probability of training and of test images that Table 1 prints for CD25(500).

    Examples
    --------
    >>> printed_averages()
    {'train': -83.1, 'test': -86.34}
    """
    found = {}
    for split in SPLITS:
        column = f"Avg. {split.title()} log-prob. / estimate"
        [entry] = find(load_published(), paper="sm2008", row="CD25(500)", column=column)
        assert entry.value is not None
        found[split] = entry.value
    return found


def log_z_that_gives(mean_log_p: float, printed: float) -> tuple[float, float]:
    """The ends of all ln Z for which `mean_log_p` - ln Z is printed so, to a hundredth.

    Examples
    --------
    >>> log_z_that_gives(10.0, 7.5)
    (2.495, 2.505)
    """
    return mean_log_p - printed - 0.005, mean_log_p - printed + 0.005


def log_z_that_gives_both(row: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of all ln Z that give both printed averages; the first is the larger if there is none.

    Parameters
    ----------
    row : mapping
        With the mean ln p* of training and of test images, `train` and `test`.

    Examples
    --------
    >>> low, high = log_z_that_gives_both({"train": 368.17, "test": 364.928})
    >>> round(low, 3), round(high, 3)
    (451.265, 451.273)
    """
    ends = [log_z_that_gives(row[split], printed) for split, printed in printed_averages().items()]
    return max(low for low, _ in ends), min(high for _, high in ends)
