"""The likelihood along training: against enumeration, from archives that `rbms` wrote, and through the command."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from enumeration import log_z, random_rbm
from evaluations import recorded
from interruptions import interrupt_call
from writers import as_hdf5, as_rbms, rbms_update

from paperlib.errors import InputError
from paperlib.estimators import exact_hidden_samples
from paperlib.evaluation import along_training, evaluate_training, read_checkpoints
from paperlib.evaluation.along_training import evenly
from paperlib.evaluation.training_report import describe_training, training_rows
from paperlib.models import DBN, RBM, planted
from paperlib.numerics import seeded_generator

D, M = 7, 4
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


def walked(rbms, test, steps, by="trajectory", seed=1):
    options = {"generator": seeded_generator(seed), "progress": False}
    return evaluate_training(rbms, test, by=by, chain_steps=steps, **options)


# ---- against enumeration


def test_exact():
    found = evaluate_training(MODELS, TEST, names=NAMES, progress=False)
    assert (found.method, found.chain_steps, found.warnings) == ("exact", 0, ())
    assert found.best == 2
    for checkpoint, log_p, rbm in zip(found.checkpoints, TRUTH, MODELS, strict=True):
        assert checkpoint.log_z == pytest.approx(log_z(rbm), abs=1e-9)
        assert checkpoint.log_z_interval == (checkpoint.log_z, checkpoint.log_z)
        assert checkpoint.average.mean == pytest.approx(log_p.mean().item(), abs=1e-9)
        behind = TRUTH[2] - log_p
        assert checkpoint.behind_best.mean == pytest.approx(behind.mean().item(), abs=1e-9)
        low, high = checkpoint.behind_best.sample_interval
        # Student's quantile with 299 degrees of freedom
        assert high - low == pytest.approx(
            2 * 1.968 * behind.std().item() / math.sqrt(300), rel=1e-3, abs=1e-12
        )
    assert found.verdict.startswith("update_10 is best; update_5 before it is worse (by ")


def test_what_cannot_be_told_apart():
    """A checkpoint that is nearly the same is no worse, for all that these images show."""
    nearly = RBM(FINAL.weights, FINAL.visible_bias + 1e-6, FINAL.hidden_bias)
    found = evaluate_training([at(0.5), FINAL, nearly], TEST[:40], progress=False)
    other = found.checkpoints[{1: 2, 2: 1}[found.best]]
    # exact ln Z: a millionth is a difference on these images, and none for others
    assert other.told_from_best in ("on these images", "no")
    assert abs(other.behind_best.mean) < 1e-4
    by_walk = walked([at(0.5), FINAL, nearly], TEST[:40], 30_000, "ladder", seed=2)
    assert len(by_walk.as_good) >= 1
    assert "cannot be told from it" in by_walk.verdict


@pytest.mark.parametrize(
    ("by", "steps", "seed"),
    [("trajectory", 120_000, 0), ("trajectory", 120_000, 1), ("ladder", 40_000, 0)],
)
def test_estimates(by, steps, seed):
    """Within five standard errors, by Student with at least nine degrees of freedom once in a thousand runs beyond; differences too."""
    found = walked(MODELS, TEST, steps, by, seed)
    assert (found.method, found.warnings, found.best) == (by, (), 2)
    assert 0 < found.chain_steps <= 1.1 * steps
    for checkpoint, rbm, log_p in zip(found.checkpoints, MODELS, TRUTH, strict=True):
        low, high = checkpoint.log_z_interval
        assert abs(checkpoint.log_z - log_z(rbm)) < 5 * (high - low) / 4 + 1e-5
        assert high - low < 0.5
        behind = checkpoint.behind_best
        reach = behind.interval[1] - behind.mean
        assert abs(behind.mean - (TRUTH[2] - log_p).mean().item()) < 2.5 * reach + 1e-5
    if seed == 0:
        assert walked(MODELS, TEST, steps, by, seed) == found


def test_minutes():
    found = evaluate_training(
        MODELS, TEST, by="trajectory", minutes=0.001, generator=seeded_generator(1), progress=False
    )
    assert found.best == 2
    assert len(found.checkpoints) == 4


@pytest.mark.parametrize("in_the_mode", [False, True])
def test_a_mode_that_training_jumps_into_is_found_out(in_the_mode):
    """The last checkpoint has a mode that holds nearly all of Z and that no chain from before is near."""
    base = planted.block_diagonal(30, 20, 5, generator=seeded_generator(0))
    trap = planted.hidden_mode(base.rbm, 8.0, generator=seeded_generator(1))
    # the same number of hidden units: one more that does nothing
    weights = torch.cat([base.rbm.weights, torch.zeros(30, 1, dtype=base.rbm.dtype)], 1)
    hidden_bias = torch.cat([base.rbm.hidden_bias, torch.zeros(1, dtype=base.rbm.dtype)])
    early = RBM(weights, base.rbm.visible_bias, hidden_bias)
    test = (trap if in_the_mode else base).draws(100, seeded_generator(2))
    found = walked([early, trap.rbm], test, 60_000, seed=3)
    assert abs(found.checkpoints[1].log_z - trap.log_z) > 1
    assert not found.trustworthy
    assert "do not rely on it yet" in describe_training(found)
    # images in it prove that it is there
    assert ("is proven. The chains missed a mode" in " ".join(found.warnings)) == in_the_mode


# ---- interruptions


def test_interrupted_enumeration_keeps_what_is_done(monkeypatch):
    interrupt_call(monkeypatch, along_training, "exact_log_z", 3)
    found = evaluate_training(MODELS, TEST, names=NAMES, progress=False)
    assert found.interrupted
    assert [checkpoint.name for checkpoint in found.checkpoints] == NAMES[:2]
    assert found.best == 1


def test_interrupted_walk_keeps_the_shorter_one(monkeypatch):
    interrupt_call(monkeypatch, along_training, "log_z_along_training", 2)
    found = walked(MODELS, TEST, 100_000)
    assert found.interrupted
    assert len(found.checkpoints) == 4
    assert any("Interrupted" in text for text in found.warnings)


def test_interrupted_before_there_is_anything(monkeypatch):
    interrupt_call(monkeypatch, along_training, "exact_log_z", 1)
    with pytest.raises(KeyboardInterrupt):
        evaluate_training(MODELS, TEST, progress=False)


# ---- files


def test_checkpoints_of_an_archive(tmp_path):
    path = write_archive(tmp_path / "RBM.h5")
    assert list(read_checkpoints([path])) == NAMES
    assert list(read_checkpoints([path], updates=[200, 5, 5])) == ["update_5", "update_200"]
    assert list(read_checkpoints([path], most=2)) == ["update_1", "update_200"]
    with pytest.raises(InputError, match=r"update: expected one of 1, 5, 10, 200 in .*, got 6"):
        read_checkpoints([path], updates=[6])


def test_checkpoints_of_a_folder_and_of_files(tmp_path):
    for number, rbm in zip((100, 20, 3), MODELS, strict=False):
        rbm.save(tmp_path / f"epoch{number}.npz")
    (tmp_path / "notes.txt").write_text("no model")
    assert list(read_checkpoints([tmp_path])) == ["epoch3.npz", "epoch20.npz", "epoch100.npz"]
    files = [tmp_path / "epoch100.npz", tmp_path / "epoch3.npz"]
    found = read_checkpoints(files)
    assert list(found) == ["epoch100.npz", "epoch3.npz"]
    assert found["epoch3.npz"].rbm.checksum() == MODELS[2].checksum()
    (tmp_path / "b").mkdir()
    FINAL.save(tmp_path / "b" / "epoch3.npz")
    assert str(files[1]) in read_checkpoints([files[1], tmp_path / "b" / "epoch3.npz"])


@pytest.mark.parametrize(("count", "most"), [(1, 1), (5, 9), (100, 7), (21, 20)])
def test_evenly(count, most):
    found = evenly(count, most)
    assert found == sorted(set(found))
    assert len(found) == min(count, most)
    assert {0, count - 1} <= set(found)


# ---- wrong input


def test_models_that_do_not_belong_together(tmp_path):
    write_archive(tmp_path / "a.h5", {"model_type": "IIRBM"})
    FINAL.save(tmp_path / "b.npz")
    message = "the same kind of visible units in all, got another one in b"
    with pytest.raises(InputError, match=message):
        read_checkpoints([tmp_path / "a.h5", tmp_path / "b.npz"])
    categorical = np.zeros((2, 3, 4)), np.zeros((2, 3)), np.zeros(4)
    (tmp_path / "p.h5").write_bytes(as_rbms(categorical, "PBRBM"))
    with pytest.raises(InputError, match="models: expected models of binary units"):
        read_checkpoints([tmp_path / "p.h5"])


# ---- the command


FIRST_IS_NAN = np.array([math.nan] + [0.0] * (D - 1))


def in_a_folder(folder, spoil):
    """Three checkpoints in a folder or an archive, the last of which is spoilt; what to pass to the command, and its name."""
    if spoil == "archive":
        path = write_archive(folder / "RBM.h5", {f"{NAMES[-1]}/params/vbias": FIRST_IS_NAN})
        return path, NAMES[-1]
    for number, rbm in enumerate(MODELS[:2], start=1):
        rbm.save(folder / f"epoch{number}.npz")
    name = "._epoch1.npz" if spoil == "hidden" else "epoch3.npz"
    tensors = {key: tensor.numpy() for key, tensor in FINAL.tensors().items()}
    if spoil in ("hidden", "damaged"):
        (folder / name).write_bytes(b"\0\x05\x16\x07")
    elif spoil == "another kind":
        DBN([FINAL, random_rbm(M, 3, 1)]).save(folder / (name := "epoch3.safetensors"))
    else:
        factor = {"nan": math.nan, "overflow": 1e300}[spoil]
        np.savez(folder / name, **{key: factor * array for key, array in tensors.items()})
    return folder, name


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("hidden", None),
        ("damaged", "expected an undamaged .npz file"),
        ("another kind", "expected models of binary units"),
        ("nan", "training diverged there"),
        ("overflow", "training diverged there"),
        ("archive", "training diverged there"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_left_out_and_named(tmp_path, spoil, said):
    path, name = in_a_folder(tmp_path, spoil)
    problems = []
    found = read_checkpoints([path], left_out=problems.append)
    assert name not in found
    assert len(found) >= 2
    assert len(problems) == (said is not None)
    if said is not None:
        assert problems[0].startswith(f"{name} is left out: ")
        assert said in problems[0]
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
    assert (stored["best"], stored["method"], stored["seed"]) == ("update_10", "exact", 0)
    for row, rbm, log_p in zip(stored["checkpoints"], MODELS, TRUTH, strict=True):
        assert row["average"] == pytest.approx(log_p.mean().item(), abs=1e-9)
        assert row["claimed_log_z"] == pytest.approx(log_z(rbm) + 5)
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert [row["checkpoint"] for row in rows] == NAMES
    assert float(rows[2]["average"]) == stored["checkpoints"][2]["average"]
    assert "best: update_10" in Path("r.svg").read_text()
    walk = "--by trajectory --chain-steps 80000 --train t.npy"
    walked = recorded(f"training RBM.h5 --data t.npy {walk}")[1]
    assert (walked["method"], walked["best"]) == ("trajectory", "update_10")


@pytest.mark.usefixtures("_folder")
def test_command_says_which_checkpoints_it_left_out():
    Path("checkpoints").mkdir()
    folder, name = in_a_folder(Path("checkpoints"), "nan")
    output, stored = recorded(f"training {folder} --data t.npy")
    assert f"{name} is left out: " in output
    names = [checkpoint["checkpoint"] for checkpoint in stored["checkpoints"]]
    assert names == ["epoch1.npz", "epoch2.npz"]
    assert [text.split()[0] for text in stored["left_out"]] == [name]


def test_rows_have_no_infinite_numbers():
    found = evaluate_training(MODELS[:1], TEST, progress=False)
    json.dumps(training_rows(found), allow_nan=False)
    assert found.verdict == "1 is best; it is the first; it is the last"
