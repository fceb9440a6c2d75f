"""What `evaluate`, `audit`, `compare` and `training` print and write for fixed inputs, for `test_golden_reports.py`.

The folder `golden_reports/` has a file for each command. Other programs read `--json`, so its names, fields and numbers stay; fields may be
added. Run as a script, this module writes the cases that are missing. Where a report is to change, name its cases, and say in the commit
which fields move and why:

    python tests/golden_reports.py                    # what is missing
    python tests/golden_reports.py "training" "audit: exact, impossible"  # these anew

The inputs are the same on every processor. Parameters are uniform numbers, and images are drawn from the model by Gibbs steps in float64.
"""

import contextlib
import csv
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import torch
from typer.testing import CliRunner
from writers import as_hdf5, as_npy, as_npz, as_rbms, as_safetensors, as_torch, rbms_update

from paperlib import cli

FOLDER = Path(__file__).with_name("golden_reports")

FEW = "--steps 64 --tempering-steps 5000"
EXACT = {
    "evaluate": {
        "exact": "evaluate small.npz --data small.npy --train small-train.npy --seed 9",
        "exact, weights of images": "evaluate small.npz --data small.npy --weights weights.npy",
        "exact, grey images binarised": (
            "evaluate small.npz --data grey.npy --train grey-train.npy --binarize 3"
        ),
        "exact, grey images with a threshold": (
            "evaluate small.npz --data grey.npy --threshold 0.5 --seed 2"
        ),
        "exact, read by names, images as CSV": (
            "evaluate linear.pt --data small.csv --names weights=first.T,visible=second,hidden=third"
        ),
        "exact, worse than independent pixels": (
            "evaluate small.npz --data inverted.npy --train inverted.npy"
        ),
        "exact, spins with a stored ln Z": "evaluate spins.h5 --data spins.npy",
        "exact, a stored ln Z that is wrong": "evaluate stored.npz --data small.npy",
        "exact DBM": "evaluate dbm.safetensors --data dbm.npy",
        "exact DBN": "evaluate dbn.safetensors --data dbn.npy --train dbn-train.npy",
    },
    "audit": {
        "exact, consistent": (
            "audit small.npz --data small.npy --claimed-log-z 13.4 --tolerance 0.5"
        ),
        "exact, impossible": "audit small.npz --data small.npy --claimed-log-z 11.3",
        "exact, claimed ln prob consistent": (
            "audit small.npz --data small.npy --claimed-log-prob -4.5 --tolerance 1"
        ),
        "exact, ln Z that the archive stores": "audit spins.h5 --data spins.npy",
    },
    "compare": {
        "exact": "compare small.npz other.npz --data small.npy --train small-train.npy",
        "exact DBM and RBM, weights of images": (
            "compare dbm.safetensors small.npz --data small.npy --weights weights.npy"
        ),
        "same model": "compare small.npz copy.pt --data small.npy",
    },
    "training": {
        "exact, a folder": "training exact-run --data small.npy --train small-train.npy --csv r.csv",
        "exact, updates of an archive with stored ln Z": (
            "training run.h5 --data small.npy --updates 1,20,300 --csv r.csv"
        ),
    },
}
ESTIMATED = {
    "evaluate": {
        "estimated": f"evaluate wide.npz --data wide.npy --train wide-train.npy {FEW} --seed 3",
        "estimated, weights of images": (
            f"evaluate wide.npz --data wide.npy --weights wide-weights.npy {FEW} --seed 4"
        ),
        "estimated, warnings that are settled": (
            f"evaluate strong.npz --data strong.npy {FEW} --seed 1"
        ),
        "estimated, training images of another kind": (
            f"evaluate wide.npz --data wide.npy --train strong.npy {FEW} --seed 3"
        ),
        "estimated in float64": f"evaluate large.npz --data large.npy {FEW} --seed 1",
        "estimated DBM": f"evaluate deep.safetensors --data deep.npy {FEW} --seed 6",
        "estimated DBN, not trusted": (
            f"evaluate belief.safetensors --data belief.npy {FEW} --seed 7"
        ),
    },
    "audit": {
        "estimated, consistent": (
            f"audit wide.npz --data wide.npy --claimed-log-z 53.1 {FEW} --seed 3"
        ),
        "estimated, not supported": (
            f"audit wide.npz --data wide.npy --claimed-log-z 54.2 {FEW} --seed 3"
        ),
        "estimated, impossible": (
            f"audit wide.npz --data wide.npy --claimed-log-prob 0.3 {FEW} --seed 3"
        ),
        "estimated DBM, consistent": (
            f"audit deep.safetensors --data deep.npy --claimed-log-z 77 {FEW} --seed 6"
        ),
    },
    "compare": {
        "estimated": f"compare run/epoch10.npz run/epoch9.npz --data wide.npy {FEW} --seed 8",
        "estimated, not trusted": f"compare wide.npz strong.npz --data wide.npy {FEW} --seed 8",
    },
    "training": {
        "estimated, a folder": f"training run --data wide.npy {FEW} --seed 3 --csv r.csv",
    },
}
CASES = {command: EXACT[command] | ESTIMATED[command] for command in EXACT}


