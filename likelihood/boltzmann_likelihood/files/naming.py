"""From named arrays to a model: shapes decide, names break ties, and whatever is left over is refused by its name.

What a file holds decides what its model is; the user can add which array is which, and what is no
part of it. One matrix and two vectors that fit its sides are an RBM, whatever they are called.
Names say which vector belongs to which layer, and where they do not, the width of the images does.
They also say how a square matrix lies. Where neither tells, the user is asked. Numbers and text are
no parameters.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from torch import Tensor

from boltzmann_likelihood.files.gone import categorical_model
from boltzmann_likelihood.files.stored import (
    NoDataError,
    listed,
    of_raw_bytes,
    plain_name,
    training_level,
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
        "visiblebias", "visiblebiases", "visbias", "visbiases", "vbias", "vbiases", "biasv", "bv", "vb", "bvis", "biasvisible",
        "bvisible", "interceptvisible",
    },
    HIDDEN: {
        "hiddenbias", "hiddenbiases", "hidbias", "hidbiases", "hbias", "hbiases", "biash", "bh", "hb", "bhid", "biashidden",
        "bhidden", "intercepthidden", "hidrecbiases",
    },
}  # fmt: skip
_HIDDEN_FIRST = {"components"}
_VISIBLE_FIRST = {"vishid"}
_LOG_Z = "logz"
# So many numbers and texts are printed, each of at most so many signs.
_MOST = 30
_LONGEST = 40
_ROLE = re.compile(rf"(layers\.\d+\.)?({WEIGHTS}|{VISIBLE}|{HIDDEN})|layers\.\d+|{IGNORE}")
_OF_LAYER = re.compile(r"layers\.(\d+)(\.\w+)?")
_OF_GAUSSIAN = {"sigma", "sigmas", "std", "stds", "var", "variance", "logvar", "precision", "gamma", "logsigma", "stdev", "gaussian"}  # fmt: skip
# Vectors of these names are not biases, even where a bias is missing.
_NO_BIAS = _OF_GAUSSIAN | {
    "beta", "betas", "temperature", "temp", "scale", "scales", "scaling", "mean", "means", "offset", "offsets", "center", "centers",
    "mask", "masks", "original", "magnitude",
}  # fmt: skip
# Text under these names says what kind of model it is, and may say that it is none of ours.
_KIND, _OUR_KINDS = {"type", "modeltype", "unittype", "visibletype", "hiddentype"}, {"rbm", "binary", "bernoulli"}  # fmt: skip
_OTHER_UNITS = {"gaussian", "gauss", "relu", "nrelu"}
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
_Model: TypeAlias = RBM | DBM | DBN


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
    found: dict[str, list[str]] = {}
    for part in text.split(",") if text else ():
        role, _, name = part.strip().partition("=")
        again = role != IGNORE and found.get(role, [name]) != [name]
        if not _ROLE.fullmatch(role) or not name or again:
            raise InputError(
                "names: expected weights=NAME,visible=NAME,hidden=NAME (or some of them, each once; "
                f"of the layer N of several layers.N.weights=NAME and so on), got {text!r}"
            )
        found.setdefault(role, []).append(name)
    return found


def model_of(
    stored: Mapping[str, Entry],
    names: Mapping[str, list[str]] | None = None,
    width: Callable[[], int] | None = None,
) -> tuple[RBM | DBM | DBN, tuple[str, ...], float | None]:
    """The model that consists of all these arrays, notes on how it was read, and the ln Z that is stored with it, if there is one.

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
    >>> arrays = {"a": np.zeros(2), "W": np.ones((2, 3)), "b": np.zeros((1, 3)), "W_momentum": np.zeros((2, 3))}
    >>> model, notes, log_z = model_of(arrays, width=lambda: 3)
    >>> model, notes
    (RBM(3 visible, 2 hidden, torch.float64, cpu), ('weights: [hidden, visible] in the file, transposed', 'read as weights=W.T,visible=b,hidden=a', 'passed over, by name: W_momentum'))
    """
    names = names or {}
    of_log_z = [name for name in stored if plain_name(name) == _LOG_Z]
    log_z = float(np.asarray(stored[of_log_z[0]]).item()) if len(of_log_z) == 1 else None
    ignored = [
        name
        for name in stored
        if any(f"{name}.".startswith(f"{given}.") for given in names.get(IGNORE, ()))
    ]
    entries = {name: _read(stored, name) for name in stored if name not in ignored}
    asked = _Asked(names, width)
    telling = {
        name: value
        for name, value in entries.items()
        if not training_level(name) and _tells_of_another_model(name, value)
    }
    if telling:
        raise _left_over(telling, entries, asked)
    arrays = {name: value for name, value in entries.items() if _shape(value)}
    model, notes, used = _model_of(arrays, _shapes_of(stored, ignored), asked)
    beside = {
        name: value
        for name, value in entries.items()
        if name not in used and _size(value) == 1 and name not in of_log_z
    }
    parameters = {
        name: value
        for name, value in beside.items()
        if _is_stored_as_a_parameter(name, value, used)
    }
    if parameters:
        raise _left_over(parameters, entries, asked, used)
    over = [name for name in arrays if name not in used and _size(arrays[name]) > 1]
    if over:
        notes += (f"passed over, by name: {printable(', '.join(_grouped(over, arrays)))}",)
    if ignored:
        names_of = printable(", ".join(_grouped(ignored, arrays)))
        notes += (
            f"left out, as --names says: {names_of}; if the energy has it, this is another model",
        )
    said = [
        _with_value(name, value)
        for name, value in sorted(beside.items(), key=lambda item: item[0].count("."))
        if not training_level(name) and str(_single(value)).strip()
    ]
    if said:
        notes += (f"not used: {_some_of(said)}",)
    return model, notes, log_z


def _shapes_of(stored: _Arrays, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shapes of these entries, without axes for what cannot be read."""
    found: dict[str, tuple[int, ...]] = {}
    for name in names:
        try:
            found[name] = _shape(stored[name])
        except InputError:
            found[name] = ()
    return found


