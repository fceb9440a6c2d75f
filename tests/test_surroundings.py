"""What surrounds a run changes no number and loses nothing.

Autocast, default devices, gradients, shared tensors, git, signals and caches.
"""

import copy
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from boltzmann_likelihood import provenance
from boltzmann_likelihood.evaluation import compare, evaluate, evaluate_training
from paperlib.annealing import BaseRatePath, mean_field_bias, uniform_betas
from paperlib.datasets import binarize
from paperlib.errors import InputError
from paperlib.estimators import (
    ais,
    csl_log_prob,
    exact_log_z,
    parallel_tempering,
    raise_log_prob,
)
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import DBM, DBN, RBM, BernoulliMixture
from paperlib.numerics import seeded_generator

NUMBERS = np.random.default_rng(0)
W = NUMBERS.normal(0, 0.3, (40, 30)).astype("f")
B = NUMBERS.normal(0, 0.3, 40).astype("f")
A = NUMBERS.normal(0, 0.3, 30).astype("f")
ROWS = NUMBERS.integers(0, 2, (20, 40))


def model(wrap, hidden=30):
    return RBM(wrap(W[:, :hidden]), wrap(B), wrap(A[:hidden]))


def walked(path, generator):
    state = path.transition(path.sample_start(20, generator), 0.5, generator)
    return path.log_f(state, 1.0) + path.end_correction(state, 1)


def deep(wrap, generator):
    dbn = DBN([model(wrap), RBM(wrap(W.T.copy()), wrap(A), wrap(B))])
    return dbn.log_unnormalized_of(torch.from_numpy(ROWS), 5, generator)


@contextmanager
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


BETAS = uniform_betas(40)
#: Numbers that float32 products make, from what wraps the parameters, and a generator.
OUTCOMES = {
    "log_unnormalized": lambda wrap, _: model(wrap).log_unnormalized(ROWS),
    "dbn": deep,
    "dbm": lambda wrap, _: DBM(
        wrap(W), wrap(W.T.copy()), *map(wrap, (B, A, B))
    ).log_unnormalized_bound(ROWS),
    "mixture": lambda wrap, _: BernoulliMixture(wrap(W.T.copy()), wrap(A)).log_prob(ROWS),
    "binarized": lambda *_: binarize(np.full((3, 40), 0.3), 1),
    "trained": lambda *_: (
        train_rbm(ROWS, ContrastiveDivergence(6, 2), 1, progress=False)[0].weights
    ),
    "mean field": lambda wrap, _: mean_field_bias(model(wrap)),
    "walk": lambda wrap, seed: walked(BaseRatePath(model(wrap)), seed),
    "exact": lambda wrap, _: exact_log_z(model(wrap, 6)),
    "ais": lambda wrap, seed: ais(BaseRatePath(model(wrap)), BETAS, 20, seed).log_weights,
    "raise": lambda wrap, seed: (
        raise_log_prob(BaseRatePath(model(wrap)), ROWS, BETAS, 4, seed).log_weights
    ),
    "csl": lambda wrap, seed: csl_log_prob(model(wrap), ROWS, 20, 5, seed),
    "tempering": lambda wrap, seed: (
        parallel_tempering(BaseRatePath(model(wrap)), 20_000, seed, progress=False).log_z
    ),
    "evaluate": lambda wrap, seed: (
        evaluate(model(wrap), ROWS, steps=32, generator=seed).average.mean
    ),
    "compare": lambda wrap, _: (
        compare(model(wrap, 6), model(wrap, 6).to(dtype=torch.float64), ROWS).difference.mean
    ),
}
AROUND = {
    "bfloat16": partial(torch.autocast, "cpu", torch.bfloat16),
    "float16": partial(torch.autocast, "cpu", torch.float16),
    "cuda": partial(torch.autocast, "cuda", torch.float16, enabled=torch.cuda.is_available()),
    "device": partial(torch.device, "meta"),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64": float64_by_default,
}


@pytest.mark.parametrize("estimate_of", OUTCOMES.values(), ids=OUTCOMES)
def test_what_torch_is_set_to_changes_no_number(estimate_of):
    def outcome(wrap=torch.from_numpy):
        numbers = estimate_of(wrap, seeded_generator(1))
        return torch.as_tensor(numbers, dtype=torch.float64, device="cpu").tolist()

    expected = outcome()
    for around in AROUND.values():
        with around():
            assert outcome() == expected
    assert outcome(lambda x: torch.nn.Parameter(torch.from_numpy(x))) == expected


