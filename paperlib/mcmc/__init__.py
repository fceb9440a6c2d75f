"""Markov chain Monte Carlo, exactly on spaces that are small enough, and with diagnostics on larger ones.

If unsure: `MarkovChain` for any chain whose transition matrix fits in memory, and `autocorrelation_time` before an average over the
states of one whose matrix does not. Invariance, the property of Markov chains that the book's estimators need, is in
`paperlib.annealing`.
"""

from paperlib.mcmc.belief_propagation import BeliefPropagation, loopy_belief_propagation
from paperlib.mcmc.diagnostics import autocorrelation, autocorrelation_time
from paperlib.mcmc.gibbs import gibbs_sweep, gibbs_update
from paperlib.mcmc.markov_chain import MarkovChain, total_variation
from paperlib.mcmc.metropolis import (
    acceptance_matrix,
    metropolis_hastings_chain,
    metropolis_samples,
)
from paperlib.surroundings import undisturbed_in

__all__ = [
    "BeliefPropagation",
    "MarkovChain",
    "acceptance_matrix",
    "autocorrelation",
    "autocorrelation_time",
    "gibbs_sweep",
    "gibbs_update",
    "loopy_belief_propagation",
    "metropolis_hastings_chain",
    "metropolis_samples",
    "total_variation",
]

undisturbed_in(__name__)
