"""Hidden states that explain an image, though the model's proposal never draws them.

Draws from a proposal Q(h | v), and chains that are annealed from it, know nothing of hidden states
to which Q gives hardly any probability: a transition proposes what Q draws. A search does not need
Q. It starts at draws from Q, at states with any part of the units on, and at what the model has
below random states of its upper layer. From there units are drawn by the slopes of ln p*(v, h)
along them, first at a high temperature. A state that explains one image is a start for others.

What a search finds says nothing of how much of p*(v) lies there. So it is only added to the
proposal, as independent units around each state. Draws from Q and from there together are weighted
by all that could have drawn them (the balance heuristic; Veach & Guibas 1995), so that their mean
weight is p*(v) whatever the search has found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.models import DBM, DBN
from paperlib.models.posterior_sampling import Proposal
from paperlib.numerics import bernoulli_log_prob

#: States around which draws are proposed, beside those from Q.
STATES = 3
# Steps in each layer from states that explain other images.
_STEPS_NEARBY = 4
# In a step all units of a layer may be drawn anew, or half of them, down to one in eight.
_HALVINGS = 4
# The odds of one unit in this many are found together, by changing all of these units at once.
_BLOCKS = 8
# Log-odds beyond this are not believed.
_SUREST = 10.0

#: Hidden layers [n, states, M_l] of n images.
States = list[Tensor]


def search_anywhere(
    model: DBM | DBN, rows: Tensor, chains: int, steps: int, generator: torch.Generator
) -> States:
    """States [n, STATES, M_l] that explain rows [n, D], the best first.

    They are found by this many chains of each row, in this many steps in each layer. One starts
    below the upper layer, one at any part of the units, one at a draw from Q, and more at any part.
    """
    hidden = _starts(model, rows, chains, generator)
    return _search(model, rows, hidden, steps, steps // 2, generator)


def search_nearby(
    model: DBM | DBN, rows: Tensor, nearby: Sequence[Tensor], generator: torch.Generator
) -> States:
    """States [n, STATES, M_l] that explain rows [n, D], found from states that explain others.

    These are [any, M_l].
    """
    hidden = [layer.repeat(len(rows), 1) for layer in nearby]
    return _search(model, rows, hidden, _STEPS_NEARBY, 0, generator)


def _search(
    model: DBM | DBN,
    rows: Tensor,
    hidden: Sequence[Tensor],
    steps: int,
    hot: int,
    generator: torch.Generator,
) -> States:
    """The best states on the way from these [n * chains, M_l]; `hot` first steps are hot."""
    chains = len(hidden[0]) // len(rows)
    proposal = model.proposal(rows.repeat_interleave(chains, 0))
    log_joint, slopes = _slopes(proposal, hidden)
    best = hidden
    highest = log_joint
    # Layers that were drawn anew at once would only change places.
    for step, layer in product(range(steps), range(len(hidden))):
        beta = min(1.0, (step + 1) / (hot + 1))
        proposed = _drawn_anew(proposal, hidden, slopes, layer, beta, generator)
        new_log_joint, new_slopes = _slopes(proposal, proposed)
        best = _where(new_log_joint > highest, proposed, best)
        highest = torch.maximum(new_log_joint, highest)
        uniform = torch.rand(new_log_joint.shape, generator=generator, device=new_log_joint.device)
        accepted = uniform.log() < new_log_joint - log_joint
        if beta < 1:
            accepted = torch.ones_like(accepted)
        hidden = _where(accepted, proposed, hidden)
        slopes = _where(accepted, new_slopes, slopes)
        log_joint = torch.where(accepted, new_log_joint, log_joint)
    return _best([layer.unflatten(0, (-1, chains)) for layer in best], highest.view(-1, chains))


def best_of(model: DBM | DBN, rows: Tensor, several: Sequence[States]) -> States:
    """The best of several sets of states [n, any, M_l] of rows [n, D], as [n, STATES, M_l]."""
    states = [
        torch.cat([layer.to(model.dtype) for layer in layers], 1)
        for layers in zip(*several, strict=True)
    ]
    count = states[0].shape[1]
    proposal = model.proposal(rows.repeat_interleave(count, 0))
    log_joint = proposal.log_joint([layer.flatten(0, 1) for layer in states])
    return _best(states, log_joint.view(-1, count))


def _best(states: States, log_joint: Tensor) -> States:
    """Those of the states [n, any, M_l] with the highest ln p*(v, h) [n, any].

    Each counts once, as far as there are enough.
    """
    values, order = log_joint.sort(1, descending=True)
    again = torch.zeros_like(values, dtype=torch.bool)
    again[:, 1:] = values[:, 1:] == values[:, :-1]
    order = order.gather(1, again.long().argsort(stable=True, dim=1))
    order = order[:, torch.arange(STATES, device=order.device) % order.shape[1]]
    row = torch.arange(len(order), device=order.device)[:, None]
    return [layer[row, order] for layer in states]


def _starts(
    model: DBM | DBN, rows: Tensor, chains: int, generator: torch.Generator
) -> list[Tensor]:
    """Hidden states [n * chains, M_l] to start from, one row after the other."""
    drawn = model.proposal(rows).draw(generator)
    upper = model.annealed
    top = _any_part(drawn[0].new_empty(len(rows), upper.num_hidden), generator)
    units = bernoulli(upper.visible_probs(top), generator)
    starts = [model.completed(units, generator)[1]]
    starts += [[_any_part(layer, generator) for layer in drawn] for _ in range(chains - 1)]
    if chains > 2:
        starts[-1] = drawn
    return [torch.stack(layers, 1).flatten(0, 1) for layers in zip(*starts, strict=True)]


def _any_part(like: Tensor, generator: torch.Generator) -> Tensor:
    """Random units [n, M], of which in each row another part is on."""
    rates = torch.rand(len(like), 1, generator=generator, device=like.device, dtype=like.dtype)
    return bernoulli(rates.expand_as(like).contiguous(), generator)


def _drawn_anew(
    proposal: Proposal,
    hidden: Sequence[Tensor],
    slopes: Sequence[Tensor],
    layer: int,
    beta: float,
    generator: torch.Generator,
) -> list[Tensor]:
    """Hidden states with some units of one layer drawn from their odds, in each chain another part.

    The slope along a unit is not its log-odds, since ln p* bends between 0 and 1: where the slope
    at either end points to the other one, a unit would never stay. The mean of both slopes nearly
    is. So units that change by the slope here are drawn once more, by the mean slope.
    """
    old = hidden[layer]
    new = bernoulli(torch.sigmoid(beta * slopes[layer]), generator)
    halvings = torch.randint(_HALVINGS, (len(old), 1), generator=generator, device=old.device)
    redrawn = torch.rand(old.shape, generator=generator, device=old.device) < 2.0**-halvings
    proposed = list(hidden)
    proposed[layer] = torch.where(redrawn, new, old)
    at_other_end = _slopes(proposal, proposed)[1][layer]
    again = bernoulli(torch.sigmoid(beta * (slopes[layer] + at_other_end) / 2), generator)
    proposed[layer] = torch.where(proposed[layer] != old, again, old)
    return proposed


def _where(chosen: Tensor, new: Sequence[Tensor], old: Sequence[Tensor]) -> list[Tensor]:
    """Layers of the new states where these are chosen [n], and of the old ones elsewhere."""
    return [torch.where(chosen[:, None], *pair) for pair in zip(new, old, strict=True)]


def _slopes(proposal: Proposal, hidden: Sequence[Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
    """ln p*(v, h) [n], and its slope along each unit."""
    with torch.enable_grad():
        layers = [layer.detach().requires_grad_() for layer in hidden]
        log_joint = proposal.log_joint(layers)
        slopes = torch.autograd.grad(log_joint.sum(), layers)
    return log_joint.detach(), slopes


def mixture_around(
    model: DBM | DBN, rows: Tensor, states: States, chains: int, generator: torch.Generator
) -> Mixture:
    """The mixture of Q and of units around states [n, any, M_l] of rows [n, D].

    This many chains of each row can draw from it.
    """
    count = states[0].shape[1]
    proposal = model.proposal(rows.repeat_interleave(count, 0))
    hidden = [layer.flatten(0, 1).to(model.dtype) for layer in states]
    slopes = _slopes(proposal, hidden)[1]
    logits = []
    for number, layer in enumerate(hidden):
        order = torch.randperm(layer.shape[1], generator=generator, device=layer.device)
        block = order % _BLOCKS
        odds = slopes[number]
        for turn in range(min(_BLOCKS, len(block))):
            flipped = list(hidden)
            flipped[number] = torch.where(block == turn, 1 - layer, layer)
            at_other_end = _slopes(proposal, flipped)[1][number]
            odds = torch.where(block == turn, (slopes[number] + at_other_end) / 2, odds)
        # Odds that contradict the state were found too coarsely, and say nothing.
        sign = 2 * layer - 1
        logits.append(sign * (sign * odds).clamp(0, _SUREST))
    return Mixture(model, rows, [layer.unflatten(0, (-1, count)) for layer in logits], chains)


class Mixture(Proposal):
    """Q of a model and independent units with these logits [n, states, M_l], for rows [n, D].

    The chains of a row take turns between these components. The target of a chain is its
    component's share of p*(v, h), so that the mean weight of all chains of a row is p*(v).
    """

    def __init__(self, model: DBM | DBN, rows: Tensor, logits: States, chains: int) -> None:
        self._q = model.proposal(rows.repeat_interleave(chains, 0))
        self.num_layers = self._q.num_layers
        self._components = 1 + logits[0].shape[1]
        numbers = torch.arange(chains, device=logits[0].device) % self._components
        self._number = numbers.repeat(len(rows))
        shares = numbers.bincount(minlength=self._components) / chains
        self._log_shares = shares.log()[:, None].to(model.dtype)
        # [states, chains of all rows, M_l]
        self._logits = [layer.transpose(0, 1).repeat_interleave(chains, 1) for layer in logits]
        self._choose()

    def choose(self, hidden: Sequence[Tensor], generator: torch.Generator) -> None:
        """Give each chain the component that may have drawn its states, had all the same chance."""
        self._log_shares = torch.zeros_like(self._log_shares) - math.log(self._components)
        shares = self._log_each(hidden).softmax(0)
        self._number = shares.T.multinomial(1, generator=generator).squeeze(1)
        self._choose()

    def logits(self, layer: int, hidden: Sequence[Tensor]) -> Tensor:
        """Those of each chain's component, [chains, M_l]."""
        q_logits = self._q.logits(layer, hidden)
        return torch.where(self._number[:, None] == 0, q_logits, self._chosen[layer])

    def log_joint(self, hidden: Sequence[Tensor]) -> Tensor:
        """ln p*(v, h), and ln of the share that each chain's component has of it, [chains]."""
        log_probs = self._log_each(hidden)
        chosen = log_probs.gather(0, self._number[None])[0]
        return self._q.log_joint(hidden) + chosen - (log_probs + self._log_shares).logsumexp(0)

    def _choose(self) -> None:
        chain = torch.arange(len(self._number), device=self._number.device)
        state = (self._number - 1).clamp(min=0)
        self._chosen = [layer[state, chain] for layer in self._logits]

    def _log_each(self, hidden: Sequence[Tensor]) -> Tensor:
        """ln of the probability of hidden states in each component, [components, chains]."""
        q_log_prob = torch.stack(self._q.log_layers(hidden)).sum(0)
        layer_log_probs = [
            bernoulli_log_prob(layer, logits)
            for layer, logits in zip(hidden, self._logits, strict=True)
        ]
        return torch.cat([q_log_prob[None], torch.stack(layer_log_probs).sum(0)])
