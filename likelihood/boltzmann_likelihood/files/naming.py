"""From named arrays to a model: shapes decide, names break ties, anything left over is refused.

`model_of` takes the named arrays of a file. What the file holds decides what the model is:

- a DBM or DBN, if its arrays are called as the papers' authors or this library call them;
- a DBN, if there are several groups of arrays with the same names, numbered, with a matrix in each;
- otherwise an RBM: one matrix and two vectors that fit its sides, whatever they are called.

Names say which vector belongs to which layer. Where they do not, the width of the images does.
Names also say whether a square matrix is [visible, hidden] or [hidden, visible]. Where neither
tells, the user is asked for the option `--names`, which says which array is what.

Whatever has the name of something of the training is passed over with a note, unless it lies
between two layers and is no copy of a parameter. So are single numbers and text, which are no
parameters. Any other array that is left over may be a part of the energy, and raises an error that
names it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from torch import Tensor

from boltzmann_likelihood.files.gone import categorical_model
from boltzmann_likelihood.files.stored import (
    OTHER_UNITS,
    NoDataError,
    listed,
    plain_name,
    training_level,
    untyped_bytes_note,
)
from paperlib.errors import InputError
from paperlib.models.dbm import DBM
from paperlib.models.dbn import DBN
from paperlib.models.files import Entry, dense, printable
from paperlib.models.rbm import RBM
from paperlib.validation import as_float_tensor

WEIGHTS = "weights"
VISIBLE = "visible"
HIDDEN = "hidden"
IGNORE = "ignore"
# Names in common use, in lower case, without signs between words and without a leading "rbm".
_SYNONYMS = {
    WEIGHTS: {"weights", "weight", "weightmatrix", "w", "vishid", "components", "kernel"},
    VISIBLE: {
        "visiblebias", "visiblebiases", "visbias", "visbiases", "vbias", "vbiases", "biasv", "bv",
        "vb", "bvis", "biasvisible", "bvisible", "interceptvisible",
    },
    HIDDEN: {
        "hiddenbias", "hiddenbiases", "hidbias", "hidbiases", "hbias", "hbiases", "biash", "bh",
        "hb", "bhid", "biashidden", "bhidden", "intercepthidden", "hidrecbiases",
    },
}  # fmt: skip
# Names of matrices that are [hidden, visible], and of others that are [visible, hidden].
_HIDDEN_FIRST = {"components"}
_VISIBLE_FIRST = {"vishid"}
_LOG_Z = "logz"
# Numbers and texts that a note shows, and characters of each.
_MOST_VALUES = 30
_LONGEST_VALUE = 40
# Groups of arrays that a message names.
_MOST_GROUPS = 8
_ROLE = re.compile(rf"(layers\.\d+\.)?({WEIGHTS}|{VISIBLE}|{HIDDEN})|layers\.\d+|{IGNORE}")
_ROLE_OF_LAYER = re.compile(r"layers\.(\d+)(\.\w+)?")
_GAUSSIAN_WORDS = {
    "sigma", "sigmas", "std", "stds", "var", "variance", "logvar", "precision", "gamma", "logsigma",
    "stdev", "gaussian",
}  # fmt: skip
# Vectors of these names are not biases, even where a bias is missing.
_OTHER_PARAMETERS = _GAUSSIAN_WORDS | {
    "beta", "betas", "temperature", "temp", "scale", "scales", "scaling", "mean", "means", "offset",
    "offsets", "center", "centers", "mask", "masks", "original", "magnitude",
}  # fmt: skip
# Text under these names says what kind of model it is, and may say that it is none of ours.
_KIND = {"type", "modeltype", "unittype", "visibletype", "hiddentype"}
_OUR_KINDS = {"rbm", "binary", "bernoulli"}
# The names of the papers' authors for the layers of deep models, and ours.
_AUTHORS_DBM = {
    "vishid": "weights_1",
    "hidpen": "weights_2",
    "visbiases": "visible_bias",
    "hidbiases": "hidden_bias_1",
    "penbiases": "hidden_bias_2",
}
_AUTHORS_DBN = {
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

_Arrays: TypeAlias = Mapping[str, Entry]
_Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
_Model: TypeAlias = RBM | DBM | DBN


class _Layer(NamedTuple):
    """A layer of a DBN: the name of its group of arrays, which may be empty, and their names."""

    group: str
    names: list[str]


class _Reading(NamedTuple):
    """A model, notes on how it was read, and the names of the arrays that it consists of."""

    model: _Model
    notes: tuple[str, ...]
    used: set[str]


@dataclass(frozen=True)
class _RBMReading:
    """An RBM, notes on how it was read, and the names of its arrays by their roles."""

    rbm: RBM
    notes: tuple[str, ...]
    roles: Mapping[str, str]
    transposed: bool  # whether its weights are [hidden, visible] in the file

    def as_options(self, group: str = "") -> list[str]:
        """The roles as `--names` takes them, by names without that of their group."""
        options = []
        for role in _SYNONYMS:
            name = self.roles.get(role, "0").removeprefix(f"{group}.")
            end = ".T" if role == WEIGHTS and self.transposed else ""
            options.append(f"{role}={name}{end}")
        return options


def parse_names(text: str | None) -> dict[str, list[str]]:
    """Which array is what, from `weights=W,visible=a,hidden=b`.

    `weights=W.T` stands for a matrix [hidden, visible], `visible=0` or `hidden=0` for a model
    without these biases, and `ignore=NAME` for an array, or a group of entries, that is not part of
    the model; it may be repeated. Of stacked layers, `layers.0.weights=NAME` is the same for one of
    them, and `layers.0=GROUP` names the group of entries that is a layer.

    Raises
    ------
    InputError
        If the text has another form.

    Examples
    --------
    >>> parse_names("weights=W.T,hidden=0")
    {'weights': ['W.T'], 'hidden': ['0']}
    """
    names: dict[str, list[str]] = {}
    for part in text.split(",") if text else ():
        role, _, name = part.strip().partition("=")
        contradicts = role != IGNORE and names.get(role, [name]) != [name]
        if not _ROLE.fullmatch(role) or not name or contradicts:
            raise InputError(
                "names: expected weights=NAME,visible=NAME,hidden=NAME (or some of them, each "
                f"once; of the layer N of several layers.N.weights=NAME and so on), got {text!r}"
            )
        names.setdefault(role, []).append(name)
    return names


def model_of(
    stored: Mapping[str, Entry],
    names: Mapping[str, list[str]] | None = None,
    width: Callable[[], int] | None = None,
) -> tuple[RBM | DBM | DBN, tuple[str, ...], float | None]:
    """The model of all these arrays, notes on how it was read, and the stored ln Z, if any.

    Parameters
    ----------
    stored : mapping of str to array, number or text
        From `boltzmann_likelihood.files.stored.read_stored`.
    names : mapping, optional
        From `parse_names`.
    width : callable, optional
        Gives the number of values of an image, where neither names nor shapes tell which layer is
        the visible one.

    Raises
    ------
    InputError
        If there is no such model, something is left over, or it cannot be told what is what.

    Examples
    --------
    >>> arrays = {"a": np.zeros(2), "W": np.ones((2, 3)), "b": np.zeros((1, 3))}
    >>> model, notes, log_z = model_of(arrays | {"W_momentum": np.zeros((2, 3))}, width=lambda: 3)
    >>> model
    RBM(3 visible, 2 hidden, torch.float64, cpu)
    >>> for note in notes:
    ...     print(note)
    weights: [hidden, visible] in the file, transposed
    read as weights=W.T,visible=b,hidden=a
    passed over, by name: W_momentum
    """
    names = names or {}
    log_z_names = [
        name for name in stored if plain_name(name) == _LOG_Z and _is_number(stored[name])
    ]
    log_z = None
    if len(log_z_names) == 1:
        log_z = float(cast(float, _scalar(stored[log_z_names[0]])))
    ignored = [
        name for name in stored if any(_is_part_of(name, group) for group in names.get(IGNORE, ()))
    ]
    entries = _readable(stored, [name for name in stored if name not in ignored])
    options = _NameOptions(names, width)
    other_model = {
        name: value
        for name, value in entries.items()
        if not training_level(name) and _tells_of_another_model(name, value)
    }
    if other_model:
        raise _left_over_error(other_model, entries, options)
    arrays = {name: value for name, value in entries.items() if _shape(value)}
    _require_whole_biases(entries, arrays, options)
    model, notes, used = _model_of(arrays, _shapes_of(stored, ignored), options)
    scalars = {
        name: value
        for name, value in entries.items()
        if name not in used and _size(value) == 1 and name not in log_z_names
    }
    parameters = {
        name: value
        for name, value in scalars.items()
        if _is_stored_as_a_parameter(name, value, used)
    }
    if parameters:
        raise _left_over_error(parameters, entries, options, used)
    rest = [name for name in arrays if name not in used and _size(arrays[name]) > 1]
    acting = {name: arrays[name] for name in rest if _may_act(name, arrays, used)}
    if acting:
        raise _left_over_error(acting, entries, options, used)
    if rest:
        notes += (f"passed over, by name: {printable(', '.join(_grouped(rest, arrays)))}",)
    if ignored:
        groups = printable(", ".join(_grouped(ignored, arrays)))
        notes += (
            f"left out, as --names says: {groups}; if the energy has it, this is another model",
        )
    values = [
        _with_value(name, value)
        for name, value in sorted(scalars.items(), key=lambda item: item[0].count("."))
        if not training_level(name) and "@" not in name and str(_scalar(value)).strip()
    ]
    if values:
        notes += (f"not used: {_first_of(values)}",)
    return model, notes, log_z


# ---- entries of a file


def _readable(stored: _Arrays, names: Iterable[str]) -> dict[str, Entry]:
    """These entries, without empty groups and what is of the training and cannot be read."""
    entries: dict[str, Entry] = {}
    for name in names:
        try:
            entries[name] = stored[name]
        except NoDataError:
            continue
        except InputError:
            if not training_level(name):
                raise
    return entries


def _require_whole_biases(entries: _Arrays, arrays: _Arrays, options: _NameOptions) -> None:
    """Raise if a single number has the name of the biases of a layer of several units."""
    names = _SYNONYMS[VISIBLE] | _SYNONYMS[HIDDEN]
    letters = {"a", "b", "c"}
    for name, value in entries.items():
        plain = plain_name(name)
        if plain not in names | letters or not _is_number(value) or _scalar(value) == 0:
            continue
        group = [
            other
            for key, other in arrays.items()
            if _group_of(key) == _group_of(name) and _size(other) > 1
        ]
        sides = {side for other in group for side in _shape(other)}
        # one letter may be anything, unless there are too few biases
        is_bias = plain in names or sum(map(_is_vector, group)) < 2
        if is_bias and any(map(_is_matrix, group)) and 1 not in sides:
            option = options.extended_by(f"{IGNORE}={name}")
            raise InputError(
                f"expected a bias for each unit of a layer, got one number, "
                f"{_with_value(name, value)}; if all N units of a layer share it, store "
                f"numpy.full(N, {_scalar(value):g}); if it is no bias, say {option}"
            )


def _shapes_of(stored: _Arrays, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of these entries, without axes for what cannot be read."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        try:
            shapes[name] = _shape(stored[name])
        except InputError:
            shapes[name] = ()
    return shapes


def _shape(value: Entry) -> tuple[int, ...]:
    """The shape of an array; no axes for a number or text, which are no parameters."""
    is_text = not isinstance(value, Tensor) and np.asarray(value).dtype.kind in "OSU"
    return () if is_text else tuple(getattr(value, "shape", ()))


def _size(value: Entry) -> int:
    return math.prod(_shape(value))


def _is_number(value: Entry) -> bool:
    # the scalar, since numpy takes neither bfloat16 nor what requires a gradient
    scalar = _scalar(value) if _size(value) == 1 else None
    return isinstance(scalar, Real) and not isinstance(scalar, bool)


def _is_vector(value: Entry) -> bool:
    return len(_shape(value)) == 1 or (len(_shape(value)) == 2 and 1 in _shape(value))


def _is_matrix(value: Entry) -> bool:
    return len(_shape(value)) == 2 and not _is_vector(value)


def _tensor(name: str, value: Entry) -> Tensor:
    """A parameter as a dense tensor of real numbers."""
    if isinstance(value, np.ndarray):
        note = untyped_bytes_note(value)
        if note:
            raise InputError(f"expected numbers as {printable(name)}, got {value.dtype}{note}")
    return as_float_tensor(name, dense(name, value))


def _scalar(value: Entry) -> object:
    """The one number or text of an entry."""
    if isinstance(value, Tensor | np.ndarray) and _size(value) == 1:
        return value.item() if isinstance(value, Tensor) else value.reshape(-1)[0]
    return value


def _with_value(name: str, value: Entry) -> str:
    """A number or text by name and value, on one line."""
    scalar = _scalar(value)
    text = f"{scalar:.6g}" if isinstance(scalar, float | np.floating) else str(scalar)
    text = printable(text)
    if len(text) > _LONGEST_VALUE:
        text = f"{text[:_LONGEST_VALUE]}..."
    return f"{printable(name)} = {text}"


def _first_of(values: Sequence[str]) -> str:
    """The first of these, and how many more there are."""
    text = ", ".join(values[:_MOST_VALUES])
    more = len(values) - _MOST_VALUES
    return f"{text}, and {more} more numbers or texts" if more > 0 else text


# ---- what names tell


def _group_of(name: str) -> str:
    return name.rpartition(".")[0]


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _is_called(name: str, option: str) -> bool:
    return option in (name, _last_part(name))


def _is_part_of(name: str, group: str) -> bool:
    """Whether a name is that of a group, of something in it, or of what is said of it."""
    return name == group or name.startswith((f"{group}.", f"{group}@"))


def _words(name: str) -> set[str]:
    """Those of the last part of a name that is more than a number."""
    return set(re.findall("[a-z]+", _last_part(re.sub(r"(\.\d+)+$", "", name)).lower()))


def _changes_the_model(name: str) -> bool:
    return bool(_words(name) & _OTHER_PARAMETERS) or _words(name) == {"t"}


def _tells_of_another_model(name: str, value: Entry) -> bool:
    """Whether a number or text says that the arrays are not the whole model."""
    if isinstance(value, str | np.ndarray) and np.asarray(value).dtype.kind == "U":
        words = set(re.findall("[a-z]+", str(value).lower()))
        if OTHER_UNITS.search(str(value)):
            return True
        return plain_name(name) in _KIND and not words <= _OUR_KINDS
    changes = _changes_the_model(name) and "betas" not in _words(name)  # Adam's
    return changes and _size(value) == 1 and bool(dense(name, value) != 0)


def _may_act(name: str, arrays: _Arrays, used: Collection[str]) -> bool:
    """Whether a matrix of a layer is passed over for no more than a word in its name.

    It lies between layers, or has a side of the model and the word is only that of its group. A
    companion of a parameter has its shape and name as well, and chains have states.
    """
    value = arrays[name]
    shape = _shape(value)
    sides = {side for other in used for side in _shape(arrays[other])} - {1}
    is_of_layers = sides.issuperset(shape) and not all(map(training_level, _words(name)))
    is_of_layers |= bool(sides.intersection(shape)) and not training_level(_last_part(name))
    if training_level(name) != 2 or not _is_matrix(value) or not is_of_layers:
        return False
    if any(_last_part(other) in name and shape == _shape(arrays[other]) for other in used):
        return False
    if isinstance(value, np.ndarray) and value.dtype.kind != "f":
        return False
    values = _tensor(name, value)
    return not bool((((values >= 0) & (values <= 1)) | (values == -1)).all())


def _is_stored_as_a_parameter(name: str, value: Entry, used: Collection[str]) -> bool:
    """Whether a number is a tensor beside the model's arrays, as a module stores its parameters."""
    return (
        isinstance(value, Tensor)
        and _group_of(name) in map(_group_of, used)
        and not training_level(name)
        and value.is_floating_point()
    )


