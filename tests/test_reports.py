"""What `evaluate`, `audit` and `compare` say.

Runs that repeat to the digit, a number to quote, baselines, and files that hold it all.
"""

import hashlib
import html
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import log_z, random_rbm
from evaluations import SMALL, draws, log_z_of_spins, recorded, run
from writers import as_rbms

from boltzmann_companion.recipes import load_model
from boltzmann_likelihood.evaluation import audit, compare, evaluate, evaluate_training, quote
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from boltzmann_likelihood.evaluation.audit import EXIT_CODES
from boltzmann_likelihood.evaluation.baselines import baselines_of
from boltzmann_likelihood.evaluation.picture import plot
from boltzmann_likelihood.evaluation.report import as_dict, describe
from boltzmann_likelihood.evaluation.result import Doubt, Judgement
from boltzmann_likelihood.evaluation.verdict import rounded_up
from boltzmann_likelihood.files import inputs, read_images, read_model
from boltzmann_likelihood.files.stored import read_stored
from boltzmann_likelihood.provenance import code_version, repository_state
from paperlib import __version__
from paperlib.datasets import binary_images
from paperlib.models import DBN
from paperlib.numerics import seeded_generator

TEST = draws(SMALL, 60, 2)
TRAIN = draws(SMALL, 200, 3)
# Standard error of the average over the test images.
IMAGE_ERROR = SMALL.log_unnormalized(TEST).std().item() / 60**0.5


@pytest.fixture(scope="module")
def evaluation():
    """An estimate that is trusted."""
    options = {"generator": seeded_generator(5), "progress": False, "steps": 160}
    return evaluate(SMALL, TEST, TRAIN, exact=False, **options)


def stored(line):
    """The JSON of a command without what depends on the clock."""
    record = recorded(line, *EXIT_CODES.values())[1]

    def timeless(value):
        if isinstance(value, dict):
            return {key: timeless(item) for key, item in value.items() if key != "seconds"}
        return [timeless(item) for item in value] if isinstance(value, list) else value

    return timeless(record)


def numbers(record):
    """What a JSON file says of the models, not of how it was asked."""
    dropped = {"run", "settings"}
    if isinstance(record, dict):
        return {key: numbers(value) for key, value in record.items() if key not in dropped}
    return record


# ---- the same steps and seed, the same digits

COMMANDS = {
    "evaluate": "evaluate m.npz --data t.npy --train x.npy",
    "audit": "audit m.npz --data t.npy --claimed-log-z 12",
    "compare": "compare m.npz other.npz --data t.npy",
}


@pytest.mark.usefixtures("folder", "_estimated")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_steps_and_seed_repeat_to_the_digit(monkeypatch, command):
    """Nothing asks how fast the machine is."""

    def ask_the_clock(runs, seconds):
        raise AssertionError

    monkeypatch.setattr(AnnealingRuns, "affordable_steps", ask_the_clock)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", ask_the_clock)
    line = f"{command} --steps 48 --tempering-steps 6000"
    first = stored(f"{line} --seed 7")
    old_name = line.replace("--tempering-steps", "--ladder-steps")
    assert stored(f"{old_name} --seed 7") == first
    assert numbers(stored(f"{line} --seed 8")) != numbers(first)
    settings = first.get("evaluation", first.get("first", first))["settings"]
    assert (settings["num_steps"], settings["ladder_steps"]) == (48, 6000)
    assert settings["steps_chosen_by"] == "the user"


DEEP = "compare dbn.safetensors m.npz --data t.npy"


