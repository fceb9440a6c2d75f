"""What `evaluate`, `audit`, `compare` and `training` print and write for fixed inputs.

`test_golden_reports.py` compares it with `golden_reports/`, which has a file for each command.
Other programs read `--json`, so its names, fields and numbers stay; fields may be added.

Run as a script, this module writes the cases that are missing. Where a report is to change, name
its cases or commands, and say in the commit which fields move, and why:

    python tests/golden_reports.py
    python tests/golden_reports.py training "audit: exact, impossible"

The inputs are the same on every processor: parameters are uniform numbers, and images are drawn
from the models by Gibbs steps in float64.
"""

import contextlib
import csv
import json
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from typer.testing import CliRunner
from writers import as_hdf5, as_npy, as_npz, as_rbms, as_safetensors, as_torch, rbms_update

from boltzmann_likelihood import cli

FOLDER = Path(__file__).resolve().with_name("golden_reports")

FEW = "--steps 64 --tempering-steps 5000"
# How far numbers may be off, relative to those beyond 1 in size. The draws are the same on every
# processor. With instruction sets from SSE4 to AVX-512, and with the reference kernels, numbers
# differed by up to 5e-16 where all is exact, and by 2e-13 where chains walk in float64. Where they
# walk in float32, it was 4e-7, and 2e-6 for `strong.npz`, whose ln Z is ten times as large.
DOUBLE = 1e-9
SINGLE = 5e-6
SINGLE_STRONG = 5e-5


class Case(NamedTuple):
    """A command, and how far its numbers may be off."""

    line: str
    tolerance: float = DOUBLE


CASES = {
    "evaluate": {
        "exact": Case("evaluate small.npz --data small.npy --train small-train.npy --seed 9"),
        "exact, weights of images": Case(
            "evaluate small.npz --data small.npy --weights weights.npy"
        ),
        "exact, grey images binarised": Case(
            "evaluate small.npz --data grey.npy --train grey-train.npy --binarize 3"
        ),
        "exact, grey images with a threshold": Case(
            "evaluate small.npz --data grey.npy --threshold 0.5 --seed 2"
        ),
        "exact, read by names, images as CSV": Case(
            "evaluate turned.pt --data small.csv "
            "--names weights=first.T,visible=second,hidden=third"
        ),
        "exact, worse than independent pixels": Case(
            "evaluate small.npz --data inverted.npy --train inverted.npy"
        ),
        "exact, spins with a stored ln Z": Case("evaluate spins.h5 --data spins.npy"),
        "exact, a stored ln Z that is wrong": Case("evaluate stored.npz --data small.npy"),
        "exact DBM": Case("evaluate dbm.safetensors --data dbm.npy"),
        "exact DBN": Case("evaluate dbn.safetensors --data dbn.npy --train dbn-train.npy"),
        "estimated": Case(
            f"evaluate wide.npz --data wide.npy --train wide-train.npy {FEW} --seed 3", SINGLE
        ),
        "estimated, training images of another kind": Case(
            f"evaluate wide.npz --data wide.npy --train strong.npy {FEW} --seed 3", SINGLE
        ),
        "estimated, warnings that are settled": Case(
            f"evaluate strong.npz --data strong.npy {FEW} --seed 1", SINGLE_STRONG
        ),
        "estimated in float64": Case(f"evaluate large.npz --data large.npy {FEW} --seed 1"),
        "estimated in float64, weights of images": Case(
            f"evaluate large.npz --data large.npy --weights large-weights.npy {FEW} --seed 4"
        ),
        "estimated DBM": Case(f"evaluate deep.safetensors --data deep.npy {FEW} --seed 12", SINGLE),
        "estimated DBN, not trusted": Case(
            f"evaluate belief.safetensors --data belief.npy {FEW} --seed 7", SINGLE
        ),
    },
    "audit": {
        "exact, consistent": Case(
            "audit small.npz --data small.npy --claimed-log-z 13.4 --tolerance 0.5"
        ),
        "exact, impossible": Case("audit small.npz --data small.npy --claimed-log-z 11.3"),
        "exact, claimed ln prob consistent": Case(
            "audit small.npz --data small.npy --claimed-log-prob -4.5 --tolerance 1"
        ),
        "exact, ln Z that the archive stores": Case("audit spins.h5 --data spins.npy"),
        "exact, grey images binarised": Case(
            "audit small.npz --data grey.npy --train grey-train.npy --binarize 3 --claimed-log-z 9"
        ),
        "estimated, consistent": Case(
            f"audit wide.npz --data wide.npy --claimed-log-z 46.5 {FEW} --seed 3", SINGLE
        ),
        "estimated in float64, not supported": Case(
            f"audit large.npz --data large.npy --claimed-log-z 47.3 {FEW} --seed 3"
        ),
        "estimated in float64, impossible": Case(
            f"audit large.npz --data large.npy --claimed-log-prob 0.3 {FEW} --seed 3"
        ),
        "estimated in float64, not trusted": Case(
            "audit large.npz --data large.npy --train large-inverted.npy --claimed-log-z 44.5 "
            f"{FEW} --seed 3"
        ),
        "estimated DBM, consistent": Case(
            f"audit deep.safetensors --data deep.npy --claimed-log-z 70.2 {FEW} --seed 12", SINGLE
        ),
    },
    "compare": {
        "exact": Case("compare small.npz other.npz --data small.npy --train small-train.npy"),
        "exact DBM and RBM, weights of images": Case(
            "compare dbm.safetensors small.npz --data small.npy --weights weights.npy"
        ),
        "exact, grey images with a threshold": Case(
            "compare small.npz other.npz --data grey.npy --threshold 0.5"
        ),
        "same model": Case("compare small.npz copy.pt --data small.npy"),
        "estimated in float64": Case(
            f"compare run/epoch10.npz run/epoch9.npz --data large.npy {FEW} --seed 8"
        ),
        "estimated, not trusted": Case(
            f"compare wide.npz strong.npz --data wide.npy {FEW} --seed 8", SINGLE_STRONG
        ),
    },
    "training": {
        "exact, a folder": Case(
            "training exact-run --data small.npy --train small-train.npy --csv r.csv"
        ),
        "exact, updates of an archive with stored ln Z": Case(
            "training run.h5 --data small.npy --updates 1,20,300 --csv r.csv"
        ),
        "estimated in float64, a folder": Case(
            f"training run --data large.npy {FEW} --seed 3 --csv r.csv"
        ),
    },
}


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