@pytest.mark.parametrize("name", ["ais", "raise", "tempering", "exact"])
def test_estimators_record_no_gradients(name):
    numbers = OUTCOMES[name](lambda x: torch.nn.Parameter(torch.from_numpy(x)), seeded_generator(1))
    assert not torch.as_tensor(numbers).requires_grad


@pytest.mark.parametrize("source", [torch.from_numpy(W).clone(), W.copy()], ids=["tensor", "array"])
def test_a_model_stays_what_it_was_while_its_source_is_trained(source):
    model = RBM(source, B, A)
    source *= 0.5
    assert torch.equal(model.weights, torch.from_numpy(W))


@pytest.mark.parametrize("again", [lambda model: model, copy.copy])
def test_checkpoints_that_share_their_weights_are_refused(again):
    model = RBM(W[:, :6], B, A[:6])
    with pytest.raises(InputError, match="models: expected weights of its own"):
        evaluate_training([model, again(model)], ROWS)
    evaluate_training([model, model.to()], ROWS)


MASKED = np.ma.masked_equal(W.astype(float), W[0, 0])


@pytest.mark.parametrize("masked", [MASKED, list(MASKED), np.ma.masked_array(W, W > 0)])
def test_masked_values_are_no_numbers(masked):
    with pytest.raises(InputError, match=r"weights: expected numbers, got \d+ masked"):
        RBM(masked, B, A)
    RBM(np.ma.masked_array(W, False), B, A)


@pytest.mark.parametrize(
    "variable", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"]
)
def test_git_is_not_led_elsewhere(variable, tmp_path, monkeypatch):
    root = Path(provenance.__file__).parents[1]
    commit = provenance.state_of(root)[0]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setenv(variable, str(tmp_path / ".git"))
    assert provenance.state_of(root)[0] == commit


# ---- the command


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RBM(W[:, :6], B, A[:6]).save(tmp_path / "m.npz")
    np.save("t.npy", ROWS)
    np.savez("two.npz", x=ROWS, y=ROWS[:5])
    for name, array in (("W", W[:, :6]), ("b", B), ("a", A[:6])):
        np.save(f"{name}.npy", array)
    Path("runs").mkdir()
    for number in (1, 2):
        RBM(number * W[:, :6], B, A[:6]).save(tmp_path / "runs" / f"{number}.npz")
    Path("link.npy").symlink_to("t.npy")
    os.link("t.npy", "hard.npy")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "evaluate m.npz --data t.npy --json t.npy",
        "evaluate m.npz --data t.npy --json ./m.npz",
        "evaluate m.npz --data t.npy --json link.npy",
        "evaluate m.npz --data link.npy --json t.npy",
        "evaluate m.npz --data t.npy --json hard.npy",
        "evaluate m.npz --data two.npz:x --json two.npz",
        "evaluate m.npz --data t.npy --train two.npz:y --json runs/../two.npz",
        "evaluate W.npy,b.npy,a.npy --data t.npy --json b.npy",
        "evaluate m.npz --data t.npy --json o.svg --plot o.svg",
        "audit m.npz --data t.npy --claimed-log-z 1 --json m.npz",
        "compare m.npz runs/1.npz --data t.npy --json runs/1.npz",
        "training runs --data t.npy --csv runs/2.npz",
        "training runs/1.npz runs/2.npz --data t.npy --json t.npy",
        "training runs --data t.npy --csv o --json o",
    ],
)
def test_no_output_replaces_an_input_or_another_output(words, files, command):
    before = {file: file.read_bytes() for file in files.rglob("*") if file.is_file()}
    code, out, err = command(*words.split())
    assert (code, out) == (2, "")
    assert "expected a file that this command neither reads nor writes otherwise" in err
    assert {file: file.read_bytes() for file in files.rglob("*") if file.is_file()} == before


def test_sigterm_ends_a_run_with_its_report(tmp_path):
    """Sent twice at once, as `timeout` does, in the second part of a run."""
    script = """if True:
        import os, signal, sys
        from boltzmann_likelihood import cli
        from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
        temper = AnnealingRuns._temper
        def stopped(*arguments, **named):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
            return temper(*arguments, **named)
        AnnealingRuns._temper = stopped
        sys.argv[0] = "paperlib"
        cli.main()
    """
    RBM(W, B, A).save(tmp_path / "m.npz")
    np.save(tmp_path / "t.npy", ROWS)
    words = ["evaluate", "m.npz", "--data", "t.npy", "--steps", "64", "--json", "o.json"]
    completed = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(signal.signal, signal.SIGTERM, signal.SIG_DFL),
    )
    assert completed.returncode == 0, completed.stderr
    assert "Verdict" in completed.stdout
    assert (tmp_path / "o.json").is_file()


