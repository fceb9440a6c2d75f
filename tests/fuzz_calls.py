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
import itertools
import json
import math
import os
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import torch

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


def numbers(seed, *shape, dtype=torch.float64, scale=0.5):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, dtype=dtype, generator=generator)


def rbm(seed, visible, hidden, dtype):
    return RBM(
        numbers(seed, visible, hidden, dtype=dtype, scale=2 / math.sqrt(visible + hidden)),
        numbers(seed + 1, visible, dtype=dtype),
        numbers(seed + 2, hidden, dtype=dtype),
    )


@cache
def models():
    f32, f64 = torch.float32, torch.float64
    sizes = [(6, 4, f64), (6, 4, f32), (40, 12, f32), (200, 12, f32), (12, 200, f32)]
    sizes += [(300, 200, f32), (150, 130, f64)]
    made = {f"RBM {d}x{m} {str(t)[6:]}": rbm(d, d, m, t) for d, m, t in sizes}
    for d, m1, m2, dtype in [(6, 5, 4, f64), (6, 5, 4, f32), (150, 140, 130, f32)]:
        weights = [numbers(d, d, m1, dtype=dtype), numbers(d, m1, m2, dtype=dtype)]
        biases = [numbers(d, n, dtype=dtype) for n in (d, m1, m2)]
        made[f"DBM {d}x{m1}x{m2} {str(dtype)[6:]}"] = DBM(*weights, *biases)
        layers = [rbm(d, d, m1, dtype), rbm(d + 5, m1, m2, dtype)]
        made[f"DBN {d}x{m1}x{m2} {str(dtype)[6:]}"] = DBN(layers)
    for d, dtype in [(6, f64), (200, f32)]:
        made[f"BernoulliMixture {d} {str(dtype)[6:]}"] = BernoulliMixture(
            numbers(d, 3, d, dtype=dtype), numbers(d, 3, dtype=dtype).log_softmax(0)
        )
    return made


def of_kind(kind):
    return [model for model in models().values() if isinstance(model, kind)]


@cache
def paths():
    made = {"Coin": Coin()} if hasattr(AnnealingPath, "log_f") else {}
    for name, model in models().items():
        if isinstance(model, RBM):
            made[f"BaseRatePath {name}"] = BaseRatePath(model)
            bias = numbers(3, model.num_visible)
            made[f"BaseRatePath {name} biased"] = BaseRatePath(model, bias)
            start = rbm(9, model.num_visible, 5, model.dtype)
            made[f"RBMPairPath {name}"] = RBMPairPath(start, model, burn_in=2)
        elif isinstance(model, DBM):
            made[f"DBMPath {name}"] = DBMPath(model)
        elif isinstance(model, DBN):
            made[f"DBNPath {name}"] = DBNPath(model)
    return made


def width_of(path):
    """Units that a path moves; those of a test vector may be others."""
    if isinstance(path, Coin):
        return 3
    rows = path.sample_start(1, torch.Generator().manual_seed(0)).v
    return rows.shape[-1]


# ---- arguments


DTYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64]


