"""Random calls, valid and not, of every public function of models, annealing and estimators.

    python tests/fuzz_calls.py LOG

Run by tests/test_no_crash.py in a process of its own. Before each call its name goes to the file LOG, so that a crash names it. The
last line of the output is JSON: how many calls there were, and what they raised beside `InputError` and `TypeError`.

Nothing is drawn from a common stream: a call is a function of its target and its number. A new public name therefore changes no
other call.
"""

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
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from enumeration import random_dbm, random_rbm

import paperlib.annealing
import paperlib.estimators
import paperlib.models
from paperlib.annealing import AnnealingPath, BaseRatePath, DBMPath, DBNPath, RBMPairPath
from paperlib.errors import InputError
from paperlib.estimators import ais, raise_log_prob
from paperlib.models import DBM, DBN, RBM, BernoulliMixture

ROOMS = (paperlib.models, paperlib.annealing, paperlib.estimators)
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
# Calls of each target, of each model's or path's methods, and steps of each program.
CALLS, STEPS = 18, 50


class Coin(AnnealingPath):
    """A path of someone else's: only what a path must define."""

    def sample_start(self, num_chains, generator):
        return torch.rand(num_chains, 3, generator=generator) < 0.5

    def log_f(self, state, beta):
        return (beta * state.double()).sum(-1)

    def transition(self, state, beta, generator):
        return torch.rand(len(state), 3, generator=generator) < torch.sigmoid(
            torch.as_tensor(beta).double().reshape(-1, 1).expand(len(state), 3)
        )


# ---- models and paths of all kinds: narrow and wide layers take different ways through the kernels


def numbers(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return 0.5 * torch.randn(shape, dtype=torch.float64, generator=generator)


@cache
def models():
    f32, f64 = torch.float32, torch.float64
    sizes = [(6, 4, f64), (6, 4, f32), (40, 12, f32), (200, 12, f32), (12, 200, f32)]
    sizes += [(300, 200, f32), (150, 130, f64)]
    made = {f"RBM {d}x{m} {str(t)[6:]}": random_rbm(d, m, d, 0.2, t) for d, m, t in sizes}
    for d, m1, m2, dtype in [(6, 5, 4, f64), (6, 5, 4, f32), (150, 140, 130, f32)]:
        name = f"{d}x{m1}x{m2} {str(dtype)[6:]}"
        made[f"DBM {name}"] = random_dbm(d, m1, m2, d, 0.2).to(dtype=dtype)
        made[f"DBN {name}"] = DBN([random_rbm(*w, d, 0.2, dtype) for w in ((d, m1), (m1, m2))])
    for d, dtype in [(6, f64), (200, f32)]:
        mixture = BernoulliMixture(numbers(d, 3, d), numbers(d, 3).log_softmax(0))
        made[f"BernoulliMixture {d} {str(dtype)[6:]}"] = mixture.to(dtype=dtype)
    return made


def of_kind(kind):
    return [model for model in models().values() if isinstance(model, kind)]


@cache
def paths():
    made = {"Coin": Coin()}
    for name, model in models().items():
        if isinstance(model, RBM):
            made[f"BaseRatePath {name}"] = BaseRatePath(model)
            bias = numbers(3, model.num_visible)
            made[f"BaseRatePath {name} biased"] = BaseRatePath(model, bias)
            start = random_rbm(model.num_visible, 5, 9, 0.2, model.dtype)
            made[f"RBMPairPath {name}"] = RBMPairPath(start, model, burn_in=2)
        elif isinstance(model, DBM):
            made[f"DBMPath {name}"] = DBMPath(model)
        elif isinstance(model, DBN):
            made[f"DBNPath {name}"] = DBNPath(model)
    return made


def width_of(path):
    """Units that a path moves; those of a test vector may be others."""
    return path.units(path.sample_start(1, torch.Generator().manual_seed(0))).shape[-1]


# ---- arguments


COUNTS = [1, 2, 3, 7]
DTYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64]