# ---- inputs


class Inputs:
    """Models as arrays by name, images drawn from them, and weights of images."""

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)

    def _uniform(self, *shape, scale=1.0):
        return scale * (2 * self._random.random(shape) - 1)

    def rbm(self, visible, hidden, scale):
        return {
            "weights": self._uniform(visible, hidden, scale=scale),
            "visible_bias": self._uniform(visible),
            "hidden_bias": self._uniform(hidden),
        }

    def dbm(self, visible, first, second, scale):
        return {
            "weights_1": self._uniform(visible, first, scale=scale),
            "weights_2": self._uniform(first, second, scale=scale),
            "visible_bias": self._uniform(visible),
            "hidden_bias_1": self._uniform(first),
            "hidden_bias_2": self._uniform(second),
        }

    def dbn(self, visible, first, second, scale):
        layers = self.rbm(visible, first, scale), self.rbm(first, second, scale)
        return {
            f"layers.{number}.{name}": array
            for number, layer in enumerate(layers)
            for name, array in layer.items()
        }

    def _bits(self, logits):
        return self._random.random(logits.shape) < 1 / (1 + np.exp(-logits))

    def _drawn(self, weights, visible_bias, hidden_bias, count):
        """What a hundred Gibbs steps make of random pixels, [count, D]."""
        v = self._bits(np.zeros((count, len(visible_bias))))
        for _ in range(100):
            h = self._bits(v @ weights + hidden_bias)
            v = self._bits(h @ weights.T + visible_bias)
        return v.astype(np.uint8)

    def images(self, model, count):
        """Images of 0 and 1 that are about as probable as the model's own, [count, D]."""
        if "weights" in model:
            return self._drawn(*model.values(), count)
        if "weights_1" in model:
            visible_bias = model["visible_bias"]
            joint = (
                np.concatenate([model["weights_1"], model["weights_2"].T]),
                np.concatenate([visible_bias, model["hidden_bias_2"]]),
                model["hidden_bias_1"],
            )
            return self._drawn(*joint, count)[:, : len(visible_bias)]
        top = [array for name, array in model.items() if name.startswith("layers.1")]
        h = self._drawn(*top, count)
        v = self._bits(h @ model["layers.0.weights"].T + model["layers.0.visible_bias"])
        return v.astype(np.uint8)

    def grey(self, images):
        """Grey levels from 0 to 1 that are bright where the images are on."""
        return np.round(0.6 * images + 0.4 * self._random.random(images.shape), 3)

    def weights(self, count):
        """Whole and half numbers, some of them zero."""
        return self._random.integers(0, 5, count) / 2


def grown(rbm, share):
    """An earlier, or a later, checkpoint of a model."""
    return {name: share * array for name, array in rbm.items()}


def write_inputs():
    """All files that the commands read, in the present folder."""
    for name, content in (small_inputs() | wide_inputs()).items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)


def small_inputs():
    """Models of which every state can be enumerated, by the names of their files."""
    inputs = Inputs(1)
    rbm, dbm, dbn = inputs.rbm(8, 5, 1.5), inputs.dbm(8, 5, 4, 1.0), inputs.dbn(8, 5, 4, 1.0)
    test, train = inputs.images(rbm, 60), inputs.images(rbm, 200)
    spins = inputs.rbm(8, 5, 0.5)
    # units -1 and 1 with these weights and biases, as units 0 and 1
    as_bits = {
        "weights": 4 * spins["weights"],
        "visible_bias": 2 * (spins["visible_bias"] - spins["weights"].sum(1)),
        "hidden_bias": 2 * (spins["hidden_bias"] - spins["weights"].sum(0)),
    }
    linear = {"first": rbm["weights"].T.copy(), "second": rbm["visible_bias"], "third": rbm["hidden_bias"]}
    checkpoints = {
        f"exact-run/epoch{number}.npz": as_npz(grown(rbm, share))
        for number, share in ((9, 0.4), (10, 1.0), (100, 1.5))
    }
    return checkpoints | {
        "small.npz": as_npz(rbm),
        "copy.pt": as_torch(rbm),
        "linear.pt": as_torch(linear),
        "other.npz": as_npz(inputs.rbm(8, 6, 1.0)),
        "stored.npz": as_npz(rbm | {"log_z": np.array(12.5)}),
        "spins.h5": as_rbms(spins.values(), "IIRBM", log_z=12.3),
        "dbm.safetensors": as_safetensors(dbm),
        "dbn.safetensors": as_safetensors(dbn),
        "run.h5": archive(rbm),
        "small.npy": as_npy(test),
        "small.csv": "".join(f"{','.join(map(str, row))}\n" for row in test.tolist()).encode(),
        "small-train.npy": as_npy(train),
        "inverted.npy": as_npy(1 - test),
        "spins.npy": as_npy(2.0 * inputs.images(as_bits, 60) - 1),
        "dbm.npy": as_npy(inputs.images(dbm, 60)),
        "dbn.npy": as_npy(inputs.images(dbn, 60)),
        "dbn-train.npy": as_npy(inputs.images(dbn, 200)),
        "grey.npy": as_npy(inputs.grey(test)),
        "grey-train.npy": as_npy(inputs.grey(train)),
        "weights.npy": as_npy(inputs.weights(60)),
    }


