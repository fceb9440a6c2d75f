"""Planted models: RBMs of any size whose ln Z is known exactly, with independent exact draws.

Enumeration ends at 25 units in the smaller layer. An estimator that was only tested there may still fail at 784 x 500. Each function of
this package makes an RBM of such a size in which something else than smallness makes ln Z computable, and returns a `Planted`: the
model, its ln Z in nats, and a function that draws visible vectors from it. The models are ordinary objects of the class `RBM`.

==================  ============================================================================================
`block_diagonal`    small RBMs side by side, units shuffled: the easiest
`low_rank`          W of rank one or two with whole-number factors: transitions of first and of second order
`ising_2d`          the Ising model on a torus, a hidden unit for each bond: a critical point, long correlations
`hidden_mode`       an RBM with a second mode of known odds: what data and chains never show
`from_components`   any RBM of your own that falls apart into small pieces
`from_factors`      any RBM of your own with whole-number factors
`write_planted`     one file with the model, ln Z and draws, for the tests of other programs
`read_planted`      what is in such a file
==================  ============================================================================================

ln Z belongs to the parameters as they are stored, also in float32: parameters are rounded first, and ln Z is computed in float64 from
the rounded ones. Its error is that of float64 sums, far below 1e-8 nats. Models are made on the CPU; `planted.rbm.to(...)` moves one.

If unsure: `block_diagonal()` to see that an estimator is right at full size, `low_rank(threshold=...)` and `hidden_mode` to see whether it
notices when it is not.
"""

from paperlib.models.planted.blocks import block_diagonal
from paperlib.models.planted.components import from_components
from paperlib.models.planted.counts import from_factors, low_rank
from paperlib.models.planted.files import PlantedFile, read_planted, write_planted
from paperlib.models.planted.ising import ising_2d
from paperlib.models.planted.modes import hidden_mode
from paperlib.models.planted.planted_model import Planted

__all__ = [
    "Planted",
    "PlantedFile",
    "block_diagonal",
    "from_components",
    "from_factors",
    "hidden_mode",
    "ising_2d",
    "low_rank",
    "read_planted",
    "write_planted",
]
