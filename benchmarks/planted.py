"""Writes the published planted models in `data/planted`: RBMs with an exactly known ln Z.

Any program can be tested on them. What each file holds, and how to use it, says
`data/planted/README.md`. The models and the draws are functions of the arguments and seeds below.

Usage: python -m benchmarks.planted [NAME ...]
"""

import sys
from pathlib import Path

import torch

from boltzmann_likelihood import planted
from paperlib import __version__, storage
from paperlib.numerics import seeded_generator

SINGLE = {"dtype": torch.float32}
NUM_DRAWS = 1_000


def block_diagonal(seed, **arguments):
    return planted.block_diagonal(**arguments, **SINGLE, generator=seeded_generator(seed))


def low_rank(seed, **arguments):
    return planted.low_rank(**arguments, **SINGLE, generator=seeded_generator(seed))


def ising_2d(seed, **arguments):
    return planted.ising_2d(**arguments, **SINGLE)


def hidden_mode(seed, num_visible, num_hidden, num_blocks, **arguments):
    base = block_diagonal(
        seed, num_visible=num_visible, num_hidden=num_hidden, num_blocks=num_blocks
    )
    return planted.hidden_mode(base.rbm, **arguments, generator=seeded_generator(seed + 1))


# name: the function, the seed, its other arguments
MODELS = {
    "block-diagonal-784x500": (block_diagonal, 1, {}),
    "low-rank-100x80": (low_rank, 2, {"num_visible": 100, "num_hidden": 80, "strength": 1.1}),
    # two rows of u and their negatives: they repeat often enough for the file to be small
    "low-rank-784x500": (low_rank, 1, {"values": (-1, 1), "threshold": 4.0, "strength": 0.6}),
    "ising-100x200": (ising_2d, 4, {"side": 10}),
    "ising-784x1568": (ising_2d, 5, {"side": 28}),
    "hidden-mode-784x501": (
        hidden_mode,
        6,
        {"num_visible": 784, "num_hidden": 500, "num_blocks": 50, "log_odds": 2.0},
    ),
}


def make(name):
    function, seed, arguments = MODELS[name]
    return function(seed, **arguments)


def provenance(name):
    function, seed, arguments = MODELS[name]
    call = ", ".join(f"{key}={value!r}" for key, value in {"seed": seed, **arguments}.items())
    return {
        "model": name,
        "made_by": f"benchmarks.planted.{function.__name__}({call})",
        "draws": f"{NUM_DRAWS} independent exact draws, seed {seed + 100}",
        "log_z": "exact, in nats, of the weights and biases in this file",
        "paperlib": __version__,
        "license": "MIT",
    }


def main(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.npz"
        model = make(name)
        generator = seeded_generator(MODELS[name][1] + 100)
        planted.write_planted(path, model, NUM_DRAWS, generator, provenance(name))
        print(f"{path.name}: ln Z = {model.log_z:.9f}, {path.stat().st_size:,} bytes")
    files = sorted(folder.glob("*.npz"))
    lines = [f"{storage.file_sha256(path)}  {path.name}\n" for path in files]
    with storage.atomic_path(folder / "SHA256SUMS") as temporary:
        temporary.write_text("".join(lines))


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "data" / "planted", sys.argv[1:] or MODELS)