class Draw:
    """Draws the arguments of one call."""

    def __init__(self, *place):
        self.random = random.Random(repr(place))
        self.torch = torch.Generator().manual_seed(self.random.getrandbits(40))

    def choose(self, *choices):
        return self.random.choice(choices)

    def likely(self, probability):
        return self.random.random() < probability

    def count(self):
        return self.choose(1, 2, 3, 7)

    def bits(self, width, rows=None):
        """Binary rows [rows, width] of any type that holds them, laid out in memory in any way."""
        rows = rows or self.count()
        bits = torch.randint(2, (rows, width), generator=self.torch).to(self.choose(*DTYPES))
        layout = self.random.randrange(8)
        if layout == 0:
            return bits[:1].expand(rows, -1)
        if layout == 1:
            return bits.T.contiguous().T
        if layout == 2:
            return torch.cat([bits, bits], 1)[:, ::2] if width % 2 == 0 else bits
        if layout == 3:
            return torch.cat([bits[:1], bits])[1:]
        if layout == 4:
            return bits.numpy()[::-1]
        if layout == 5:
            return bits.numpy().tolist()
        return bits

    def shape_of(self, width):
        return self.choose(
            (), (0,), (width,), (0, width), (3, 0), (3, width - 1), (3, width + 1), (2, 3, width),
            (1, 1, 1, width), (width, 3), (1, 2 * width),
        )  # fmt: skip

    def wrong(self, width=6):
        """Something that is hardly ever right."""
        kind = self.random.randrange(12)
        if kind < 3:
            return torch.zeros(self.shape_of(width), dtype=self.choose(*DTYPES))
        if kind == 3:
            return torch.full((3, width), self.choose(math.nan, math.inf, -math.inf, 0.5, 2.0, -1))
        if kind == 4:
            return torch.zeros(3, width, dtype=self.choose(torch.complex64, torch.bfloat16))
        if kind == 5:
            return np.zeros(self.shape_of(width), self.choose(bool, np.uint16, np.float16, object))
        if kind == 6:
            return self.choose(
                torch.zeros(3, width, device="meta"),
                torch.zeros(3, width).to_sparse(),
                torch.zeros(3, width, requires_grad=True),
            )
        if kind == 7:
            return self.choose(
                [], [[]], [[0, 1], [1]], [0.0] * width, [[None] * width], ["a"] * width
            )
        if kind == 8:
            return self.random.choice([*models().values(), *paths().values()])
        if kind == 9:
            return self.choose(None, True, False, "", "one", b"1", (), {}, {"a": 1}, object(), int)
        if kind == 10:
            return self.choose(math.nan, math.inf, -math.inf, -0.5, 2.5, 1e300, 1j)
        return self.choose(
            0, -1, 1, np.int64(2), np.float32(0.5), torch.tensor(2), torch.tensor(0.5)
        )

    def generator(self):
        return torch.Generator().manual_seed(self.random.getrandbits(32))

    def wrong_generator(self):
        return self.choose(
            None, 0, "seed", np.random.default_rng(0), random.Random(0), torch.Generator, torch
        )

    def beta(self, chains):
        return self.choose(
            0, 0.0, 0.25, 1, 1.0, np.float32(0.5), torch.tensor(0.5), torch.linspace(0, 1, chains),
            torch.linspace(0, 1, chains).double(), torch.linspace(0, 1, 2 * chains)[::2],
        )  # fmt: skip

    def wrong_beta(self, chains):
        if self.likely(0.5):
            return self.wrong()
        return self.choose(
            -1.0, 2.0, math.nan, math.inf, torch.tensor(math.nan), torch.zeros(chains + 1),
            torch.zeros(chains, 2), torch.zeros(0), torch.zeros(chains).bool(), [0.5] * chains,
        )  # fmt: skip

    def betas(self):
        return self.choose([0, 1], [0, 0.5, 1], torch.linspace(0, 1, 4), np.linspace(0, 1, 3))

    def wrong_betas(self):
        if self.likely(0.5):
            return self.wrong()
        return self.choose(
            [1, 0], [0, 0.5], [0, 0.5, 0.5, 1], [0, math.nan, 1], [0], "01", [[0, 1]]
        )

    def state(self, path):
        state = path.sample_start(self.count(), self.torch)
        for _ in range(self.random.randrange(3)):
            state = path.transition(state, self.random.random(), self.torch)
        return state

    def edited(self, state, path):
        """A state that someone has changed, or that never belonged to the path."""
        kind = self.random.randrange(6)
        if kind == 0:
            return self.wrong(width_of(path))
        if kind == 1:
            return self.state(self.random.choice(list(paths().values())))
        if isinstance(state, torch.Tensor):
            return self.turned(state)
        values = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
        name = self.random.choice([n for n, v in values.items() if isinstance(v, torch.Tensor)])
        if kind == 2:  # in place
            values[name].logical_not_() if values[name].dtype == torch.bool else values[name].add_(
                1
            )
            return state
        if kind == 3:
            return dataclasses.replace(state, **{name: self.wrong(values[name].shape[-1])})
        return dataclasses.replace(state, **{name: self.turned(values[name])})

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


def binary(attribute, default):
    """Rows as wide as an attribute of the subject says."""
    return lambda draw, subject, chains: draw.bits(getattr(subject, attribute, default) or default)


def biases(attribute, default):
    def make(draw, subject, chains):
        subject = subject.top if isinstance(subject, DBN) else subject
        return numbers(1, getattr(subject, attribute, default))

    return make


def constant(*choices):
    return lambda draw, subject, chains: draw.choose(*choices)


