"""Markov chain Monte Carlo on spaces small enough to know everything, and on larger ones with its diagnostics.

If unsure: `MarkovChain` for any chain whose transition matrix fits in memory, and `effective_sample_size` before an average over the states
of one that does not. What the estimators of the book need of Markov chains, invariance, is in `paperlib.annealing`.
"""

from paperlib.mcmc.belief_propagation import BeliefPropagation, loopy_belief_propagation
from paperlib.mcmc.diagnostics import (
    autocorrelation,
    autocorrelation_time,
    effective_sample_size,
)
from paperlib.mcmc.gibbs import gibbs_sweep, gibbs_update
from paperlib.mcmc.markov_chain import MarkovChain, total_variation
from paperlib.mcmc.metropolis import (
    acceptance_matrix,
    metropolis_hastings_chain,
    metropolis_samples,
)

__all__ = [
    "BeliefPropagation",
    "MarkovChain",
    "acceptance_matrix",
    "autocorrelation",
    "autocorrelation_time",
    "effective_sample_size",
    "gibbs_sweep",
    "gibbs_update",
    "loopy_belief_propagation",
    "metropolis_hastings_chain",
    "metropolis_samples",
    "total_variation",
]
