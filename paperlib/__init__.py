"""Test log-likelihoods of RBMs, with error bars that hold and warnings when they do not.

The library behind the book: models that know their unnormalised log-probability, annealing paths that join
a tractable distribution to a model, and estimators that walk a path and return log-weights with diagnostics.

=====================  =====================================================================================
`paperlib.models`      models: energies, conditionals, storage; nothing about estimators
`paperlib.datasets`    digits (bundled), MNIST and Omniglot; binarisation; base-rate biases
`paperlib.annealing`   paths from a tractable distribution to a model, and schedules of beta
`paperlib.estimators`  exact enumeration, importance sampling, AIS, RAISE, control variates, bounds on ln Z and on a DBN's ln p(v)
`paperlib.mcmc`        finite Markov chains exactly, Metropolis-Hastings, Gibbs updates, autocorrelation, belief propagation
`paperlib.variational`  lower bounds, mean field and EM for sparse coding
`paperlib.learning`    contrastive divergence, greedy learning of DBNs, DBMs, EM for mixtures
`paperlib.evaluation`  the test log-probability of a model from a file, with a verdict
`paperlib.reproduction`  profiles, published numbers, records with provenance, the papermill runner
=====================  =====================================================================================

All log-probabilities are in nats. Symbols follow Salakhutdinov & Murray (2008): `W` [D, M], visible biases
`b` [D], hidden biases `a` [M].
"""

__version__ = "0.2.0"
