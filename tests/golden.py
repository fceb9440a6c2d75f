"""The draws of annealing from fixed keys, for `test_golden_draws.py`.

Run as a script, it writes what is missing. Stored shards are found by a name that holds `DRAWS`.
Draws that change under the same `DRAWS` would mix old and new chains in one estimate. So the
numbers below are kept for each kernel, and may only be written anew for a new `DRAWS`.
"""

import json
from pathlib import Path

import pytest
import torch
from backends import on_a_gpu_of_paper, use_tensor_cores

from boltzmann_likelihood.store import kept
from paperlib.annealing import BaseRatePath, DBMPath, DBNPath, RBMPairPath, uniform_betas
from paperlib.estimators import ais, ais_run, raise_log_prob, raise_run
from paperlib.kernels import (
    bernoulli,
    chains_per_block,
    chains_per_shard,
    draw_bits,
    draw_bits_of_logits,
    softplus_increment,
    sum_where,
)
from paperlib.kernels.products import binary_product
from paperlib.kernels.version import DRAWS
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import seeded_generator

FILE = Path(__file__).with_name("golden_draws.json")
DTYPES = {"float64": torch.float64, "float32": torch.float32}
BETAS = uniform_betas(4)
CHAINS = 5


class Inputs:
    """Parameters from uniform numbers, whose bits are the same on every processor.

    Parameters
    ----------
    dtype : torch.dtype
        Of the parameters.
    jitter : float
        How far each of them is moved, at random: draws that hang on the last digits would show it.
    seed : int
        Of the jitter.
    """

    def __init__(self, dtype, jitter=0.0, seed=0):
        self.dtype = dtype
        self._jitter = jitter
        self._generator = seeded_generator(2008)
        self._noise = seeded_generator(seed)

    def tensor(self, *shape, scale=1.0):
        values = 2 * torch.rand(*shape, dtype=torch.float64, generator=self._generator) - 1
        noise = 2 * torch.rand(*shape, dtype=torch.float64, generator=self._noise) - 1
        return (scale * values + self._jitter * noise).to(self.dtype)

    def rbm(self, visible, hidden, scale=1.0):
        weights = self.tensor(visible, hidden, scale=scale)
        return RBM(weights, self.tensor(visible), self.tensor(hidden))


def bits(states):
    """Drawn bits as they are: one hexadecimal number for each row."""
    return [f"{int(''.join(str(int(bit)) for bit in row), 2):x}" for row in states.tolist()]


def vectors(width, count=3):
    return (torch.arange(count * width) % 3 == 0).view(count, width).to(torch.uint8)


def kernels(inputs):
    """Draws, sums and products, one at a time."""
    logits = inputs.tensor(3, 101, scale=4.0)
    probabilities = torch.sigmoid(logits)
    x = inputs.tensor(3, 140, scale=20.0)
    states = vectors(140).bool()
    values = inputs.tensor(140)
    results = {
        "draw_bits": bits(draw_bits(probabilities, seeded_generator(1))),
        "bernoulli": bits(bernoulli(probabilities, seeded_generator(2))),
        "draw_bits_of_logits": bits(draw_bits_of_logits(logits, seeded_generator(3), 0.7)),
        "softplus_increment up": softplus_increment(x, 0.3, 0.31).tolist(),
        "softplus_increment down": softplus_increment(x, 0.8, 0.5).tolist(),
        "sum_where": sum_where(states, values).tolist(),
    }
    for name, columns in (("narrow", 20), ("wide", 130)):
        matrix = inputs.tensor(140, columns)
        offset = inputs.tensor(columns)
        product = binary_product(matrix, matrix.abs().max())
        memory = {}
        results[f"products {name}"] = product(states, 0.7, offset, memory)[:, :7].flatten().tolist()
        # few units change: the second product is made from the first
        changed = states.clone()
        changed[:, 5] ^= True
        again = product(changed, 0.7, offset, memory)[:, :7]
        results[f"products {name}, changed"] = again.flatten().tolist()
    return results


def walks(inputs):
    """AIS and RAISE along every kind of path, forward and back."""
    deep_weights = [inputs.tensor(24, 16, scale=0.5), inputs.tensor(16, 12, scale=0.5)]
    deep_biases = [inputs.tensor(24), inputs.tensor(16), inputs.tensor(12)]
    dbn = DBN([inputs.rbm(24, 20, 0.5), inputs.rbm(20, 16, 0.5)])
    paths = {
        "tiny": BaseRatePath(inputs.rbm(5, 4)),
        "narrow": BaseRatePath(inputs.rbm(150, 20, 0.3), inputs.tensor(150)),
        "wide": BaseRatePath(inputs.rbm(140, 130, 0.2), inputs.tensor(140)),
        "pair": RBMPairPath(inputs.rbm(40, 10, 0.3), inputs.rbm(40, 130, 0.2), burn_in=3),
        "DBM": DBMPath(DBM(*deep_weights, *deep_biases), inputs.tensor(24), inputs.tensor(12)),
        "DBN": DBNPath(dbn, inputs.tensor(20)),
    }
    results = {}
    for name, path in paths.items():
        results |= there_and_back(name, path)
    return results


