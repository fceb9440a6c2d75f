"""Ground truth by brute force, written from the definitions; shares no code with paperlib."""

import itertools
import math

import torch

from paperlib.models import DBM, RBM


def all_states(width):
    """Every binary vector of this width: [2^width, width], float64."""
    return torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * width).view(
        -1, width
    )


def _normals(shapes, seed, scale):
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(s, dtype=torch.float64, generator=generator) for s in shapes]


def normal(*shape, seed):
    """Standard normal numbers of this shape, float64."""
    return _normals([shape], seed, 1.0)[0]


def random_rbm(num_visible, num_hidden, seed, scale=1.0, dtype=torch.float64):
    shapes = (num_visible, num_hidden), (num_visible,), (num_hidden,)
    return RBM(*(each.to(dtype) for each in _normals(shapes, seed, scale)))


def random_dbm(num_visible, num_hidden_1, num_hidden_2, seed, scale=1.0):
    layers = (num_visible,), (num_hidden_1,), (num_hidden_2,)
    shapes = (num_visible, num_hidden_1), (num_hidden_1, num_hidden_2), *layers
    return DBM(*_normals(shapes, seed, scale))


def missed_mode_rbm():
    """Most of Z lies in a mode that chains from random pixels meet too late.

    It has 60 pixels on, held by one hidden unit.
    """
    num_visible = 100
    weights = torch.zeros(num_visible, 2, dtype=torch.float64)
    weights[:60, 0] = 3.0
    weights[60:, 0] = -3.0
    weights[:, 1] = 0.05
    bias = torch.full((num_visible,), -0.2, dtype=torch.float64)
    return RBM(weights, bias, torch.tensor([-105.0, 0.0], dtype=torch.float64))


def joint_log_table(rbm):
    """-E(v, h) for every pair: [2^D, 2^M]."""
    v = all_states(rbm.num_visible)
    h = all_states(rbm.num_hidden)
    w = rbm.weights.double()
    b = rbm.visible_bias.double()
    a = rbm.hidden_bias.double()
    return torch.einsum("ni,ij,mj->nm", v, w, h) + (v @ b)[:, None] + (h @ a)[None, :]


def log_z(rbm):
    return torch.logsumexp(joint_log_table(rbm).flatten(), 0).item()


def assert_is_its_definition(model, v, h, table):
    """Energies, sums and conditionals of a bipartite model, by the table of -E over all v and h."""
    flipped = (h[:, None] - torch.eye(h.shape[1]).double()).abs()
    for computed, expected in (
        (-model.energy(v[:, None], h[None]), table),
        (model.log_unnormalized(v), table.logsumexp(1)),
        (model.log_unnormalized_hidden(h), table.logsumexp(0)),
        (model.log_unnormalized_flips(h), model.log_unnormalized_hidden(flipped)),
        (model.hidden_probs(v), table.softmax(1) @ h),
        (model.visible_probs(h), table.softmax(0).T @ v),
    ):
        torch.testing.assert_close(computed, expected, rtol=0, atol=1e-12)


def log_f_table(rbm, visible_bias_a, beta):
    """ln f_beta(v) of a base-rate path for every v, by summing over every h."""
    v = all_states(rbm.num_visible)
    scaled = torch.logsumexp(beta * joint_log_table(rbm), 1)
    return (1 - beta) * (v @ visible_bias_a.double()) + scaled


def log_f_pair_table(rbm_a, rbm_b, beta):
    """ln f_beta(v) of a pair path for every v, by summing over every h_A and h_B."""
    return torch.logsumexp((1 - beta) * joint_log_table(rbm_a), 1) + torch.logsumexp(
        beta * joint_log_table(rbm_b), 1
    )


def state_numbers(states):
    """The place of each binary vector [n, width] in `all_states(width)`: [n]."""
    return (states.double() @ 2.0 ** torch.arange(states.shape[1] - 1, -1, -1).double()).long()


def frequencies(states):
    """The share of each binary vector among the `states` [..., n, width]: [..., 2^width]."""
    count, width = states.shape[-2:]
    numbers = state_numbers(states.reshape(-1, width)).view(-1, count)
    counts = torch.stack([torch.bincount(row, minlength=2**width) for row in numbers])
    return counts.view(*states.shape[:-2], 2**width) / count


def assert_rates(rates, probs, count, errors, slack=0.0):
    """The rates of `count` independent draws are within so many errors, and `slack`, of `probs`."""
    standard_error = (probs * (1 - probs) / count).sqrt()
    assert ((rates - probs).abs() <= errors * standard_error + slack).all()


def assert_unbiased(log_weights, truth, largest_error=math.inf):
    """Independent weights have the mean e^truth within four standard errors.

    Their relative standard error is not larger than given.
    """
    ratio = (log_weights.cpu() - truth).exp()
    error = ratio.std().item() / math.sqrt(len(ratio))
    assert abs(ratio.mean().item() - 1) < 4 * error
    assert error < largest_error


def bernoulli_table(probabilities, states):
    """Probability of each state under each row of independent probabilities: [rows, states]."""
    p = probabilities[:, None, :]
    s = states[None, :, :]
    return (p * s + (1 - p) * (1 - s)).prod(-1)


def transition_matrix(rbm_a, rbm_b, beta):
    """T[v, v'] of eq. 15-17 by summing over every h_A and h_B; `rbm_a` may have no hidden units."""
    v = all_states(rbm_b.num_visible)
    probs = []
    inputs = []
    for rbm, scale in ((rbm_a, 1 - beta), (rbm_b, beta)):
        states = all_states(rbm.num_hidden) if rbm.num_hidden else torch.zeros(1, 0).double()
        given_v = torch.sigmoid(scale * (v @ rbm.weights + rbm.hidden_bias))
        probs.append(bernoulli_table(given_v, states))
        inputs.append(scale * (states @ rbm.weights.T + rbm.visible_bias))
    given_h = torch.sigmoid(inputs[0][:, None] + inputs[1])
    rows = bernoulli_table(given_h.flatten(0, 1), v).unflatten(0, given_h.shape[:2])
    return torch.einsum("na,nb,abm->nm", *probs, rows)


def expected_weights(log_start, log_f, kernel, betas, corrections, power=1):
    """E[w^power] of AIS as a product of transition matrices, no sampling anywhere.

    `log_start` is ln p of the chains' start, a table over all states; `log_f(beta)` and
    `kernel(beta)` belong to what is walked; `corrections` are what is counted in at both ends,
    subtracted at the start.
    """
    mass = (log_start - power * corrections[0]).exp()
    for low, high in itertools.pairwise(betas):
        log_ratio = log_f(high) - log_f(low)
        if high == betas[-1]:
            log_ratio = log_ratio + corrections[1]
        mass = (mass * (power * log_ratio).exp()) @ kernel(high)
    return mass.sum()


def directed_table(layer):
    """p(below | above) of a directed layer for every pair: [2^above, 2^below]."""
    states = all_states(layer.num_hidden)
    weights = layer.weights.double()
    bias = layer.visible_bias.double()
    return bernoulli_table(torch.sigmoid(states @ weights.T + bias), all_states(layer.num_visible))


class WeightlessRBM:
    """The base-rate start of a path: visible biases and no hidden units."""

    num_hidden = 0

    def __init__(self, visible_bias):
        self.visible_bias = visible_bias
        self.weights = visible_bias.new_zeros(len(visible_bias), 0)
        self.hidden_bias = visible_bias.new_zeros(0)
