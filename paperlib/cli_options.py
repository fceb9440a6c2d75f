"""Arguments and options that `paperlib evaluate`, `audit` and `compare` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelArgument = Annotated[
    Path,
    typer.Argument(
        help="A file with the weights and biases of an RBM, a DBM, a DBN or a Potts RBM: .safetensors, .npz, .mat, .pt, HDF5 or .skops, "
        "whatever the arrays are called; an archive of rbms (ARCHIVE.h5:update_N for one of its models) or of RestrictedBoltzmannMachines.jl; "
        "or three files, W.npy,b.npy,a.npy."
    ),
]
NamesOption = Annotated[
    str | None,
    typer.Option(
        metavar="weights=W,visible=b,hidden=a",
        help="Which array is what, where the file does not tell. weights=W.T: W is [hidden, visible]. visible=0, hidden=0: there are no such "
        "biases. ignore=NAME: this array, or group of entries, is not part of the model.",
    ),
]
DataOption = Annotated[
    Path,
    typer.Option(
        help="Test images: .npy, .npz, .mat, .csv, .pt, HDF5 or IDX, also gzipped; FILE.npz:x_test is one of several arrays. For categorical "
        "units: numbers of states, a sequence in a row, or FASTA."
    ),
]
TrainOption = Annotated[
    Path | None,
    typer.Option(
        help="Training images, used only for the start of the chains and for the base rates beside the value."
    ),
]
BinarizeOption = Annotated[
    int | None,
    typer.Option(
        metavar="SEED", help="Draw grey pixels once, with their intensity as probability."
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(metavar="T", help="Or turn pixels on where their value in the file is above T."),
]
MinutesOption = Annotated[
    float, typer.Option(help="Time to spend on the estimate, a third on the ladder.")
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Weights of the test images, one number of at least 0 for each; their sum counts as the number of independent images.",
    ),
]
StepsOption = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        help="Intermediate distributions of the largest runs, at least 32. The minutes do not count then, and the same seed gives the "
        "same numbers.",
    ),
]
LadderStepsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Chain-steps of the ladder, with --steps; by default half of those of AIS and RAISE.",
    ),
]
SeedOption = Annotated[int, typer.Option(help="Seed of all chains.")]
DeviceOption = Annotated[str, typer.Option(help="Where chains walk: cpu or cuda.")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")
]