@pytest.mark.usefixtures("folder", "_estimated")
@pytest.mark.parametrize("command", [COMMANDS["evaluate"], COMMANDS["compare"], DEEP])
def test_a_run_by_the_clock_says_how_to_repeat_it(monkeypatch, command):
    """On a machine of whatever speed.

    Pilots draw from a generator of their own, and what is drawn before the chains start comes
    first.
    """
    DBN([random_rbm(8, 5, 8), random_rbm(5, 4, 9)]).save("dbn.safetensors")
    monkeypatch.setattr(AnnealingRuns, "_seconds_per_step", lambda runs: (runs._choose(), 1.0)[1])
    first = stored(f"{command} --minutes 0.001 --seed 3")
    again = stored(first["run"]["repeat"].removeprefix("paperlib "))
    assert numbers(again) == numbers(first)
    assert again["run"]["repeat"] == first["run"]["repeat"]
    assert first["run"]["seed"] == 3
    if command == DEEP:
        assert first["first"]["settings"]["posterior_draws"] == 100


def test_usual_steps_of_parallel_tempering(evaluation):
    """Half of (200 + 60 x 4) chains with 160 + 40 + 10 steps."""
    assert evaluation.effort.tempering_steps == 440 * 210 // 2
    assert evaluation.effort.minutes is None
    assert evaluation.tempering.chain_steps <= evaluation.effort.tempering_steps


# ---- the line to quote


def test_quote_of_an_estimate(evaluation):
    line = quote(evaluation)
    average = evaluation.average
    low, high = average.interval
    assert line.startswith(
        f"To quote: {average.mean:.2f} nats, 95 % interval {low:.2f} to {high:.2f}"
        " (parallel tempering, "
    )
    last = evaluation.runs[-1].bracket
    for part in (
        f"{evaluation.tempering.chain_steps:,} chain-steps",
        f"AIS {last.upper:.2f}, RAISE {last.lower.mean:.2f}",
        "K = 160",
        f"standard error over 60 images {average.image_std_error:.2f}",
        "start at the base rates of the training images",
        "images binary as given",
        "seed 5",
        code_version(),
    ):
        assert part in line
    assert "\n" not in line
    assert evaluation.average.image_std_error == pytest.approx(IMAGE_ERROR, abs=1e-5)
    assert f"(standard error over images {IMAGE_ERROR:.2f})" in describe(evaluation)
    best = evaluation.runs[-1].bracket.lower
    assert 0 < best.monte_carlo_std_error == best.test_set_std_error  # all 60 images are taken
    error = f"{best.test_set_std_error:.2f}"
    assert f"(standard error {error}: Monte Carlo {error}, choice of images 0.00)" in describe(
        evaluation
    )
    stored = as_dict(evaluation)["estimates"][-1]
    raise_interval = stored["raise_interval_95"]
    assert raise_interval[0] < stored["raise"] < raise_interval[1]
    assert stored["raise_monte_carlo_std_error"] == stored["raise_std_error"] > 0
    assert stored["raise_choice_std_error"] == 0
    lines = describe(evaluation).splitlines()
    [first] = [number for number, text in enumerate(lines) if text.startswith("To quote: ")]
    assert " ".join(text.strip() for text in lines[first:]) == line
    assert all(len(text) <= 80 for text in lines[first:])
    assert lines[first].endswith(f"{low:.2f} to {high:.2f}")
    assert as_dict(evaluation)["quote"] == line
    assert (
        as_dict(evaluation)["average"]["std_error_over_images"]
        == evaluation.average.image_std_error
    )
    inputs = replace(evaluation.inputs, binarization="images binarised once with seed 4")
    used = quote(replace(evaluation, seed=None, inputs=inputs))
    assert "seed unknown" in used
    assert "images binarised once with seed 4" in used


def test_quote_of_an_exact_value():
    exact = evaluate(SMALL, TEST)
    truth = (SMALL.log_unnormalized(TEST) - log_z(SMALL)).mean().item()
    assert f"(standard error over images {IMAGE_ERROR:.3f})" in describe(exact)
    assert quote(exact) == (
        f"To quote: {truth:.2f} nats (exact, by enumeration;"
        f" standard error over 60 images {IMAGE_ERROR:.2f};"
        f" images binary as given; {code_version()})"
    )


def test_seed_of_a_generator_that_was_used_before():
    generator = seeded_generator(6)
    torch.rand(1, generator=generator)
    options = {"steps": 32, "tempering_steps": 5_000, "progress": False, "exact": False}
    assert evaluate(SMALL, TEST, generator=generator, **options).seed is None