def there_and_back(name, path):
    """AIS along a path, and RAISE if it can be walked back."""
    results = {}
    above = ais(path, BETAS, CHAINS, seeded_generator(4, path.device), progress=False)
    results[f"AIS {name}, log-weights"] = above.log_weights.tolist()
    if not isinstance(path, (DBMPath, DBNPath)):
        results[f"AIS {name}, states"] = bits(above.final_states)
    if not isinstance(path, RBMPairPath):
        v = vectors(path.num_visible)
        generator = seeded_generator(5, path.device)
        below = raise_log_prob(path, v, BETAS, 2, generator, progress=False)
        results[f"RAISE {name}, log-weights"] = below.log_weights.flatten().tolist()
    return results


def on_a_gpu(inputs):
    """Products of tensor cores, and recorded steps.

    What the kernel of triton draws, `test_gpu.py` compares with Philox.
    """
    rbm = inputs.rbm(40, 30, 0.3)
    other = inputs.rbm(40, 10, 0.3)
    matrix = inputs.tensor(140, 20)
    offset = inputs.tensor(20)
    paths = {"base rates": BaseRatePath(rbm, inputs.tensor(40)), "pair": RBMPairPath(other, rbm)}
    with pytest.MonkeyPatch.context() as patch:
        use_tensor_cores(patch)
        product = binary_product(matrix, matrix.abs().max())
        sums = product(vectors(140).bool(), 0.7, offset)[:, :7]
        results = {"products GPU": sums.flatten().tolist()}
        # Their rounding changes less than the last digits of float32, in which processors differ.
        rounding = (product.matrix - matrix)[:, :7].double() * 2**24
        results["rounding GPU"] = rounding[:10].flatten().tolist()
        with on_a_gpu_of_paper(patch) as device:
            for name, path in paths.items():
                results |= there_and_back(f"GPU {name}", path.to(device))
    return results


def shards(inputs, folder):
    """The first chains of a shard, whose seed comes from its name."""
    path = BaseRatePath(inputs.rbm(5, 4))
    above = kept(ais_run(path, BETAS, 10, 1), folder, False)
    below = kept(raise_run(path, vectors(5), BETAS, 4, 1), folder, False)
    return {
        "AIS in shards, log-weights": above.log_weights.tolist(),
        "AIS in shards, states": bits(above.final_states),
        "RAISE in shards, log-weights": below.log_weights.flatten().tolist(),
    }


def blocks(inputs):
    """Chains at the ends of the blocks, each of which has a generator of its own."""
    results = {}
    for name, visible, size in (("blocks", 5, 500), ("wide blocks", 128, 100)):
        path = BaseRatePath(inputs.rbm(visible, 4))
        weights = ais(path, BETAS, 2 * size + 1, seeded_generator(6), progress=False).log_weights
        ends = [0, size - 1, size, 2 * size - 1, 2 * size]
        results[f"AIS in {name}, log-weights"] = weights[ends].tolist()
    # more chains than a test could walk
    devices = [torch.device(name) for name in ("cpu", "cuda")]
    results["chains in a block on a GPU"] = [chains_per_block(5, devices[1])]
    results["chains in a shard"] = [chains_per_shard(device) for device in devices]
    return results


def numbers(dtype, folder, jitter=0.0, seed=0):
    inputs = Inputs(dtype, jitter, seed)
    results = kernels(inputs) | walks(inputs)
    if dtype == torch.float32:
        results |= on_a_gpu(Inputs(dtype, jitter, seed))
    # A shard's name hangs on every digit of its path.
    if not jitter:
        results |= shards(inputs, folder)
    # So many draws that in float32 one of them may hang on the last digits.
    if dtype == torch.float64:
        results |= blocks(inputs)
    return results


def main():
    import tempfile

    stored = json.loads(FILE.read_text()) if FILE.is_file() else {}
    if stored.get("draws") != DRAWS:
        stored = {"draws": DRAWS}
    torch.set_num_threads(1)
    for name, dtype in DTYPES.items():
        with tempfile.TemporaryDirectory() as folder:
            stored[name] = numbers(dtype, folder) | stored.get(name, {})
    FILE.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