def _grouped(names: Collection[str], arrays: _Arrays) -> list[str]:
    """These names, or that of their whole group where no other array is in it."""
    other_groups = {name.partition(".")[0] for name in arrays if name not in names}
    grouped = []
    for name in names:
        group = name.partition(".")[0]
        grouped.append(name if group in other_groups else group)
    return list(dict.fromkeys(grouped))


def _short_names(names: Collection[str]) -> dict[str, str]:
    """Names without a common end that begins with a sign or digit, as in `_epoch100` or `:0`."""
    shared = ""
    if len(names) > 1:
        one = min(names)
        for sign in re.finditer("[^A-Za-z]", one):
            end = one[sign.start() :]
            if all(name.endswith(end) for name in names):
                shared = end
                break
    return {name: name.removesuffix(shared) for name in names}


# ---- what the user says


@dataclass(frozen=True)
class _NameOptions:
    """What `--names` says about the arrays, and the option that would say more.

    Of a layer, `inferred` has the names of the arrays by their roles as the other layers suggest
    them.
    """

    names: Mapping[str, list[str]]
    width: Callable[[], int] | None
    layer: int | None = None
    inferred: Mapping[str, str] = field(default_factory=dict)

    @property
    def _roles(self) -> dict[str, str]:
        """The names of arrays by their roles, with the `.T` of weights."""
        roles = {role: self.names[role][0] for role in _SYNONYMS if role in self.names}
        if self.layer is None:
            return roles
        of_layer = {}
        for role in _SYNONYMS:
            key = f"layers.{self.layer}.{role}"
            if key in self.names:
                of_layer[role] = self.names[key][0]
        return {**self.inferred, **roles, **of_layer}

    @property
    def arrays(self) -> dict[str, str]:
        """The arrays that are named, by their roles."""
        roles = self._roles
        if WEIGHTS in roles:
            roles[WEIGHTS] = roles[WEIGHTS].removesuffix(".T")
        return roles

    @property
    def transposed(self) -> bool:
        """Whether the weights are declared as [hidden, visible]."""
        return self._roles.get(WEIGHTS, "").endswith(".T")

    @property
    def layers(self) -> dict[int, dict[str, str]]:
        """Of each of several layers, its arrays by their roles, and its group as the role ""."""
        layers: dict[int, dict[str, str]] = {}
        for key, names in self.names.items():
            match = _ROLE_OF_LAYER.fullmatch(key)
            if match:
                role = (match[2] or "").removeprefix(".")
                layers.setdefault(int(match[1]), {})[role] = names[0]
        return layers

    def mentions(self, name: str) -> bool:
        """Whether the user names this array, or a group that it is in, as a part of the model."""
        parts = [
            option.removesuffix(".T")
            for role, options in self.names.items()
            if role != IGNORE
            for option in options
        ]
        return any(_is_part_of(name, part) for part in parts)

    def extended_by(self, *parts: str) -> str:
        """The option that says this besides what the user says already."""
        if self.layer is not None:
            parts = tuple(
                part if part.startswith(f"{IGNORE}=") else f"layers.{self.layer}.{part}"
                for part in parts
            )
        replaced = {part.partition("=")[0] for part in parts} - {IGNORE}
        unchanged = [
            f"{role}={name}"
            for role, names in self.names.items()
            if role not in replaced
            for name in names
        ]
        return f"--names {shlex.quote(','.join([*unchanged, *parts]))}"