# ---- words


@pytest.mark.parametrize(
    ("nats", "shown"),
    [
        (0.15, "0.15"),
        (-0.15, "0.15"),
        (0.1501, "0.16"),
        (0.0, "0.01"),
        (0.001, "0.01"),
        (2, "2.00"),
    ],
)
def test_within_is_rounded_up(nats, shown):
    assert rounded_up(nats) == shown


@pytest.mark.parametrize(("errors", "is_mentioned"), [(-3, True), (-1, False), (3, False)])
def test_a_crossing_is_mentioned_where_it_exceeds_its_error(evaluation, errors, is_mentioned):
    best = evaluation.runs[-1]
    lower = best.bracket.lower.mean
    error = best.bracket.gap_std_error
    crossed = replace(best.bracket, upper=lower + errors * error)
    runs = (*evaluation.runs[:-1], replace(best, bracket=crossed))
    text = describe(replace(evaluation, runs=runs))
    assert (f"AIS lies {rounded_up(errors * error)} below RAISE" in text) == is_mentioned


def test_a_report_has_at_most_fifteen_lines_or_twenty(evaluation):
    assert len(describe(evaluation).splitlines()) <= 15
    doubts = tuple(f"Doubt {number}." for number in range(9))
    judgement = Judgement("open", tuple(Doubt("open", text, factor=3) for text in doubts))
    doubted = replace(evaluation, judgement=judgement)
    assert "About 3 times as much time should settle this" in describe(doubted)
    report = describe(doubted)
    assert len(report.splitlines()) <= 20
    assert "Doubt 2." in report
    assert "Doubt 3." not in report
    assert "and 6 more" in report
    assert as_dict(doubted)["findings"] == list(doubts)


# ---- baselines


def test_baselines():
    """Independent pixels, pixel by pixel."""
    for train, source in ((TRAIN, "training images"), (None, "test images")):
        known = TEST if train is None else train
        on = (known.sum(0) + 1) / (len(known) + 2)
        log_prob = torch.where(TEST > 0, on.log(), (1 - on).log()).sum(1).mean().item()
        expected = baselines_of(TEST, train)
        assert expected.base_rates == pytest.approx(log_prob, abs=1e-9)
        assert expected.uniform == pytest.approx(-8 * np.log(2), abs=1e-12)
        assert expected.source == source
        result = evaluate(SMALL, TEST, train)
        assert result.baselines == expected
        assert (
            "For scale: uniform model -5.55,"
            f" independent pixels with the base rates of the {source}"
        ) in describe(result)
        assert as_dict(result)["baselines"]["base_rates"] == expected.base_rates


def test_inverted_images_do_not_pass_without_remark():
    inverted = evaluate(SMALL, 1 - TEST, 1 - TRAIN)
    assert inverted.average.mean < inverted.baselines.uniform < inverted.baselines.base_rates
    [remark] = inverted.remarks
    assert "worse than the uniform model by" in remark
    assert "than independent pixels with the base rates of the training images by" in remark
    assert "transposed" in remark
    # The number is right, but not of the model that somebody meant.
    assert (inverted.word, inverted.trustworthy, inverted.warnings) == ("open", False, ())
    assert f"Verdict: open: {remark}" in describe(inverted)
    assert quote(inverted) == "To quote: no number yet, since the verdict is 'open'."
    digits = binary_images("digits")
    trained = load_model("digits-pcd-16", torch.float64)
    assert evaluate(trained, digits.test, digits.train).remarks == ()


# ---- files


def test_json_holds_what_a_run_needs(folder):
    record = stored("evaluate m.npz --data t.npy --train x.npy --seed 9")["run"]
    for name, file in (("model", "m.npz"), ("data", "t.npy"), ("train", "x.npy")):
        expected = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        assert record["files"][name] == {"path": file, "sha256": expected}
    assert (record["version"], record["seed"]) == (__version__, 9)
    assert record["binarization"] == "images binary as given"
    assert record["made_by"]["torch"]
    assert (
        record["repeat"]
        == "paperlib evaluate m.npz --data t.npy --train x.npy --seed 9 --device cpu"
    )


