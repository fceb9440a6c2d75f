"""Arrays by name, as the bytes of a file of every format that is read."""

import io
import struct
import zipfile

import h5py
import numpy as np
import torch
from safetensors.numpy import save as as_safetensors_of_arrays
from scipy.io import savemat


def as_npz(arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def as_npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def as_mat(arrays, **options):
    file = io.BytesIO()
    savemat(file, arrays, **options)
    return file.getvalue()


def as_pt(stored, **options):
    """Whatever `torch.save` takes."""
    file = io.BytesIO()
    torch.save(stored, file, **options)
    return file.getvalue()


def as_torch(arrays):
    return as_pt({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})


def as_hdf5(content, **options):
    """A function in place of an array gets the file and the name, for what no array can say."""
    file = io.BytesIO()
    with h5py.File(file, "w", **options) as stored:
        for name, value in content.items():
            if callable(value):
                value(stored, name)
            else:
                stored[name] = value
    return file.getvalue()


def as_matlab_73(arrays):
    """HDF5 with axes in the opposite order, behind a block of 512 bytes that says so."""
    turned = {name: np.atleast_2d(array).T for name, array in arrays.items()}
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + struct.pack("<H", 0x0200) + b"IM"
    return head.ljust(512, b"\0") + as_hdf5(turned, userblock_size=512)[512:]


def as_safetensors(arrays):
    return as_safetensors_of_arrays(
        {name: np.array(array, order="C") for name, array in arrays.items()}
    )


def as_idx(images):
    """Bytes with their shape before them, as MNIST has them."""
    return struct.pack(f">HBB{images.ndim}I", 0, 8, images.ndim, *images.shape) + images.tobytes()


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as stored:
        for name, content in members.items():
            stored.writestr(name, content)
    return file.getvalue()


RBMS_NAMES = ("weight_matrix", "vbias", "hbias")


def rbms_update(parameters, number=1, **more):
    """One update of an archive that `rbms` writes: weights, both biases, and what else."""
    parameters = zip(RBMS_NAMES, map(np.asarray, parameters), strict=True)
    stored = {f"update_{number}/params/{name}": array for name, array in parameters}
    return stored | {f"update_{number}/{name}": value for name, value in more.items()}


def as_rbms(parameters, kind="BBRBM", number=1, **more):
    return as_hdf5({"model_type": kind} | rbms_update(parameters, number, **more))


def as_julia(parameters, visible="Binary", hidden="Binary", sides=None, **changes):
    """As HDF5.jl writes: axes in the opposite order, parameters [1, sides...] in Julia."""
    weights, visible_bias, hidden_bias = map(np.asarray, parameters)
    sides = sides or visible_bias.shape
    content = {
        "rbm_hdf5_file_format_version": "1.0.0",
        "rbm_type": "RBM",
        # [hidden, sides reversed] for w[sides..., hidden] in Julia
        "weights": weights.T.reshape(-1, *sides[::-1]),
        "visible_par": visible_bias.reshape(*sides[::-1], 1),
        "hidden_par": hidden_bias[:, None],
        "visible_type": visible,
        "hidden_type": hidden,
    } | changes
    return as_hdf5({name: value for name, value in content.items() if value is not None})