# ---- the kind of model


def _model_of(arrays: _Arrays, ignored: _Shapes, options: _NameOptions) -> _Reading:
    """The model, of the kind that the file holds, whatever the user wants to be ignored."""
    named = {name for name in arrays if options.mentions(name)}
    names = [name for name in (*arrays, *ignored) if training_level(name) <= 1 or name in named]
    shapes = {name: _shape(value) for name, value in arrays.items()} | dict(ignored)
    kind, parts = _deep_parts(names)
    layers: list[_Layer] = []
    snapshots: list[str] = []
    if options.layers:
        parts = {}
        layers = _layers_of_options(arrays, names, shapes, options)
    elif not parts:
        layers = _numbered_layers(names, shapes)
        if _are_alike(layers, shapes):
            snapshots = [layer.group for layer in layers]
            _require_one_snapshot(layers, shapes, ignored, options)
            layers = []
    elif kind is DBN:
        layers = _layers_of_our_names(parts)
    if parts or layers:
        return _deep_model(kind, parts, layers, arrays, ignored, options)
    return _single_rbm(arrays, ignored, snapshots, options)


def _deep_parts(names: Sequence[str]) -> tuple[type[_Model], dict[str, str]]:
    """A DBM or DBN under our names or the authors': its kind, and its arrays by our names."""
    for name in names:
        match = re.fullmatch(r"(|.*?\.)(hidpen|weights_2|layers\.0\.weights)", name)
        if not match:
            continue
        group, first = match.groups()
        inside = {other.removeprefix(group): other for other in names if other.startswith(group)}
        if first == "hidpen":
            if "vishid" not in inside:
                # The authors' programs write each layer to a file of its own.
                inside = _by_last_part(names)
            kind, ours = (DBN, _AUTHORS_DBN) if "hidrecbiases" in inside else (DBM, _AUTHORS_DBM)
        elif first == "weights_2":
            if not set(DBM.tensor_names) <= inside.keys():
                continue
            kind = DBM
            ours = {other: other for other in DBM.tensor_names}
        else:
            kind = DBN
            pattern = r"layers\.\d+\.(weights|\w+_bias)$"
            ours = {other: other for other in inside if re.match(pattern, other)}
        return kind, {ours[other]: inside[other] for other in inside if other in ours}
    return DBN, {}