class Draw:
    """Draws the arguments of one call, which belong to a model or a path, and to a number of chains."""

    def __init__(self, *place, subject=None):
        self.random = random.Random(repr(place))
        self.torch = torch.Generator().manual_seed(self.random.getrandbits(40))
        self.subject, self.chains = subject, 3

    def choose(self, *choices):
        return self.random.choice(choices)

    def likely(self, probability):
        return self.random.random() < probability

    def bits(self, width, rows=None):
        """Binary rows [rows, width] of any type that holds them, laid out in memory in any way."""
        rows = rows or self.choose(*COUNTS)
        bits = torch.randint(2, (rows, width), generator=self.torch).to(self.choose(*DTYPES))
        return self.choose(
            bits,
            bits,
            bits[:1].expand(rows, -1),
            bits.T.contiguous().T,
            torch.cat([bits, bits], 1)[:, ::2],
            torch.cat([bits[:1], bits])[1:],
            bits.numpy()[::-1],
            bits.numpy().tolist(),
        )

    def wrong(self, width=6):
        """Something that is hardly ever right."""
        nan, inf = math.nan, math.inf
        zeros = partial(torch.zeros, 3, width)
        shape = self.choose(
            (), (0,), (width,), (0, width), (3, 0), (3, width - 1), (3, width + 1), (2, 3, width),
            (1, 1, 1, width), (width, 3), (1, 2 * width),
        )  # fmt: skip
        kinds = [
            *3 * [[torch.zeros(shape, dtype=dtype) for dtype in DTYPES]],
            [torch.full((3, width), value) for value in (nan, inf, -inf, 0.5, 2.0, -1)],
            [zeros(dtype=torch.complex64), zeros(dtype=torch.bfloat16)],
            [np.zeros(shape, kind) for kind in (bool, np.uint16, np.float16, object)],
            [zeros(device="meta"), zeros().to_sparse(), zeros(requires_grad=True)],
            [[], [[]], [[0, 1], [1]], [0.0] * width, [[None] * width], ["a"] * width],
            [*models().values(), *paths().values()],
            [None, True, False, "", "one", b"1", (), {}, {"a": 1}, object(), int],
            [nan, inf, -inf, -0.5, 2.5, 1e300, 1j],
            [0, -1, 1, np.int64(2), np.float32(0.5), torch.tensor(2), torch.tensor(0.5)],
        ]
        return self.choose(*self.choose(*kinds))

    def generator(self):
        return torch.Generator().manual_seed(self.random.getrandbits(32))

    def state(self, path=None):
        path = path or self.subject
        state = path.sample_start(self.choose(*COUNTS), self.torch)
        for _ in range(self.random.randrange(3)):
            state = path.transition(state, self.random.random(), self.torch)
        return state

    def edited(self, state):
        """A state that someone has changed, or that never belonged to the path."""
        kind = self.random.randrange(6)
        if kind == 0:
            return self.wrong(width_of(self.subject))
        if kind == 1:
            return self.state(self.choose(*paths().values()))
        if isinstance(state, torch.Tensor):
            return self.turned(state)
        values = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
        name = self.choose(*[n for n, v in values.items() if isinstance(v, torch.Tensor)])
        value = values[name]
        if kind == 2:  # in place
            value.logical_not_() if value.dtype == torch.bool else value.add_(1)
            return state
        other = self.wrong(value.shape[-1]) if kind == 3 else self.turned(value)
        return dataclasses.replace(state, **{name: other})

    def turned(self, tensor):
        """The same numbers in another shape, order, number or type."""
        return self.choose(
            tensor[:1].expand(5, *tensor.shape[1:]),
            tensor[:1].expand(5, *tensor.shape[1:]).clone(),
            tensor.flip(0),
            tensor[:, None],
            tensor[:0],
            tensor[..., :-1],
            torch.cat([tensor, tensor]),
            torch.cat([tensor, tensor], -1),
            tensor.T.contiguous().T,
            tensor.double(),
            tensor.float(),
            tensor.to(torch.uint8),
        )

    def argument(self, name, fits):
        """A value of the parameter of this name, by the tables."""
        known = FITTING.get(name) if fits else MISFITTING.get(name)
        if known is None or (not fits and isinstance(known, list) and self.likely(0.5)):
            return self.wrong(getattr(self.subject, "num_visible", 6) or 3)
        return self.choose(*known) if isinstance(known, list) else known(self)


