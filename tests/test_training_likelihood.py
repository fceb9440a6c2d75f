"""The likelihood along training: by enumeration, from archives of `rbms`, by the command."""

import csv
import json
import math
import shlex
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from enumeration import all_states, log_z, random_dbm, random_rbm
from evaluations import recorded
from interruptions import interrupt_call
from writers import as_hdf5, rbms_update

from boltzmann_likelihood import planted
from boltzmann_likelihood.evaluation import (
    annealing_runs,
    compare,
    evaluate,
    evaluate_training,
    evaluation,
    training,
)
from boltzmann_likelihood.evaluation.report import describe_training, training_as_dict
from boltzmann_likelihood.files import read_checkpoints
from boltzmann_likelihood.files.checkpoint_files import evenly
from paperlib.errors import InputError
from paperlib.estimators import exact_hidden_samples
from paperlib.models import DBN, RBM
from paperlib.numerics import seeded_generator

D = 7
M = 4
FINAL = random_rbm(D, M, seed=3)


def at(share):
    """Weights and biases grow in training, and then too far."""
    return RBM(*(share * tensor for tensor in FINAL.tensors().values()))


SHARES = (0.2, 0.6, 1.0, 1.6)
UPDATES = (1, 5, 10, 200)
MODELS = [at(share) for share in SHARES]
NAMES = [f"update_{update}" for update in UPDATES]
TEST, _ = exact_hidden_samples(FINAL, 300, seeded_generator(4))
TRUTH = [(rbm.log_unnormalized(TEST) - log_z(rbm)) for rbm in MODELS]


def write_archive(path, changes=(), stored_log_z=False):
    """In the layout of `rbms`; groups are not written in the order of training."""
    content = {"model_type": "BBRBM"}
    for update, rbm in [*zip(UPDATES, MODELS, strict=True)][::-1]:
        more = {"log_z": log_z(rbm) + 5} if stored_log_z else {}
        content |= rbms_update(rbm.tensors().values(), update, **more)
    path.write_bytes(as_hdf5(content | dict(changes)))
    return path


# ---- against enumeration


def test_each_is_evaluated_and_the_best_is_compared_with_each():
    evaluation = evaluate_training(MODELS, TEST, names=NAMES, progress=False)
    assert (evaluation.best, evaluation.trustworthy, evaluation.interrupted) == (2, True, False)
    for each, log_p, rbm in zip(evaluation.checkpoints, TRUTH, MODELS, strict=True):
        assert each.evaluation.exact == evaluate(rbm, TEST, progress=False).exact
        assert each.evaluation.exact.log_z == pytest.approx(log_z(rbm), abs=1e-9)
        if rbm is not MODELS[2]:
            assert each.behind_best == compare(FINAL, rbm, TEST, progress=False).difference
        assert each.behind_best.mean == pytest.approx((TRUTH[2] - log_p).mean().item(), abs=1e-9)
    assert evaluation.verdict.startswith("update_10 is best; update_5 before it is worse (by ")


def test_what_cannot_be_told_apart():
    """A checkpoint that is nearly the same is no worse, for all that these images show."""
    nearly = RBM(FINAL.weights, FINAL.visible_bias + 1e-6, FINAL.hidden_bias)
    evaluation = evaluate_training([at(0.5), FINAL, nearly], TEST[:40], progress=False)
    other = evaluation.checkpoints[{1: 2, 2: 1}[evaluation.best]]
    # exact ln Z: a millionth is a difference on these images, and none for others
    assert other.told_from_best in ("on these images", "no")
    assert abs(other.behind_best.mean) < 1e-4


@pytest.mark.parametrize("deep", ["DBM", "DBN"])
def test_other_models(deep):
    if deep == "DBM":
        models = [random_dbm(5, 4, 3, seed) for seed in (1, 2)]
    else:
        layers = [random_rbm(5, 4, 1), random_rbm(4, 3, 2), random_rbm(4, 3, 3)]
        models = [DBN([layers[0], top]) for top in layers[1:]]
    rows = all_states(5)
    evaluation = evaluate_training(models, rows, progress=False)
    alone = [evaluate(model, rows, progress=False).average for model in models]
    assert [each.evaluation.average for each in evaluation.checkpoints] == alone


# ---- where nothing is exact

