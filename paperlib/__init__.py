"""Test log-likelihoods of RBMs, with error bars that hold and warnings when they do not.

The library behind the book: models that know their unnormalised log-probability, annealing paths that join
a tractable distribution to a model, and estimators that walk a path and return log-weights with diagnostics.

======================  =====================================================================================
`paperlib.kernels`      everything about speed: the one door to numba, triton, CUDA graphs and private parts of torch
`paperlib.models`       models: energies, conditionals, bounds on ln Z, storage; nothing about estimators
`paperlib.datasets`     digits (bundled), MNIST and Omniglot; binarisation; base-rate biases
`paperlib.variational`  lower bounds, mean field, EM, learned inference, and the models that only these need
`paperlib.mcmc`         finite Markov chains exactly, Metropolis-Hastings, Gibbs updates, autocorrelation, belief propagation
`paperlib.learning`     contrastive divergence, greedy learning of DBNs, DBMs, EM for mixtures
`paperlib.annealing`    paths from a tractable distribution to a model, and schedules of beta
`paperlib.estimators`   exact enumeration, importance sampling, AIS, RAISE, control variates, the bound on a DBN's ln p(v)
`boltzmann_likelihood.evaluation`   the test log-probability of a model from a file, with a verdict
======================

All log-probabilities are in nats. Symbols follow Salakhutdinov & Murray (2008): `W` [D, M], visible biases
`b` [D], hidden biases `a` [M].
"""

# The only place that says so: packages, citations and results take it from here.
__version__ = "0.5.0"