def test_json_of_audit_and_compare(folder):
    audited = stored("audit m.npz --data t.npy --claimed-log-z 9 --tolerance 0.5")["run"]
    assert audited["options"] == {"claimed-log-z": 9.0, "claimed-log-prob": None, "tolerance": 0.5}
    assert "--claimed-log-z 9.0 --tolerance 0.5" in audited["repeat"]
    compared = stored("compare m.npz other.npz --data t.npy")
    assert set(compared["run"]["files"]) == {"model", "second", "data"}
    assert compared["std_error_over_images"] > 0
    evaluated = stored("evaluate m.npz --data t.npy")
    for record in (audited, compared["run"], evaluated["run"]):
        assert record["version"] == __version__
        assert record["made_by"]["commit"] == evaluated["commit"] == repository_state()[0]
    assert compared["first"]["baselines"] == compared["second"]["baselines"]


@pytest.mark.parametrize(
    ("option", "name", "value", "description"),
    [
        ("--binarize 11", "binarize_seed", 11, "images binarised once with seed 11"),
        ("--threshold 0.5", "threshold", 0.5, "pixels on where above 0.5"),
    ],
)
def test_binarised_images_are_said(folder, option, name, value, description):
    np.save("grey.npy", np.load("t.npy") * 0.99)
    output, record = recorded(f"evaluate m.npz --data grey.npy {option}")
    assert description in " ".join(output.split())
    assert record["run"][name] == value
    audited = stored(f"audit m.npz --data grey.npy --claimed-log-z 9 {option}")
    compared = stored(f"compare m.npz other.npz --data grey.npy {option}")
    # The other model is worse than independent pixels, so that there is nothing to quote.
    quotes = [record["quote"], audited["evaluation"]["quote"], compared["first"]["quote"]]
    assert all(f"; {description}; " in line for line in quotes)
    for run_record in (record["run"], audited["run"], compared["run"]):
        assert run_record["binarization"] == description


# ---- printing


def printed(result):
    """What every result does when it is printed; its report."""
    assert str(result) == describe(result)
    name = type(result).__name__
    assert repr(result) == f"<{name}: {result.summary}>"
    assert len(repr(result)) < 120
    assert "\n" not in repr(result)
    page = result._repr_html_()
    assert page.startswith("<pre")
    assert html.unescape(page.partition(">")[2]) == f"{result}</pre>"
    return str(result).splitlines()


@pytest.mark.usefixtures("folder")
def test_results_print_themselves():
    """With what was read from files, and as the command prints it."""
    np.save("grey.npy", np.load("t.npy") * 0.99)
    model = read_model("m.npz")
    other = read_model("other.npz")
    images = read_images("data", "grey.npy", 8, threshold=0.5)
    options = {"progress": False}
    line = "m.npz --data grey.npy --threshold 0.5"
    results = {
        f"evaluate {line}": evaluate(model, images, **options),
        f"audit {line} --claimed-log-z 9": audit(model, images, claimed_log_z=9, **options),
        f"compare m.npz other.npz {line.removeprefix('m.npz')}": compare(
            model, other, images, **options
        ),
        f"training m.npz other.npz {line.removeprefix('m.npz')}": evaluate_training(
            [model, other], images, names=["m.npz", "other.npz"], **options
        ),
    }
    for command, result in results.items():
        assert printed(result) == run(command, *EXIT_CODES.values()).splitlines()
        assert "m.npz" in str(result).splitlines()[0]


def test_a_model_that_is_no_file_is_printed_without_one(evaluation):
    report = printed(evaluation)
    assert report[0].startswith("RBM with 8 visible and 5 hidden units, 60 test images")
    assert "images binary as given" in " ".join(report[-5:])
    assert repr(evaluation) == (
        "<Evaluation: RBM with 8 visible and 5 hidden units, 60 test images, "
        f"{evaluation.average.mean:.2f} nats, trusted>"
    )