def wide_inputs():
    """Models with too many units for that, by the names of their files."""
    inputs = Inputs(2)
    rbm, strong, large = inputs.rbm(32, 28, 0.5), inputs.rbm(32, 30, 10.0), inputs.rbm(30, 26, 0.3)
    # too large a number for float32, but no unit whose state is certain
    large["weights"][0, 0], large["visible_bias"][0], large["hidden_bias"][0] = 600, -300, -300
    deep, belief = inputs.dbm(32, 28, 26, 0.4), inputs.dbn(32, 28, 26, 0.4)
    test, train = inputs.images(rbm, 50), inputs.images(rbm, 150)
    checkpoints = {
        f"run/epoch{number}.npz": as_npz(grown(rbm, share))
        for number, share in ((9, 0.4), (10, 1.0), (100, 1.02))
    }
    return checkpoints | {
        # of another width, so that it is left out and named
        "run/epoch200.npz": as_npz(inputs.rbm(31, 28, 0.5)),
        "wide.npz": as_npz(rbm),
        "strong.npz": as_npz(strong),
        "large.npz": as_npz(large),
        "deep.safetensors": as_safetensors(deep),
        "belief.safetensors": as_safetensors(belief),
        "wide.npy": as_npy(test),
        "wide-train.npy": as_npy(np.concatenate([train, test[:4]])),
        "strong.npy": as_npy(inputs.images(strong, 50)),
        "large.npy": as_npy(inputs.images(large, 50)),
        "deep.npy": as_npy(inputs.images(deep, 50)),
        "belief.npy": as_npy(inputs.images(belief, 50)),
        "wide-weights.npy": as_npy(inputs.weights(50)),
    }


def archive(rbm):
    """Updates of a training, each with a ln Z."""
    content = {"model_type": "BBRBM"}
    for update, share in ((300, 1.4), (20, 1.0), (5, 0.7), (1, 0.2)):
        content |= rbms_update(grown(rbm, share).values(), update, log_z=7.0 + share)
    return as_hdf5(content)


# ---- reports


def report(line):
    """What a command prints and writes, without what differs from run to run."""
    for file in ("r.json", "r.csv"):
        Path(file).unlink(missing_ok=True)
    result = CliRunner().invoke(cli.app, shlex.split(f"{line} --json r.json"))
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    found = {
        "line": line,
        "exit_code": result.exit_code,
        "printed": masked(joined(result.output)).splitlines(),
        "json": masked(json.loads(Path("r.json").read_text())),
    }
    if Path("r.csv").is_file():
        rows = csv.reader(Path("r.csv").read_text().splitlines())
        found["csv"] = [[number_or_text(cell) for cell in row] for row in rows]
    return found


def joined(text):
    """The line to quote in one line: where it is broken depends on the commit's name."""
    return re.sub(r"^To quote: .*(\n  .*)+", lambda lines: re.sub(r"\n +", " ", lines[0]), text, flags=re.M)


def number_or_text(cell):
    with contextlib.suppress(ValueError):
        return float(cell)
    return cell


# Values that differ between machines, commits or runs.
_MASKED = {"seconds", "version", "commit", "sha256"}
_MACHINE = "made_by"
_CODE = re.compile(r"paperlib \d[\w.]*(, commit [0-9a-f]{9}( with changes)?)?")


def masked(value):
    if isinstance(value, str):
        return _CODE.sub("paperlib VERSION", value)
    if isinstance(value, list):
        return [masked(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "..." if name in _MASKED else dict.fromkeys(part, "...") if name == _MACHINE else masked(part)
        for name, part in value.items()
    }


def golden(command):
    file = FOLDER / f"{command}.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def main(anew):
    import os
    import tempfile

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs()
        for command, cases in CASES.items():
            stored = golden(command)
            found = {}
            for name, line in cases.items():
                asked = command in anew or f"{command}: {name}" in anew
                found[name] = report(line) if asked or name not in stored else stored[name]
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{command}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
