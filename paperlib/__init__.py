"""Partition functions and log-probabilities of RBMs, DBNs and DBMs, with error bars and warnings.

The library that two papers need: models that know their unnormalised log-probability, annealing
paths that join a tractable distribution to a model, and estimators that walk a path and return
log-weights with diagnostics.

======================  ===========================================================================
`paperlib.kernels`      speed: the one door to numba, triton, CUDA graphs and private parts of torch
`paperlib.models`       energies, conditionals, bounds on ln Z, storage; nothing about estimators
`paperlib.datasets`     digits (bundled), MNIST and Omniglot; binarisation; base-rate biases
`paperlib.variational`  lower bounds, mean field, EM, learned inference, and models for these
`paperlib.mcmc`         finite Markov chains, Metropolis-Hastings, Gibbs updates, belief propagation
`paperlib.learning`     contrastive divergence, greedy learning of DBNs, DBMs, EM for mixtures
`paperlib.annealing`    paths from a tractable distribution to a model, and schedules of beta
`paperlib.estimators`   enumeration, AIS, RAISE, parallel tempering, control variates, brackets
`paperlib.resumable`    computations that may stop, as steps or as parts
`paperlib.uncertain`    values with their standard errors: sums, differences and intervals
======================  ===========================================================================

The package `boltzmann_likelihood` stands on top of it: the tool for a model of one's own, which
reads files of other programs and gives a verdict.

All log-probabilities are in nats. Symbols follow Salakhutdinov & Murray (2008): `W` [D, M], visible
biases `b` [D], hidden biases `a` [M].
"""

# The only place that says so: packages, citations and results take it from here.
__version__ = "0.5.0"
