"""What the tests of `evaluate`, `audit` and `compare` share.

A model of which all is known, rows drawn from it, and the command as a user types it.
"""

import json
import shlex
from pathlib import Path

import torch
from enumeration import all_states, random_rbm
from typer.testing import CliRunner

from boltzmann_likelihood import cli
from paperlib.numerics import seeded_generator

SMALL = random_rbm(8, 5, 1, scale=1.5)


def draws(rbm, count, seed):
    """Independent draws of a small model, by the enumeration of its states."""
    states = all_states(rbm.num_visible)
    weights = rbm.log_unnormalized(states).softmax(0)
    return states[torch.multinomial(weights, count, True, generator=seeded_generator(seed))]


def log_z_of_spins(rbm):
    """ln Z of the model of these weights and biases whose units are -1 and 1."""
    v = 2 * all_states(rbm.num_visible) - 1
    h = 2 * all_states(rbm.num_hidden) - 1
    table = v @ rbm.weights @ h.T + (v @ rbm.visible_bias)[:, None] + h @ rbm.hidden_bias
    return table.flatten().logsumexp(0).item()


def run(line, *codes):
    """What a command prints that ends with one of these exit codes, or with 0."""
    result = CliRunner().invoke(cli.app, shlex.split(line))
    assert result.exit_code in (codes or (0,)), f"{result.output}\n{result.exception!r}"
    return result.output


def recorded(line, *codes):
    """What it prints, and its file of JSON."""
    output = run(f"{line} --json r.json", *codes)
    return output, json.loads(Path("r.json").read_text())