def any_model(*kinds):
    return lambda draw, subject, chains: draw.random.choice(of_kind(kinds))


def zeros(subject):
    return torch.zeros(3, subject.num_visible, dtype=subject.dtype)


#: What fits a parameter of each name. The subject is the model or path whose method is called, or the first that is an argument.
FITTING = {
    **dict.fromkeys(("rbm", "rbm_a", "rbm_b"), any_model(RBM)),
    "model": any_model(RBM, DBM, DBN),
    "dbm": any_model(DBM),
    "dbn": any_model(DBN),
    "path": lambda draw, subject, chains: draw.random.choice(list(paths().values())),
    "layers": constant([rbm(0, 6, 5, torch.float64), rbm(1, 5, 4, torch.float64)]),
    **dict.fromkeys(("v", "train", "visible_starts"), binary("num_visible", 6)),
    "h": binary("num_hidden", 4),
    "h1": binary("num_hidden_1", 4),
    "h2": binary("num_hidden_2", 4),
    "top_visible": lambda draw, subject, chains: draw.bits(subject.top.num_visible),
    "units": lambda draw, subject, chains: draw.bits(width_of(subject)),
    "hidden": lambda draw, subject, chains: subject.recognize(zeros(subject), draw.generator()),
    "mean_field": lambda draw, subject, chains: subject.mean_field(zeros(subject)),
    "visible_bias": biases("num_visible", 6),
    "hidden_bias": biases("num_hidden", 4),
    "hidden_bias_1": biases("num_hidden_1", 5),
    "hidden_bias_2": biases("num_hidden_2", 4),
    "generator": lambda draw, subject, chains: draw.generator(),
    **dict.fromkeys(
        ("beta", "beta_from", "beta_to"), lambda draw, subject, chains: draw.beta(chains)
    ),
    "betas": lambda draw, subject, chains: draw.betas(),
    "schedule": constant([0.0, 0.5, 1.0]),
    **dict.fromkeys(("state", "last"), lambda draw, subject, chains: draw.state(subject)),
    "index": lambda draw, subject, chains: torch.arange(chains).flip(0)[: draw.count()],
    "end": constant(0, 1),
    **dict.fromkeys(
        ("num_chains", "num_samples", "num_steps", "gibbs_steps", "max_updates"),
        constant(1, 2, 3, 7),
    ),
    "weights": constant(numbers(1, 6, 4)),
    "weights_1": constant(numbers(1, 6, 5)),
    "weights_2": constant(numbers(1, 5, 4)),
    "logits": constant(numbers(1, 3, 6)),
    "log_mixing_weights": constant(numbers(1, 3).log_softmax(0)),
    "device": constant(None, "cpu", torch.device("cpu")),
    "dtype": constant(None, torch.float32, torch.float64, torch.float16),
    "metadata": constant(None, {"a": "b"}),
    "progress": constant(False),
    "executor": constant(None),
    "on_step": constant(lambda *_: None),
    "sample_a": constant(None),
    "burn_in": constant(2),
    "max_units": constant(12),
    "folder": constant(FOLDER / "shards"),
    "seed": constant(1),
    "mean": constant(True, False),
    "check": constant(True, False),
    "tolerance": constant(1e-3),
    "num_std": constant(3.0),
    "level": constant(0.95),
    "fraction": constant(0.01),
    "alpha": constant(None, 1.0, 0.5),
    "y": constant(numbers(1, 4)),
    "log_weights": constant(numbers(1, 5), [0.0, -math.inf]),
    "x_batch": constant(numbers(2, 4)),
    "x_all": constant(numbers(3, 9)),
    "log_unnormalized": constant(numbers(4, 9)),
    "chosen": constant(torch.arange(4)),
    "above": lambda draw, subject, chains: estimates()[0],
    "below": lambda draw, subject, chains: estimates()[1],
    "log_z": lambda draw, subject, chains: draw.choose(1.0, estimates()[0]),
}
#: What does not fit, beside what fits hardly anything. Nothing here would only take long.
MISFITTING = {
    **dict.fromkeys(
        ("state", "last"),
        lambda draw, subject, chains: draw.edited(draw.state(subject), subject),
    ),
    "generator": lambda draw, subject, chains: draw.wrong_generator(),
    **dict.fromkeys(
        ("beta", "beta_from", "beta_to"), lambda draw, subject, chains: draw.wrong_beta(chains)
    ),
    **dict.fromkeys(("betas", "schedule"), lambda draw, subject, chains: draw.wrong_betas()),
    "index": constant(torch.tensor([99]), torch.tensor([-9]), torch.tensor(0), "one", None),
    "device": constant("tpu", "cuda:99", "meta", 3, "", None),
    "sample_a": constant(lambda n, g: torch.zeros(n, 2), lambda n, g: None, 3),
    "metadata": constant({"a": 1}, {1: "a"}, [("a", "b")], 3),
    "seed": constant(-1, 2**70, None, 0.5),
    **{name: FITTING[name] for name in ("executor", "folder", "on_step")},
}