def _is_stored_as_a_parameter(name: str, value: Entry, used: Collection[str]) -> bool:
    """Whether a number is a tensor beside the arrays of the model, as only what a module computes with is."""
    groups = {other.rpartition(".")[0] for other in used}
    return (
        isinstance(value, Tensor)
        and name.rpartition(".")[0] in groups
        and not training_level(name)
        and value.is_floating_point()
    )


def _single(value: Entry) -> object:
    """The one number or text of an entry."""
    if isinstance(value, Tensor | np.ndarray) and _size(value) == 1:
        return value.item() if isinstance(value, Tensor) else value.reshape(-1)[0]
    return value


def _with_value(name: str, value: Entry) -> str:
    """A number or text by name and value, on one line."""
    single = _single(value)
    text = f"{single:.6g}" if isinstance(single, float | np.floating) else str(single)
    text = printable(text)
    return f"{printable(name)} = {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'}"


def _some_of(said: Sequence[str]) -> str:
    """The first of these, and how many more there are."""
    more = len(said) - _MOST
    return ", ".join(said[:_MOST]) + (f", and {more} more numbers or texts" if more > 0 else "")


@dataclass(frozen=True)
class _Asked:
    """What the user says about the arrays, and how to say more; of a layer, also what is told by the others of its file."""

    names: Mapping[str, list[str]]
    width: Callable[[], int] | None
    layer: int | None = None
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def _roles(self) -> dict[str, str]:
        """The names of arrays by their roles, with the `.T` of weights."""
        found = {role: self.names[role][0] for role in _SYNONYMS if role in self.names}
        if self.layer is None:
            return found
        of_layer = {role: f"layers.{self.layer}.{role}" for role in _SYNONYMS}
        own = {role: self.names[key][0] for role, key in of_layer.items() if key in self.names}
        return {**self.told, **found, **own}

    @property
    def chosen(self) -> dict[str, str]:
        """The arrays that are named, by their roles."""
        given = self._roles
        return given | {role: given[role].removesuffix(".T") for role in given if role == WEIGHTS}

    @property
    def turned(self) -> bool:
        """Whether the weights are said to be [hidden, visible]."""
        return self._roles.get(WEIGHTS, "").endswith(".T")

    @property
    def layers(self) -> dict[int, dict[str, str]]:
        """What the user says of each of several layers: the group, as the role "", and arrays by their roles."""
        found: dict[int, dict[str, str]] = {}
        for key, given in self.names.items():
            if match := _OF_LAYER.fullmatch(key):
                role = (match[2] or "").removeprefix(".")
                found.setdefault(int(match[1]), {})[role] = given[0]
        return found

    def more(self, *parts: str) -> str:
        """The option that says this besides what the user says already."""
        if self.layer is not None:
            parts = tuple(
                part if part.startswith(f"{IGNORE}=") else f"layers.{self.layer}.{part}"
                for part in parts
            )
        roles = {part.partition("=")[0] for part in parts} - {IGNORE}
        said = [
            f"{role}={name}"
            for role, given in self.names.items()
            if role not in roles
            for name in given
        ]
        return f"--names {shlex.quote(','.join([*said, *parts]))}"


def _read(stored: _Arrays, name: str) -> Entry:
    """An entry, or nothing in the place of an empty group and of what is of the training and cannot be read."""
    try:
        return stored[name]
    except InputError as error:
        if not isinstance(error, NoDataError) and not training_level(name):
            raise
        return ""


def _shape(value: Entry) -> tuple[int, ...]:
    """Without axes for a number or text, which are no parameters."""
    is_text = not isinstance(value, Tensor) and np.asarray(value).dtype.kind in "OSU"
    return () if is_text else tuple(getattr(value, "shape", ()))


def _size(value: Entry) -> int:
    return math.prod(_shape(value))


def _is_vector(value: Entry) -> bool:
    return len(_shape(value)) == 1 or (len(_shape(value)) == 2 and 1 in _shape(value))


def _is_matrix(value: Entry) -> bool:
    return len(_shape(value)) == 2 and not _is_vector(value)


def _tensor(name: str, value: Entry) -> Tensor:
    """A parameter as a dense tensor of real numbers."""
    if isinstance(value, np.ndarray) and (raw := of_raw_bytes(value)):
        raise InputError(f"expected numbers as {printable(name)}, got {value.dtype}{raw}")
    return as_float_tensor(name, dense(name, value))


def _words(name: str) -> set[str]:
    """Those of the last part of a name that is more than a number."""
    return set(re.findall("[a-z]+", re.sub(r"(\.\d+)+$", "", name).rpartition(".")[2].lower()))


