"""The conservative sampling-based log-likelihood (CSL), Bengio, Yao & Cho (2013).

If h_1 ... h_S are draws from the model, the mean of p(v | h_s) is an unbiased estimate of p(v), and its logarithm too small on
average. With Gibbs chains that have not converged it is an estimate of what those chains generate. As with simple importance
sampling from the prior, hardly any draw explains a given v, so that the estimate is tens of nats too low for most
models: Table 1 of the RAISE paper shows it beside better ones.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.estimators.blocks import step_bar
from paperlib.models import RBM
from paperlib.numerics import bernoulli, resolve_generator, softplus
from paperlib.validation import require_binary, require_count, require_shape


def csl_log_prob(
    rbm: RBM,
    v: Tensor,
    num_chains: int,
    num_steps: int,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> Tensor:
    """Estimate ln p(v) by the mean of p(v | h) over the hidden states that Gibbs chains pass through.

    Parameters
    ----------
    rbm : RBM
        The model.
    v : Tensor, shape [N, D]
        Binary test vectors of any type.
    num_chains : int
        Gibbs chains that start at uniformly random pixels; with `num_steps` = K and AIS's number of chains the work is that of AIS.
    num_steps : int
        Gibbs steps of each chain. The hidden state after every step counts.
    generator : torch.Generator, optional
        Source of randomness; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal and it takes more than two seconds.

    Returns
    -------
    Tensor
        float64 [N], in nats.

    Raises
    ------
    ValueError
        If `v` is not binary, is empty or has another width, or a count is not a whole number of at least 1.

    Notes
    -----
    Memory is that of the chains and of N x `num_chains` numbers.
    """
    require_shape("v", v, [None, rbm.num_visible])
    require_binary("v", v)
    num_chains = require_count("num_chains", num_chains)
    num_steps = require_count("num_steps", num_steps)
    generator = resolve_generator(generator, rbm.device)
    cases = v.to(rbm.device, rbm.dtype)
    total = torch.full((len(v),), -math.inf, dtype=torch.float64, device=rbm.device)
    state = bernoulli(rbm.weights.new_full((num_chains, rbm.num_visible), 0.5), generator)
    with step_bar(num_steps, f"CSL, {num_chains} chains", progress) as bar:
        for _ in range(num_steps):
            hidden = bernoulli(rbm.hidden_probs(state), generator)
            logits = hidden @ rbm.weights.T + rbm.visible_bias
            log_probs = cases @ logits.T - softplus(logits).sum(-1)
            total = torch.logaddexp(total, log_probs.double().logsumexp(1))
            state = bernoulli(logits.sigmoid_(), generator)
            bar.update()
    return total - math.log(num_chains * num_steps)