def by_name(table):
    """Several names may share an entry."""
    return {name: entry for names, entry in table.items() for name in names.split()}


def binary(attribute, default):
    """Rows as wide as an attribute of the subject says."""
    return lambda draw: draw.bits(getattr(draw.subject, attribute, default) or default)


def biases(attribute, default):
    def make(draw):
        subject = draw.subject.top if isinstance(draw.subject, DBN) else draw.subject
        return numbers(1, getattr(subject, attribute, default))

    return make


def any_model(*kinds):
    return lambda draw: draw.choose(*of_kind(kinds))


def zeros(subject):
    return torch.zeros(3, subject.num_visible, dtype=subject.dtype)


def fitting_beta(draw):
    steps = torch.linspace(0, 1, draw.chains)
    halves = torch.linspace(0, 1, 2 * draw.chains)[::2]
    single = 0, 0.0, 0.25, 1, 1.0, np.float32(0.5), torch.tensor(0.5)
    return draw.choose(*single, steps, steps.double(), halves)


def misfitting_beta(draw):
    zero, n = torch.zeros(draw.chains), draw.chains
    single = -1.0, 2.0, math.nan, math.inf, torch.tensor(math.nan)
    several = torch.zeros(n + 1), torch.zeros(n, 2), torch.zeros(0), zero.bool(), [0.5] * n
    return draw.wrong() if draw.likely(0.5) else draw.choose(*single, *several)


#: What fits a parameter of each name: choices, or a function of the draw. Its subject is the model or path whose method is called, or the
#: first that is an argument.
FITTING = by_name(
    {
        "rbm rbm_a rbm_b": any_model(RBM),
        "model": any_model(RBM, DBM, DBN),
        "dbm": any_model(DBM),
        "dbn": any_model(DBN),
        "mixture": any_model(BernoulliMixture),
        "rbms": [[random_rbm(6, 4, 0), random_rbm(6, 4, 1)]],
        "path": lambda draw: draw.choose(*paths().values()),
        "layers": [[random_rbm(6, 5, 0), random_rbm(5, 4, 1)]],
        "v train visible_starts draws": binary("num_visible", 6),
        "h": binary("num_hidden", 4),
        "h1": binary("num_hidden_1", 4),
        "h2": binary("num_hidden_2", 4),
        "top_visible": lambda draw: draw.bits(draw.subject.top.num_visible),
        "units": lambda draw: draw.bits(width_of(draw.subject)),
        "hidden": lambda draw: draw.subject.recognize(zeros(draw.subject), draw.generator()),
        "mean_field": lambda draw: draw.subject.mean_field(zeros(draw.subject)),
        "visible_bias": biases("num_visible", 6),
        "hidden_bias": biases("num_hidden", 4),
        "hidden_bias_1": biases("num_hidden_1", 5),
        "hidden_bias_2": biases("num_hidden_2", 4),
        "generator": Draw.generator,
        "beta beta_from beta_to": fitting_beta,
        "betas": [[0, 1], [0, 0.5, 1], torch.linspace(0, 1, 4), np.linspace(0, 1, 3)],
        "schedule": [[0.0, 0.5, 1.0]],
        "state last": Draw.state,
        "index": lambda draw: torch.arange(draw.chains).flip(0)[: draw.choose(*COUNTS)],
        "end": [0, 1],
        "num_chains num_samples num_steps gibbs_steps max_updates": COUNTS,
        "num_components num_batches num_blocks num_populations num_replicas num_runs": COUNTS,
        "weights": [numbers(1, 6, 4), numbers(1, 3, 2, 4)],
        "weights_1": [numbers(1, 6, 5)],
        "weights_2": [numbers(1, 5, 4)],
        "logits": [numbers(1, 3, 6)],
        "log_mixing_weights": [numbers(1, 3).log_softmax(0)],
        "device": [None, "cpu", torch.device("cpu")],
        "dtype": [None, torch.float32, torch.float64, torch.float16],
        "progress": [False],
        "executor sample_a": [None],
        "on_step": lambda draw: lambda *_: None,
        "burn_in": [2],
        "max_units": [12],
        "folder": lambda draw: FOLDER / "shards",
        "seed": [1],
        "mean check": [True, False],
        "tolerance": [1e-3],
        "num_std": [3.0],
        "level": [0.95],
        "fraction": [0.01],
        "alpha": [None, 1.0, 0.5],
        "threshold": [0.5, 1],
        "chance": [0.05],
        "y": [numbers(1, 4)],
        "batch_weights": [None, torch.ones(4)],
        "all_weights": [None, torch.ones(9)],
        "forward reverse log_ratios": [numbers(5, 9)],
        "log_weights": [numbers(1, 5), [0.0, -math.inf]],
        "x_batch": [numbers(2, 4)],
        "x_all": [numbers(3, 9)],
        "log_unnormalized": [numbers(4, 9)],
        "chosen": [torch.arange(4)],
        "above": lambda draw: estimates()[0],
        "below": lambda draw: estimates()[1],
        "log_z": lambda draw: draw.choose(1.0, estimates()[0]),
    }
)
WRONG_BETAS = [[1, 0], [0, 0.5], [0, 0.5, 0.5, 1], [0, math.nan, 1], [0], "01", [[0, 1]]]
#: What does not fit, beside what fits hardly anything. Nothing here would only take long.
MISFITTING = by_name(
    {
        "state last": lambda draw: draw.edited(draw.state()),
        "generator": [
            None, 0, "seed", np.random.default_rng(0), random.Random(0), torch.Generator, torch,
        ],
        "beta beta_from beta_to": misfitting_beta,
        "betas": WRONG_BETAS,
        # of those who write a path; `raise_log_prob` has made a list of numbers of it
        "schedule": lambda draw: draw.choose(*WRONG_BETAS),
        "index": [torch.tensor([99]), torch.tensor([-9]), torch.tensor(0), "one", None],
        "device": ["tpu", "cuda:99", "meta", 3, "", None],
        "sample_a": [lambda n, g: torch.zeros(n, 2), lambda n, g: None, 3],
        "seed": [-1, 2**70, None, 0.5],
        "executor": lambda draw: None,
        "folder": FITTING["folder"],
        "on_step": FITTING["on_step"],
    }
)  # fmt: skip


