"""From named arrays to a model: shapes decide, names break ties, and whatever is left over is refused by its name.

One matrix and two vectors that fit its sides are an RBM, whatever they are called. Names say which vector belongs to which layer, and
where they do not, the width of the images does. They also say how a square matrix lies. Where neither tells, the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import groupby

import numpy as np
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models.dbm import DBM
from paperlib.models.dbn import DBN
from paperlib.models.potts_rbm import PottsRBM
from paperlib.models.rbm import RBM
from paperlib.models.stored import Entry, dense, is_harmless, listed, plain_name
from paperlib.validation import as_float_tensor

WEIGHTS, VISIBLE, HIDDEN, IGNORE = "weights", "visible", "hidden", "ignore"
# Names in common use, in lower case, without signs between words and without a leading "rbm".
_SYNONYMS = {
    WEIGHTS: {"weights", "weight", "weightmatrix", "w", "vishid", "components", "kernel"},
    VISIBLE: {
        "visiblebias", "visiblebiases", "visbias", "visbiases", "vbias", "vbiases", "biasv", "bv", "vb", "bvis", "biasvisible",
        "bvisible", "interceptvisible",
    },
    HIDDEN: {
        "hiddenbias", "hiddenbiases", "hidbias", "hidbiases", "hbias", "hbiases", "biash", "bh", "hb", "bhid", "biashidden",
        "bhidden", "intercepthidden", "hidrecbiases",
    },
}  # fmt: skip
_HIDDEN_FIRST, _VISIBLE_FIRST = {"components"}, {"vishid"}
_LOG_Z = "logz"
_OF_GAUSSIAN = {"sigma", "sigmas", "std", "stds", "var", "variance", "logvar", "precision", "gamma", "logsigma", "stdev"}  # fmt: skip
# Vectors of these names are not biases, even where a bias is missing.
_NO_BIAS = _OF_GAUSSIAN | {"beta", "betas", "temperature", "scale", "scales", "mean", "means", "offset", "offsets", "center", "centers"}  # fmt: skip
# The names of the papers' authors for the layers of deep models, and ours.
_AUTHORS_DBM: Mapping[str, str] = {
    "vishid": "weights_1",
    "hidpen": "weights_2",
    "visbiases": "visible_bias",
    "hidbiases": "hidden_bias_1",
    "penbiases": "hidden_bias_2",
}
_AUTHORS_DBN: Mapping[str, str] = {
    "vishid": "layers.0.weights",
    "visbiases": "layers.0.visible_bias",
    "hidrecbiases": "layers.0.hidden_bias",
    "hidpen": "layers.1.weights",
    "hidgenbiases": "layers.1.visible_bias",
    "penrecbiases": "layers.1.hidden_bias",
    "hidpen2": "layers.2.weights",
    "hidgenbiases2": "layers.2.visible_bias",
    "penrecbiases2": "layers.2.hidden_bias",
}


def parse_names(text: str | None) -> dict[str, list[str]]:
    """Which array is what, from `weights=W,visible=a,hidden=b`.

    `weights=W.T` stands for a matrix [hidden, visible], `visible=0` or `hidden=0` for a model without these biases, and `ignore=NAME` for
    an array, or a group of entries, that is not part of the model.

    Raises
    ------
    InputError
        If the text has another form.

    Examples
    --------
    >>> parse_names("weights=W.T,hidden=0")
    {'weights': ['W.T'], 'hidden': ['0']}
    """
    found: dict[str, list[str]] = {}
    for part in text.split(",") if text else ():
        role, _, name = part.strip().partition("=")
        if role not in (*_SYNONYMS, IGNORE) or not name or (role in found and role != IGNORE):
            raise InputError(
                f"names: expected weights=NAME,visible=NAME,hidden=NAME (or some of them, each once), got {text!r}"
            )
        found.setdefault(role, []).append(name)
    return found


def model_of(
    stored: Mapping[str, Entry],
    names: Mapping[str, list[str]] | None = None,
    width: Callable[[], int] | None = None,
) -> tuple[RBM | PottsRBM | DBM | DBN, tuple[str, ...], float | None]:
    """The model that consists of all these arrays, notes on how it was read, and the ln Z that is stored with it, if there is one.

    Parameters
    ----------
    stored : mapping of str to array, number or text
        From `paperlib.models.stored.read_stored`.
    names : mapping, optional
        From `parse_names`.
    width : callable, optional
        Gives the number of values of an image, where neither names nor shapes tell which layer is the visible one.

    Raises
    ------
    InputError
        If there is no such model, something is left over, or it cannot be told what is what.

    Examples
    --------
    >>> arrays = {"a": np.zeros(2), "W": np.ones((2, 3)), "b": np.zeros((1, 3)), "W_momentum": np.zeros((2, 3))}
    >>> model, notes, log_z = model_of(arrays, width=lambda: 3)
    >>> model, notes
    (RBM(3 visible, 2 hidden, torch.float64, cpu), ('weights: [hidden, visible] in the file, transposed',))
    """
    names = names or {}
    of_log_z = [name for name in stored if plain_name(name) == _LOG_Z]
    log_z = float(np.asarray(stored[of_log_z[0]]).item()) if len(of_log_z) == 1 else None
    # Entry by entry, since an HDF5 file reads only what is asked for.
    used = {
        name: stored[name]
        for name in stored
        if not is_harmless(name)
        and not any(f"{name}.".startswith(f"{ignored}.") for ignored in names.get(IGNORE, ()))
    }
    for ours in (_AUTHORS_DBM, _AUTHORS_DBN):
        layers = {name for name in used if name in ours}
        if not names and "hidpen" in layers and layers == set(used):
            used = {ours[name]: value for name, value in used.items()}
    if names:
        model, notes = _rbm_of(used, names, width)
    elif set(used) == set(DBM.tensor_names):
        model, notes = DBM.from_tensors(_flattened(used)), ()
    elif "layers.0.weights" in used:
        model, notes = DBN.from_tensors(_flattened(used)), ()
    elif len(stack := _layers_of(used)) > 1:
        layers = [_rbm_of(layer, {}, None) for layer in stack]
        model, notes = (
            DBN([rbm for rbm, _ in layers]),
            tuple(dict.fromkeys(sum((n for _, n in layers), ()))),
        )
    elif set(used) == set(PottsRBM.tensor_names) and _number_of_axes(used["weights"]) == 3:
        model, notes = _potts_of(used), ()
    else:
        model, notes = _rbm_of(used, {}, width)
    return model, notes, log_z


def _words(name: str) -> set[str]:
    return set(re.findall("[a-z]+", name.rpartition(".")[2].lower()))


def _number_of_axes(value: Entry) -> int:
    return value.ndim if isinstance(value, np.ndarray | Tensor) else 0


def _is_vector(value: Entry) -> bool:
    return _number_of_axes(value) == 1 or (_number_of_axes(value) == 2 and 1 in value.shape)  # pyright: ignore


def _flattened(arrays: Mapping[str, Entry]) -> dict[str, Tensor]:
    """Tensors, with biases that are stored as one row or one column as vectors."""
    found = {}
    for name, value in arrays.items():
        tensor = _tensor(name, value)
        found[name] = tensor.flatten() if "bias" in name and 1 in tensor.shape else tensor
    return found


def _tensor(name: str, value: Entry) -> Tensor:
    """A parameter as a dense tensor of real numbers."""
    value = dense(name, value)
    if isinstance(value, str):
        raise InputError(f"expected numbers as {name}, got text")
    return as_float_tensor(name, value)


def _layers_of(arrays: Mapping[str, Entry]) -> list[dict[str, Entry]]:
    """The arrays of stacked layers, each without its prefix: prefixes that differ only in their numbers, in the order of these."""

    def prefix(name: str) -> str:
        return name.rpartition(".")[0]

    def order(name: str) -> list[int]:
        return [int(digits) for digits in re.findall(r"\d+", prefix(name))]

    kinds = {re.sub(r"\d+", "#", prefix(name)) for name in arrays}
    if len(kinds) > 1 or "#" not in "".join(kinds):
        return []
    groups = groupby(sorted(arrays, key=lambda name: (order(name), prefix(name))), key=prefix)
    return [{name.rpartition(".")[2]: arrays[name] for name in group} for _, group in groups]


def _potts_of(arrays: Mapping[str, Entry]) -> PottsRBM:
    shape = list(arrays["weights"].shape)  # pyright: ignore
    if shape[0] == 1:
        raise InputError(
            f"expected weights [visible, hidden], or [sites, states, hidden] with at least two sites, got {shape}; leave out the first axis of an "
            "RBM with binary units"
        )
    return PottsRBM.from_tensors({name: _tensor(name, array) for name, array in arrays.items()})


def _rbm_of(
    arrays: Mapping[str, Entry], names: Mapping[str, list[str]], width: Callable[[], int] | None
) -> tuple[RBM, tuple[str, ...]]:
    chosen = {role: given[0] for role, given in names.items() if role != IGNORE}
    turned = chosen.get(WEIGHTS, "").endswith(".T")
    if WEIGHTS in chosen:
        chosen[WEIGHTS] = chosen[WEIGHTS].removesuffix(".T")
    roles = _roles_by_name(arrays, chosen)
    if WEIGHTS not in roles or _number_of_axes(arrays[roles[WEIGHTS]]) != 2:
        raise InputError(
            f"expected one matrix of weights, and a vector of biases for each of its sides, got {listed(arrays)}; "
            "say which is which with --names weights=NAME,visible=NAME,hidden=NAME"
        )
    free = [role for role in (VISIBLE, HIDDEN) if role not in roles and chosen.get(role) != "0"]
    rest = {name: value for name, value in arrays.items() if name not in roles.values()}
    roles |= _roles_of_biases(rest, free, width)
    weights = _tensor(roles[WEIGHTS], arrays[roles[WEIGHTS]])
    biases = {
        role: _tensor(roles[role], arrays[roles[role]]).flatten()
        for role in (VISIBLE, HIDDEN)
        if role in roles
    }
    notes: tuple[str, ...] = ()
    if WEIGHTS not in chosen:
        sides = [len(biases[role]) if role in biases else None for role in (VISIBLE, HIDDEN)]
        turned, notes = _orientation(roles[WEIGHTS], weights, sides, set(arrays))
    if turned:
        weights = weights.T.contiguous()
    zeros = [weights.new_zeros(side) for side in weights.shape]
    return RBM(weights, biases.get(VISIBLE, zeros[0]), biases.get(HIDDEN, zeros[1])), notes


def _roles_by_name(arrays: Mapping[str, Entry], chosen: Mapping[str, str]) -> dict[str, str]:
    """The names of the arrays that are known to be weights or biases, by what they are; of matrices without a known name, a single one."""
    roles: dict[str, str] = {}
    for role, synonyms in _SYNONYMS.items():
        name = chosen.get(role)
        if name is not None:
            candidates = [known for known in arrays if name in (known, known.rpartition(".")[2])]
            if len(candidates) != 1 and name != "0":
                raise InputError(
                    f"names: expected an array of the file as {role}, got {name!r}; there are {listed(arrays)}"
                )
        else:
            candidates = [known for known in arrays if plain_name(known) in synonyms]
        if role == WEIGHTS and not candidates:
            candidates = [
                known
                for known, value in arrays.items()
                if _number_of_axes(value) == 2 and not _is_vector(value)
            ]
        if len(candidates) == 1 and name != "0":
            roles[role] = candidates[0]
    return roles


def _roles_of_biases(
    rest: Mapping[str, Entry], free: list[str], width: Callable[[], int] | None
) -> dict[str, str]:
    """Which of the arrays that are left are which biases; everything has to be one."""
    if len(rest) > len(free) or not all(
        _is_vector(value) and not _words(name) & _NO_BIAS for name, value in rest.items()
    ):
        raise InputError(_left_over(rest))
    if len(rest) < len(free):
        raise InputError(
            f"expected {' and '.join(free)} biases, got {listed(rest)} besides the rest of an RBM; if the model has none, say so: "
            f"--names {','.join(f'{role}=0' for role in free)}"
        )
    found = list(rest)
    if len(free) == 2:
        # The visible layer is the one with as many units as an image has values.
        one, two = (int(np.prod(rest[name].shape)) for name in found)  # pyright: ignore
        values = width() if width is not None and one != two else None
        if values not in (one, two):
            raise InputError(
                f"expected names, or images of {one} or {two} values, that tell visible from hidden biases, got {listed(rest)}; "
                f"say it: --names {VISIBLE}={found[0]},{HIDDEN}={found[1]} or the other way round"
            )
        if values == two:
            found.reverse()
    return dict(zip(free, found, strict=True))


def _orientation(
    name: str, weights: Tensor, sides: list[int | None], all_names: set[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether weights are [hidden, visible], and a note where the file does not make that plain."""
    rows, columns = weights.shape
    as_they_are, exchanged = (
        all(side in (None, length) for side, length in zip(sides, shape, strict=True))
        for shape in ((rows, columns), (columns, rows))
    )
    if not (as_they_are or exchanged):
        return False, ()  # refused by the model itself
    if as_they_are != exchanged:
        usual = exchanged == (plain_name(name) in _HIDDEN_FIRST)
        return exchanged, () if usual else ("weights: [hidden, visible] in the file, transposed",)
    if plain_name(name) in _HIDDEN_FIRST | _VISIBLE_FIRST:
        return plain_name(name) in _HIDDEN_FIRST, ()
    if all_names == set(RBM.tensor_names):
        return False, (
            f"weights: square, taken as [visible, hidden]; if they are [hidden, visible]: --names {WEIGHTS}={name}.T",
        )
    raise InputError(
        f"expected weights of which it can be told whether they are [visible, hidden] or [hidden, visible], got {name} {[rows, columns]}; say it: "
        f"--names {WEIGHTS}={name} or --names {WEIGHTS}={name}.T"
    )


def _left_over(arrays: Mapping[str, Entry]) -> str:
    """What to say of arrays that do not belong to an RBM of binary units."""
    of_gaussian = any(_words(name) & _OF_GAUSSIAN for name in arrays)
    return (
        f"expected nothing besides the weights and biases of one RBM, got {listed(arrays)} as well"
        + (
            ": standard deviations belong to Gaussian units, which this library does not have"
            if of_gaussian
            else f". What is not part of the model can be left out with --names ignore={next(iter(arrays))}"
        )
    )