# Where a run is stopped: a module, its function, and what the command says of it.
BEFORE_AN_ESTIMATE = {
    "files": ("boltzmann_likelihood.files.read_model", "reading the files"),
    "start": ("boltzmann_likelihood.evaluation.evaluation.seed_of", "computing ln p"),
    "pilot": (
        "boltzmann_likelihood.evaluation.annealing_runs.AnnealingRuns._seconds_per_step",
        "measuring in pilot runs how long a step takes",
    ),
    "first run": (
        "boltzmann_likelihood.evaluation.annealing_runs.AnnealingRuns._run",
        "waiting for the first and shortest run of AIS and RAISE, with 4 of 64 steps",
    ),
    "enumeration": (
        "boltzmann_likelihood.evaluation.evaluation.exact_log_z",
        "enumerating all states of a layer",
    ),
}


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT], ids=lambda sent: sent.name)
@pytest.mark.parametrize("where", BEFORE_AN_ESTIMATE)
def test_a_run_that_is_stopped_before_an_estimate_says_so(tmp_path, where, sent):
    place, doing = BEFORE_AN_ESTIMATE[where]
    script = f"""if True:
        import os, pydoc, signal, sys
        from boltzmann_likelihood import cli
        from boltzmann_likelihood.evaluation import evaluation
        evaluation.EXACT_UNITS = {40 if where == "enumeration" else 1}
        owner, _, name = {place!r}.rpartition(".")
        def stopped(*arguments, **named):
            os.kill(os.getpid(), {sent.value})
            raise AssertionError("the signal did not arrive")
        setattr(pydoc.locate(owner), name, stopped)
        sys.argv[0] = "paperlib"
        cli.main()
    """
    RBM(W, B, A).save(tmp_path / "m.npz")
    np.save(tmp_path / "t.npy", ROWS)
    words = ["evaluate", "m.npz", "--data", "t.npy", "--json", "o.json"]
    if where == "first run":
        words += ["--steps", "64"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_heed_signals,
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.startswith(f"paperlib: interrupted while {doing}")
    assert "There is no estimate yet, and no file was written." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "o.json").exists()


def test_whoever_stops_a_command_after_its_report_has_an_estimate(tmp_path):
    script = """if True:
        import os, signal, sys
        from boltzmann_likelihood import cli
        cli._write_json = lambda *_: os.kill(os.getpid(), signal.SIGINT)
        sys.argv[0] = "paperlib"
        cli.main()
    """
    RBM(W[:8, :5], B[:8], A[:5]).save(tmp_path / "m.npz")
    np.save(tmp_path / "t.npy", ROWS[:, :8])
    words = ["evaluate", "m.npz", "--data", "t.npy", "--json", "o.json"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_heed_signals,
    )
    assert "Verdict" in done.stdout
    assert (done.returncode, done.stderr) == (130, "paperlib: interrupted\n")


def _heed_signals():
    """As a shell starts a program, whatever those who run the tests ignore."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def agrees_with_cache(folder):
    """What a process prints that takes its compiled functions from this folder.

    One function stands for all, since to compile all of them takes ten seconds.
    """
    code = """if True:
        import torch
        from paperlib.kernels import comparison, draw_units
        from paperlib.kernels.capability import agrees
        halves = torch.full((8,), 0.5)
        comparison.short_walk = lambda: [draw_units(halves, torch.Generator())]
        print(agrees())
    """
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        check=False,
    ).stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    assert agrees_with_cache(folder) == "True\n"
    return folder


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("left", [b"", b"\x80\x04garbage"])
def test_a_damaged_cache_of_compiled_functions_is_made_anew(suffix, left, cache, tmp_path):
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    damaged = list(tmp_path.rglob(f"*{suffix}"))
    assert damaged
    for file in damaged:
        file.write_bytes(left)
    assert agrees_with_cache(tmp_path) == "True\n"
    assert any(file.read_bytes() != left for file in tmp_path.rglob(f"*{suffix}"))


def test_help_needs_no_docstrings():
    words = ["-m", "boltzmann_likelihood", "evaluate", "--help"]
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    without = run([sys.executable, "-OO", *words]).stdout
    assert "The average test log-probability of a model" in without
    assert without == run([sys.executable, *words]).stdout
