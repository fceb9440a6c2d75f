"""Random calls in a process of their own: `python tests/fuzz_calls.py LOG`.

They are those of the tables of tests, with one argument exchanged, and walks in which states are
edited.

Run by tests/test_no_crash.py. Before each call its name goes to the file LOG, so that a crash names
it. The last line of the output is JSON: how many calls there were, and what they raised beside
`InputError` and `TypeError`.

Nothing is drawn from a common stream: a call is a function of its name and its number. A new row of
a table therefore changes no other call.
"""

import copy
import dataclasses
import faulthandler
import inspect
import json
import math
import os
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from functools import partial

import numpy as np
import torch
from test_bad_input import CASES
from test_states import CALLS
from walks import LARGE_KINDS, Coins, path_of

from paperlib.errors import InputError
from paperlib.kernels import Ladder
from paperlib.numerics import seeded_generator

# Calls of each row of a table, and steps of each walk.
EXCHANGES = 8
STEPS = 300
# Not those that learn, evaluate, or write what they are not told to.
ROOMS = "paperlib.models", "paperlib.annealing", "paperlib.estimators"
#: Narrow and wide layers take different ways through the kernels.
SIZES = [
    (6, 4, torch.float64),
    (40, 12, torch.float32),
    (200, 12, torch.float32),
    (12, 200, torch.float32),
    (150, 130, torch.float64),
    (300, 200, torch.float32),
]
DTYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64]


def tables():
    """Rows of the tables of right and wrong arguments: name, function, positional, named."""
    for name, (function, *states) in CALLS.items():
        yield name, function, states, {}
    for number, (message, *call) in enumerate(CASES):
        function, arguments, named = without_partials(*call)
        if str(getattr(function, "__module__", "")).startswith(ROOMS):
            name = getattr(function, "__qualname__", "call")
            yield f"{name}, row {number}: {message}", function, arguments, named


def without_partials(function, *arguments):
    """The function itself, and its arguments by place and by name."""
    named = {}
    while isinstance(function, partial):
        arguments = (*function.args, *arguments)
        named = function.keywords | named
        function = function.func
    return function, list(arguments), named


# ---- what is passed


def wrong(draw, width=6):
    """Something that is hardly ever right."""
    shape = draw.choice(
        [
            (),
            (0,),
            (width,),
            (0, width),
            (3, 0),
            (3, width - 1),
            (3, width + 1),
            (2, 3, width),
            (width, 3),
            (1, 2 * width),
        ]
    )
    zeros = partial(torch.zeros, 3, width)
    kinds = [
        *3 * [[torch.zeros(shape, dtype=dtype) for dtype in DTYPES]],
        [torch.full((3, width), value) for value in (math.nan, math.inf, 0.5, 2.0, -1)],
        [zeros(dtype=torch.complex64), zeros(dtype=torch.bfloat16), zeros().to_sparse()],
        [np.zeros(shape, kind) for kind in (bool, np.uint16, np.float16, object)],
        [[], [[]], [[0, 1], [1]], [0.0] * width, [[None] * width], ["a"] * width],
        [None, True, False, "", "one", b"1", (), {}, {"a": 1}, object(), int],
        [
            math.nan,
            math.inf,
            -0.5,
            2.5,
            1e300,
            1j,
            0,
            -1,
            1,
            99,
            -9,
            np.int64(2),
            torch.tensor(0.5),
        ],
    ]
    return draw.choice(draw.choice(kinds))


#: The same numbers in another shape, order, number or type.
TURNS = [
    lambda t: t[:1].expand(5, *t.shape[1:]),
    lambda t: t[:1].expand(5, *t.shape[1:]).clone(),
    lambda t: t.flip(0),
    lambda t: t[:, None],
    lambda t: t[:0],
    lambda t: t[..., :-1],
    lambda t: torch.cat([t, t]),
    lambda t: torch.cat([t, t], -1),
    lambda t: t.T.contiguous().T,
    torch.Tensor.double,
    torch.Tensor.float,
    lambda t: t.to(torch.uint8),
]


def turned(draw, tensor):
    return draw.choice(TURNS)(tensor) if tensor.ndim and len(tensor) else tensor


def exchanged(draw, value):
    """Something in the place of an argument."""
    is_tensor = isinstance(value, torch.Tensor)
    return turned(draw, value) if is_tensor and draw.random() < 0.5 else wrong(draw)


def edited(draw, path, state):
    """A state that someone has changed, or that never belonged to the path."""
    kind = draw.randrange(6)
    if isinstance(state, torch.Tensor) or kind == 0:
        return wrong(draw) if kind < 2 else turned(draw, path.units(state))
    if kind == 1:
        other = draw.choice(list(PATHS.values()))
        return other.sample_start(3, seeded_generator(draw.getrandbits(32)))
    values = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    name = draw.choice([n for n, v in values.items() if isinstance(v, torch.Tensor)])
    value = values[name]
    if kind == 2:  # in place
        value.logical_not_() if value.dtype == torch.bool else value.add_(1)
        return state
    other = wrong(draw, value.shape[-1]) if kind == 3 else turned(draw, value)
    return dataclasses.replace(state, **{name: other})


PATHS = {
    f"{kind} {d}x{m}": path_of(kind, d, m, dtype) for kind in LARGE_KINDS for d, m, dtype in SIZES
}
PATHS["coins"] = Coins()