def drawn_argument(draw, name, subject, chains, fits):
    if fits and name in FITTING:
        return FITTING[name](draw, subject, max(1, chains))
    if name in MISFITTING:
        return MISFITTING[name](draw, subject, max(1, chains))
    return draw.wrong(getattr(subject, "num_visible", 6) or 3)


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
        self.outcomes = Counter()
        self.others = Counter()
        self.unmade = Counter()
        self.wrong = []
        self.examples = {}

    def prepared(self, make, *arguments):
        """What is to be passed, or None if it could not be made, of parts that do not fit together."""
        try:
            return make(*arguments)
        except Exception as error:
            self.unmade[f"{type(error).__name__}: {error}"[:200]] += 1
            return None

    def call(self, name, function, *arguments, **options):
        """The result, or None if it raised what it may raise."""
        os.lseek(self.log, 0, os.SEEK_SET)
        os.truncate(self.log, 0)
        os.write(self.log, f"{name}({describe(arguments)}, {describe(options)})".encode())
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
            self.examples.setdefault(
                key, f"{name}({describe(arguments)}, {describe(options)}): {str(error)[:200]}"
            )
            return None
        self.outcomes["returned"] += 1
        return result


def describe(value):
    """Short words for what is passed."""
    if isinstance(value, torch.Tensor):
        return f"tensor{list(value.shape)}:{str(value.dtype)[6:]}"
    if isinstance(value, np.ndarray):
        return f"array{list(value.shape)}:{value.dtype}"
    if isinstance(value, dict):
        return ", ".join(f"{name}={describe(item)}" for name, item in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(describe, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return f"{type(value).__name__}({describe(fields)[:200]})"
    return repr(value)[:60]


def arguments_for(draw, function, subject, rightly):
    """Arguments by name: all fitting, or at least one of them not."""
    parameters = list(inspect.signature(function).parameters.values())
    wrong = draw.random.choice([p.name for p in parameters]) if parameters and not rightly else None
    drawn, chains = {}, 3
    for parameter in parameters:
        name = parameter.name
        optional = parameter.default is not inspect.Parameter.empty and name != wrong
        # left out, the number of Gibbs steps of a path's start would be large
        if optional and name not in ("burn_in", "progress") and draw.likely(0.3):
            continue
        fits = name != wrong and (rightly or draw.likely(0.95))
        value = drawn[name] = drawn_argument(draw, name, subject, chains, fits)
        if subject is None and isinstance(value, (RBM, DBM, DBN, AnnealingPath)):
            subject = value  # what follows is to fit this
        if name == "state" and isinstance(getattr(value, "v", None), torch.Tensor) and value.v.ndim:
            chains = len(value.v)
    return drawn


def call_at_random(session, name, function, subject=None, calls=CALLS):
    for number in range(calls):
        draw = Draw(name, number)
        drawn = session.prepared(arguments_for, draw, function, subject, number % 3 == 0)
        if drawn is not None:
            session.call(f"{name} #{number}", function, **drawn)


def public_methods(thing):
    for name in dir(type(thing)):
        if not name.startswith("_") and name not in ("load", "save"):
            yield name


def run_functions(session):
    for room in ROOMS:
        for name in room.__all__:
            thing = getattr(room, name)
            result_of_a_call = inspect.isclass(thing) and dataclasses.is_dataclass(thing)
            if not (inspect.isabstract(thing) or is_protocol(thing) or result_of_a_call):
                call_at_random(session, name, thing, calls=2 * CALLS)


def is_protocol(thing):
    return getattr(thing, "_is_protocol", False)


def run_methods(session):
    things = [*models().items(), *paths().items()]
    things += [("PartitionEstimate", estimates()[0]), ("ReverseEstimate", estimates()[1])]
    for name, thing in things:
        kind = type(thing).__name__
        for attribute in public_methods(thing):
            label = f"{kind}.{attribute}"
            static = inspect.getattr_static(thing, attribute)
            if isinstance(static, property) or not callable(getattr(thing, attribute)):
                session.call(f"{label} #{name}", getattr, thing, attribute)
                continue
            for number in range(CALLS // 2):
                draw = Draw(name, attribute, number)
                method = getattr(thing, attribute)
                drawn = session.prepared(arguments_for, draw, method, thing, number % 3 == 0)
                if drawn is not None:
                    session.call(f"{label} #{name} #{number}", method, **drawn)


def run_files(session):
    """What `save` and `load` are given."""
    for name, model in models().items():
        kind = type(model).__name__
        for number in range(8):
            draw = Draw("files", name, number)
            suffix = draw.choose(".safetensors", ".npz", ".mat", ".pkl", "")
            path = FOLDER / f"model{suffix}"
            drawn = arguments_for(draw, model.save, model, rightly=number % 2 == 0)
            session.call(f"{kind}.save #{name} #{number}", model.save, **(drawn | {"path": path}))
            if path.is_file() and draw.likely(0.5):
                content = path.read_bytes()
                path.write_bytes(content[: draw.random.randrange(len(content) + 1)])
            session.call(f"{kind}.load #{name} #{number}", type(model).load, path)


def run_programs(session):
    """Walks in which states are edited, exchanged, selected and taken further."""
    for name, path in paths().items():
        kind = type(path).__name__
        draw = Draw("program", name)
        states = [draw.state(path), draw.state(path)]
        methods = [m for m in public_methods(path) if takes_state(getattr(path, m))]
        for number in range(STEPS):
            place = draw.random.randrange(len(states))
            method = getattr(path, draw.random.choice(methods))
            drawn = session.prepared(step_arguments, draw, method, path, states[place])
            if drawn is None:
                continue
            result = session.call(
                f"{kind}.{method.__name__} #{name} step {number}", method, **drawn
            )
            if type(result) is type(states[place]):
                states[place] = result


def step_arguments(draw, method, path, state):
    if draw.likely(0.3):
        state = draw.edited(state, path)
    drawn = arguments_for(draw, method, path, rightly=draw.likely(0.8))
    drawn |= {name: state for name in ("state", "last") if name in drawn}
    if "last" in drawn and isinstance(getattr(state, "v", None), torch.Tensor) and draw.likely(0.7):
        drawn["v"] = state.v if draw.likely(0.3) else draw.turned(state.v)
    return drawn


def takes_state(attribute):
    if not callable(attribute):
        return False
    return {"state", "last"} & set(inspect.signature(attribute).parameters)


def run_known(session):
    """What has crashed or gone wrong before: other chains than those whose products are remembered."""
    for name, path in paths().items():
        if isinstance(path, Coin):
            continue
        label = f"{type(path).__name__}.state_at #{name}"

        def check(v, last, what, path=path, label=label):
            state, fresh = session.call(label, path.state_at, v, last), path.state_at(v.clone())
            same = state is not None and torch.equal(state.hidden_input, fresh.hidden_input)
            if not same:
                session.wrong.append(f"{label}: {what}")

        for here, there in itertools.product((1, 3, 50), repeat=2):
            generator = torch.Generator().manual_seed(0)
            one = path.transition(path.sample_start(here, generator), 0.5, generator)
            v = one.v[:1].expand(there, -1).clone()
            v[:, :3] = ~v[:, :3]
            check(v, one, f"{there} chains after {here}")
        one.v[:, :3] = ~one.v[:, :3]
        check(one.v, one, "edited in place")


def main():
    log = sys.argv[1]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    session = Session(log)
    for part in (run_known, run_functions, run_methods, run_files, run_programs):
        part(session)
        print(part.__name__, dict(session.outcomes), file=sys.stderr, flush=True)
    print(
        json.dumps(
            {
                "outcomes": session.outcomes,
                "others": session.others,
                "unmade": session.unmade,
                "wrong": session.wrong,
                "examples": session.examples,
            }
        )
    )


if __name__ == "__main__":
    main()
