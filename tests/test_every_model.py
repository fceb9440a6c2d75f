"""What holds for every kind of model: its file gives it back, its parameters have names.

A file of another kind is refused.
"""

import numpy as np
import pytest
import torch
from enumeration import random_dbm, random_rbm

from boltzmann_likelihood.files import read_model
from paperlib.errors import InputError
from paperlib.models import DBN, RBM, BernoulliMixture
from paperlib.models.files import read_metadata

MODELS = {
    "RBM": random_rbm(6, 3, seed=5),
    "DBM": random_dbm(3, 3, 2, seed=0),
    "DBN": DBN([random_rbm(4, 3, 0), random_rbm(3, 5, 1)]),
    "DBN of three layers": DBN([random_rbm(4, 3, 2), random_rbm(3, 4, 3), random_rbm(4, 3, 4)]),
    "DBN of one layer": DBN([random_rbm(4, 3, 8)]),
    "mixture": BernoulliMixture(random_rbm(3, 4, 6).weights, torch.tensor([0.3, -1.0, 2.0])),
}
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
# The tool evaluates all but mixtures.
EVALUATED = pytest.mark.parametrize(
    "model", [m for m in MODELS.values() if not isinstance(m, BernoulliMixture)], ids=[*MODELS][:-1]
)


@EACH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_file_gives_the_same_model_back(tmp_path, model, dtype):
    model = model.to(dtype=dtype)
    path = tmp_path / "m.safetensors"
    model.save(path, metadata={"id": "x"})
    assert type(model).load(path).checksum() == model.checksum()
    assert read_metadata(path) == {"id": "x"}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@EACH
def test_half_precision_is_widened(tmp_path, model):
    path = tmp_path / "m.safetensors"
    model.save(path, dtype=torch.float16)
    loaded = type(model).load(path)
    assert (loaded.dtype, type(model).load(path, dtype=torch.float64).dtype) == (
        torch.float32,
        torch.float64,
    )
    # a mixture normalises its weights anew
    tolerance = 1e-3 if isinstance(model, BernoulliMixture) else 0
    for name, tensor in model.tensors().items():
        expected = tensor.half().float()
        torch.testing.assert_close(loaded.tensors()[name], expected, rtol=0, atol=tolerance)


@EVALUATED
def test_the_tool_recognises_the_kind(tmp_path, model):
    """And those of the pair of formats whose arrays have the same names."""
    model.save(tmp_path / "m.safetensors")
    np.savez(tmp_path / "m.npz", **{key: value.numpy() for key, value in model.tensors().items()})
    for name in ("m.safetensors", "m.npz"):
        read = read_model(tmp_path / name)
        assert type(read.rbm) is type(model)
        assert read.rbm.checksum() == model.checksum()
        assert read.origin == (name if isinstance(model, RBM) else f"{name}, {model.called}")


@EACH
def test_parameters_have_names_and_none_may_be_missing(model):
    tensors = model.tensors()
    assert type(model).from_tensors(tensors).checksum() == model.checksum()
    for missing in tensors:
        rest = {name: tensor for name, tensor in tensors.items() if name != missing}
        with pytest.raises(InputError, match=rf"expected .*\b{missing}\b.*, got"):
            type(model).from_tensors(rest)
    if isinstance(model, DBN):
        more = rf"expected layers\.{len(model.layers)}\.weights"
        with pytest.raises(InputError, match=more):
            type(model).from_tensors(tensors | {"other": torch.zeros(2)})


@EACH
@pytest.mark.parametrize("other", MODELS.values(), ids=MODELS)
def test_a_file_of_another_kind_is_refused_and_so_is_a_damaged_one(tmp_path, model, other):
    path = tmp_path / "m.safetensors"
    other.save(path)
    damaged = type(model) is type(other)
    if damaged:
        path.write_bytes(path.read_bytes()[:-9])
    names = "undamaged" if damaged else f"{next(iter(model.tensors()))}|{model.called}"
    with pytest.raises(InputError, match=f"^path: expected .*({names})"):
        type(model).load(path)


@EACH
def test_a_state_dict_goes_in_place_into_another_model_of_its_shapes(model):
    other = (
        type(model)
        .from_tensors({name: tensor.flip(0) for name, tensor in model.tensors().items()})
        .to(dtype=torch.float32)
    )
    other.load_state_dict(model.state_dict())
    assert other.dtype == torch.float32
    assert other.checksum() == model.to(dtype=torch.float32).checksum()


@EACH
def test_a_state_dict_of_other_names_shapes_or_numbers_is_refused_and_changes_nothing(model):
    before = model.checksum()
    state = model.state_dict()
    first = next(iter(state))
    wrong = {
        "expected the names": [{}, state | {"extra": torch.zeros(1)}],
        f"'{first}'.: expected shape": [state | {first: torch.zeros(1, 1)}],
        "finite": [state | {first: torch.full_like(state[first], torch.nan)}],
    }
    for message, states in wrong.items():
        for refused in states:
            with pytest.raises(InputError, match=message):
                model.load_state_dict(refused)
    assert model.checksum() == before