#: Too many units to enumerate, and ln Z known. The images are those of the third, and the fourth
#: is nearly the same.
PLANTED = [planted.block_diagonal(30, 26, 5, generator=seeded_generator(seed)) for seed in range(3)]
LAST = PLANTED[-1]
TWIN = RBM(LAST.rbm.weights, LAST.rbm.visible_bias, LAST.rbm.hidden_bias + 1e-4)
WIDE = [each.rbm for each in PLANTED] + [TWIN]
IMAGES = LAST.draws(100, seeded_generator(5))
STEPS = 512
TEMPERING_STEPS = 40_000


@cache
def whole():
    return estimated()


def estimated(models=WIDE, images=IMAGES, **options):
    options = {"steps": STEPS, "tempering_steps": TEMPERING_STEPS, "progress": False} | options
    return evaluate_training(models, images, generator=seeded_generator(2), **options)


def efforts(evaluation):
    return [each.evaluation.effort.num_steps for each in evaluation.checkpoints]


def test_estimates():
    """Within two and a half half-widths of 95 %."""
    evaluation = whole()
    for each, known in zip(evaluation.checkpoints, PLANTED, strict=False):
        log_p = known.rbm.log_unnormalized(IMAGES) - known.log_z
        best_log_p = LAST.rbm.log_unnormalized(IMAGES) - LAST.log_z
        for got, truth in (
            (each.evaluation.average, log_p),
            (each.behind_best, best_log_p - log_p),
        ):
            reach = got.interval[1] - got.mean
            assert abs(got.mean - truth.mean().item()) <= 2.5 * reach + 1e-3


