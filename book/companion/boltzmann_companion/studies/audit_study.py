"""Does `paperlib audit` tell true claims from false ones? Models with a known ln Z, audited as if it were not known.

The models are those of `boltzmann_companion.studies.study`, and one or more of every planted family. Each is evaluated once, in the way that
`evaluate` uses for models that are too large to enumerate. Three claims are checked against the evaluation: the truth, and the truth
plus and minus five nats. A true claim must be *consistent*, and a false one *impossible* or *not supported*.

The work is counted in steps and not in minutes, so that a run on another machine does the same. If there is too little work, RAISE allows
much more than the truth, and a claim that is too high is *consistent*. This command runs the study, and continues it after an interruption:

    python -c "from pathlib import Path; from boltzmann_companion.studies.audit_study import audit_study; audit_study(folder=Path('audit-study'))"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from tqdm import tqdm

from boltzmann_companion.studies.study import CASES, Case, study_images
from paperlib import storage
from paperlib.errors import InputError
from paperlib.evaluation import Evaluation, evaluate
from paperlib.evaluation.audit import CONSISTENT, audit_evaluation
from paperlib.keep import remembered
from paperlib.models import RBM, planted
from paperlib.models.planted import Planted, read_planted
from paperlib.numerics import seeded_generator
from paperlib.validation import require_count

#: What is added to the true ln Z to make the claims, in nats.
_OFFSETS = {"truth": 0.0, "too high": 5.0, "too low": -5.0}
_SEED = 24
_NUM_DRAWS = 200


@dataclass(frozen=True)
class AuditedModel:
    """A model whose ln Z is known, with images.

    Attributes
    ----------
    name, family : str
        Its name in tables, and the data set or planted family that it comes from.
    make : callable
        Returns the RBM, its ln Z in nats, training images or None, and test images.

    Examples
    --------
    >>> [model.name for model in audited_models() if model.family == "Ising"][0]
    'Ising 5 x 5'
    """

    name: str
    family: str
    make: Callable[[], tuple[RBM, float, Tensor | None, Tensor]]


def audited_models() -> list[AuditedModel]:
    """The models of the study of `evaluate`, small planted models of every family, and the files of `data/planted`.

    Planted modes come in two forms: with test images that are exact draws, and with test images drawn from the model without the mode.

    Examples
    --------
    >>> len(audited_models()) > 50
    True
    """
    found = [AuditedModel(case.name, case.data, partial(_of_study, case)) for case in CASES]
    found += [
        AuditedModel("25 blocks", "block-diagonal", lambda: _drawn(_blocks())),
        AuditedModel(
            "rank one",
            "low rank",
            lambda: _drawn(planted.low_rank(60, 40, generator=seeded_generator(3))),
        ),
        AuditedModel(
            "rank two",
            "low rank",
            lambda: _drawn(planted.low_rank(60, 40, rank=2, generator=seeded_generator(4))),
        ),
        AuditedModel("Ising 5 x 5", "Ising", lambda: _drawn(planted.ising_2d(5))),
        AuditedModel("Ising 8 x 8", "Ising", lambda: _drawn(planted.ising_2d(8))),
        AuditedModel("mode with odds e^2, drawn", "hidden mode", lambda: _drawn(_with_mode(2.0))),
        AuditedModel("mode with odds e^2, not drawn", "hidden mode", lambda: _hidden(2.0)),
        AuditedModel("mode with odds e^8, not drawn", "hidden mode", lambda: _hidden(8.0)),
    ]
    folder = storage.companion_folder() / "data" / "planted"
    found += [
        AuditedModel(path.stem, "data/planted", partial(_of_file, path))
        for path in sorted(folder.glob("*.npz"))
    ]
    return found


def _of_study(case: Case) -> tuple[RBM, float, Tensor | None, Tensor]:
    return *case.make(), *study_images(case.data)


def _of_file(path: Path) -> tuple[RBM, float, Tensor | None, Tensor]:
    rbm, log_z, draws, _ = read_planted(path)
    return rbm, log_z, draws[_NUM_DRAWS:], draws[:_NUM_DRAWS]


def _blocks() -> Planted:
    return planted.block_diagonal(60, 40, 5, generator=seeded_generator(3))


def _with_mode(log_odds: float) -> Planted:
    return planted.hidden_mode(_blocks().rbm, log_odds, generator=seeded_generator(5))


def _drawn(model: Planted) -> tuple[RBM, float, Tensor | None, Tensor]:
    return model.rbm, model.log_z, None, model.draws(_NUM_DRAWS, seeded_generator(6))


def _hidden(log_odds: float) -> tuple[RBM, float, Tensor | None, Tensor]:
    model = _with_mode(log_odds)
    return model.rbm, model.log_z, None, _blocks().draws(_NUM_DRAWS, seeded_generator(6))


def audit_study(
    models: Sequence[AuditedModel] | None = None,
    folder: Path | None = None,
    largest_steps: int = 2_048,
    tempering_steps: int = 100_000,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Audit three claims about each model; returns a row for each: the model, its ln Z, the interval of the evaluation, and the verdicts.

    Parameters
    ----------
    models : sequence of AuditedModel, optional
        By default `audited_models()`.
    folder : Path, optional
        Where the row of each finished model is kept, so that an interrupted study can continue. Stored rows do not reflect later
        changes to the code; use a new folder after such changes.
    largest_steps, tempering_steps : int
        K of the last of `evaluate`'s three runs, at least 32, and transitions of the chains of parallel tempering. Both are far fewer than
        `evaluate` uses.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Raises
    ------
    InputError
        If a number of steps is too small.

    Examples
    --------
    >>> [row] = audit_study(audited_models()[46:47], largest_steps=64, tempering_steps=5_000, progress=False)
    >>> row["model"], row["truth"]
    ('25 blocks', 'consistent')
    """
    require_count("largest_steps", largest_steps, 32)
    require_count("tempering_steps", tempering_steps, 5_000)
    chosen = audited_models() if models is None else models
    effort, rows = (largest_steps, tempering_steps), []
    for model in tqdm(chosen, "audits", disable=None if progress is None else not progress):
        name = storage.sha256(f"{model.family} {model.name}".encode())[:12]
        file = f"{name}-{largest_steps}-{tempering_steps}.json"
        identity = ["audits", model.family, model.name, *effort]
        found = remembered(folder, identity, partial(_row, model, effort), file)
        rows.append({key: found[key] for key in found if key != "seconds"})
    return rows


