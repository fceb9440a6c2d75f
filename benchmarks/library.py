"""This library's part, through its public functions."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.work import CD_STEPS, LEARNING_RATE, Answer, Work
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, exact_log_z, parallel_tempering, raise_log_prob
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import RBM
from paperlib.models.bounds import log_z_lower_bound
from paperlib.numerics import seeded_generator


def prepare_ais(work: Work, device: str) -> Callable[[], Answer]:
    """ais(BaseRatePath(rbm, rbm.visible_bias), uniform_betas(K), chains),
    without its check against a bound.
    """
    rbm = work.model(device)
    betas = uniform_betas(work.steps)

    def run() -> Answer:
        path = BaseRatePath(rbm, rbm.visible_bias)
        generator = seeded_generator(1, device)
        # The bound costs as much for one step as for thousands: it is an item of its own.
        estimate = ais(path, betas, work.chains, generator, progress=False, check=False)
        return Answer(estimate.log_z, estimate.relative_std)

    return run


def prepare_raise(work: Work, device: str) -> Callable[[], Answer]:
    """raise_log_prob(BaseRatePath(rbm, rbm.visible_bias), v, uniform_betas(K), chains)."""
    rbm = work.model(device)
    v = work.images(device)
    betas = uniform_betas(work.steps)

    def run() -> Answer:
        path = BaseRatePath(rbm, rbm.visible_bias)
        chains = work.chains // work.vectors
        generator = seeded_generator(1, device)
        estimate = raise_log_prob(path, v, betas, chains, generator, progress=False)
        return Answer(estimate.mean, estimate.monte_carlo_std_error)

    return run


def prepare_tempering(work: Work, device: str) -> Callable[[], Answer]:
    """parallel_tempering(BaseRatePath(rbm, rbm.visible_bias), chain_steps), with its pilots and
    without its check against a bound.
    """
    rbm = work.model(device)

    def run() -> Answer:
        path = BaseRatePath(rbm, rbm.visible_bias)
        generator = seeded_generator(1, device)
        estimate = parallel_tempering(path, work.steps, generator, progress=False, check=False)
        return Answer(estimate.log_z, estimate.std_error)

    return run


def prepare_bound(work: Work, device: str) -> Callable[[], Answer]:
    """log_z_lower_bound(rbm, v): what ais checks its estimate against, once for each call."""
    rbm = work.model(device)
    v = work.images(device)
    return lambda: Answer(log_z_lower_bound(rbm, v), 0.0)


def prepare_exact(work: Work, device: str) -> Callable[[], Answer]:
    """exact_log_z(rbm)."""
    rbm = work.model(device)
    return lambda: Answer(exact_log_z(rbm, progress=False), 0.0)


def prepare_training(work: Work, device: str) -> Callable[[], RBM]:
    """train_rbm(images, ContrastiveDivergence(...), seed), without momentum and weight cost."""
    images = work.images()
    initial = work.initial()
    recipe = ContrastiveDivergence(
        work.hidden,
        work.epochs,
        cd_steps=CD_STEPS[work.task],
        persistent_chains=work.chains if work.task == "PCD" else 0,
        batch_size=work.chains,
        learning_rate=LEARNING_RATE,
        weight_cost=0.0,
        initial_momentum=0.0,
        final_momentum=0.0,
    )
    return lambda: train_rbm(images, recipe, 1, initial=initial, device=device, progress=False)[0]
