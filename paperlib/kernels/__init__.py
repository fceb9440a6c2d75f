"""Everything about speed: the one door to numba, triton, CUDA graphs and private parts of torch.

No other room asks for the device or the type of a tensor. `paperlib.kernels.reference` defines in
plain torch what is computed. Compiled functions are compared with it once in each process, and it
takes their place if they do not agree.

If unsure: `BipartiteSampler` for models of binary units in two layers, `bernoulli` for everything
else.

===============  =============================================================================
`reference`      plain torch, any device: the definition, and the fallback
`draws`          Bernoulli draws and sums, by the fastest means available for a tensor
`products`       products of binary states with a fixed matrix, rounded alike in both directions
`sampler`        both conditionals of a two-layer model, and the sums over its hidden units
`tempering`      which chain is at which temperature
`replay`         a step recorded in a CUDA graph
`blocks`         how many chains walk together, how many steps at a time, in how many parts
`matlab`         MATLAB 5's uniform numbers, with which the first paper's images were binarised
`capability`     whether the compiled functions agree with the reference on this machine
`comparison`     the short walk by which that is decided
`cpu`, `gpu`     the compiled functions: numba, triton
`arguments`      what compiled functions for whole steps take
`version`        the version of the draws, part of the names of stored shards
===============  =============================================================================
"""

from paperlib.kernels.blocks import chains_per_block as chains_per_block
from paperlib.kernels.blocks import chains_per_shard as chains_per_shard
from paperlib.kernels.blocks import parts_for as parts_for
from paperlib.kernels.blocks import steps_at_a_time as steps_at_a_time
from paperlib.kernels.blocks import walks_in_threads as walks_in_threads
from paperlib.kernels.draws import Beta as Beta
from paperlib.kernels.draws import bernoulli as bernoulli
from paperlib.kernels.draws import draw_bits as draw_bits
from paperlib.kernels.draws import draw_bits_of_logits as draw_bits_of_logits
from paperlib.kernels.draws import draw_units as draw_units
from paperlib.kernels.draws import softplus_increment as softplus_increment
from paperlib.kernels.draws import sum_where as sum_where
from paperlib.kernels.matlab import MatlabUniform as MatlabUniform
from paperlib.kernels.products import Memory as Memory
from paperlib.kernels.replay import can_replay as can_replay
from paperlib.kernels.replay import replayed as replayed
from paperlib.kernels.sampler import BipartiteSampler as BipartiteSampler
from paperlib.kernels.tempering import Ladder as Ladder
from paperlib.kernels.version import DRAWS as DRAWS
