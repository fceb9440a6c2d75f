"""EM for mixtures of Bernoullis (Dempster, Laird & Rubin 1977), with smoothed pixel probabilities.

The E-step computes each component's responsibility for each image, the M-step weighted averages. A
Beta prior on every pixel probability, worth `smoothing` imagined images per component with half
their pixels on, keeps the probabilities of components with few images away from 0 and 1; the same
number is added to each component's count of images. No step can lower the penalised log-likelihood.

EM climbs to the nearest of many optima, and the start decides which that is. From random images,
every component finds images to explain. From uniform noise, the textbook start (Bishop 2006,
section 9.3.3), the few components whose noise happens to be lowest on the pixels that are off in
every image, MNIST's border, take all images in the first steps, and most others never get any: of
500 components fewer than half remain. Salakhutdinov & Murray (2008) do not say how they trained
their mixtures; the log-probabilities that they print for 100 and 500 components lie far below those
from the first start, and near those from the second.

If unsure: start at images, with the smoothing that gives images held out of the training the
largest log-probability. Used in chapter: full-size-rbms.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.learning.recipe import check_recipe
from paperlib.models import BernoulliMixture
from paperlib.numerics import seeded_generator
from paperlib.threads import step_bar
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_binary

# Images processed at once: with 500 components in float32, their responsibilities take 10 MB.
_BLOCK = 5_000
_STARTS = ("images", "noise")


@dataclass(frozen=True)
class MixtureEM:
    """A training recipe.

    Attributes
    ----------
    num_components : int
        Components, C.
    smoothing : float
        Imagined images per component, with half their pixels on.
    max_iterations : int
        Largest number of EM steps.
    tolerance : float
        Stop when a step raises the penalised log-likelihood per image by less than this, in nats.
    restarts : int
        Random starts, of which the best is kept.
    start : str
        "images": each component begins halfway between the base rates and its own random training
        image. "noise": each pixel probability begins at a uniform draw between 1/4 and 3/4.

    Examples
    --------
    >>> MixtureEM(10, restarts=5).summary.split(", ")[0]
    '10 components'
    """

    num_components: int
    smoothing: float = 1.0
    max_iterations: int = 100
    tolerance: float = 1e-3
    restarts: int = 1
    start: str = "images"

    def __post_init__(self) -> None:
        counts = ["num_components", "max_iterations", "restarts"]
        check_recipe(self, counts, positive=["smoothing", "tolerance"])
        if self.start not in _STARTS:
            raise InputError(f"start: expected one of {', '.join(_STARTS)}, got {self.start!r}")

    @property
    def summary(self) -> str:
        """The recipe in one line."""
        starts = f", start at {self.start}"
        if self.restarts > 1:
            starts = f", best of {self.restarts} starts at {self.start}"
        return (
            f"{self.num_components:,} components, "
            f"EM until a step gains less than {self.tolerance:g} nats, "
            f"at most {self.max_iterations} steps, smoothing {self.smoothing:g}{starts}"
        )


@plain_torch()
def train_mixture(
    train: ArrayLike,
    recipe: MixtureEM,
    seed: int,
    *,
    dtype: torch.dtype = torch.float32,
    progress: bool | None = None,
) -> tuple[BernoulliMixture, list[float]]:
    """Train a mixture of Bernoullis on binary data by EM.

    Parameters
    ----------
    train : array or Tensor, shape [N, D]
        Binary training data of any type.
    recipe : MixtureEM
        The training recipe.
    seed : int
        Seed for the random starts.
    dtype : torch.dtype
        Of the computation and of the result; sums over images are float64.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    BernoulliMixture
        The best of the restarts.
    list of float
        Its penalised log-likelihood per image before each step, in nats.

    Raises
    ------
    InputError
        If the data are not binary, or there are fewer images than components that are to start at
        images.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> train = binary_images("digits").train[:200]
    >>> mixture, objectives = train_mixture(train, MixtureEM(5), seed=0, progress=False)
    >>> mixture
    BernoulliMixture(5 components, 64 visible, torch.float32, cpu)
    >>> objectives[-1] > objectives[0]
    True
    """
    train = as_binary("train", train)
    if recipe.start == "images" and len(train) < recipe.num_components:
        raise InputError(
            f"train: expected at least {recipe.num_components} images, "
            f"one for each component to start at, got {len(train)}"
        )
    data = train.to(torch.uint8)
    generator = seeded_generator(seed)
    best: tuple[BernoulliMixture, list[float]] | None = None
    max_steps = recipe.restarts * recipe.max_iterations
    with step_bar(max_steps, f"EM {recipe.num_components}", progress) as bar:
        for restart in range(recipe.restarts):
            mixture = _random_start(recipe, data, generator, dtype)
            objectives: list[float] = []
            for _ in range(recipe.max_iterations):
                improved, objective = _em_step(mixture, data, recipe.smoothing)
                objectives.append(objective)
                bar.update()
                bar.set_postfix(restart=restart + 1, objective=f"{objective:.3f}")
                if len(objectives) > 1 and objective - objectives[-2] < recipe.tolerance:
                    break
                mixture = improved
            if best is None or objectives[-1] > best[1][-1]:
                best = mixture, objectives
    assert best is not None  # there is at least one start
    return best


def _random_start(
    recipe: MixtureEM, data: Tensor, generator: torch.Generator, dtype: torch.dtype
) -> BernoulliMixture:
    """The mixture with which EM begins; all components have the same weight."""
    components = recipe.num_components
    if recipe.start == "images":
        images = data[torch.randperm(len(data), generator=generator)[:components]]
        # Half an imagined image with all pixels on, and half with none, keep the base rates
        # themselves away from 0 and 1.
        base_rates = (data.sum(0, dtype=torch.float64) + 0.5) / (len(data) + 1)
        probs = (base_rates + images) / 2
    else:
        uniform = torch.rand(components, data.shape[1], dtype=torch.float64, generator=generator)
        probs = 0.25 + 0.5 * uniform
    return BernoulliMixture(torch.logit(probs).to(dtype), torch.zeros(components, dtype=dtype))


def _em_step(
    mixture: BernoulliMixture, data: Tensor, smoothing: float
) -> tuple[BernoulliMixture, float]:
    """One step, and the penalised log-likelihood per image of the mixture before it."""
    on = torch.zeros(mixture.logits.shape, dtype=torch.float64)
    count = torch.zeros(mixture.num_components, dtype=torch.float64)
    log_likelihood = 0.0
    for block in data.split(_BLOCK):
        v = block.to(mixture.dtype)
        log_joint = mixture._log_joint(v)
        log_prob = log_joint.logsumexp(1, keepdim=True)
        responsibilities = log_joint.sub_(log_prob).exp_()
        on += responsibilities.T @ v
        count += responsibilities.sum(0, dtype=torch.float64)
        log_likelihood += log_prob.sum(dtype=torch.float64).item()
    prior = smoothing * _log_prior(mixture)
    # Rounding can leave a count of on-pixels just above the count of images.
    off = (count[:, None] - on).clamp(min=0)
    logits = torch.log(on + smoothing / 2) - torch.log(off + smoothing / 2)
    improved = BernoulliMixture(
        logits.to(mixture.dtype), (count + smoothing).log().to(mixture.dtype)
    )
    return improved, (log_likelihood + prior) / len(data)


def _log_prior(mixture: BernoulliMixture) -> float:
    """The log-prior for smoothing 1: sum_ci ln(mu (1 - mu)) / 2 + sum_c ln pi_c + a constant."""
    logits = mixture.logits.double()
    pixels = -(torch.nn.functional.softplus(logits) + torch.nn.functional.softplus(-logits)) / 2
    return (pixels.sum() + mixture.log_mixing_weights.double().sum()).item()
