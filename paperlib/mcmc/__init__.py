"""Markov chain Monte Carlo, exactly on small state spaces and with diagnostics on larger ones.

If unsure: `MarkovChain` for any chain whose transition matrix fits in memory, and
`autocorrelation_time` before an average over the states of one whose matrix does not. Invariance,
the property of Markov chains that the book's estimators need, is in `paperlib.annealing`.
"""

from paperlib.mcmc.belief_propagation import BeliefPropagation as BeliefPropagation
from paperlib.mcmc.belief_propagation import loopy_belief_propagation as loopy_belief_propagation
from paperlib.mcmc.diagnostics import autocorrelation as autocorrelation
from paperlib.mcmc.diagnostics import autocorrelation_time as autocorrelation_time
from paperlib.mcmc.gibbs import gibbs_sweep as gibbs_sweep
from paperlib.mcmc.gibbs import gibbs_update as gibbs_update
from paperlib.mcmc.markov_chain import MarkovChain as MarkovChain
from paperlib.mcmc.markov_chain import total_variation as total_variation
from paperlib.mcmc.metropolis import acceptance_matrix as acceptance_matrix
from paperlib.mcmc.metropolis import metropolis_hastings_chain as metropolis_hastings_chain
from paperlib.mcmc.metropolis import metropolis_samples as metropolis_samples