def _changes_the_model(name: str) -> bool:
    return bool(_words(name) & _NO_BIAS) or _words(name) == {"t"}


def _tells_of_another_model(name: str, value: Entry) -> bool:
    """Whether a number or text says that the model is not the one that the arrays alone would be."""
    if isinstance(value, str | np.ndarray) and np.asarray(value).dtype.kind == "U":
        words = set(re.findall("[a-z]+", str(value).lower()))
        other = any(unit in word for word in words for unit in _OTHER_UNITS)
        return other or (plain_name(name) in _KIND and not words <= _OUR_KINDS)
    changes = _changes_the_model(name) and "betas" not in _words(name)  # Adam's
    return changes and _size(value) == 1 and bool(dense(name, value) != 0)


def _grouped(names: Collection[str], arrays: _Arrays) -> list[str]:
    """These names, or that of their whole group where no other array is in it."""
    others = {name.partition(".")[0] for name in arrays if name not in names}
    first = {name: name.partition(".")[0] for name in names}
    return list(dict.fromkeys(n if first[n] in others else first[n] for n in names))


def _a_part(wrong: Sequence[str], called: str) -> InputError:
    return InputError(
        f"names: expected nothing that is a part of {called}, which the file holds, got {printable(', '.join(wrong))}; a part of it, such as "
        "one layer, is another model: store it in a file of its own"
    )


# A model, notes on how it was read, and the names of the arrays that it consists of.
_Found: TypeAlias = tuple[_Model, tuple[str, ...], set[str]]


@dataclass(frozen=True)
class _OneRBM:
    """An RBM, notes on how it was read, the names of its arrays by their roles, and whether its weights are [hidden, visible] there."""

    rbm: RBM
    notes: tuple[str, ...]
    roles: Mapping[str, str]
    turned: bool

    @property
    def said(self) -> str:
        """The roles as `--names` takes them."""
        return ",".join(self.local(""))

    def local(self, group: str) -> list[str]:
        """The roles, by names without that of their group."""
        ends = {WEIGHTS: ".T" if self.turned else ""}
        names = {role: self.roles.get(role, "0") for role in _SYNONYMS}
        return [
            f"{role}={name.removeprefix(f'{group}.')}{ends.get(role, '')}"
            for role, name in names.items()
        ]


def _model_of(arrays: _Arrays, ignored: Mapping[str, tuple[int, ...]], asked: _Asked) -> _Found:
    """What a file holds decides which kind of model it is, not what the user wants to be ignored."""
    there = [name for name in (*arrays, *ignored) if training_level(name) <= 1]
    kind, parts = _parts_of(there)
    shapes = {name: _shape(value) for name, value in arrays.items()} | dict(ignored)
    layers: list[tuple[str, list[str]]] = []
    if kind is DBN and not asked.layers:
        layers = _layers_of_ours(parts)
    if asked.layers:
        parts = {}
        layers = _layers_said(arrays, there, shapes, asked)
    elif not parts:
        layers = _layers_of(there, shapes)
    snapshots: list[str] = []
    if not asked.layers and not parts and _look_the_same(layers, shapes):
        snapshots = [group for group, _ in layers]
        gone = [group for group, inside in layers if all(name in ignored for name in inside)]
        layers = [layer for layer in layers if layer[0] not in gone]
        if len(layers) > 1:
            raise _which_of(layers, shapes, asked)
        layers = []
    if not parts and not layers:
        sizes = [name for name in arrays if _are_sizes(name, arrays)]
        one = _rbm_of({name: arrays[name] for name in arrays if name not in sizes}, asked)
        _require_no_layer_above(one, ignored, snapshots)
        plain = {role: name.rpartition(".")[2] for role, name in one.roles.items()}
        ours = dict(zip(_SYNONYMS, RBM.tensor_names, strict=True))
        said = () if plain == ours and not one.turned else (f"read as {one.said}",)
        return one.rbm, (*one.notes, *said), set(one.roles.values())
    own = [*parts.values(), *(name for _, layer in layers for name in layer)]
    named = {role: name for role, name in asked.names.items() if role in _SYNONYMS}
    of_all = layers and all(
        any(_is_called(name, given[0].removesuffix(".T")) or given[0] == "0" for name in layer)
        for given in named.values()
        for _, layer in layers
    )
    used_layers = [(group, [n for n in layer if n in arrays]) for group, layer in layers]
    empty = [name for _, layer in layers for name in layer if not set(layer) & set(arrays)]
    wrong = [name for name in ignored if name in parts.values() or name in empty]
    if not of_all:
        wrong += [given[0] for given in named.values()]
    if wrong:
        raise _a_part(wrong, kind.called)
    if not layers:
        _require_nothing_else(arrays, own, asked, kind)
        tensors = {ours: arrays[name] for ours, name in parts.items()}
        return _of_parts(kind, tensors), (), set(own)
    model, notes, used = _stack_of(used_layers, arrays, asked, called_as_ours=bool(parts))
    rest = _require_nothing_else(arrays, own, asked, kind, model)
    ends = {name.rpartition(".")[2] for name in used}
    wrong = [name for name in ignored if name in own and name.rpartition(".")[2] in ends]
    if wrong:
        raise _a_part(wrong, kind.called)
    if rest:
        notes += (f"the sizes of the layers: {printable(', '.join(rest))}",)
    return model, notes, used


