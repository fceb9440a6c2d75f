"""A GPU of paper: tensors that say they are on one, with numbers on this processor.

They refuse to meet the tensors of another device. It finds what would stop a run on a real GPU and
nothing else does: tensors and generators of two devices in one operation, numbers given to numpy.
torch without CUDA cannot make tensors that name a GPU, so that these name the device "meta".
"""

from contextlib import contextmanager
from functools import cache

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
# Between devices by their purpose, or reading indices of the processor in a tensor of a GPU.
_CROSSING = {"aten::_to_copy", "aten::copy_"}
_INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}


class PretendTensor(torch.Tensor):
    """Its numbers are in `numbers`."""

    @staticmethod
    def __new__(cls, numbers):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=DEVICE,
        )

    def __init__(self, numbers):
        self.numbers = numbers

    def __repr__(self):
        return f"PretendTensor({self.numbers})"

    def tolist(self):
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        return _dispatch(function, arguments, keywords or {})


class PretendGenerator(torch.Generator):
    """To be put in the place of torch.Generator."""

    def __new__(cls, device="cpu"):
        generator = super().__new__(cls)
        generator.named = torch.device(device)
        return generator

    @property
    def device(self):
        return self.named


class _Tensors(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        return _dispatch(function, arguments, keywords or {})


class _Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = dict(keywords or {})
        if function is torch.tensor and "device" in keywords:
            # from numbers of Python's, which no tensor operation sees
            device = keywords.pop("device")
            return torch.tensor(*arguments, **keywords).to(device)
        result = function(*arguments, **keywords)
        generator = keywords.get("generator")
        if generator is not None and result.device != generator.device:
            raise RuntimeError(
                f"{function}: on {result.device} with a generator on {generator.device}"
            )
        return result


@contextmanager
def gpu():
    """In it tensors can be made on the device, and brought there."""
    with _Functions(), _Tensors():
        yield DEVICE


@cache
def _signature(function):
    """An operation's name, its arguments' names, and the first of them that it writes to."""
    schema = function._schema
    written = (a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write)
    return schema.name, [argument.name for argument in schema.arguments], next(written, None)


def _tensors_in(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors_in(value)


def _with_each(kind, change, value):
    """The same with each tensor of a kind changed.

    torch's own walk through nested arguments takes ten times as long as most operations.
    """
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_with_each(kind, change, each) for each in value)
    return value


def _numbers(value):
    return _with_each(PretendTensor, lambda tensor: tensor.numbers, value)


def _dispatch(function, arguments, keywords):
    name, names, written = _signature(function)
    tensors = list(_tensors_in([*arguments, *keywords.values()]))
    ours = [tensor for tensor in tensors if isinstance(tensor, PretendTensor)]
    # a tensor without dimensions may come from the processor
    others = [t for t in tensors if not isinstance(t, PretendTensor) and t.ndim > 0]
    points_into_ours = name in _INDEXING and isinstance(arguments[0], PretendTensor)
    if ours and others and name not in _CROSSING and not points_into_ours:
        raise RuntimeError(f"{name}: tensors of two devices")

    named = keywords.get("device")
    here = bool(ours) if named is None else torch.device(named) == DEVICE
    options = keywords | ({"device": torch.device("cpu")} if here and named is not None else {})
    options = {key: _numbers(value) for key, value in options.items()}
    result = function(*_numbers(arguments), **options)
    if written is not None:
        return (dict(zip(names, arguments, strict=False)) | keywords)[written]
    return _with_each(torch.Tensor, PretendTensor, result) if here else result
