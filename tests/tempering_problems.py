"""Problems for parallel tempering, small enough to be enumerated, on every backend."""

import torch
from backends import walked_models
from enumeration import all_states, log_f_pair_table, log_f_table, log_z, random_rbm

from paperlib.annealing import BaseRatePath, DBMPath, RBMPairPath
from paperlib.models import DBM, RBM

BIAS = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)


def base_rate_problem(backend):
    """A path and the truth that an estimate along it has to find: ln Z of the model itself."""
    rbm = random_rbm(4, 3, seed=21)
    path = BaseRatePath(backend.place(rbm), BIAS).to(backend.device)
    return path, log_z(rbm)


def pair_problem(backend):
    """From one model to another with more hidden units, with exact draws from the first."""
    rbm_a, rbm_b = random_rbm(4, 2, seed=22), random_rbm(4, 3, seed=23)
    probs = rbm_a.log_unnormalized(all_states(4)).softmax(0)

    def sample_a(num_chains, generator):
        index = torch.multinomial(
            probs.to(generator.device), num_chains, replacement=True, generator=generator
        )
        return all_states(4)[index.cpu()]

    path = RBMPairPath(backend.place(rbm_a), backend.place(rbm_b), sample_a)
    return path.to(backend.device), log_z(rbm_b) - log_z(rbm_a)


def dbm_problem(backend):
    generator = torch.Generator().manual_seed(24)
    shapes = [(3, 2), (2, 2), (3,), (2,), (2,)]
    parameters = [torch.randn(*s, dtype=torch.float64, generator=generator) for s in shapes]
    dbm = DBM(*parameters)
    path = DBMPath(backend.place(dbm)).to(backend.device)
    return path, log_z(dbm.joint_rbm)


def table_at(path, beta):
    """p_beta of every state, for what the path really walks between."""
    start, target = walked_models(path)
    if start.num_hidden:
        return log_f_pair_table(start, target, beta).softmax(0)
    return log_f_table(target, start.visible_bias, beta).softmax(0)


def two_modes(width=12, strength=4.0, log_odds=1.0):
    """An RBM with two modes, in which its first or its second half is on, and hardly any way between them.

    The odds of the first mode are about e^log_odds. A chain at beta = 1 changes modes once in thousands of steps.
    """
    weights = torch.zeros(width, 1, dtype=torch.float64)
    weights[: width // 2], weights[width // 2 :] = strength, -strength
    bias = torch.zeros(width, dtype=torch.float64)
    bias[: width // 2] = -strength / 2
    bias[width // 2 :] = strength / 2
    return RBM(weights, bias, torch.tensor([log_odds], dtype=torch.float64))