def _require_nothing_else(
    arrays: _Arrays,
    own: Collection[str],
    asked: _Asked,
    kind: type[_Model],
    model: DBN | None = None,
) -> list[str]:
    """Raise if there are arrays that belong to no layer; the names of those that only repeat the numbers of units."""
    rest = {
        name: value
        for name, value in arrays.items()
        if name not in own and not training_level(name) and _size(value) != 1
    }
    sizes: list[int] = []
    if model is not None:
        sizes = [model.layers[0].num_visible, *(layer.num_hidden for layer in model.layers)]
    of_sizes = [
        name
        for name, value in rest.items()
        if _is_vector(value)
        and len(sizes) - 1 <= _size(value) <= len(sizes)
        and _tensor(name, value).flatten().tolist() in (sizes, sizes[1:])
    ]
    rest = {name: value for name, value in rest.items() if name not in of_sizes}
    if rest:
        raise _left_over(rest, arrays, asked, own, kind.called)
    return of_sizes


def _require_no_layer_above(
    one: _OneRBM, ignored: Mapping[str, tuple[int, ...]], snapshots: Sequence[str]
) -> None:
    """Raise if what the user leaves out is a layer above this one, by its name and shape."""
    numbered = {re.sub(r"\d+", "", name) for name in one.roles.values()}
    above = [
        name
        for name, shape in ignored.items()
        if re.sub(r"\d+", "", name) in numbered
        and not training_level(name)
        and name.rpartition(".")[0] not in snapshots
        and len(shape) == 2
        and 1 not in shape
        and one.rbm.num_hidden in shape
    ]
    if above:
        raise _a_part(above, "a deep model")


_Layers: TypeAlias = list[tuple[str, list[str]]]


def _layers_of_ours(parts: Mapping[str, str]) -> _Layers:
    """The arrays of each layer of a DBN under our own names, which may be those of another program's list of layers."""
    found: dict[str, list[str]] = {}
    for ours, name in parts.items():
        if not name.endswith(ours):
            return []
        found.setdefault(name.rpartition(".")[0], []).append(name)
    if {name.rpartition(".")[2] for name in parts} != set(RBM.tensor_names):
        return []
    return sorted(found.items(), key=lambda layer: int(layer[0].rpartition(".")[2]))


def _layers_said(
    arrays: _Arrays,
    there: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    asked: _Asked,
) -> _Layers:
    """The arrays of each layer where the user says something of layers: those of its group, or those that are named."""
    groups = _layers_of(there, shapes)
    said = asked.layers
    if any("" in of_layer for of_layer in said.values()) or not groups:
        groups = [("", []) for _ in range(len(said))]
    if sorted({*range(len(groups)), *said}) != list(range(len(groups))):
        raise InputError(
            f"names: expected layers from 0 to {len(groups) - 1}, got {', '.join(map(str, said))}"
        )
    found: _Layers = []
    for number, (group, inside) in enumerate(groups):
        of_layer = said.get(number, {})
        group = of_layer.get("", group)
        if "" in of_layer:
            inside = [name for name in there if name.startswith(f"{group}.")]
            if not inside:
                raise InputError(
                    f"names: expected a group of the file as layer {number}, got {group!r}; "
                    f"there are {listed(arrays)}"
                )
        given = [name.removesuffix(".T") for role, name in of_layer.items() if role]
        named = [name for name in there if any(_is_called(name, one) for one in given)]
        found.append((group, list(dict.fromkeys([*inside, *named]))))
    return found