def step_arguments(draw, path, method, state):
    """Arguments by name for a method of a path, one of them wrong in one step of five."""
    chains = max(1, len(path.units(state)))
    beta = [
        0,
        0.25,
        1.0,
        np.float32(0.5),
        torch.linspace(0, 1, chains),
        torch.zeros(chains + 1),
        torch.zeros(chains, 2),
        math.nan,
        -1.0,
    ]
    fitting = {
        "state": [state],
        "last": [state],
        "states": [[state, state]],
        "units": [path.units(state)],
        "generator": [seeded_generator(draw.getrandbits(32))],
        **dict.fromkeys(("beta", "beta_from", "beta_to"), beta),
        "betas": [[0.0, 0.5, 1.0], [1.0, 0.25], [math.nan, 1.0], [0.5]],
        "log_weights": [torch.zeros(chains, dtype=torch.float64)],
        "index": [torch.arange(chains).flip(0), torch.arange(chains)[:1], torch.tensor([99])],
        "end": [0, 1],
        "parts": [2, 99],
        "v": [path.units(state)[..., : getattr(path, "num_visible", 3)], getattr(state, "v", None)],
        "visible_bias": [None, torch.zeros(path.units(state).shape[-1])],
        "num_chains": [1, 7],
        "device": ["cpu"],
        "schedule": [[0.0, 0.5, 1.0], [1, 0], [0, math.nan, 1]],
        "on_step": [lambda *_: None],
        "ladder": [Ladder(torch.linspace(0, 1, chains), 1, torch.device("cpu"))],
    }
    arguments = {name: draw.choice(fitting[name]) for name in inspect.signature(method).parameters}
    if arguments and draw.random() < 0.2:
        # a schedule has been made a list of numbers before it comes here
        name = draw.choice([name for name in arguments if name != "schedule"])
        arguments[name] = exchanged(draw, arguments[name])
    return arguments


def can_go_on(path, state):
    try:
        return 0 < len(path.units(state)) < 30
    except (AttributeError, TypeError, IndexError, RuntimeError):
        return False


# ---- calls


class Session:
    """Makes calls and remembers what they raised."""

    def __init__(self, log):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.outcomes = Counter()
        self.examples = {}

    def call(self, name, function, arguments, named):
        """The result, or None if it raised."""
        what = f"{name}: {repr((arguments, named))[:300]}"
        os.truncate(self.log, 0)
        os.pwrite(self.log, what.encode(errors="replace"), 0)
        try:
            result = function(*arguments, **named)
        except (InputError, TypeError) as error:
            self.outcomes[type(error).__name__] += 1
            return None
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            # what parallel tempering calls, and swaps by, a path defines itself
            in_kernels = any(
                "/paperlib/kernels/" in frame.filename and frame.name not in ("take", "swap")
                for frame in frames
            )
            # what numba says
            if str(error) == "index is out of bounds":
                place = "out of bounds"
            elif in_kernels:
                place = "in kernels"
            else:
                place = "elsewhere"
            self.outcomes["other"] += 1
            self.examples.setdefault(
                f"{place}, {type(error).__name__}: {name}", f"{what}: {str(error)[:200]}"
            )
            return None
        self.outcomes["returned"] += 1
        return result

    def exchange(self):
        """One argument of each row at a time is something else."""
        for name, function, arguments, named in tables():
            for number in range(EXCHANGES if arguments or named else 0):
                draw = random.Random(f"{name} {number}")
                passed = dict(enumerate(arguments)) | named
                place = draw.choice(list(passed))
                passed[place] = exchanged(draw, passed[place])
                by_place = [passed.pop(n) for n in range(len(arguments))]
                self.call(name, function, by_place, passed)

    def walk(self):
        """Along every path, with states that are edited, exchanged, selected and taken further."""
        for name, path in PATHS.items():
            draw = random.Random(name)
            methods = [m for m in dir(path) if m[0] != "_" and inspect.ismethod(getattr(path, m))]
            state = start = path.sample_start(3, seeded_generator(0))
            for _ in range(STEPS):
                method = getattr(path, draw.choice(methods))
                arguments = step_arguments(draw, path, method, state)
                if "state" in arguments and draw.random() < 0.3:
                    arguments["state"] = edited(draw, path, state)
                called = f"{type(path).__name__}.{method.__name__}"
                result = self.call(called, method, [], arguments)
                if method.__name__ == "tempering_steps" and result is not None:
                    moved = copy.deepcopy(state)
                    moved = edited(draw, path, moved) if draw.random() < 0.5 else moved
                    self.call(f"{called}()", result, [moved, seeded_generator(1), 2], {})
                # no steps leave a state that was edited as it is
                if type(result) is type(state) and result is not arguments.get("state"):
                    state = result if can_go_on(path, result) else start


def main():
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_printoptions(threshold=10, edgeitems=1)  # each call is written down
    log = os.path.abspath(sys.argv[1])
    os.chdir(tempfile.mkdtemp())
    session = Session(log)
    for part in (session.exchange, session.walk):
        part()
        print(part.__name__, dict(session.outcomes), file=sys.stderr, flush=True)
    print(json.dumps({"outcomes": session.outcomes, "examples": session.examples}))


if __name__ == "__main__":
    main()