# Each model draws from a seed of its own, so that another one changes nothing.


def small_inputs():
    """Models of which every state can be enumerated, and their images, by the names of files."""
    inputs = Inputs(1)
    rbm = inputs.rbm(8, 5, 1.5)
    test = inputs.images(rbm, 60)
    train = inputs.images(rbm, 200)
    turned = {
        "first": rbm["weights"].T.copy(),
        "second": rbm["visible_bias"],
        "third": rbm["hidden_bias"],
    }
    files = {
        "small.npz": as_npz(rbm),
        "copy.pt": as_torch(rbm),
        "turned.pt": as_torch(turned),
        "stored.npz": as_npz(rbm | {"log_z": np.array(12.5)}),
        "run.h5": archive(rbm),
        "small.npy": as_npy(test),
        "small.csv": "".join(f"{','.join(map(str, row))}\n" for row in test.tolist()).encode(),
        "small-train.npy": as_npy(train),
        "inverted.npy": as_npy(1 - test),
        "weights.npy": as_npy(inputs.weights(60)),
        "grey.npy": as_npy(inputs.grey(test)),
        "grey-train.npy": as_npy(inputs.grey(train)),
    }
    for number, share in ((9, 0.4), (10, 1.0), (100, 1.5)):
        files[f"exact-run/epoch{number}.npz"] = as_npz(grown(rbm, share))
    files["other.npz"] = as_npz(Inputs(2).rbm(8, 6, 1.0))

    inputs = Inputs(3)
    spins = inputs.rbm(8, 5, 0.5)
    # units -1 and 1 with these weights and biases, as units 0 and 1
    as_bits = {
        "weights": 4 * spins["weights"],
        "visible_bias": 2 * (spins["visible_bias"] - spins["weights"].sum(1)),
        "hidden_bias": 2 * (spins["hidden_bias"] - spins["weights"].sum(0)),
    }
    files["spins.h5"] = as_rbms(spins.values(), "IIRBM", log_z=12.3)
    files["spins.npy"] = as_npy(2.0 * inputs.images(as_bits, 60) - 1)

    inputs = Inputs(4)
    dbm = inputs.dbm(8, 5, 4, 1.0)
    files["dbm.safetensors"] = as_safetensors(dbm)
    files["dbm.npy"] = as_npy(inputs.images(dbm, 60))

    inputs = Inputs(5)
    dbn = inputs.dbn(8, 5, 4, 1.0)
    files["dbn.safetensors"] = as_safetensors(dbn)
    files["dbn.npy"] = as_npy(inputs.images(dbn, 60))
    files["dbn-train.npy"] = as_npy(inputs.images(dbn, 200))
    return files


