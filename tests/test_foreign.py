"""RBMs from the files of other programs: the model of the other program, and nothing else."""

import numpy as np
import pytest
import torch
from enumeration import random_rbm
from rbms.dataset.dataset_class import RBMDataset
from rbms.io import load_params
from rbms.training.pcd import train
from writers import as_hdf5, as_julia, as_rbms, rbms_update

from boltzmann_likelihood.files import archive_updates, binary_from_spins, read_model
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.models import RBM
from paperlib.numerics import all_states, seeded_generator

MODEL = random_rbm(6, 4, seed=3)


def read_archive(path, update=None):
    return read_model(path if update is None else f"{path}:update_{update}")


PARAMETERS = MODEL.tensors().values()


# ---- spins


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize("hidden", [True, False])
def test_spins_become_bits(visible, hidden):
    """Every state of 4 x 3 units: the same probability, and ln Z apart by the offset."""
    generator = seeded_generator(5)
    shapes = (4, 3), (4,), (3,)
    w, b, a = (torch.randn(*s, dtype=torch.float64, generator=generator) for s in shapes)
    rbm, offset = binary_from_spins(w, b, a, visible=visible, hidden=hidden)
    bits_v = all_states(4)
    bits_h = all_states(3)
    v = 2 * bits_v - 1 if visible else bits_v
    h = 2 * bits_h - 1 if hidden else bits_h
    minus_energy = v @ w @ h.T + (v @ b)[:, None] + (h @ a)[None]
    ours = -rbm.energy(bits_v[:, None], bits_h[None])
    torch.testing.assert_close(ours + offset, minus_energy, rtol=0, atol=1e-12)
    log_z = minus_energy.flatten().logsumexp(0).item()
    assert exact_log_z(rbm) + offset == pytest.approx(log_z, abs=1e-12)


# ---- archives of rbms


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An archive that the installed `rbms` itself has written in training, and its path."""
    return train_archive(tmp_path_factory.mktemp("rbms") / "RBM.h5")


def train_archive(path):
    data = np.random.default_rng(0).integers(0, 2, (60, 8)).astype(float)
    ones = np.ones(60)
    dataset = RBMDataset(data, ones, ones, np.arange(60).astype(str), "random", True, "cpu")
    arguments = dict.fromkeys(["subset_labels", "test_size"])
    arguments |= {"filename": str(path), "num_updates": 20, "num_hiddens": 5, "batch_size": 20}
    arguments |= {"num_chains": 30, "gibbs_steps": 2, "learning_rate": 0.1, "L1": 0.0, "L2": 0.0}
    arguments |= {"device": "cpu", "dtype": torch.float64, "seed": 1}
    arguments |= {"log": False, "overwrite": True, "restore": False}
    arguments |= {"train_size": 0.8, "beta": 1.0, "no_center": False, "training_type": "pcd"}
    train(dataset, None, "BBRBM", arguments, torch.float64, np.array([5, 10, 20]))
    return path


def test_an_archive_that_rbms_wrote(trained):
    updates = archive_updates(trained)
    assert updates[-1] == 20
    assert len(updates) >= 3
    for update in updates:
        theirs = load_params(str(trained), update, torch.device("cpu"), torch.float64)
        read = read_archive(trained, update)
        assert read.origin == f"update_{update} of RBM.h5, BBRBM"
        assert read.stored_log_z is None
        v = all_states(8)
        torch.testing.assert_close(
            read.rbm.log_unnormalized(v), -theirs.compute_energy_visibles(v), rtol=0, atol=1e-3
        )  # theirs drops the small term of softplus where its argument is above 10
        torch.testing.assert_close(read.rbm.weights, theirs.weight_matrix)
    last = read_archive(trained)
    assert last.rbm.checksum() == read_archive(trained, 20).rbm.checksum()
    assert last.rbm.checksum() != read_archive(trained, updates[0]).rbm.checksum()


def test_one_update_by_its_name(trained):
    chosen = archive_updates(trained)[1]
    by_name = read_model(f"{trained}:update_{chosen}")
    assert by_name.rbm.checksum() == read_archive(trained, chosen).rbm.checksum()
    assert read_model(trained).origin.startswith("update_20 ")
    with pytest.raises(InputError, match=r"update: expected one of .*20 in .*, got 7777"):
        read_model(f"{trained}:update_7777")


@pytest.fixture
def archive(tmp_path):
    """Writes an archive; what is read of it."""

    def read(content):
        (tmp_path / "m.h5").write_bytes(content)
        return read_archive(tmp_path / "m.h5")

    return read


def test_older_archives_and_their_own_log_z(archive):
    stored = rbms_update(PARAMETERS, 3, log_z=12.5)
    older = {name.replace("/params", ""): value for name, value in stored.items()}
    read = archive(as_hdf5({"model_type": "BBRBM"} | older))
    assert read.rbm.checksum() == MODEL.checksum()
    assert read.stored_log_z == 12.5


@pytest.mark.parametrize("value", ["unknown", [1.0, 2.0], []], ids=["text", "two", "none"])
def test_a_log_z_that_is_no_number_is_none(tmp_path, value):
    np.savez(tmp_path / "m.npz", **MODEL.tensors(), log_z=value)
    assert read_model(tmp_path / "m.npz").stored_log_z is None


# ---- RestrictedBoltzmannMachines.jl


@pytest.mark.parametrize("sides", [(6,), (2, 3)])
def test_julia(archive, sides):
    """A weight w[i1, i2, j] in Julia belongs to visible unit i1 + i2 n1, counted from 0."""
    read = archive(as_julia(PARAMETERS, sides=sides))
    assert read.rbm.checksum() == MODEL.checksum()
    assert bool(read.notes) == (len(sides) == 2)
    assert (read.log_z_offset, read.spin_visible) == (0.0, False)


SPINS = {
    "rbms": (as_rbms(PARAMETERS, "IIRBM"), True, True),
    "Julia": (as_julia(PARAMETERS, "Spin", "Spin"), True, True),
    "Julia, visible": (as_julia(PARAMETERS, "Spin", "Binary"), True, False),
    "Julia, hidden": (as_julia(PARAMETERS, "Binary", "Spin"), False, True),
}


@pytest.mark.parametrize(("content", "visible", "hidden"), SPINS.values(), ids=SPINS)
def test_spins(archive, content, visible, hidden):
    read = archive(content)
    rbm, offset = binary_from_spins(*PARAMETERS, visible=visible, hidden=hidden)
    assert read.rbm.checksum() == rbm.checksum()
    assert read.log_z_offset == offset
    assert read.spin_visible == visible
    assert "units -1 and 1" in read.notes[0]


def test_julia_has_no_updates(tmp_path):
    (tmp_path / "j.h5").write_bytes(as_julia(PARAMETERS))
    with pytest.raises(InputError, match="update: expected none"):
        read_model(f"{tmp_path}/j.h5:update_3")


# ---- broken archives; `test_hostile_files` has others


@pytest.mark.parametrize("seed", range(40))
def test_damaged_bytes(archive, seed):
    """An archive with some bytes changed is refused in one sentence, or an RBM is read."""
    content = bytearray(as_rbms(PARAMETERS))
    random = np.random.default_rng(seed)
    for place in random.integers(8, len(content), 6):
        content[place] = random.integers(256)
    try:
        outcome = archive(content).rbm
    except InputError as refusal:
        outcome = str(refusal)
    assert isinstance(outcome, RBM) or "\n" not in outcome
