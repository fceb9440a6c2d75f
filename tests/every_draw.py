"""Expectations without sampling: instead of random draws, every outcome once.

Each outcome has its probability. Chain number c takes the bits of c. Over all numbers the chains
run through every sequence of draws that a run could make, so that an expectation over runs is a sum
over chains. Few draws can be followed in this way, and these exactly.
"""

import torch
from torch.nn.functional import logsigmoid

from paperlib.kernels import sampler
from paperlib.kernels.capability import compiled


class EveryDraw:
    """The next draws of a run, for all of its outcomes beside each other.

    Parameters
    ----------
    bits : int
        How many units a run draws; there are 2^bits outcomes.
    copies : int
        How often to go through all outcomes: once for every test vector.

    Attributes
    ----------
    outcomes : int
        2^bits.
    log_probs : Tensor, shape [copies, outcomes]
        Of what has been drawn so far, float64.
    """

    def __init__(self, bits, copies=1):
        self.outcomes = 2**bits
        place = torch.arange(self.outcomes * copies)[:, None]
        self._bits = ((place >> torch.arange(bits)) & 1).bool()
        self._copies = copies
        self._used = 0
        self._log_probs = torch.zeros(len(self._bits), dtype=torch.float64)

    @property
    def log_probs(self):
        assert self._used == self._bits.shape[1], "other draws than expected"
        return self._log_probs.view(self._copies, self.outcomes)

    def take(self, logits):
        """The next units, bool of the shape of `logits` [chains, n]: the logits of being on."""
        bits = self._bits[:, self._used : self._used + logits.shape[1]]
        self._used += logits.shape[1]
        assert bits.shape == logits.shape, "more draws than expected"
        numbers = logits.cpu().double()
        self._log_probs += logsigmoid(torch.where(bits, numbers, -numbers)).sum(1)
        return bits.to(logits.device)

    def take_number(self, log_probs):
        """The next number below 2^n for each chain, of log-probabilities [chains, 2^n] or [2^n]."""
        width = log_probs.shape[-1].bit_length() - 1
        bits = self._bits[:, self._used : self._used + width]
        self._used += width
        assert bits.shape[1] == width, "more draws than expected"
        number = (bits.long() << torch.arange(width - 1, -1, -1)).sum(1)
        each = log_probs.cpu().double().expand(len(bits), -1)
        self._log_probs += each.gather(1, number[:, None])[:, 0]
        return number.to(log_probs.device)

    def replace_draws(self, monkeypatch):
        """Let paths and models draw from here, all chains in one block."""

        def of_logits(logits, generator, factor=1.0, first=0):
            if isinstance(factor, torch.Tensor):
                factor = factor.to(logits.dtype)
                factor = factor[:, None] if factor.ndim else factor
            return self.take(factor * logits)

        def of_probabilities(probabilities, generator):
            return self.take(torch.logit(probabilities))

        def in_type(probabilities, generator):
            return of_probabilities(probabilities, generator).to(probabilities.dtype)

        for name, draw in (
            ("kernels.sampler.draw_bits_of_logits", of_logits),
            ("annealing.deep_paths.draw_bits_of_logits", of_logits),
            ("annealing.rbm_paths.draw_bits", of_probabilities),
            ("models.posterior_sampling.bernoulli", in_type),
        ):
            monkeypatch.setattr(f"paperlib.{name}", draw)
        # the exact draws of a pair's first model
        monkeypatch.setattr("walks.draw_states", lambda probs, *_: self.take_number(probs).cpu())
        # the functions that take whole steps; that they do what is done one by one is tested
        # elsewhere
        monkeypatch.setattr(
            sampler, "compiled", lambda name: None if name == "temper" else compiled(name)
        )
        # a step that is recorded could not look at what is drawn
        monkeypatch.setattr("paperlib.kernels.replay._record", lambda recorded, generator: recorded)
        for name in ("_NARROW_CHAINS", "_GPU_CHAINS"):
            monkeypatch.setattr(f"paperlib.kernels.blocks.{name}", 10**9)
