"""Models with a known ln Z, on which estimators are compared.

Some are planted, some are trained and small enough to enumerate, and one is from a paper.
Each comes with the base rates from which chains start, as a user would have them: from exact draws
or from training images. If a mode is planted, the draws do not show it.

Used in chapter: which-estimator-tells-the-truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from boltzmann_companion.profiles import Profile, get_profile
from boltzmann_likelihood import planted
from boltzmann_likelihood.planted import Planted, read_planted
from paperlib import storage
from paperlib.datasets import BinaryImages, load_authors_rbm, load_mnist_2008
from paperlib.datasets.binarization import base_rate_bias
from paperlib.estimators import exact_log_z
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

_ENUMERATED = ("mnist-cd1-20", "mnist-cd1-25", "mnist-cd3-25", "mnist-pcd-20")
_PLANTED = (
    "block-diagonal-784x500",
    "low-rank-100x80",
    "low-rank-784x500",
    "ising-100x200",
    "ising-784x1568",
)
_HIDDEN_MODE = "hidden-mode-784x501"
_NUM_DRAWS = 1_000
# Imaginary draws with a unit on, and as many with it off, for each real draw.
_PSEUDO_COUNT = 0.05


@dataclass(frozen=True, eq=False)
class KnownModel:
    """An RBM, its ln Z, and base rates.

    Attributes
    ----------
    name : str
        Its name in tables and stored outcomes. Draws depend on it.
    kind : str
        planted, trained, hidden mode or published.
    rbm : RBM
        The model.
    log_z : float
        Its ln Z in nats.
    start_bias : Tensor, shape [D]
        Visible biases of the start, at the base rates.
    log_z_error : float
        How well `log_z` is known, in nats; 0 where it is exact.

    Examples
    --------
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> KnownModel("flat", "planted", rbm, 5 * torch.tensor(2.0).log().item(), torch.zeros(3)).exact
    True
    """

    name: str
    kind: str
    rbm: RBM
    log_z: float
    start_bias: Tensor
    log_z_error: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether ln Z is known exactly."""
        return self.log_z_error == 0


def known_models(profile: str) -> list[KnownModel]:
    """The models of a profile.

    On `digits` there are three small ones: the Ising model on a torus at its critical coupling, the
    stored CD-1 model of the digits with 16 hidden units, and a model with a planted mode that
    neither the data nor the proven bound on ln Z show. At the papers' size there are the files of
    `data/planted`, the stored models with 20 and 25 hidden units, which are enumerated, and the
    first paper's CD25(500) with its authors' weights. ln Z of the last one is an estimate, by our
    longest run of AIS (`longest_log_z`).

    Raises
    ------
    InputError
        If there is no such profile, or a file is not available.

    Examples
    --------
    >>> [model.kind for model in known_models("digits")]
    ['planted', 'trained', 'hidden mode']
    """
    size = get_profile(profile)
    return _small_models(size) if size.name == "digits" else _large_models(size)


def _small_models(size: Profile) -> list[KnownModel]:
    base = planted.block_diagonal(60, 40, 5, generator=seeded_generator(0))
    trap = planted.hidden_mode(base.rbm, 2.0, fraction=0.5, generator=seeded_generator(1))
    return [
        _planted_model("Ising 5 × 5", planted.ising_2d(5)),
        _enumerated("digits-cd1-16", size, size.images()),
        KnownModel("hidden mode", "hidden mode", trap.rbm, trap.log_z, _base_rates_of(base)),
    ]


def _large_models(size: Profile) -> list[KnownModel]:
    # `same_recipe` reads the published numbers as it is imported, and the small models work
    # without them.
    from boltzmann_companion.studies.same_recipe import longest_log_z

    folder = storage.companion_folder() / "data" / "planted"
    models = []
    for name in _PLANTED:
        rbm, log_z, draws, _ = read_planted(folder / f"{name}.npz")
        models.append(KnownModel(name, "planted", rbm, log_z, _base_rates(draws)))
    rbm, log_z, draws, _ = read_planted(folder / f"{_HIDDEN_MODE}.npz")
    outside = draws[~in_hidden_mode(rbm, draws)]
    models.append(KnownModel(_HIDDEN_MODE, "hidden mode", rbm, log_z, _base_rates(outside)))
    images = size.images()
    models += [_enumerated(name, size, images) for name in _ENUMERATED]
    base_rates = load_mnist_2008().base_rate_bias()
    name = "CD25(500), the authors'"
    rbm = load_authors_rbm(size.dtype)
    log_z, error = longest_log_z()
    models.append(KnownModel(name, "published", rbm, log_z, base_rates, error))
    return models


def _planted_model(name: str, model: Planted) -> KnownModel:
    return KnownModel(name, "planted", model.rbm, model.log_z, _base_rates_of(model))


def _base_rates_of(model: Planted) -> Tensor:
    return _base_rates(model.draws(_NUM_DRAWS, seeded_generator(2)))


def _base_rates(draws: Tensor) -> Tensor:
    # A unit may be on in all draws, which does not happen with images.
    return base_rate_bias(draws, _PSEUDO_COUNT, _PSEUDO_COUNT)


def _enumerated(name: str, size: Profile, images: BinaryImages) -> KnownModel:
    rbm = cast(RBM, size.model(name))
    log_z = exact_log_z(rbm, progress=False)
    return KnownModel(name, "trained", rbm, log_z, images.base_rate_bias())


def in_hidden_mode(rbm: RBM, draws: Tensor) -> Tensor:
    """Which draws of a model from `planted.hidden_mode` are in the planted mode, bool [n].

    The model has one new unit, the last hidden one. It is more probably on than off in the mode.

    Examples
    --------
    >>> model = planted.hidden_mode(RBM([[0.0], [0.0]], [0.0, 0.0], [0.0]), 0.0)
    >>> on = in_hidden_mode(model.rbm, (model.rbm.weights[:, 1] > 0)[None])
    >>> off = in_hidden_mode(model.rbm, (model.rbm.weights[:, 1] < 0)[None])
    >>> on.item(), off.item()
    (True, False)
    """
    return torch.cat([rbm.hidden_probs(part)[:, -1] > 0.5 for part in draws.split(1_000)])