@cache
def estimates():
    path = paths()["BaseRatePath RBM 6x4 float64"]
    v = torch.zeros(4, 6)
    seeded = torch.Generator().manual_seed(0)
    above = ais(path, [0, 0.5, 1], 5, seeded, progress=False)
    return above, raise_log_prob(path, v, [0, 0.5, 1], 3, seeded, progress=False)


# ---- calls


class Session:
    """Makes calls and remembers what they raised."""

    def __init__(self, log):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.outcomes, self.others, self.unmade = Counter(), Counter(), Counter()
        self.examples = {}

    def prepared(self, make, *arguments):
        """What is to be passed, or None if it could not be made, of parts that do not fit together."""
        try:
            return make(*arguments)
        except Exception as error:
            self.unmade[f"{type(error).__name__}: {error}"[:200]] += 1
            return None

    def call(self, name, function, /, *arguments, **options):
        """The result, or None if it raised what it may raise."""
        what = f"{name}({', '.join(map(describe, arguments))}, {describe(options)})"
        os.lseek(self.log, 0, os.SEEK_SET)
        os.truncate(self.log, 0)
        os.write(self.log, what.encode())
        try:
            result = function(*arguments, **options)
        except (InputError, TypeError) as error:
            self.outcomes[type(error).__name__] += 1
            return None
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            in_kernels = any("/paperlib/kernels/" in frame.filename for frame in frames)
            place = " in kernels" if in_kernels else ""
            if str(error) == "index is out of bounds":  # what numba says
                place = " out of bounds"
            # without the number of the call and the sizes of what it belongs to
            key = f"{name.split(' #')[0]}: {type(error).__name__}{place}"
            self.outcomes["other"] += 1
            self.others[key] += 1
            self.examples.setdefault(key, f"{what}: {str(error)[:200]}")
            return None
        self.outcomes["returned"] += 1
        return result

    def call_at_random(self, name, function, subject=None, calls=CALLS):
        for number in range(calls):
            draw = Draw(name, number, subject=subject)
            drawn = self.prepared(arguments_for, draw, function, number % 3 == 0)
            if drawn is not None:
                self.call(f"{name} #{number}", function, **drawn)


