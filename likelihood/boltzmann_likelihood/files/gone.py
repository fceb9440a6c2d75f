"""The message about a model of categorical visible units, which earlier versions read."""

from __future__ import annotations

# Names of this kind of visible units in the files of rbms and of RestrictedBoltzmannMachines.jl.
CATEGORICAL_KINDS = ("PBRBM", "Potts")


def categorical_model(sites: int, states: int) -> str:
    """A model with weights [sites, states, hidden], in words, and what is read in its place.

    Examples
    --------
    >>> categorical_model(9, 21).partition(":")[0]
    'a Potts RBM [L=9, q=21]'
    """
    return (
        f"a Potts RBM [L={sites}, q={states}]: only RBMs, DBMs and DBNs of binary units are read; "
        "version 0.4 of this program reads it"
    )