def test_signs_of_html_in_a_report_are_text(evaluation):
    remark = replace(evaluation, remarks=("<b> & co",))
    assert "&lt;b&gt; &amp; co" in remark._repr_html_()
    assert "<b>" not in remark._repr_html_()


def test_what_was_not_used_of_the_files_is_said(folder):
    """Of the model's file, and of those of test and training images."""
    rows = np.load("t.npy").tolist()
    table = "\n".join(",".join(map(str, row)) for row in (list("abcdefgh"), *rows))
    (folder / "t.csv").write_text(table)
    test = read_images("data", "t.csv", 8)
    train = read_images("train", "t.csv", 8)
    archive = as_rbms(SMALL.tensors().values(), "IIRBM", log_z=9)
    (folder / "RBM.h5").write_bytes(archive)
    model = read_model("RBM.h5")
    assert model.notes
    result = evaluate(model, test, train)
    assert result.inputs.notes == model.notes
    assert result.inputs.image_notes == (
        "data: the first line is a header and was left out",
        "train: the first line is a header and was left out",
    )
    assert (result.inputs.spin_visible, result.inputs.stored_log_z) == (True, 9)
    assert result.inputs.log_z_offset == model.log_z_offset != 0
    first = str(result).splitlines()[0]
    notes = "; ".join([*model.notes, *result.inputs.image_notes])
    assert first == f"Model: {model.origin} ({notes})"
    # the claim is about the model in the file, without a word about its offset
    truth = log_z_of_spins(SMALL)
    assert audit(model, test, claimed_log_z=truth).verdict == "consistent"
    assert audit(model, test, claimed_log_z=truth - model.log_z_offset).verdict == "impossible"


@pytest.mark.parametrize(
    "line",
    [
        "evaluate m.npz --data t.npy",
        "evaluate square.npz --data s.npy --train s2.npy",
        "compare square.npz square.npz --data s.npy",
        "training square.npz square2.npz --data s.npy",
    ],
)
def test_a_data_file_is_read_once(folder, monkeypatch, line):
    """Also where only the images tell which layer is visible, and for several models."""
    square = {"W": np.eye(4, 6), "one": np.zeros(4), "two": np.zeros(6)}
    np.savez("square.npz", **square)
    np.savez("square2.npz", **square)
    np.save("s.npy", np.eye(6)[:4] * 1.0)
    np.save("s2.npy", np.eye(6))
    read = []

    def counted(name, path):
        read.append(str(path))
        return read_stored(name, path)

    monkeypatch.setattr(inputs, "read_stored", counted)
    run(line)
    images = [path for path in read if path in ("t.npy", "s.npy", "s2.npy")]
    assert sorted(images) == sorted(set(images)) != []


def test_test_images_from_the_training_set_are_said():
    digits = binary_images("digits")
    trained = load_model("digits-pcd-16", torch.float64)
    part = torch.cat([digits.test[:10], digits.train[:30]])
    assert evaluate(trained, part, digits.train).known_images == 30
    assert ", 30 of them training images;" in describe(evaluate(trained, part, digits.train))
    all_known = evaluate(trained, digits.train[:30], digits.train)
    assert "(this is a training average)" in describe(all_known)
    assert "over 30 training images" in quote(all_known)
    # Small images agree by chance.
    assert evaluate(SMALL, TEST, TEST).known_images == 0


# ---- a time that is too short