def _of_weights(
    layer: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> set[tuple[int, ...]]:
    """The shapes of the matrices of a layer."""
    return {shapes[name] for name in layer if len(shapes[name]) == 2 and 1 not in shapes[name]}


def _look_the_same(layers: _Layers, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether each of several groups has the same arrays of the same shapes, as one model at several times has."""
    each = [
        {name.rpartition(".")[2]: shapes[name] for name in inside if len(shapes[name])}
        for _, inside in layers
    ]
    return len(each) > 1 and all(one == each[0] for one in each)


def _which_of(layers: _Layers, shapes: Mapping[str, tuple[int, ...]], asked: _Asked) -> InputError:
    """What to ask where a file holds the same arrays several times."""
    groups = [group for group, _ in layers]
    others = [f"{IGNORE}={group}" for group in groups[:-1]]
    said = (
        f"expected one model, got the same arrays of the same shapes {len(groups)} times, in "
        f"{printable(', '.join(groups))}; if they are one RBM at several times, choose one by leaving "
        f"out the others, for the last {asked.more(*others)}"
    )
    if all(len(set(shape)) == 1 for _, inside in layers for shape in _of_weights(inside, shapes)):
        said += "; if they are layers of a DBN, from the images up, "
        said += asked.more(*(f"layers.{n}={group}" for n, group in enumerate(groups)))
    return InputError(said)


def _stack_of(
    layers: _Layers, arrays: _Arrays, asked: _Asked, *, called_as_ours: bool = False
) -> tuple[DBN, tuple[str, ...], set[str]]:
    """The DBN of these layers.

    A square layer, whose shape does not tell how it lies or which biases are which, follows the
    others.
    """
    shapes = {name: _shape(value) for name, value in arrays.items()}
    sides = [_square_side(layer, shapes) for _, layer in layers]
    said = asked.layers
    first = [n for n, side in enumerate(sides) if not side or WEIGHTS in said.get(n, {})]
    read: dict[int, _OneRBM] = {}
    for number in [*first, *(n for n in range(len(layers)) if n not in first)]:
        group, inside = layers[number]
        below = read.get(number - 1)
        width = asked.width
        if number:
            side = sides[number - 1] if below is None else below.rbm.num_hidden
            width = _constant(side) if side else None
        told = {}
        if sides[number]:
            told = _told_by(read, layers, group, inside)
        of_layer = replace(asked, width=width, layer=number, told=told)
        try:
            read[number] = _rbm_of({name: arrays[name] for name in inside}, of_layer)
        except InputError:
            # The message is about what the layer lacks, and not about what was concluded.
            if not told:
                raise
            plain = replace(of_layer, told={})
            read[number] = _rbm_of({name: arrays[name] for name in inside}, plain)
    each = [read[number] for number in range(len(layers))]
    notes = [note for one in each for note in one.notes]
    roles = {tuple(one.local(group)) for one, (group, _) in zip(each, layers, strict=True)}
    if len(roles) == 1 and all(group for group, _ in layers):
        groups = ",".join(f"layers.{n}={group}" for n, (group, _) in enumerate(layers))
        read_as = f"read as {groups}, each with {','.join(*roles)}"
    else:
        read_as = "read as " + ",".join(
            f"layers.{n}.{role}" for n, one in enumerate(each) for role in one.local("")
        )
    if not called_as_ours or any(one.turned for one in each):
        notes.append(printable(read_as))
    used = {name for one in each for name in one.roles.values()}
    return DBN([one.rbm for one in each]), tuple(dict.fromkeys(notes)), used


def _constant(number: int) -> Callable[[], int]:
    return lambda: number


def _square_side(layer: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The side of the matrices of a layer, if all are square and have the same; otherwise 0."""
    sides = {side for shape in _of_weights(layer, shapes) for side in shape}
    return sides.pop() if len(sides) == 1 else 0


def _told_by(
    read: Mapping[int, _OneRBM], layers: _Layers, group: str, inside: Sequence[str]
) -> dict[str, str]:
    """The names of the arrays of a layer by their roles, as far as all layers that were read agree on them."""
    found: dict[str, str] = {}
    for number, role in enumerate(_SYNONYMS):
        names = {one.local(layers[n][0])[number].partition("=")[2] for n, one in read.items()}
        local = names.pop() if len(names) == 1 else ""
        name = f"{group}.{local}" if group else local
        if name.removesuffix(".T") in inside:
            found[role] = name
    return found


def _parts_of(there: Sequence[str]) -> tuple[type[_Model], dict[str, str]]:
    """A DBM or DBN under our names or those of the papers' authors: its kind, and the names of its arrays by our names."""
    for name in there:
        match = re.fullmatch(r"(|.*?\.)(hidpen|weights_2|layers\.0\.weights)", name)
        if not match:
            continue
        group, first = match.groups()
        inside = {other.removeprefix(group): other for other in there if other.startswith(group)}
        if first == "hidpen" and "vishid" not in inside:
            # The authors' programs write each layer to a file of its own.
            inside = _by_last_part(there)
        kind = DBM if first == "weights_2" else DBN
        ours = {other: other for other in kind.tensor_names}
        if first == "hidpen":
            kind, ours = (DBN, _AUTHORS_DBN) if "hidrecbiases" in inside else (DBM, _AUTHORS_DBM)
        elif kind is DBN:
            ours = {
                other: other
                for other in inside
                if re.match(r"layers\.\d+\.(weights|\w+_bias)$", other)
            }
        elif not ours.keys() <= inside.keys():
            continue
        return kind, {ours[other]: inside[other] for other in inside if other in ours}
    return DBN, {}


def _by_last_part(there: Sequence[str]) -> dict[str, str]:
    """Names by their last parts, of those whose last part no other has."""
    ends = [name.rpartition(".")[2] for name in there]
    return {end: name for end, name in zip(ends, there, strict=True) if ends.count(end) == 1}


def _of_parts(kind: type[_Model], arrays: _Arrays) -> _Model:
    """A DBM or DBN from its arrays by our names."""
    tensors = {name: _tensor(name, value) for name, value in arrays.items()}
    # Biases may be stored as one row or one column.
    return kind.from_tensors(
        {name: t.flatten() if "bias" in name and 1 in t.shape else t for name, t in tensors.items()}
    )


def _layers_of(there: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> _Layers:
    """The arrays of each of several layers: groups of at least three, with the same names but for the numbers, in the order of these."""
    groups: dict[str, list[str]] = {}
    for name in there:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    kinds: dict[str, list[str]] = {}
    for group, inside in groups.items():
        numbered = re.findall(r"[^.]*\d[^.]*", group)
        has_matrix = any(len(shapes[name]) == 2 for name in inside)
        # Groups such as `epoch_10` are one model at several times.
        if len(inside) >= 3 and has_matrix and not any(map(training_level, numbered[-1:])):
            kinds.setdefault(re.sub(r"_?\d+", "", group), []).append(group)
    several = next((found for found in kinds.values() if len(found) > 1), [])

    def order(group: str) -> tuple[list[int], str]:
        return [int(digits) for digits in re.findall(r"\d+", group)], group

    return [(group, groups[group]) for group in sorted(several, key=order)]


def _are_sizes(name: str, arrays: _Arrays) -> bool:
    """Whether a vector of two numbers only repeats the sides of the one matrix, as no vector of biases could."""
    matrices = [_shape(value) for value in arrays.values() if _is_matrix(value)]
    value = arrays[name]
    if len(matrices) != 1 or not _is_vector(value) or _size(value) != 2 or 2 in matrices[0]:
        return False
    return sorted(_tensor(name, value).flatten().tolist()) == sorted(matrices[0])


def _copies(arrays: _Arrays) -> set[str]:
    """Arrays that repeat the names and shapes of a whole RBM with the same letters before or behind them, as `vW`, `vb`, `vc` do.

    They accompany its parameters, as velocities, gradients and averages do.
    """
    shapes = {name: _shape(value) for name, value in arrays.items()}
    found: set[str] = set()
    matrices = [name for name, value in arrays.items() if _is_matrix(value)]
    for matrix in matrices:
        group, _, local = matrix.rpartition(".")
        start = f"{group}." if group else ""
        for other in matrices:
            place = other.removeprefix(start).rfind(local) if other.startswith(start) else -1
            rest = other.removeprefix(start)
            if other == matrix or place < 0 or (place and not rest.endswith(local)):
                continue
            before = rest[:place]
            behind = rest[place + len(local) :]
            pairs = {
                name: f"{start}{before}{name.removeprefix(start)}{behind}"
                for name in arrays
                if name.startswith(start)
            }
            pairs = {
                name: copy
                for name, copy in pairs.items()
                if copy != name and shapes.get(copy) == shapes[name]
            }
            sides = sorted(math.prod(shapes[name]) for name in pairs if name != matrix)
            if matrix in pairs and sides == sorted(shapes[matrix]):
                found |= set(pairs.values())
    return {name for name in found if not _changes_the_model(name)}


def _rbm_of(arrays: _Arrays, asked: _Asked) -> _OneRBM:
    """The RBM of these arrays, without those that by their names are of the training, as long as the others are an RBM."""
    levels = {name: training_level(name) for name in arrays}
    levels |= dict.fromkeys(_copies(arrays), 3)
    # Beside a matrix, a single number is no vector of biases.
    if any(map(_is_matrix, arrays.values())):
        levels |= {name: 4 for name, value in arrays.items() if _size(value) == 1}
    levels |= {
        name: 0 for name in arrays for given in asked.chosen.values() if _is_called(name, given)
    }
    most = 1 if min(levels.values(), default=0) <= 1 else 2
    every = {name: value for name, value in arrays.items() if levels[name] <= most}
    shapes = [sorted(_shape(value)) for name, value in every.items() if not levels[name]]
    # A matrix of a shape of its own is no copy of a parameter.
    certain = {
        name: value
        for name, value in every.items()
        if not levels[name] or (_is_matrix(value) and sorted(_shape(value)) not in shapes)
    }
    try:
        return _rbm_of_all(certain, arrays, asked)
    except InputError:
        if len(certain) == len(every):
            raise
    return _rbm_of_all(every, arrays, asked)


def _require_no_states(arrays: _Arrays, short: Mapping[str, str]) -> None:
    """Raise if there are weights [sites, states, hidden], by their name or since all matrices are [sites, states]."""
    for name, value in arrays.items():
        shape = _shape(value)
        if len(shape) != 3:
            continue
        matrices = {_shape(other) for other in arrays.values() if len(_shape(other)) == 2}
        if plain_name(short[name]) not in _SYNONYMS[WEIGHTS] and matrices != {shape[:2]}:
            continue
        if shape[0] == 1:
            raise InputError(
                f"expected weights [visible, hidden], got {printable(name)} {list(shape)}; leave out the first axis"
            )
        raise InputError(
            f"expected a model of binary units, got {categorical_model(shape[0], shape[1])}"
        )


def _are_couplings(weights: Tensor) -> bool:
    """Whether weights are those between units of one layer: symmetric with a zero diagonal."""
    square = weights.shape[0] == weights.shape[1]
    return square and bool(
        (weights == weights.T).all() and (weights.diagonal() == 0).all() and weights.any()
    )


def _is_called(name: str, given: str) -> bool:
    return given in (name, name.rpartition(".")[2])


def _rbm_of_all(arrays: _Arrays, there: _Arrays, asked: _Asked) -> _OneRBM:
    """The RBM of all of these arrays, out of those that are there."""
    short = _short_names(arrays)
    _require_no_states(arrays, short)
    roles = _roles_by_name(arrays, short, asked.chosen)
    if WEIGHTS not in roles or len(_shape(arrays[roles[WEIGHTS]])) != 2:
        raise InputError(
            f"expected one matrix of weights, and a vector of biases for each of its sides, got {listed(there)}; "
            f"say which is which with {asked.more('weights=NAME', 'visible=NAME', 'hidden=NAME')}"
        )
    free = [
        role for role in (VISIBLE, HIDDEN) if role not in roles and asked.chosen.get(role) != "0"
    ]
    rest = {name: value for name, value in arrays.items() if name not in roles.values()}
    outer = _shape(arrays[roles[WEIGHTS]])
    wrong = {
        name: value
        for name, value in rest.items()
        if not _is_vector(value) or _size(value) not in outer or _changes_the_model(short[name])
    }
    if len(rest) == 1 and len(free) == 2 and _size(rest[next(iter(rest))]) == sum(outer):
        raise InputError(
            f"expected visible and hidden biases, got {listed(rest)}, as many numbers as both layers have units; store the two parts as arrays of "
            "their own"
        )
    if wrong or (rest and not free):
        raise _left_over(wrong or rest, arrays, asked, roles.values())
    weights = _tensor(roles[WEIGHTS], arrays[roles[WEIGHTS]])
    if len(roles) + len(rest) < 3 and _are_couplings(weights):
        raise InputError(
            f"expected weights between visible and hidden units, got {printable(roles[WEIGHTS])} {list(outer)}, symmetric with a zero diagonal as "
            "the couplings of a fully visible Boltzmann machine are: only models with hidden units are read"
        )
    roles |= _roles_of_biases(rest, free, roles[WEIGHTS], outer, asked)
    biases = {
        role: _tensor(roles[role], arrays[roles[role]]).flatten()
        for role in (VISIBLE, HIDDEN)
        if role in roles
    }
    turned = asked.turned
    notes = ()
    if WEIGHTS not in asked.chosen:
        turned, notes = _orientation(roles[WEIGHTS], weights, biases, short, asked)
    if turned:
        weights = weights.T.contiguous()
    zeros = [weights.new_zeros(side) for side in weights.shape]
    rbm = RBM(weights, biases.get(VISIBLE, zeros[0]), biases.get(HIDDEN, zeros[1]))
    return _OneRBM(rbm, notes, roles, turned)


def _short_names(names: Collection[str]) -> dict[str, str]:
    """Names without what all of them end in, from its first sign or digit on, such as `_epoch100` or `:0`."""
    one = min(names, default="")
    ends = [one[sign.start() :] for sign in re.finditer("[^A-Za-z]", one)] if len(names) > 1 else []
    shared = next((end for end in ends if all(name.endswith(end) for name in names)), "")
    return {name: name.removesuffix(shared) for name in names}


def _roles_by_name(
    arrays: _Arrays, short: Mapping[str, str], chosen: Mapping[str, str]
) -> dict[str, str]:
    """The names of the arrays that are known to be weights or biases, by what they are; of matrices without a known name, a single one."""
    roles: dict[str, str] = {}
    for role, synonyms in _SYNONYMS.items():
        name = chosen.get(role)
        if name is not None:
            candidates = [known for known in arrays if _is_called(known, name)]
            if len(candidates) != 1 and name != "0":
                raise InputError(
                    f"names: expected an array of the file as {role}, got {name!r}; there are {listed(arrays)}"
                )
        else:
            candidates = [known for known in arrays if plain_name(short[known]) in synonyms]
        if role == WEIGHTS and not candidates:
            matrices = [known for known, value in arrays.items() if _is_matrix(value)]
            plain = [known for known in matrices if not _changes_the_model(short[known])]
            candidates = plain or matrices
        if len(candidates) == 1 and name != "0":
            roles[role] = candidates[0]
    return roles


def _roles_of_biases(
    rest: _Arrays, free: list[str], of_weights: str, outer: tuple[int, ...], asked: _Asked
) -> dict[str, str]:
    """Which of the vectors that are left are which biases."""
    found = list(rest)
    values = asked.width() if asked.width and len(free) == 2 else None
    if not found and values is not None and values + 1 in outer:
        matrix = "it" if outer[0] == values + 1 else "its transpose"
        raise InputError(
            f"expected {VISIBLE} and {HIDDEN} biases, got no arrays besides {printable(of_weights)} {list(outer)}, of which a side is one longer than the "
            f"images have values; if its first row and column are the biases, store them apart: with A for {matrix}, "
            "numpy.savez('model.npz', weights=A[1:, 1:], visible_bias=A[1:, 0], hidden_bias=A[0, 1:])"
        )
    if free and not found:
        raise InputError(
            f"expected {' and '.join(free)} biases, got no arrays besides the rest of an RBM; if the model has none, say so: "
            f"{asked.more(*(f'{role}=0' for role in free))}"
        )
    if len(found) == 1 and values in outer and outer[0] != outer[1]:
        theirs = VISIBLE if _size(rest[found[0]]) == values else HIDDEN
        other = HIDDEN if theirs == VISIBLE else VISIBLE
        raise InputError(
            f"expected {VISIBLE} and {HIDDEN} biases, got {listed(rest)}, as many as there are {theirs} units; if the model has no {other} biases, "
            f"say so: {asked.more(f'{theirs}={found[0]}', f'{other}=0')}"
        )
    if len(found) != len(free):
        raise InputError(
            f"expected {' and '.join(free)} biases, got {listed(rest)}; say which is which, with 0 for a layer without biases: "
            f"{asked.more(*(f'{role}=NAME' for role in free))}"
        )
    if len(free) == 2:
        # The visible layer is the one with as many units as an image has values.
        one, two = (_size(rest[name]) for name in found)
        say = f"say it: {asked.more(f'{VISIBLE}={found[0]}', f'{HIDDEN}={found[1]}')} or the other way round"
        if one == two:
            if WEIGHTS not in asked.chosen:
                say += f", and with them weights={of_weights}{_of_rows(f'weights={of_weights}.T')}"
            raise InputError(
                f"expected names that tell visible from hidden biases, got {listed(rest)}; {say}"
            )
        if values not in (one, two):
            images = "" if values is None else f", and images of {values}"
            raise InputError(
                f"expected names, or images of {one} or {two} values, that tell visible from hidden biases, got {listed(rest)}{images}; {say}"
            )
        if values == two:
            found.reverse()
    return dict(zip(free, found, strict=True))


def _of_rows(turned: str) -> str:
    """When weights are to be given as they are, and when `turned`."""
    return f" if its rows are visible units, {turned} if they are hidden units, as in nn.Linear"


def _orientation(
    name: str,
    weights: Tensor,
    biases: Mapping[str, Tensor],
    short: Mapping[str, str],
    asked: _Asked,
) -> tuple[bool, tuple[str, ...]]:
    """Whether weights are [hidden, visible], and a note where the file does not make that plain."""
    rows, columns = weights.shape
    sides = [len(biases[role]) if role in biases else None for role in (VISIBLE, HIDDEN)]
    if not biases and rows != columns and asked.width and asked.width() in (rows, columns):
        sides[0] = asked.width()
    as_they_are, exchanged = (
        all(side in (None, length) for side, length in zip(sides, shape, strict=True))
        for shape in ((rows, columns), (columns, rows))
    )
    if not (as_they_are or exchanged):
        return False, ()  # refused by the model itself
    plain = plain_name(short[name])
    if as_they_are != exchanged:
        usual = exchanged == (plain in _HIDDEN_FIRST)
        return exchanged, () if usual else ("weights: [hidden, visible] in the file, transposed",)
    if plain in _HIDDEN_FIRST | _VISIBLE_FIRST:
        return plain in _HIDDEN_FIRST, ()
    ways = [asked.more(f"{WEIGHTS}={name}"), asked.more(f"{WEIGHTS}={name}.T")]
    if {known.rpartition(".")[2] for known in short} == set(RBM.tensor_names):
        return False, (
            f"weights: square, taken as [visible, hidden]; if they are [hidden, visible]: {ways[1]}",
        )
    say = ways[0]
    if ways[1] != ways[0]:
        say += _of_rows(ways[1])
    raise InputError(
        f"expected weights of which it can be told whether they are [visible, hidden] or [hidden, visible], got {name} {[rows, columns]}; "
        f"say it: {say}"
    )


def _are_labels(rest: _Arrays, own: Collection[str], there: _Arrays) -> bool:
    """Whether these are a matrix with a side in common with the model's and a vector for its other side."""
    sides = {side for name in own for side in _shape(there[name])} - {1}
    matrices = [_shape(value) for value in rest.values() if _is_matrix(value)]
    lengths = [_size(value) for value in rest.values() if _is_vector(value)]
    if len(matrices) != 1 or len(lengths) != 1:
        return False
    rows, columns = matrices[0]
    return (rows in sides and columns == lengths[0]) or (columns in sides and rows == lengths[0])


def _left_over(
    rest: _Arrays,
    there: _Arrays,
    asked: _Asked,
    own: Collection[str] = (),
    called: str = RBM.called,
) -> InputError:
    """What to say of arrays that do not belong to the model that the others are."""
    parts = "the weights and biases of one RBM"
    if called != RBM.called:
        parts = f"{listed({name: there[name] for name in own})} of {called}"
    said = f"expected nothing besides {parts}, got {listed(rest)} as well"
    sides = {side for name in own for side in _shape(there[name])} - {1}
    text = " ".join(str(value).lower() for value in rest.values() if not _shape(value))
    only = "only what has no part in the energy can be left out, with --names ignore=NAME"
    if "gauss" in text or any(_words(name) & _OF_GAUSSIAN for name in rest):
        said += ": standard deviations belong to Gaussian units, which this library does not have"
    elif not any(
        _changes_the_model(name) or not isinstance(value, Tensor) for name, value in rest.items()
    ) and all(_size(value) == 1 for value in rest.values()):
        said += (
            ": a number that is stored as the parameters are may be one of them, such as a standard deviation of Gaussian units, which this "
            f"library does not have, or a temperature; {only}"
        )
    elif any(_changes_the_model(name) or not _shape(value) for name, value in rest.items()):
        said += f": what is called so changes the model. Apply it to the weights and biases before they are stored; {only}"
    elif len(rest) == 2 and called == RBM.called and _are_labels(rest, own, there):
        said += (
            f". They may be those of labels, of which one is on: this is another model, whose Z is the sum over labels y of exp(bias of y) "
            "times Z of the RBM with the weights to y added to its hidden biases. Or they are a second layer: name both as "
            f"layers of a DBN, layers.0.weights=NAME and so on. {only[0].upper()}{only[1:]}"
        )
    elif any(sides & set(_shape(value)) for value in rest.values()):
        said += f". An array with as many values as a layer has units may act on them, and then the model is another one without it; {only}"
    else:
        ignored = [f"{IGNORE}={name}" for name in _grouped(rest, there)]
        said += f". What is not part of the model can be left out with {asked.more(*ignored)}"
    return InputError(said)