def describe(value):
    """Short words for what is passed."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return f"{type(value).__name__}{list(value.shape)}:{value.dtype}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return f"{type(value).__name__}({describe(fields)[:200]})"
    if isinstance(value, dict):
        return ", ".join(f"{name}={describe(item)}" for name, item in value.items())
    return repr(value)[:60]


def arguments_for(draw, function, rightly):
    """Arguments by name: all fitting, or at least one of them not."""
    parameters = list(inspect.signature(function).parameters.values())
    wrong = draw.choose(*[p.name for p in parameters]) if parameters and not rightly else None
    drawn = {}
    for parameter in parameters:
        name = parameter.name
        optional = parameter.default is not inspect.Parameter.empty and name != wrong
        # left out, the number of Gibbs steps of a path's start would be large
        if optional and name not in ("burn_in", "progress") and draw.likely(0.3):
            continue
        value = drawn[name] = draw.argument(name, name != wrong and (rightly or draw.likely(0.95)))
        if draw.subject is None and isinstance(value, RBM | DBM | DBN | AnnealingPath):
            draw.subject = value  # what follows is to fit this
        if name == "state" and isinstance(getattr(value, "v", None), torch.Tensor) and value.v.ndim:
            draw.chains = max(1, len(value.v))
    return drawn


def public_methods(thing):
    for name in dir(type(thing)):
        if not name.startswith("_") and name not in ("load", "save"):
            yield name


def run_functions(session):
    for name, thing in ((name, getattr(room, name)) for room in ROOMS for name in room.__all__):
        result_of_a_call = inspect.isclass(thing) and dataclasses.is_dataclass(thing)
        is_protocol = getattr(thing, "_is_protocol", False)
        if not (inspect.isabstract(thing) or is_protocol or result_of_a_call):
            session.call_at_random(name, thing, calls=2 * CALLS)


def run_methods(session):
    things = [*models().items(), *paths().items()]
    things += [("PartitionEstimate", estimates()[0]), ("ReverseEstimate", estimates()[1])]
    for name, thing in things:
        for attribute in public_methods(thing):
            label = f"{type(thing).__name__}.{attribute} #{name}"
            static = inspect.getattr_static(thing, attribute)
            if isinstance(static, property) or not callable(getattr(thing, attribute)):
                session.call(label, getattr, thing, attribute)
            else:
                session.call_at_random(label, getattr(thing, attribute), thing, CALLS // 2)


def run_programs(session):
    """Walks in which states are edited, exchanged, selected and taken further."""
    for name, path in paths().items():
        draw = Draw("program", name, subject=path)
        states = [draw.state(), draw.state()]
        methods = [m for m in public_methods(path) if takes_state(getattr(path, m))]
        for number in range(STEPS):
            place, method = draw.random.randrange(2), getattr(path, draw.choose(*methods))
            drawn = session.prepared(step_arguments, draw, method, states[place])
            if drawn is not None:
                label = f"{type(path).__name__}.{method.__name__} #{name} step {number}"
                result = session.call(label, method, **drawn)
                if type(result) is type(states[place]):
                    states[place] = result


def step_arguments(draw, method, state):
    if draw.likely(0.3):
        state = draw.edited(state)
    drawn = arguments_for(draw, method, rightly=draw.likely(0.8))
    drawn |= {name: state for name in ("state", "last") if name in drawn}
    if "last" in drawn and isinstance(getattr(state, "v", None), torch.Tensor) and draw.likely(0.7):
        drawn["v"] = state.v if draw.likely(0.3) else draw.turned(state.v)
    return drawn


def takes_state(attribute):
    return callable(attribute) and {"state", "last"} & set(inspect.signature(attribute).parameters)


def main():
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    session = Session(sys.argv[1])
    for part in (run_functions, run_methods, run_programs):
        part(session)
        print(part.__name__, dict(session.outcomes), file=sys.stderr, flush=True)
    print(json.dumps({name: found for name, found in vars(session).items() if name != "log"}))


if __name__ == "__main__":
    main()