def _by_last_part(names: Sequence[str]) -> dict[str, str]:
    """Names by their last parts, of those whose last part no other has."""
    ends = [_last_part(name) for name in names]
    return {end: name for end, name in zip(ends, names, strict=True) if ends.count(end) == 1}


def _layers_of_our_names(parts: Mapping[str, str]) -> list[_Layer]:
    """The layers of a DBN under our own names, which other programs may use for its layers too."""
    groups: dict[str, list[str]] = {}
    for ours, name in parts.items():
        if not name.endswith(ours):
            return []
        groups.setdefault(_group_of(name), []).append(name)
    if {_last_part(name) for name in parts} != set(RBM.tensor_names):
        return []
    ordered = sorted(groups, key=lambda group: int(_last_part(group)))
    return [_Layer(group, groups[group]) for group in ordered]


def _layers_of_options(
    arrays: _Arrays, names: Sequence[str], shapes: _Shapes, options: _NameOptions
) -> list[_Layer]:
    """The layers that the user names: the arrays of a group, or single arrays."""
    numbered = _numbered_layers(names, shapes)
    layer_options = options.layers
    if any("" in roles for roles in layer_options.values()) or not numbered:
        numbered = [_Layer("", [])] * len(layer_options)
    if sorted({*range(len(numbered)), *layer_options}) != list(range(len(numbered))):
        numbers = ", ".join(map(str, layer_options))
        raise InputError(f"names: expected layers from 0 to {len(numbered) - 1}, got {numbers}")
    layers: list[_Layer] = []
    for number, layer in enumerate(numbered):
        roles = layer_options.get(number, {})
        group = roles.get("", layer.group)
        inside = layer.names
        if "" in roles:
            inside = [name for name in names if name.startswith(f"{group}.")]
            if not inside:
                raise InputError(
                    f"names: expected a group of the file as layer {number}, got {group!r}; "
                    f"there are {listed(arrays)}"
                )
        single = [name.removesuffix(".T") for role, name in roles.items() if role]
        named = [name for name in names if any(_is_called(name, option) for option in single)]
        layers.append(_Layer(group, list(dict.fromkeys([*inside, *named]))))
    return layers


