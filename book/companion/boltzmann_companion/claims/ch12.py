"""What chapter 12 claims of recognition networks, wake-sleep, AIS of a directed model, learned starts, LISTA and VAEs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows
from boltzmann_companion.studies.learned_inference import Assessment
from paperlib.numerics import all_states, bernoulli_log_prob, seeded_generator
from paperlib.variational import RecognitionWeights, kl_divergence, sleep_step, wake_step
from paperlib.variational.mean_field import MeanFieldTrace
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet
from paperlib.variational.vae import VAE

Wake = Callable[
    [SigmoidBeliefNet, RecognitionWeights, Tensor, float, torch.Generator], SigmoidBeliefNet
]
Sleep = Callable[
    [SigmoidBeliefNet, RecognitionWeights, int, float, torch.Generator], RecognitionWeights
]


def amortised(rows: Rows, traces: Iterable[MeanFieldTrace], log_evidence: Tensor) -> Claims:
    """Of mean field from the prior and from three networks, with ln p(v) [N]."""
    prior, flat, one, two = rows
    below = all(bool((trace.bounds <= log_evidence + 1e-10).all()) for trace in traces)
    yield "no answer is above the evidence", below
    yield "more layers, less lost", flat["network"] > one["network"] > two["network"]
    claim = "one affine layer loses more than twice what one tanh layer does"
    yield claim, flat["gap"] > 2 * one["gap"]
    claim = "one pass of the best network is better than one sweep from the prior"
    yield claim, two["gap"] < prior["one"]
    claim = "a sweep at the end removes more than half of what the network lost"
    yield claim, two["gap"] - two["one"] > 0.5 * two["network"]
    claim = "from the best network mean field ends at better maxima than from the prior"
    yield claim, two["end"] < prior["end"]


def phases(wake: Wake, sleep: Sleep, seed: int) -> Claims:
    """Of the two steps, on a belief net that is small enough for a sum over all states."""
    generator = seeded_generator(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    model = SigmoidBeliefNet(normal(4, 3), normal(4), normal(3))
    guess = RecognitionWeights(normal(4, 3), normal(3))
    v, h = all_states(4), all_states(3)
    joint = model.log_joint_table(v).exp()  # p(v, h), [16, 8]
    p_v = joint.sum(1)
    yield "the probabilities of all v and h add up to 1", abs(joint.sum().item() - 1) < 1e-12

    leaves = guess.weights.clone().requires_grad_(), guess.bias.clone().requires_grad_()
    log_guess = bernoulli_log_prob(h, RecognitionWeights(*leaves).logits(v)[:, None])
    log_posterior = joint.log() - p_v.log()[:, None]
    objective = (p_v * kl_divergence(log_posterior, log_guess)).sum()
    slopes = torch.autograd.grad(objective, leaves, retain_graph=True)
    surprise = h - torch.sigmoid(guess.logits(v))[:, None]  # [16, 8, 3]
    weights = torch.einsum("vh,vd,vhi->di", joint, v, surprise)
    bias = torch.einsum("vh,vhi->i", joint, surprise)
    matches = all(
        torch.allclose(average, -slope, atol=1e-12)
        for average, slope in zip((weights, bias), slopes, strict=True)
    )
    yield "sleep, averaged over all dreams, is the gradient of the proposition", matches
    other = (p_v * kl_divergence(log_guess, log_posterior)).sum()
    (slope_other,) = torch.autograd.grad(other, leaves[0])
    differs = not torch.allclose(weights, -slope_other, atol=1e-2)
    yield "and not that of the other direction", differs

    by_hand = (
        wake(model, guess, v, 0.1, seeded_generator(1)),
        sleep(model, guess, 50, 0.1, seeded_generator(2)),
    )
    by_library = (
        wake_step(model, guess, v, 0.1, seeded_generator(1)),
        sleep_step(model, guess, 50, 0.1, seeded_generator(2)),
    )
    same = all(
        torch.allclose(a.weights, b.weights) for a, b in zip(by_hand, by_library, strict=True)
    )
    yield "these lines are the library's steps", same


def wake_sleep(rows: Rows) -> Claims:
    """Of wake-sleep beside exact learning, along training."""
    first, *_, last = rows
    adds_up = all(abs(row["bound"] + row["gap"] - row["log_prob"]) < 1e-9 for row in rows)
    yield "bound plus divergence is ln p(v)", adds_up
    gain = last["log_prob"] - first["log_prob"]
    yield "training gains more than two nats", gain > 2
    claim = "exact learning is ahead of wake-sleep, by less than half a nat"
    yield claim, 0 < last["exact"] - last["log_prob"] < 0.5


def directions(rows: Rows, asleep: Assessment) -> Claims:
    """Of networks for two finished models; for that of exact learning the one by the bound is then trained by sleep."""
    wake_sleep_slept, wake_sleep_bound, slept, bound = rows
    smaller = bound["gap"] < slept["gap"] and wake_sleep_bound["gap"] < wake_sleep_slept["gap"]
    yield "the network trained by the bound has the smaller gap", smaller
    claim = (
        "the one trained by sleep the smaller reverse divergence, for the model of exact learning"
    )
    yield claim, slept["reverse"] < bound["reverse"]
    claim = "sleep lowers the bound of a network that was trained by it"
    yield claim, asleep.bound < bound["bound"] - 0.02
    claim = "the model of exact learning is harder to recognise, more than twice the gap"
    yield claim, bound["gap"] > 2 * wake_sleep_bound["gap"]


def directed(rows: Rows, errors: Mapping[int, Tensor], network_gap: float) -> Claims:
    """Of AIS, from 1 to 100 steps, and its errors of ln p(v) [chains, N] by the number of steps."""
    ones, tens = ([row[key] for row in rows] for key in ("one", "ten"))
    low = all(row["one"] < -4 * row["one_error"] for row in rows[:4])
    yield "one chain: too low on average by more than four standard errors, up to 30 steps", low
    yield "more steps, a smaller error", all(a < b for a, b in pairwise(ones))
    yield "ten chains: a smaller error", all(one < ten for one, ten in zip(ones, tens, strict=True))
    yield "with 100 steps and ten chains, within 0.05 nats", abs(tens[-1]) < 0.05
    high = all(row["rbm"] > 4 * row["rbm_error"] for row in rows[:4])
    yield "the RBM: too high on average by more than four standard errors, up to 30 steps", high
    either = all(0 < row["above"] < 100 for row in rows)
    yield "a single image's estimate may be above the truth", either
    yield "30 steps and one chain are closer than the network's bound", -ones[3] < network_gap
    means = [values.exp().mean(0) for steps, values in errors.items() if steps >= 10]
    scores = [(mean.mean() - 1) / (mean.std() / math.sqrt(len(mean))) for mean in means]
    yield "the mean weight is p(v), within four standard errors", max(map(abs, scores)) < 4
    pooled = torch.cat([values.flatten() for values in errors.values()])
    rare = all((pooled > b).double().mean().item() < math.exp(-b) for b in (1, 2, 3))
    yield "more than b nats too high with a probability below exp(-b), for b = 1, 2, 3", rare


def invariant(
    sweep: Callable[..., Tensor], model: SigmoidBeliefNet, v: Tensor, seed: int
) -> Claims:
    """Of a Gibbs sweep at beta = 1/2 for one visible vector [1, D]: means and pair means of exact draws do not move."""
    states, draws = all_states(model.num_hidden), seeded_generator(seed)
    log_prior = bernoulli_log_prob(states, model.hidden_bias)
    log_likelihood = model.log_joint_table(v)[0] - log_prior
    tempered = (log_prior + log_likelihood / 2).softmax(0)
    before = states[torch.multinomial(tempered, 20_000, True, generator=draws)]
    after = sweep(model, v.expand(len(before), -1), before, 0.5, draws)
    pairs = torch.einsum("si,sj->sij", states, states).flatten(1)
    true_mean = tempered @ pairs
    sampled = torch.einsum("si,sj->ij", after, after).flatten() / len(after)
    spread = (true_mean * (1 - true_mean) / len(after)).sqrt()
    holds = bool(((sampled - true_mean).abs() < 4.5 * spread + 1e-12).all())
    yield "a sweep leaves p_beta invariant, within 4.5 standard errors", holds


def starts(rows: Rows) -> Claims:
    """Of mean field in the DBM from the biases, doubled weights, and two learned networks."""
    biases, doubled, learned, bootstrapped = rows
    yield "doubling the weights is worth more than one update", doubled["zero"] < biases["one"]
    yield "learning improves on doubling by more than half", learned["zero"] < 0.5 * doubled["zero"]
    saved = biases["updates"] - learned["updates"]
    yield "the learned start saves more than one update, less than three", 1 < saved < 3
    claim = "targets of one update are as good as the end, to a tenth of an update"
    yield claim, abs(bootstrapped["updates"] - learned["updates"]) < 0.1


def dbm_bound(by_hand: Tensor, by_library: Tensor) -> Claims:
    """Of the bound [N] of mean field in a DBM, up to ln Z."""
    yield "the bound written here is the library's", torch.allclose(by_hand, by_library, atol=1e-9)


def lista(rows: Rows) -> Claims:
    """Of ISTA, and of LISTA at the depths at which it was learned."""
    excess = {(row["algorithm"], row["depth"]): row for row in rows}
    plain = [row["new"] for row in rows if row["algorithm"] == "ISTA"]
    depths = [row["depth"] for row in rows if row["algorithm"] == "LISTA"]
    yield "nothing is below the minimum", all(row["new"] > 0 and row["noise"] > 0 for row in rows)
    yield "ISTA: more steps, less energy", all(b < a for a, b in pairwise(plain))
    helps = all(3 * excess["LISTA", k]["new"] < excess["ISTA", k]["new"] for k in depths)
    yield "learning helps at every depth, at least threefold", helps
    two = excess["LISTA", 2]["new"]
    yield "two learned layers beat eight steps of ISTA", two < excess["ISTA", 8]["new"]
    yield "but not twenty-four", two > excess["ISTA", 24]["new"]
    new, noise = (excess["ISTA", 2][key] / excess["LISTA", 2][key] for key in ("new", "noise"))
    yield "two layers: the lead on noise is smaller by a quarter or more", noise < 0.75 * new


def vaes(
    bound_rows: Rows,
    gap_rows: Rows,
    vae: VAE,
    images: Tensor,
    truth: Tensor,
    bounds: Mapping[int, Tensor],
) -> Claims:
    """Of VAEs with 2, 4 and 8 latent dimensions; of the first with ln p(v) [N] and bounds [N] by the number of weights."""
    fine = vae.log_prob_on_grid(images[:50], 6.0, 300)
    claim = "the grid is fine enough: a finer and wider one agrees to 0.001 nats"
    yield claim, bool((fine - truth[:50]).abs().max() < 1e-3)
    rises = all(row["k1"] < row["k10"] < row["k100"] < row["k1000"] for row in bound_rows)
    yield "the bound of every VAE rises with K", rises
    below = {k: (truth - value).mean().item() for k, value in bounds.items()}
    yield "one weight: more than 0.05 nats below the truth", below[1] > 0.05
    yield "a thousand weights: within 0.01 nats of the truth", abs(below[1_000]) < 0.01
    encoder, own = (row["gap"] for row in gap_rows)
    claim = "the gap is not the network's alone: a Gaussian of its own for each image leaves some"
    yield claim, own > 0.01
    yield "but less than half of it", own < 0.5 * encoder
    two, four, _ = bound_rows
    claim = "four dimensions are better than two by half a nat, a difference larger than any gap"
    yield claim, four["k1000"] - two["k1000"] > 0.5
