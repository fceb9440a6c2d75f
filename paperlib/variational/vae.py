"""The variational autoencoder with Bernoulli pixels, and three ways to evaluate ln p(v).

The model and its recognition network are those of Kingma & Welling (2014) and Rezende et al.
(2014):

    p(z) = N(z; 0, I),     p(v | z) = prod_d Bernoulli(v_d; s(decoder(z)_d)),
    q(z | v) = N(z; mean(v), diag(width(v)^2)).

- `log_weights` draws z from q and gives ln w = ln p(v, z) - ln q(z | v).
- E[ln w] is the evidence lower bound; with z = mean + width * noise, autograd can differentiate
  through the draw.
- E[ln((1/K) sum_k w_k)] is the importance weighted bound of Burda, Grosse & Salakhutdinov (2016):
  it rises with K to ln p(v).
- `log_prob_on_grid` sums p(v, z) over a grid, which gives the truth for one or two latent
  dimensions.

Used in chapter: learned-inference.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import bernoulli_log_prob, resolve_generator, softplus
from paperlib.validation import ArrayLike, as_bits, as_state_rows, require_count
from paperlib.variational.recognition import Network, ascend


class VAE:
    """A decoder, the model, and an encoder, its recognition network, in float64.

    Both have one tanh layer.

    Parameters
    ----------
    num_visible, num_latent, num_units : int
        D, the number of dimensions of z, and the number of units in the tanh layer of each network.
    generator : torch.Generator or int
        Source of the initial weights.

    Examples
    --------
    >>> vae = VAE(4, 2, 8, torch.Generator().manual_seed(0))
    >>> vae
    VAE(4 visible, 2 latent)
    >>> vae.log_prob_on_grid([[1, 0, 1, 0]]).shape
    torch.Size([1])
    """

    def __init__(
        self, num_visible: int, num_latent: int, num_units: int, generator: torch.Generator | int
    ) -> None:
        self.num_visible = num_visible
        self.num_latent = num_latent
        generator = resolve_generator(generator)
        self.decoder = Network([num_latent, num_units, num_visible], generator)
        self.encoder = Network([num_visible, num_units, 2 * num_latent], generator)

    def __repr__(self) -> str:
        return f"VAE({self.num_visible} visible, {self.num_latent} latent)"

    def posterior(self, v: ArrayLike) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the width of q(z | v), both [N, num_latent]."""
        mean, log_width = self.encoder(v).chunk(2, -1)
        return mean, log_width

    def log_joint(self, v: ArrayLike, z: Tensor) -> Tensor:
        """ln p(v, z) in nats.

        The leading dimensions of `v` [..., D] and `z` [..., num_latent] broadcast.
        """
        v = as_bits("v", v, self.decoder.weights[0], self.num_visible)
        return _log_normal(z, 0, torch.zeros(())) + bernoulli_log_prob(v, self.decoder(z))

    def log_weights(
        self,
        v: ArrayLike,
        num_samples: int,
        generator: torch.Generator | int,
        posterior: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """ln w of `num_samples` draws from q for each vector; [N, D] gives [num_samples, N].

        `posterior` gives the mean and log-width of a q other than the encoder's.
        """
        like = self.decoder.weights[0]
        v = as_state_rows("v", as_bits("v", v, like, self.num_visible), like, self.num_visible)
        count = require_count("num_samples", num_samples)
        generator = resolve_generator(generator)
        mean, log_width = self.posterior(v) if posterior is None else posterior
        noise = torch.randn(count, *mean.shape, dtype=torch.float64, generator=generator)
        z = mean + log_width.exp() * noise
        return self.log_joint(v, z) - _log_normal(z, mean, log_width)

    def lower_bound(
        self, v: ArrayLike, num_samples: int, generator: torch.Generator | int
    ) -> Tensor:
        """An unbiased estimate of the evidence lower bound of `v` [N, D], in nats; [N].

        KL(q || p(z)) enters in closed form.
        """
        v = as_bits("v", v, self.decoder.weights[0], self.num_visible)
        mean, log_width = self.posterior(v)
        generator = resolve_generator(generator)
        noise = torch.randn(num_samples, *mean.shape, dtype=torch.float64, generator=generator)
        fit = bernoulli_log_prob(v, self.decoder(mean + log_width.exp() * noise)).mean(0)
        divergence = 0.5 * (mean.square() + (2 * log_width).exp() - 1 - 2 * log_width).sum(-1)
        return fit - divergence

    def log_prob_on_grid(self, v: ArrayLike, half_width: float = 5.0, points: int = 200) -> Tensor:
        """ln p(v) by the midpoint rule on [-half_width, half_width]^num_latent, float64 [N].

        Raises
        ------
        InputError
            If there are more than two latent dimensions.
        """
        v = as_bits("v", v, self.decoder.weights[0], self.num_visible)
        z, log_cell = self.grid(half_width, points)
        with torch.no_grad():
            logits = self.decoder(z)
            log_prior = _log_normal(z, 0, torch.zeros(())) - softplus(logits).sum(-1)
            log_sums = [(block @ logits.T + log_prior).logsumexp(-1) for block in v.split(100)]
            return torch.cat(log_sums) + log_cell

    def grid(self, half_width: float, points: int) -> tuple[Tensor, float]:
        """Midpoints of a grid, [points^num_latent, num_latent], and ln of the volume of a cell."""
        if self.num_latent > 2:
            raise InputError(f"model: expected one or two latent dimensions, got {self.num_latent}")
        step = 2 * half_width / require_count("points", points)
        axis = -half_width + step * (torch.arange(points, dtype=torch.float64) + 0.5)
        z = torch.cartesian_prod(*[axis] * self.num_latent).view(-1, self.num_latent)
        return z, self.num_latent * math.log(step)


def train_vae(
    vae: VAE,
    v: ArrayLike,
    num_steps: int,
    generator: torch.Generator | int,
    batch_size: int = 100,
    learning_rate: float = 5e-3,
) -> list[float]:
    """Maximise the bound of `v` [N, D] over the parameters of both networks, in place.

    Uses Adam on random batches, and returns the bound at each step.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> vae = VAE(4, 2, 8, generator)
    >>> v = torch.tensor([[1.0, 1.0, 0.0, 0.0]]).repeat(50, 1)
    >>> bounds = train_vae(vae, v, 100, generator, learning_rate=0.02)
    >>> bounds[-1] > bounds[0]
    True
    """
    v = as_state_rows("v", v, vae.decoder.weights[0], vae.num_visible)
    generator = resolve_generator(generator)

    def objective() -> Tensor:
        batch = v[torch.randint(len(v), (batch_size,), generator=generator)]
        return vae.lower_bound(batch, 1, generator).mean()

    parameters = [*vae.decoder.parameters, *vae.encoder.parameters]
    return ascend(parameters, objective, num_steps, learning_rate)


def _log_normal(z: Tensor, mean: Tensor | float, log_width: Tensor) -> Tensor:
    """ln N(z; mean, width^2), summed over the last dimension."""
    scaled = (z - mean) * (-log_width).exp()
    return -(0.5 * scaled.square() + log_width + 0.5 * math.log(2 * math.pi)).sum(-1)