def test_most_of_the_work_is_spent_on_those_that_could_be_best():
    evaluation = whole()
    assert evaluation.best in (2, 3)
    assert efforts(evaluation) == [STEPS // 16, STEPS // 16, STEPS, STEPS]
    assert [each.told_from_best for each in evaluation.checkpoints[:2]] == ["on these images"] * 2
    assert evaluation.as_good == tuple(str(n) for n in (3, 4) if n != evaluation.best + 1)
    assert evaluation.trustworthy


def test_minutes():
    evaluation = estimated(steps=None, tempering_steps=None, minutes=0.05)
    assert {each.evaluation.effort.minutes for each in evaluation.checkpoints} == {0.05}
    screened, _, *chosen = efforts(evaluation)
    assert min(chosen) > screened


def test_what_is_not_trusted_is_not_best():
    """The second is better by many nats, but too large for the little work done on it."""
    late = planted.block_diagonal(300, 150, 12, 2.0, generator=seeded_generator(0))
    images = late.draws(100, seeded_generator(1))
    rates = images.double().mean(0).clamp(0.01, 0.99)
    early = RBM(torch.zeros(300, 1), torch.logit(rates), torch.zeros(1))
    few = {"steps": 32, "tempering_steps": 5_000, "names": ["early", "late"]}
    evaluation = estimated([early, late.rbm], images, **few)
    one, other = evaluation.checkpoints
    assert (one.evaluation.word, other.evaluation.word) == ("trusted", "not trusted")
    assert other.average.mean > one.average.mean + 1
    assert (evaluation.best, evaluation.trustworthy, evaluation.unknown) == (0, False, ("late",))


def test_few_get_the_rest_of_the_time(monkeypatch):
    """The highest averages first, of however many that could be best."""
    monkeypatch.setattr(training, "_MOST_AGAIN", 1)
    evaluation = estimated([TWIN, LAST.rbm], steps=None, tempering_steps=None, minutes=0.03)
    fewer, more = sorted(efforts(evaluation))
    assert fewer < more


# ---- interruptions


@pytest.mark.parametrize("call", [1, 3])
def test_interrupted_enumeration_keeps_what_is_done(monkeypatch, call):
    interrupt_call(monkeypatch, evaluation, "exact_log_z", call)
    if call == 1:
        with pytest.raises(KeyboardInterrupt):
            evaluate_training(MODELS, TEST, names=NAMES, progress=False)
        return
    stopped = evaluate_training(MODELS, TEST, names=NAMES, progress=False)
    assert stopped.interrupted
    assert [checkpoint.name for checkpoint in stopped.checkpoints] == NAMES[:2]
    assert stopped.best == 1
    missing = ", ".join(NAMES[2:])
    assert stopped.left_out == (f"left out, since the run was interrupted before: {missing}",)
    assert stopped.verdict.startswith(f"{NAMES[1]} is best of those evaluated")
    assert stopped.verdict.endswith("it is the last of those evaluated")


def test_an_interrupted_estimate_does_not_replace_a_finished_one(monkeypatch):
    """The others are as without the interruption: the same seed gives the same numbers."""
    screened = 3 * len(WIDE)
    calls = interrupt_call(monkeypatch, annealing_runs, "raise_log_prob", screened + 5)
    evaluation = estimated()
    assert len(calls) == screened + 5
    assert evaluation.interrupted
    assert not any(each.evaluation.interrupted for each in evaluation.checkpoints)
    # of the twins the one whose first average was higher
    [done] = [number for number, steps in enumerate(efforts(evaluation)) if steps == STEPS]
    assert sorted(efforts(evaluation)) == [STEPS // 16] * 3 + [STEPS]
    for number in (0, 1, done):
        one = evaluation.checkpoints[number].evaluation
        other = whole().checkpoints[number].evaluation
        assert one.average == other.average


def test_the_first_one_interrupted_is_all_there_is(monkeypatch):
    interrupt_call(monkeypatch, annealing_runs, "raise_log_prob", 2)
    evaluation = estimated()
    assert evaluation.interrupted
    assert [each.evaluation.word for each in evaluation.checkpoints] == ["not trusted"]
    assert "do not rely on it yet" in describe_training(evaluation)


# ---- files


def test_checkpoints_of_an_archive_that_is_known_by_what_it_holds(tmp_path):
    path = write_archive(tmp_path / "run7.checkpoint")
    assert list(read_checkpoints([path])) == NAMES
    assert list(read_checkpoints([path], updates=[200, 5, 5])) == ["update_5", "update_200"]
    assert list(read_checkpoints([path], most=2)) == ["update_1", "update_200"]
    with pytest.raises(InputError, match=r"update: expected one of 1, 5, 10, 200 in .*, got 6"):
        read_checkpoints([path], updates=[6])


def test_checkpoints_of_a_folder_and_of_files(tmp_path):
    for number, rbm in zip((100, 20, 3), MODELS, strict=False):
        rbm.save(tmp_path / f"epoch{number}.npz")
    assert list(read_checkpoints([tmp_path])) == ["epoch3.npz", "epoch20.npz", "epoch100.npz"]
    files = [tmp_path / "epoch100.npz", tmp_path / "epoch3.npz"]
    checkpoints = read_checkpoints(files)
    assert list(checkpoints) == ["epoch100.npz", "epoch3.npz"]
    assert checkpoints["epoch3.npz"].rbm.checksum() == MODELS[2].checksum()
    (tmp_path / "b").mkdir()
    FINAL.save(tmp_path / "b" / "epoch3.npz")
    assert str(files[1]) in read_checkpoints([files[1], tmp_path / "b" / "epoch3.npz"])


def test_a_folder_is_read_by_what_its_files_hold(tmp_path):
    """Whatever they are called; the rest is named, and takes no checkpoint's place."""
    for number, name in enumerate(("1.step", "2.step", "3.step", "4.step")):
        MODELS[number].save(tmp_path / "m.npz")
        (tmp_path / "m.npz").rename(tmp_path / name)
    (tmp_path / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "old").mkdir()
    messages = []
    checkpoints = read_checkpoints([tmp_path], left_out=messages.append)
    assert list(checkpoints) == ["1.step", "2.step", "3.step", "4.step"]
    assert [text.partition(" is left out: path: ")[0] for text in messages] == [
        "1.png",
        "notes.txt",
        "old",
    ]
    messages = []
    assert list(read_checkpoints([tmp_path], None, 2, messages.append)) == ["1.step", "4.step"]
    assert "2 of 4 checkpoints are taken, evenly spaced" in messages
    assert len(messages) == 4


@pytest.mark.parametrize(("count", "most"), [(1, 1), (5, 9), (100, 7), (21, 20)])
def test_evenly(count, most):
    places = evenly(count, most)
    assert places == sorted(set(places))
    assert len(places) == min(count, most)
    assert {0, count - 1} <= set(places)


def test_of_none_evenly_none():
    assert evenly(0, 1) == []


# ---- wrong input


def test_models_that_do_not_belong_together(tmp_path):
    write_archive(tmp_path / "a.h5", {"model_type": "IIRBM"})
    FINAL.save(tmp_path / "b.npz")
    message = "the same kind of visible units in all, got another one in b"
    with pytest.raises(InputError, match=message):
        read_checkpoints([tmp_path / "a.h5", tmp_path / "b.npz"])


# ---- the command


FIRST_IS_NAN = np.array([math.nan] + [0.0] * (D - 1))


def in_a_folder(folder, spoil):
    """Three checkpoints in a folder or archive, the last spoilt; what to pass, and its name."""
    if spoil == "archive":
        path = write_archive(folder / "RBM.h5", {f"{NAMES[-1]}/params/vbias": FIRST_IS_NAN})
        return path, NAMES[-1]
    for number, rbm in enumerate(MODELS[:2], start=1):
        rbm.save(folder / f"epoch{number}.npz")
    name = "._epoch1.npz" if spoil == "hidden" else "epoch3.npz"
    tensors = {key: tensor.numpy() for key, tensor in FINAL.tensors().items()}
    if spoil in ("hidden", "damaged"):
        (folder / name).write_bytes(b"\0\x05\x16\x07")
    else:
        factor = {"nan": math.nan, "overflow": 1e300, "width": 1.0}[spoil]
        if spoil == "width":
            tensors = {
                key: tensor.numpy() for key, tensor in random_rbm(D + 1, M, 1).tensors().items()
            }
        np.savez(folder / name, **{key: factor * array for key, array in tensors.items()})
    return folder, name


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("hidden", None),
        ("damaged", "expected an undamaged .npz file"),
        ("nan", "training diverged there"),
        ("archive", "training diverged there"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_left_out_and_named(tmp_path, spoil, message):
    path, name = in_a_folder(tmp_path, spoil)
    problems = []
    checkpoints = read_checkpoints([path], left_out=problems.append)
    assert name not in checkpoints
    assert len(checkpoints) >= 2
    assert len(problems) == (message is not None)
    if message is not None:
        assert problems[0].startswith(f"{name} is left out: ")
        assert message in problems[0]
        with pytest.raises(InputError):
            read_checkpoints([path])


def test_a_checkpoint_that_the_user_names_must_be_readable(tmp_path):
    folder, _ = in_a_folder(tmp_path, "nan")
    with pytest.raises(InputError, match="expected finite numbers"):
        read_checkpoints(sorted(folder.iterdir()), left_out=pytest.fail)
    path = write_archive(tmp_path / "RBM.h5", {"update_5/params/vbias": FIRST_IS_NAN})
    with pytest.raises(InputError, match="expected finite numbers"):
        read_checkpoints([path], updates=[1, 5], left_out=pytest.fail)


def test_a_folder_without_any_checkpoint_that_can_be_used(tmp_path):
    for number in (1, 2):
        (tmp_path / f"epoch{number}.npz").write_bytes(b"no zip")
    message = r"models: expected at least one .*; epoch1\.npz is left out"
    with pytest.raises(InputError, match=message):
        read_checkpoints([tmp_path], left_out=pytest.fail)


@pytest.fixture
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("t.npy", TEST.to(torch.uint8).numpy())


@pytest.mark.usefixtures("_folder")
def test_command():
    write_archive(Path("RBM.h5"), stored_log_z=True)
    output, stored = recorded("training RBM.h5 --data t.npy --csv r.csv --plot r.svg")
    assert "Verdict: update_10 is best; update_5 before it is worse" in output
    assert "report the average of other images" in output
    assert (stored["best"], stored["seed"]) == ("update_10", 0)
    assert (stored["verdict_word"], stored["trustworthy"]) == ("trusted", True)
    assert shlex.split(stored["run"]["repeat"])[:3] == ["paperlib", "training", "RBM.h5"]
    for row, rbm, log_p in zip(stored["checkpoints"], MODELS, TRUTH, strict=True):
        assert row["average"] == pytest.approx(log_p.mean().item(), abs=1e-9)
        assert row["claimed_log_z"] == pytest.approx(log_z(rbm) + 5)
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert [row["checkpoint"] for row in rows] == NAMES
    assert float(rows[2]["average"]) == stored["checkpoints"][2]["average"]
    assert "best: update_10" in Path("r.svg").read_text()


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("nan", "training diverged there"),
        ("overflow", "did the training diverge"),
        ("width", "expected shape [any, 8], got [300, 7]"),
    ],
)
def test_command_says_which_checkpoints_it_left_out(spoil, message):
    Path("checkpoints").mkdir()
    folder, name = in_a_folder(Path("checkpoints"), spoil)
    output, stored = recorded(f"training {folder} --data t.npy")
    assert f"{name} is left out: " in output
    names = [checkpoint["checkpoint"] for checkpoint in stored["checkpoints"]]
    assert names == ["epoch1.npz", "epoch2.npz"]
    [text] = stored["left_out"]
    assert text.split()[0] == name
    assert message in text


def test_rows_have_no_infinite_numbers():
    evaluation = evaluate_training(MODELS[:1], TEST, progress=False)
    json.dumps(training_as_dict(evaluation), allow_nan=False)
    assert evaluation.verdict == "1 is best; it is the first; it is the last"