def _numbered_layers(names: Sequence[str], shapes: _Shapes) -> list[_Layer]:
    """The layers of a DBN whose groups of arrays have the same name but for its number.

    A group has at least three arrays. Layers are in the order of their numbers.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_group_of(name), []).append(name)
    same_name: dict[str, list[str]] = {}
    for group, inside in groups.items():
        numbered = re.findall(r"[^.]*\d[^.]*", group)
        # Groups such as `epoch_10` are one model at several times.
        is_snapshot = any(map(training_level, numbered[-1:]))
        has_matrix = any(len(shapes[name]) == 2 for name in inside)
        if len(inside) >= 3 and has_matrix and not is_snapshot:
            same_name.setdefault(re.sub(r"_?\d+", "", group), []).append(group)
    for layers in same_name.values():
        if len(layers) > 1:
            return [_Layer(group, groups[group]) for group in sorted(layers, key=_numbers_in)]
    return []


def _numbers_in(group: str) -> tuple[list[int], str]:
    """The key that sorts layers by their numbers."""
    return [int(digits) for digits in re.findall(r"\d+", group)], group


def _matrix_shapes(layer: _Layer, shapes: _Shapes) -> set[tuple[int, ...]]:
    """The shapes of the matrices of a layer."""
    matrices = [name for name in layer.names if len(shapes[name]) == 2]
    return {shapes[name] for name in matrices if 1 not in shapes[name]}


def _are_alike(layers: Sequence[_Layer], shapes: _Shapes) -> bool:
    """Whether several groups have the same arrays of the same shapes, as snapshots have."""
    layer_shapes = [
        {_last_part(name): shapes[name] for name in layer.names if len(shapes[name])}
        for layer in layers
    ]
    return len(layers) > 1 and all(each == layer_shapes[0] for each in layer_shapes)


def _require_one_snapshot(
    layers: Sequence[_Layer], shapes: _Shapes, ignored: Collection[str], options: _NameOptions
) -> None:
    """Raise unless the user leaves out all but one of several groups with the same arrays."""
    remaining = [layer for layer in layers if not all(name in ignored for name in layer.names)]
    if len(remaining) <= 1:
        return
    groups = [layer.group for layer in remaining]
    message = (
        f"expected one model, got the same arrays of the same shapes {len(groups)} times, in "
        f"{printable(', '.join(groups))}{_choice_of_one(groups, 'last', options)}"
    )
    matrices = [shape for layer in remaining for shape in _matrix_shapes(layer, shapes)]
    if all(len(set(shape)) == 1 for shape in matrices):
        message += "; if they are layers of a DBN, from the images up, "
        message += _option_of_layers(groups, options)
    raise InputError(message)


def _choice_of_one(groups: Sequence[str], place: str, options: _NameOptions) -> str:
    """How to choose the first or the last of groups that may be one RBM at several times."""
    others = groups[1:] if place == "first" else groups[:-1]
    option = options.extended_by(*(f"{IGNORE}={group}" for group in others))
    return (
        "; if they are one RBM at several times, choose one by leaving out the others, "
        f"for the {place} {option}"
    )


def _option_of_layers(groups: Sequence[str], options: _NameOptions) -> str:
    """The option that makes these groups the layers of a DBN."""
    layers = (f"layers.{number}={group}" for number, group in enumerate(groups))
    return options.extended_by(*layers)


def _part_error(names: Sequence[str], called: str) -> InputError:
    """For options that would make a part of a deep model a model."""
    return InputError(
        f"names: expected nothing that is a part of {called}, which the file holds, "
        f"got {printable(', '.join(names))}; a part of it, such as one layer, is another model: "
        "store it in a file of its own"
    )


# ---- deep models


def _deep_model(
    kind: type[_Model],
    parts: Mapping[str, str],
    layers: Sequence[_Layer],
    arrays: _Arrays,
    ignored: _Shapes,
    options: _NameOptions,
) -> _Reading:
    """A DBM or DBN from its arrays by our names, or a DBN from its layers."""
    members = [*parts.values(), *(name for layer in layers for name in layer.names)]
    left_out: list[str] = []
    for layer in layers:
        if not set(layer.names) & arrays.keys():
            left_out += layer.names
    wrong = [name for name in ignored if name in parts.values() or name in left_out]
    roles = {role: names[0] for role, names in options.names.items() if role in _SYNONYMS}
    if not (layers and all(_every_layer_has(name, layers) for name in roles.values())):
        wrong += roles.values()
    if wrong:
        raise _part_error(wrong, kind.called)
    if not layers:
        _require_nothing_else(arrays, members, options, kind)
        tensors = {ours: _tensor(ours, arrays[name]) for ours, name in parts.items()}
        return _Reading(_of_tensors(kind, tensors), (), set(members))
    used_layers = [
        _Layer(layer.group, [name for name in layer.names if name in arrays]) for layer in layers
    ]
    model, notes, used = _dbn_of(used_layers, arrays, options, called_as_ours=bool(parts))
    sizes = _require_nothing_else(arrays, members, options, kind, model)
    ends = {_last_part(name) for name in used}
    wrong = [name for name in ignored if name in members and _last_part(name) in ends]
    if wrong:
        raise _part_error(wrong, kind.called)
    if sizes:
        notes += (f"the sizes of the layers: {printable(', '.join(sizes))}",)
    return _Reading(model, notes, used)


def _every_layer_has(option: str, layers: Sequence[_Layer]) -> bool:
    """Whether an array that the user names, or 0 for none, is one of each layer."""
    array = option.removesuffix(".T")
    return all(
        any(option == "0" or _is_called(name, array) for name in layer.names) for layer in layers
    )


def _of_tensors(kind: type[_Model], tensors: Mapping[str, Tensor]) -> _Model:
    """A DBM or DBN from its tensors by our names; biases may be one row or one column."""
    shaped = {}
    for name, tensor in tensors.items():
        shaped[name] = tensor.flatten() if "bias" in name and 1 in tensor.shape else tensor
    return kind.from_tensors(shaped)


def _require_nothing_else(
    arrays: _Arrays,
    members: Collection[str],
    options: _NameOptions,
    kind: type[_Model],
    model: DBN | None = None,
) -> list[str]:
    """The arrays that only repeat the numbers of units; raise if others belong to no layer."""
    rest = {
        name: value
        for name, value in arrays.items()
        if name not in members and not training_level(name) and _size(value) != 1
    }
    units: list[int] = []
    if model is not None:
        units = [model.layers[0].num_visible, *(layer.num_hidden for layer in model.layers)]
    sizes = [
        name
        for name, value in rest.items()
        if _is_vector(value)
        and len(units) - 1 <= _size(value) <= len(units)
        and _tensor(name, value).flatten().tolist() in (units, units[1:])
    ]
    rest = {name: value for name, value in rest.items() if name not in sizes}
    if rest:
        raise _left_over_error(rest, arrays, options, members, kind.called)
    return sizes


def _dbn_of(
    layers: Sequence[_Layer], arrays: _Arrays, options: _NameOptions, *, called_as_ours: bool
) -> tuple[DBN, tuple[str, ...], set[str]]:
    """The DBN of these layers, notes, and the names of its arrays.

    The shape of a square layer does not tell how it lies or which biases are which. It follows the
    other layers, which are read first.
    """
    shapes = {name: _shape(value) for name, value in arrays.items()}
    square_sides = [_square_side(layer, shapes) for layer in layers]
    clear = [
        number
        for number, side in enumerate(square_sides)
        if not side or WEIGHTS in options.layers.get(number, {})
    ]
    unclear = [number for number in range(len(layers)) if number not in clear]
    readings: dict[int, _RBMReading] = {}
    for number in [*clear, *unclear]:
        layer_arrays = {name: arrays[name] for name in layers[number].names}
        width = options.width
        if number > 0:
            side = square_sides[number - 1]
            if number - 1 in readings:
                side = readings[number - 1].rbm.num_hidden
            width = _constant(side) if side else None
        inferred = _common_roles(readings, layers, number) if square_sides[number] else {}
        alone = replace(options, width=width, layer=number)
        try:
            readings[number] = _rbm_of(layer_arrays, replace(alone, inferred=inferred))
        except InputError:
            # The message is about what the layer lacks, and not about what was concluded.
            if not inferred:
                raise
            readings[number] = _rbm_of(layer_arrays, alone)
    ordered = [readings[number] for number in range(len(layers))]
    notes = [note for reading in ordered for note in reading.notes]
    if not called_as_ours or any(reading.transposed for reading in ordered):
        notes.append(printable(f"read as {_as_options(ordered, layers)}"))
    used = {name for reading in ordered for name in reading.roles.values()}
    return DBN([reading.rbm for reading in ordered]), tuple(dict.fromkeys(notes)), used


def _as_options(readings: Sequence[_RBMReading], layers: Sequence[_Layer]) -> str:
    """How `--names` would name the arrays of all layers, in short if all are named alike."""
    groups = [layer.group for layer in layers]
    pairs = zip(readings, groups, strict=True)
    roles = {tuple(reading.as_options(group)) for reading, group in pairs}
    if len(roles) == 1 and all(groups):
        numbered = ",".join(f"layers.{number}={group}" for number, group in enumerate(groups))
        return f"{numbered}, each with {','.join(*roles)}"
    return ",".join(
        f"layers.{number}.{role}"
        for number, reading in enumerate(readings)
        for role in reading.as_options()
    )


def _constant(number: int) -> Callable[[], int]:
    return lambda: number


def _square_side(layer: _Layer, shapes: _Shapes) -> int:
    """The side of the matrices of a layer, if all are square and have the same; otherwise 0."""
    sides = {side for shape in _matrix_shapes(layer, shapes) for side in shape}
    return sides.pop() if len(sides) == 1 else 0


def _common_roles(
    readings: Mapping[int, _RBMReading], layers: Sequence[_Layer], number: int
) -> dict[str, str]:
    """The arrays of a layer by their roles, where all layers that were read call them alike."""
    group = layers[number].group
    options = [reading.as_options(layers[n].group) for n, reading in readings.items()]
    roles: dict[str, str] = {}
    for place, role in enumerate(_SYNONYMS):
        names = {option[place].partition("=")[2] for option in options}
        local = names.pop() if len(names) == 1 else ""
        name = f"{group}.{local}" if group else local
        if name.removesuffix(".T") in layers[number].names:
            roles[role] = name
    return roles


# ---- one RBM


def _single_rbm(
    arrays: _Arrays, ignored: _Shapes, snapshots: Sequence[str], options: _NameOptions
) -> _Reading:
    """The RBM of a file without other layers."""
    others = {name: value for name, value in arrays.items() if not _are_sizes(name, arrays)}
    reading = _rbm_of(others, options)
    _require_no_layer_above(reading, ignored, snapshots)
    notes = reading.notes
    names = {role: _last_part(name) for role, name in reading.roles.items()}
    our_names = dict(zip(_SYNONYMS, RBM.tensor_names, strict=True))
    if names != our_names or reading.transposed:
        notes += (f"read as {','.join(reading.as_options())}",)
    return _Reading(reading.rbm, notes, set(reading.roles.values()))


def _are_sizes(name: str, arrays: _Arrays) -> bool:
    """Whether a vector of two numbers repeats the sides of the one matrix, as no biases could."""
    matrices = [_shape(value) for value in arrays.values() if _is_matrix(value)]
    value = arrays[name]
    if len(matrices) != 1 or not _is_vector(value) or _size(value) != 2 or 2 in matrices[0]:
        return False
    return sorted(_tensor(name, value).flatten().tolist()) == sorted(matrices[0])


def _require_no_layer_above(
    reading: _RBMReading, ignored: _Shapes, snapshots: Sequence[str]
) -> None:
    """Raise if what the user leaves out is a layer above this one, by its name and shape."""
    numberless = {re.sub(r"\d+", "", name) for name in reading.roles.values()}
    above = [
        name
        for name, shape in ignored.items()
        if re.sub(r"\d+", "", name) in numberless
        and not training_level(name)
        and _group_of(name) not in snapshots
        and len(shape) == 2
        and 1 not in shape
        and reading.rbm.num_hidden in shape
    ]
    if above:
        raise _part_error(above, "a deep model")


def _rbm_of(arrays: _Arrays, options: _NameOptions) -> _RBMReading:
    """The RBM of these arrays, without those of the training as long as the others are an RBM."""
    # How surely an array is of the training, as in `training_level`; 4 is surer than any name.
    levels = {name: training_level(name) for name in arrays}
    levels |= dict.fromkeys(_copies_of_rbms(arrays), 3)
    # Beside a matrix, a single number is no vector of biases.
    if any(map(_is_matrix, arrays.values())):
        levels |= {name: 4 for name, value in arrays.items() if _size(value) == 1}
    for option in options.arrays.values():
        levels |= {name: 0 for name in arrays if _is_called(name, option)}
    highest = 1 if min(levels.values(), default=0) <= 1 else 2
    possible = {name: value for name, value in arrays.items() if levels[name] <= highest}
    shapes = [sorted(_shape(value)) for name, value in possible.items() if not levels[name]]
    # A matrix of a shape of its own is no copy of a parameter.
    certain = {
        name: value
        for name, value in possible.items()
        if not levels[name] or (_is_matrix(value) and sorted(_shape(value)) not in shapes)
    }
    try:
        return _rbm_of_all(certain, arrays, options)
    except InputError:
        if len(certain) == len(possible):
            raise
    return _rbm_of_all(possible, arrays, options)


def _copies_of_rbms(arrays: _Arrays) -> set[str]:
    """Arrays such as `vW`, `vb`, `vc`: a whole RBM's, with the same letters added to each name.

    They accompany its parameters, as velocities, gradients and averages do.
    """
    matrices = [name for name, value in arrays.items() if _is_matrix(value)]
    copies: set[str] = set()
    for matrix in matrices:
        for other in matrices:
            if other != matrix:
                copies.update(_copies_beside(matrix, other, arrays))
    return {name for name in copies if not _changes_the_model(name)}


def _copies_beside(matrix: str, other: str, arrays: _Arrays) -> Collection[str]:
    """The copies of all arrays of the RBM of `matrix`, if `other` is called as its copy."""
    group = _group_of(matrix)
    start = f"{group}." if group else ""
    if not other.startswith(start):
        return ()
    local = _last_part(matrix)
    longer = other.removeprefix(start)
    place = longer.rfind(local)
    if place < 0 or (place > 0 and not longer.endswith(local)):
        return ()
    before = longer[:place]
    behind = longer[place + len(local) :]
    copies = {}
    for name in arrays:
        copy = f"{start}{before}{name.removeprefix(start)}{behind}"
        is_copy = copy != name and copy in arrays and _shape(arrays[copy]) == _shape(arrays[name])
        if name.startswith(start) and is_copy:
            copies[name] = copy
    lengths = sorted(_size(arrays[name]) for name in copies if name != matrix)
    is_rbm = matrix in copies and lengths == sorted(_shape(arrays[matrix]))
    return copies.values() if is_rbm else ()


def _rbm_of_all(arrays: _Arrays, stored: _Arrays, options: _NameOptions) -> _RBMReading:
    """The RBM of all of these arrays, out of those that are stored."""
    short = _short_names(arrays)
    _require_no_states(arrays, short)
    roles = _roles_by_name(arrays, short, options.arrays)
    if WEIGHTS not in roles or len(_shape(arrays[roles[WEIGHTS]])) != 2:
        option = options.extended_by("weights=NAME", "visible=NAME", "hidden=NAME")
        raise InputError(
            "expected one matrix of weights, and a vector of biases for each of its sides, "
            f"got {listed(stored)}; say which is which with {option}"
            f"{_other_choices(stored, options)}"
        )
    matrix = roles[WEIGHTS]
    sides = _shape(arrays[matrix])
    missing = [
        role for role in (VISIBLE, HIDDEN) if role not in roles and options.arrays.get(role) != "0"
    ]
    rest = {name: value for name, value in arrays.items() if name not in roles.values()}
    lengths = [_size(value) for value in rest.values()]
    if len(missing) == 2 and lengths == [sum(sides)]:
        raise InputError(
            f"expected visible and hidden biases, got {listed(rest)}, as many numbers as both "
            "layers have units; store the two parts as arrays of their own"
        )
    wrong = {
        name: value
        for name, value in rest.items()
        if not _is_vector(value) or _size(value) not in sides or _changes_the_model(short[name])
    }
    if wrong or (rest and not missing):
        raise _left_over_error(wrong or rest, arrays, options, roles.values())
    weights = _tensor(matrix, arrays[matrix])
    if len(roles) + len(rest) < 3 and _are_couplings(weights):
        raise InputError(
            "expected weights between visible and hidden units, "
            f"got {printable(matrix)} {list(sides)}, symmetric with a zero diagonal as the "
            "couplings of a fully visible Boltzmann machine are: only models with hidden units "
            "are read"
        )
    if len(missing) == 1 and not rest:
        _require_no_appended_biases(missing[0], roles, arrays, matrix, sides)
    roles |= _roles_of_biases(rest, missing, matrix, sides, options)
    biases = {
        role: _tensor(roles[role], arrays[roles[role]]).flatten()
        for role in (VISIBLE, HIDDEN)
        if role in roles
    }
    transposed = options.transposed
    notes = ()
    if WEIGHTS not in options.arrays:
        transposed, notes = _orientation(matrix, weights, biases, short, options)
    if transposed:
        weights = weights.T.contiguous()
    zeros = [weights.new_zeros(side) for side in weights.shape]
    rbm = RBM(weights, biases.get(VISIBLE, zeros[0]), biases.get(HIDDEN, zeros[1]))
    return _RBMReading(rbm, notes, roles, transposed)


def _other_choices(arrays: _Arrays, options: _NameOptions) -> str:
    """What several groups of arrays, or several matrices, may be, and how to say it."""
    groups: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, value in arrays.items():
        groups.setdefault(_group_of(name), {})[_last_part(name)] = _shape(value)
    first = next(iter(groups.values()), {})
    have_names_alike = all(shapes.keys() == first.keys() for shapes in groups.values())
    if 1 < len(groups) <= _MOST_GROUPS and have_names_alike and "" not in groups:
        if all(shapes == first for shapes in groups.values()):
            return _choice_of_one(list(groups), "first", options)
        option = _option_of_layers(list(groups), options)
        return f"; or, of the layers of a DBN, from the images up, {option}"
    if sum(map(_is_matrix, arrays.values())) > 1:
        return (
            "; of a DBN, layers.0.weights=NAME and so on; a DBM is read if its arrays are called "
            "vishid, hidpen, visbiases, hidbiases and penbiases"
        )
    return ""


def _require_no_states(arrays: _Arrays, short: Mapping[str, str]) -> None:
    """Raise if there are weights [sites, states, hidden], by name or as all matrices fit them."""
    for name, value in arrays.items():
        shape = _shape(value)
        if len(shape) != 3:
            continue
        matrices = {_shape(other) for other in arrays.values() if len(_shape(other)) == 2}
        if plain_name(short[name]) not in _SYNONYMS[WEIGHTS] and matrices != {shape[:2]}:
            continue
        if shape[0] == 1:
            raise InputError(
                f"expected weights [visible, hidden], got {printable(name)} {list(shape)}; "
                "leave out the first axis"
            )
        vectors = {_size(other) for other in arrays.values() if _is_vector(other)}
        of_one_model = shape[1] in vectors and shape[:2] not in matrices
        if of_one_model or (shape[0], shape[2]) in matrices:
            raise InputError(
                f"expected weights [visible, hidden], got {printable(name)} {list(shape)}; if the "
                "first axis counts models, store the arrays of one of them"
            )
        model = categorical_model(shape[0], shape[1])
        raise InputError(f"expected a model of binary units, got {model}")


def _are_couplings(weights: Tensor) -> bool:
    """Whether weights join units of one layer: they are symmetric with a zero diagonal."""
    square = weights.shape[0] == weights.shape[1]
    return square and bool(
        (weights == weights.T).all() and (weights.diagonal() == 0).all() and weights.any()
    )


def _roles_by_name(
    arrays: _Arrays, short: Mapping[str, str], named: Mapping[str, str]
) -> dict[str, str]:
    """The weights and biases that the user names or that are called so, by their roles.

    A single matrix is the weights, whatever it is called.
    """
    roles: dict[str, str] = {}
    for role, synonyms in _SYNONYMS.items():
        option = named.get(role)
        if option is None:
            candidates = [name for name in arrays if plain_name(short[name]) in synonyms]
        else:
            candidates = [name for name in arrays if _is_called(name, option)]
            if len(candidates) != 1 and option != "0":
                raise InputError(
                    f"names: expected an array of the file as {role}, got {option!r}; "
                    f"there are {listed(arrays)}"
                )
        if role == WEIGHTS and not candidates:
            matrices = [name for name, value in arrays.items() if _is_matrix(value)]
            plain = [name for name in matrices if not _changes_the_model(short[name])]
            candidates = plain or matrices
        if len(candidates) == 1 and option != "0":
            roles[role] = candidates[0]
    return roles


# ---- which biases are which, and how the weights lie


def _roles_of_biases(
    rest: _Arrays,
    missing: list[str],
    matrix: str,
    sides: tuple[int, ...],
    options: _NameOptions,
) -> dict[str, str]:
    """Which of the vectors that are left are the biases that are missing."""
    names = list(rest)
    values = options.width() if options.width and len(missing) == 2 else None
    if missing and not names:
        raise _no_biases_error(missing, values, matrix, sides, options)
    if len(names) == 1 and values in sides and sides[0] != sides[1]:
        layer = VISIBLE if _size(rest[names[0]]) == values else HIDDEN
        other = HIDDEN if layer == VISIBLE else VISIBLE
        option = options.extended_by(f"{layer}={names[0]}", f"{other}=0")
        raise InputError(
            f"expected {VISIBLE} and {HIDDEN} biases, got {listed(rest)}, as many as there are "
            f"{layer} units; if the model has no {other} biases, say so: {option}"
        )
    if len(names) != len(missing):
        option = options.extended_by(*(f"{role}=NAME" for role in missing))
        raise InputError(
            f"expected {' and '.join(missing)} biases, got {listed(rest)}; say which is which, "
            f"with 0 for a layer without biases: {option}"
        )
    if len(missing) == 2:
        # The visible layer is the one with as many units as an image has values.
        lengths = [_size(value) for value in rest.values()]
        if lengths[0] == lengths[1] or values not in lengths:
            raise _unclear_biases_error(rest, values, matrix, options)
        if values == lengths[1]:
            names.reverse()
    return dict(zip(missing, names, strict=True))


def _require_no_appended_biases(
    missing: str,
    roles: Mapping[str, str],
    arrays: _Arrays,
    matrix: str,
    sides: tuple[int, ...],
) -> None:
    """Raise if the biases of one layer may be a row or a column of the weights."""
    present = HIDDEN if missing == VISIBLE else VISIBLE
    units = _size(arrays[roles[present]]) if present in roles else 0
    if units and units not in sides and units + 1 in sides:
        part = "row" if sides[0] == units + 1 else "column"
        raise InputError(
            f"expected {missing} biases, got {printable(matrix)} {list(sides)}, of which a side is "
            f"one longer than there are {present} biases; if a {part} of it has the {missing} "
            "biases, store this as an array of its own"
        )


def _no_biases_error(
    missing: Sequence[str],
    values: int | None,
    matrix: str,
    sides: tuple[int, ...],
    options: _NameOptions,
) -> InputError:
    """For weights without biases; some programs store these as a row and a column of the matrix."""
    if values is not None and values + 1 in sides:
        orientation = "it" if sides[0] == values + 1 else "its transpose"
        return InputError(
            f"expected {VISIBLE} and {HIDDEN} biases, got no arrays besides {printable(matrix)} "
            f"{list(sides)}, of which a side is one longer than the images have values; if its "
            f"first row and column are the biases, store them apart: with A for {orientation}, "
            "numpy.savez('model.npz', weights=A[1:, 1:], visible_bias=A[1:, 0], "
            "hidden_bias=A[0, 1:])"
        )
    option = options.extended_by(*(f"{role}=0" for role in missing))
    return InputError(
        f"expected {' and '.join(missing)} biases, got no arrays besides the rest of an RBM; "
        f"if the model has none, say so: {option}"
    )


def _unclear_biases_error(
    vectors: _Arrays, values: int | None, matrix: str, options: _NameOptions
) -> InputError:
    """For two vectors of biases of which neither names nor sizes tell which is which."""
    first, second = vectors
    option = options.extended_by(f"{VISIBLE}={first}", f"{HIDDEN}={second}")
    request = f"say it: {option} or the other way round"
    lengths = [_size(value) for value in vectors.values()]
    if lengths[0] == lengths[1]:
        if WEIGHTS not in options.arrays:
            condition = _when_transposed(f"weights={matrix}.T")
            request += f", and with them weights={matrix}{condition}"
        return InputError(
            f"expected names that tell visible from hidden biases, got {listed(vectors)}; {request}"
        )
    images = "" if values is None else f", and images of {values}"
    return InputError(
        f"expected names, or images of {lengths[0]} or {lengths[1]} values, that tell visible from "
        f"hidden biases, got {listed(vectors)}{images}; {request}"
    )


def _when_transposed(option: str) -> str:
    """When weights are to be named as they are, and when by this option, as transposed."""
    return f" if its rows are visible units, {option} if they are hidden units, as in nn.Linear"


def _orientation(
    name: str,
    weights: Tensor,
    biases: Mapping[str, Tensor],
    short: Mapping[str, str],
    options: _NameOptions,
) -> tuple[bool, tuple[str, ...]]:
    """Whether weights are [hidden, visible], and a note where the file does not make that plain."""
    rows, columns = weights.shape
    visible = len(biases[VISIBLE]) if VISIBLE in biases else None
    hidden = len(biases[HIDDEN]) if HIDDEN in biases else None
    if not biases and rows != columns and options.width and options.width() in (rows, columns):
        visible = options.width()
    fits_as_it_is = visible in (None, rows) and hidden in (None, columns)
    fits_transposed = visible in (None, columns) and hidden in (None, rows)
    if not fits_as_it_is and not fits_transposed:
        return False, ()  # refused by the model itself
    plain = plain_name(short[name])
    if fits_as_it_is != fits_transposed:
        if fits_transposed == (plain in _HIDDEN_FIRST):
            return fits_transposed, ()
        return fits_transposed, ("weights: [hidden, visible] in the file, transposed",)
    if plain in _HIDDEN_FIRST | _VISIBLE_FIRST:
        return plain in _HIDDEN_FIRST, ()
    option = options.extended_by(f"{WEIGHTS}={name}")
    transposing = options.extended_by(f"{WEIGHTS}={name}.T")
    if {_last_part(other) for other in short} == set(RBM.tensor_names):
        note = "weights: square, taken as [visible, hidden]; if they are [hidden, visible]"
        return False, (f"{note}: {transposing}",)
    if transposing != option:
        option += _when_transposed(transposing)
    raise InputError(
        "expected weights of which it can be told whether they are [visible, hidden] or "
        f"[hidden, visible], got {name} {[rows, columns]}; say it: {option}"
    )


# ---- what is left over


def _left_over_error(
    rest: _Arrays,
    stored: _Arrays,
    options: _NameOptions,
    members: Collection[str] = (),
    called: str = RBM.called,
) -> InputError:
    """For arrays beside the model that the others, its members, are."""
    parts = "the weights and biases of one RBM"
    if called != RBM.called:
        parts = f"{listed({name: stored[name] for name in members})} of {called}"
    reason = _why_left_over(rest, stored, options, members, called)
    return InputError(f"expected nothing besides {parts}, got {listed(rest)} as well{reason}")


def _why_left_over(
    rest: _Arrays,
    stored: _Arrays,
    options: _NameOptions,
    members: Collection[str],
    called: str,
) -> str:
    """What arrays that are left over may be, and what to do with them."""
    only = "only what has no part in the energy can be left out, with --names ignore=NAME"
    text = " ".join(str(value).lower() for value in rest.values() if not _shape(value))
    if "gauss" in text or any(_words(name) & _GAUSSIAN_WORDS for name in rest):
        return ": standard deviations belong to Gaussian units, which this library does not have"
    if all(
        isinstance(value, Tensor) and _size(value) == 1 and not _changes_the_model(name)
        for name, value in rest.items()
    ):
        return (
            ": a number that is stored as the parameters are may be one of them, such as a "
            "standard deviation of Gaussian units, which this library does not have, or a "
            f"temperature; {only}"
        )
    if any(_changes_the_model(name) or not _shape(value) for name, value in rest.items()):
        return (
            ": what is called so changes the model. Apply it to the weights and biases before they "
            f"are stored; {only}"
        )
    sides = {side for name in members for side in _shape(stored[name])} - {1}
    if len(rest) == 2 and called == RBM.called and _are_labels(rest, sides):
        return (
            ". They may be those of labels, of which one is on: this is another model, whose Z is "
            "the sum over labels y of exp(bias of y) times Z of the RBM with the weights to y "
            "added to its hidden biases. Or they are a second layer: name both as layers of a DBN, "
            "layers.0.weights=NAME and so on, or store those of a DBM as vishid, hidpen, "
            f"visbiases, hidbiases and penbiases. {only[0].upper()}{only[1:]}"
        )
    if any(sides & set(_shape(value)) for value in rest.values()):
        return (
            ". An array with as many values as a layer has units may act on them, and then the "
            f"model is another one without it; {only}"
        )
    option = options.extended_by(*(f"{IGNORE}={name}" for name in _grouped(rest, stored)))
    return f". What is not part of the model can be left out with {option}"


def _are_labels(rest: _Arrays, sides: Collection[int]) -> bool:
    """Whether these are a matrix with one of the model's sides and a vector for its other side."""
    matrices = [_shape(value) for value in rest.values() if _is_matrix(value)]
    lengths = [_size(value) for value in rest.values() if _is_vector(value)]
    if len(matrices) != 1 or len(lengths) != 1:
        return False
    rows, columns = matrices[0]
    return (rows in sides and columns == lengths[0]) or (columns in sides and rows == lengths[0])