@pytest.mark.usefixtures("folder", "_estimated")
@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("evaluate m.npz --data t.npy", "7.0 minutes"),
        ("audit m.npz --data t.npy --claimed-log-z 9", "7.0 minutes"),
        ("compare m.npz other.npz --data t.npy", "14.0 minutes"),
        ("training m.npz other.npz --data t.npy", "14.0 minutes"),
    ],
)
def test_a_time_below_that_of_the_shortest_run_is_said_before_it_begins(
    monkeypatch, command, line, needed
):
    """On this clock a step of AIS and RAISE takes ten seconds, and tempering nothing."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(AnnealingRuns, "_seconds_per_step", lambda runs: 10.0)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 10**6)
    monkeypatch.setattr(AnnealingRuns, "_run", stop)
    for minutes, short in (("1", True), ("30", False)):
        code, _, message = command(*line.split(), "--minutes", minutes)
        assert code == 130
        first, *rest = message.splitlines()
        assert (
            first.startswith(f"paperlib: minutes: the shortest run takes about {needed}") is short
        )
        assert len(rest) == short
        assert "interrupted while waiting for the first" in message


@pytest.mark.usefixtures("_estimated")
def test_the_shortest_run_is_not_made_twice(monkeypatch):
    """Once to see whether it is enough, and once more since it is all that there is time for."""
    monkeypatch.setattr(AnnealingRuns, "_seconds_per_step", lambda runs: 10.0)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 5_000)
    made = []
    original = AnnealingRuns.run_up_to

    def run_up_to(runs, *arguments):
        made.append(arguments[:2])
        return original(runs, *arguments)

    monkeypatch.setattr(AnnealingRuns, "run_up_to", run_up_to)
    with pytest.warns(UserWarning, match="the shortest run takes about 7.0 minutes"):
        evaluate(SMALL, TEST, minutes=0.01)
    assert made == [(32, 5_000)]


# ---- pictures


def test_ticks_stand_at_the_k_that_were_used(evaluation):
    figure = plot(evaluation)
    left = figure.axes[0]
    assert list(left.get_xticks()) == [10, 40, 160]
    assert [label.get_text() for label in left.get_xticklabels()] == ["10", "40", "160"]
    assert len(left.get_xticks(minor=True)) == 0
    assert "RBM with 8 visible and 5 hidden units, 60 test images: trusted" in figure.get_suptitle()
    # the interval of AIS is that of the bracket
    bars = left.containers[0]
    _, _, (lines,) = bars.lines
    ends = sorted(y for _, y in lines.get_segments()[-1])
    assert ends == pytest.approx(sorted(evaluation.runs[-1].bracket.upper_interval), abs=1e-6)


def test_how_parallel_tempering_went_is_drawn(evaluation):
    tempering = evaluation.tempering
    _, _, growing, swaps = plot(evaluation).axes
    for container, blocks in zip(
        growing.containers, (tempering.batch_means, tempering.batch_means.flip(0)), strict=True
    ):
        shares, means = container[0].get_data()
        assert (shares == sorted(shares, reverse=True)).all()
        assert means[0] == pytest.approx(tempering.batch_means.mean().item())  # all of the run
        part = round(len(blocks) * shares[-1] / 100)
        assert means[-1] == pytest.approx(blocks[:part].mean().item())
    heights = [bar.get_height() for bar in swaps.patches]
    assert heights == pytest.approx(tempering.rejection_rates.tolist())
    assert swaps.get_title() == f"{tempering.round_trips:,} round trips between the ends"
    assert swaps.get_xticklabels()[0].get_text() == "1"


def test_json_has_log_z_at_every_temperature(evaluation):
    stored = as_dict(evaluation)["ladder"]
    assert len(stored["betas"]) == len(stored["log_z_at_betas"]) == stored["rungs"]
    assert (stored["betas"][0], stored["betas"][-1]) == (0, 1)
    assert stored["log_z_at_betas"][-1] == stored["log_z"]
    assert len(stored["rejection_rates"]) == stored["rungs"] - 1


def test_an_unknown_error_is_drawn_too(evaluation):
    best = evaluation.runs[-1]
    bracket = replace(best.bracket, upper_interval=(best.bracket.upper - 1, np.inf))
    unknown = replace(evaluation, runs=(*evaluation.runs[:-1], replace(best, bracket=bracket)))
    assert len(plot(unknown).axes) == 4
    lost = replace(
        evaluation, tempering=replace(evaluation.tempering, std_error=np.inf, round_trips=1)
    )
    assert "(1 round trip at" in describe(lost)
    figure = plot(lost)
    assert [c.has_yerr for c in figure.axes[2].containers] == [False, False]
    assert figure.axes[3].get_title().startswith("1 round trip ")


def test_an_exact_value_is_drawn_by_image(folder):
    run("evaluate m.npz --data t.npy --plot p.svg")
    assert (folder / "p.svg").stat().st_size > 1_000
    exact = evaluate(SMALL, TEST)
    [axes] = plot(exact).axes
    assert sum(bar.get_height() for bar in axes.patches) == exact.num_images
    average = axes.lines[0].get_xdata()[0]
    assert average == pytest.approx(exact.exact.test)
    assert exact.log_unnormalized.mean() - exact.exact.log_z == pytest.approx(average)


def test_a_picture_does_not_depend_on_the_settings_of_the_user(folder):
    """Neither on a backend that this Python lacks, nor on a style that needs LaTeX.

    A program that a notebook starts has such a backend.
    """
    # not in the present folder under the name that matplotlib looks for
    (folder / "style").write_text("text.usetex: True\nfont.size: 30\nbackend: tkagg\n")
    others = {
        "MPLBACKEND": "module://backend_of_another_kernel.inline",
        "MATPLOTLIBRC": str(folder / "style"),
    }
    plain = {name: value for name, value in os.environ.items() if name not in others}
    words = [sys.executable, "-m", "boltzmann_likelihood", "evaluate", "m.npz", "--data", "t.npy"]
    for file, environment in (("plain.png", plain), ("other.png", plain | others)):
        done = subprocess.run(
            [*words, "--plot", file], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "plain.png").read_bytes() == (folder / "other.png").read_bytes()


@pytest.mark.usefixtures("folder")
def test_what_is_no_backend_at_all_is_said_before_the_work():
    words = [sys.executable, "-m", "boltzmann_likelihood", "evaluate", "m.npz", "--data", "t.npy"]
    done = subprocess.run(
        [*words, "--plot", "p.png"],
        env=os.environ | {"MPLBACKEND": "nonsense"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("paperlib: plot: expected MPLBACKEND to be a backend")


@pytest.mark.usefixtures("folder")
def test_a_missing_matplotlib_is_said_before_the_work(monkeypatch, refusal):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message, output = refusal("evaluate m.npz --data t.npy --plot p.svg")
    assert "matplotlib to be installed" in message
    assert output == ""


# ---- what an archive says of itself


@pytest.mark.parametrize(("off", "verdict"), [(0.0, "consistent"), (5.0, "impossible")])
@pytest.mark.parametrize("kind", ["BBRBM", "IIRBM"])
def test_stored_log_z_stands_beside(folder, kind, off, verdict):
    """Numbers are those of the file's own model, also where its units are spins."""
    truth = log_z(SMALL) if kind == "BBRBM" else log_z_of_spins(SMALL)
    archive = as_rbms(SMALL.tensors().values(), kind, log_z=truth + off)
    (folder / "RBM.h5").write_bytes(archive)
    output, record = recorded("evaluate RBM.h5 --data t.npy")
    sentence = f"ln Z that the file stores: {truth + off:.2f}; the exact one is {truth:.2f}."
    assert sentence in output
    assert f"It is off by {off:+.2f}. Verdict on it: {verdict}." in output
    assert record["stored_log_z"]["verdict"] == verdict
    assert record["stored_log_z"]["claimed_log_z"] == pytest.approx(truth + off)
    assert record["stored_log_z"]["interval"] == pytest.approx([truth, truth], abs=1e-6)


@pytest.mark.usefixtures("_estimated")
def test_stored_log_z_beside_an_estimate(folder):
    archive = as_rbms(SMALL.tensors().values(), log_z=log_z(SMALL))
    (folder / "RBM.h5").write_bytes(archive)
    output = run("evaluate RBM.h5 --data t.npy --steps 160")
    assert "inside the interval" in output
    assert "off by" not in output
    assert "Verdict on it: consistent." in output