def wide_inputs():
    """Models with too many units for that, and their images, by the names of files."""
    inputs = Inputs(11)
    rbm = inputs.rbm(32, 28, 0.5)
    test = inputs.images(rbm, 50)
    # some test images are training images as well
    train = np.concatenate([inputs.images(rbm, 150), test[:4]])
    files = {
        "wide.npz": as_npz(rbm),
        "wide.npy": as_npy(test),
        "wide-train.npy": as_npy(train),
    }

    inputs = Inputs(20)
    strong = inputs.rbm(32, 30, 10.0)
    files["strong.npz"] = as_npz(strong)
    files["strong.npy"] = as_npy(inputs.images(strong, 50))

    inputs = Inputs(13)
    large = inputs.rbm(30, 26, 0.5)
    # too large a number for float32, but no unit whose state is certain
    large["weights"][0, 0] = 1000
    large["visible_bias"][0] = -500
    large["hidden_bias"][0] = -500
    test = inputs.images(large, 50)
    files["large.npz"] = as_npz(large)
    files["large.npy"] = as_npy(test)
    files["large-inverted.npy"] = as_npy(1 - test)
    files["large-weights.npy"] = as_npy(inputs.weights(50))
    for number, share in ((9, 0.5), (10, 1.0), (100, 1.02)):
        files[f"run/epoch{number}.npz"] = as_npz(grown(large, share))
    # of another width, so that it is left out and named
    files["run/epoch200.npz"] = as_npz(Inputs(14).rbm(31, 26, 0.5))

    inputs = Inputs(15)
    dbm = inputs.dbm(32, 28, 26, 0.4)
    files["deep.safetensors"] = as_safetensors(dbm)
    files["deep.npy"] = as_npy(inputs.images(dbm, 50))

    inputs = Inputs(25)
    dbn = inputs.dbn(32, 28, 26, 0.4)
    files["belief.safetensors"] = as_safetensors(dbn)
    files["belief.npy"] = as_npy(inputs.images(dbn, 50))
    return files


def archive(rbm):
    """Updates of a training, each with a ln Z."""
    content = {"model_type": "BBRBM"}
    for update, share in ((300, 1.4), (20, 1.0), (5, 0.7), (1, 0.2)):
        content |= rbms_update(grown(rbm, share).values(), update, log_z=7.0 + share)
    return as_hdf5(content)


# ---- reports


def report(line):
    """What a command prints and writes in the present folder."""
    for file in ("r.json", "r.csv"):
        Path(file).unlink(missing_ok=True)
    result = CliRunner().invoke(cli.app, shlex.split(f"{line} --json r.json"))
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    written = {
        "line": line,
        "exit_code": result.exit_code,
        "printed": masked(joined(result.output)).splitlines(),
        "json": masked(json.loads(Path("r.json").read_text())),
    }
    if Path("r.csv").is_file():
        rows = csv.reader(Path("r.csv").read_text().splitlines())
        written["csv"] = [[number_or_text(cell) for cell in row] for row in rows]
    return written


def joined(text):
    """The line to quote in one line: where it is broken depends on the commit's name."""
    quoted = re.compile(r"^To quote: .*(\n  .*)+", re.MULTILINE)
    return quoted.sub(lambda lines: re.sub(r"\n +", " ", lines[0]), text)


def number_or_text(cell):
    with contextlib.suppress(ValueError):
        return float(cell)
    return cell


# What differs between runs, commits and machines.
_LEFT_OUT = "..."
_MASKED = {"seconds", "version", "commit", "sha256"}
_MADE_BY = "made_by"
_CODE = re.compile(r"paperlib \d[\w.]*(, commit [0-9a-f]{9}( with changes)?)?")


def masked(value):
    """A value without what differs from run to run; all names stay."""
    if isinstance(value, str):
        return _CODE.sub("paperlib VERSION", value)
    if isinstance(value, list):
        return [masked(part) for part in value]
    if not isinstance(value, dict):
        return value
    result = {name: masked(part) for name, part in value.items()}
    result |= dict.fromkeys(_MASKED & value.keys(), _LEFT_OUT)
    if _MADE_BY in value:
        result[_MADE_BY] = dict.fromkeys(value[_MADE_BY], _LEFT_OUT)
    return result


def golden(command):
    """The stored reports of a command, by the names of their cases."""
    file = FOLDER / f"{command}.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def main(anew):
    """Write the reports that are missing, and those of these commands or cases anew."""
    known = {f"{command}: {name}" for command, cases in CASES.items() for name in cases}
    unknown = anew - known - CASES.keys()
    if unknown:
        sys.exit(f"expected commands or cases such as {min(known)!r}, got {sorted(unknown)}")
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs()
        for command, cases in CASES.items():
            reports = golden(command)
            result = {}
            for name, case in cases.items():
                keep = name in reports and not anew & {command, f"{command}: {name}"}
                result[name] = reports[name] if keep else report(case.line)
            (FOLDER / f"{command}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
