"""One line with everything that a reader needs in order to believe a log-probability or to compute it again."""

from __future__ import annotations

from paperlib.evaluation.annealing_runs import AIS_CHAINS, CHAINS_PER_VECTOR, RAISE_VECTORS
from paperlib.evaluation.result import Evaluation
from paperlib.provenance import code_version


def quote(evaluation: Evaluation, binarization: str = "images binary as given") -> str:
    """The number to quote: value, interval, method, K and chain-steps, start, binarisation, seed, version and commit.

    Parameters
    ----------
    evaluation : Evaluation
        From `evaluate`.
    binarization : str
        How the images became binary.

    Returns
    -------
    str
        One line. If the verdict is not *trusted*, there is no number to quote, and the line says so.

    Examples
    --------
    >>> import torch
    >>> from paperlib.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), [0, 2, -2], torch.zeros(2))
    >>> line = quote(evaluate(rbm, [[0, 1, 0], [1, 1, 0]]))
    >>> line.partition("; images")[0]
    'To quote: -0.95 nats (exact, by enumeration; standard error over 2 images 0.00'
    """
    average = evaluation.average
    if not evaluation.trustworthy:
        return f"To quote: no number yet, since the verdict is {evaluation.word!r}."
    kind = "training images" if evaluation.known_images == evaluation.num_images else "images"
    images = f"{evaluation.num_images:,} {kind}"
    if evaluation.weights is not None:
        images += f" of total weight {evaluation.weights.sum().item():,.1f}"
    over_images = f"standard error over {images} {average.image_std_error:.2f}"
    last = (binarization, code_version())
    if evaluation.exact is not None:
        parts = ["exact, by enumeration", over_images, *last]
        return f"To quote: {average.mean:.2f} nats ({'; '.join(parts)})"
    low, high = average.interval
    seed = "seed unknown" if evaluation.seed is None else f"seed {evaluation.seed}"
    parts = [
        *_methods(evaluation),
        over_images,
        f"start at the {evaluation.start}",
        binarization,
        seed,
        last[-1],
    ]
    value = f"{average.mean:.2f} nats, 95 % interval {low:.2f} to {high:.2f}"
    return f"To quote: {value} ({'; '.join(parts)})"


def _methods(evaluation: Evaluation) -> list[str]:
    """The method that gave the number, and the estimates beside it."""
    best, tempering = evaluation.runs[-1], evaluation.tempering
    assert tempering is not None  # without it nothing is trusted
    vectors = min(RAISE_VECTORS, evaluation.num_images)
    found = [
        f"parallel tempering, {len(tempering.betas)} temperatures, {tempering.chain_steps:,} chain-steps",
        f"AIS {best.bracket.upper:.2f}, RAISE {best.bracket.lower.mean:.2f}, K = {best.num_steps:,}, {AIS_CHAINS} chains of AIS, "
        f"{CHAINS_PER_VECTOR} of RAISE for each of {vectors} images",
    ]
    if evaluation.posterior_draws:
        found.append(
            f"ln p*(v) by importance sampling, {evaluation.posterior_draws} draws, errs low"
        )
    return found
