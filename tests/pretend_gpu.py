"""A GPU of paper: tensors that say they are on one, keep their numbers on this processor, and refuse to meet those of another device.

It finds what would stop a run on a real GPU and nothing else does: tensors and generators of two devices in one operation, numbers
given to numpy. torch without CUDA cannot make tensors that name a GPU, so that these name the device "meta".
"""

from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

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
        result, generator = function(*arguments, **keywords), keywords.get("generator")
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


def _dispatch(function, arguments, keywords):
    name = function._schema.name
    leaves = tree_leaves((arguments, keywords))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, PretendTensor)]
    # a tensor without dimensions may come from the processor
    others = [t for t in tensors if not isinstance(t, PretendTensor) and t.ndim > 0]
    points_into_ours = name in _INDEXING and isinstance(arguments[0], PretendTensor)
    if ours and others and name not in _CROSSING and not points_into_ours:
        raise RuntimeError(f"{name}: tensors of two devices")

    named = keywords.get("device")
    here = bool(ours) if named is None else torch.device(named) == DEVICE
    given = {
        argument.name: value
        for argument, value in zip(function._schema.arguments, arguments, strict=False)
    } | keywords
    if here and named is not None:
        keywords = keywords | {"device": torch.device("cpu")}
    numbers = tree_map_only(PretendTensor, lambda tensor: tensor.numbers, (arguments, keywords))
    result = function(*numbers[0], **numbers[1])
    for argument in function._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            return given[argument.name]
    return tree_map_only(torch.Tensor, PretendTensor, result) if here else result
