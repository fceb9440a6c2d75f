"""Planted models: RBMs of any size whose ln Z is known exactly, with independent exact draws.

Enumeration ends at 25 units in the smaller layer. An estimator that was only tested there may still
fail at 784 x 500. The functions of this package make RBMs of such sizes in which ln Z is computable
for a reason other than small size. Each returns a `Planted`: the model, its ln Z in nats, and a
function that draws visible vectors from it. The models are ordinary objects of the class `RBM`.

==================  ===========================================================================
`block_diagonal`    small RBMs side by side, with units shuffled: the easiest case
`low_rank`          W of rank one or two with whole-number factors: first- and second-order
                    transitions
`ising_2d`          the Ising model on a torus, one hidden unit per bond: a critical point, long
                    correlations
`hidden_mode`       an RBM with a second mode of known odds, which data and chains never show
`from_components`   your own RBM, if it falls apart into small pieces
`from_factors`      your own RBM, if its weights have whole-number factors
`write_planted`     writes one file with the model, ln Z and draws, for testing other programs
`read_planted`      reads such a file
==================  ===========================================================================

ln Z is that of the parameters as they are stored, also in float32: parameters are rounded first,
and ln Z is computed in float64 from the rounded ones. Its error is that of float64 sums, far below
1e-8 nats. Models are made on the CPU; `planted.rbm.to(...)` moves one.

If unsure, use `block_diagonal()` to check that an estimator is right at full size, and
`low_rank(threshold=...)` and `hidden_mode` to check whether it notices when it is not.
"""

from boltzmann_likelihood.planted.components import block_diagonal as block_diagonal
from boltzmann_likelihood.planted.components import from_components as from_components
from boltzmann_likelihood.planted.components import hidden_mode as hidden_mode
from boltzmann_likelihood.planted.counts import from_factors as from_factors
from boltzmann_likelihood.planted.counts import low_rank as low_rank
from boltzmann_likelihood.planted.files import PlantedFile as PlantedFile
from boltzmann_likelihood.planted.files import read_planted as read_planted
from boltzmann_likelihood.planted.files import write_planted as write_planted
from boltzmann_likelihood.planted.ising import ising_2d as ising_2d
from boltzmann_likelihood.planted.planted_model import Planted as Planted