def _row(model: AuditedModel, effort: tuple[int, int], *_: object) -> dict[str, Any]:
    rbm, log_z, train, test = model.make()
    if not math.isfinite(log_z):
        raise InputError(f"models: expected a finite ln Z of {model.name}, got {log_z}")
    found = _evaluated(rbm, train, test, *effort)
    audits = {
        claim: audit_evaluation(rbm, test, found, log_z + off) for claim, off in _OFFSETS.items()
    }
    right = all(
        (audit.verdict == CONSISTENT) == (_OFFSETS[claim] == 0) for claim, audit in audits.items()
    )
    low, high = audits["truth"].interval
    return {
        "model": model.name,
        "family": model.family,
        "size": f"{rbm.num_visible} × {rbm.num_hidden}",
        "log_z": log_z,
        "low": low,
        "high": high,
        "trusted": found.judgement.word if found.judgement is not None else "exact",
        **{claim: audit.verdict for claim, audit in audits.items()},
        "right": "yes" if right else "no",
    }


def _evaluated(
    rbm: RBM, train: Tensor | None, test: Tensor, largest_steps: int, tempering_steps: int
) -> Evaluation:
    """The evaluation of a model as if nothing could be enumerated, with the work counted in steps."""
    found = evaluate(
        rbm,
        test,
        train,
        generator=seeded_generator(_SEED),
        progress=False,
        steps=largest_steps,
        tempering_steps=tempering_steps,
        exact=False,
    )
    if found.interrupted:
        raise KeyboardInterrupt
    return found
