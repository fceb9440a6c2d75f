"""One small player of each kind.

Their words would break out of the page if they were not escaped.
"""

import json
import math
import re
from urllib.parse import unquote

import torch

from boltzmann_companion.players.brackets import bracket_player
from boltzmann_companion.players.chains import chain_player
from boltzmann_companion.players.frames import frame_player
from boltzmann_companion.players.particles import particle_player, particle_run
from boltzmann_companion.players.tempering import tempering_player
from boltzmann_companion.players.traces import trace_player
from paperlib.mcmc import MarkovChain

SHAPE = (8, 8)
NASTY = 'Two & "more" </script><b title="x">'


def data_of(shown):
    """What a player's page holds for its script."""
    (text,) = re.findall(
        r'<script type="application/json">(.*?)</script>', shown._repr_html_(), re.DOTALL
    )
    return json.loads(text)


def stills_of(shown):
    """The drawings of a player's opening moment, each as SVG."""
    pictures = re.findall(r'src="data:image/svg\+xml,([^"]*)"', shown._repr_html_())
    return [unquote(source) for source in pictures]


def some_frames(count=13, description=NASTY):
    """Frames that all differ: in frame k pixel k of every image is black."""
    frames = [torch.eye(64, dtype=torch.float64)[k].repeat(5, 1) for k in range(count)]
    captions = [f"beta </script> = {k / 10}" for k in range(count)]
    return frame_player(frames, captions, description, SHAPE, columns=3)


def ring(states, stay=0.0, forward=0.5):
    """A walk around a ring of states."""
    steps = torch.eye(states, dtype=torch.float64)
    onward = steps.roll(1, dims=1)
    back = steps.roll(-1, dims=1)
    return MarkovChain(stay * steps + (1 - stay) * (forward * onward + (1 - forward) * back))


CHAINS = {"lazy": ring(5, stay=0.2), "turning & </script>": ring(5, forward=0.9)}
TARGET = torch.full((5,), 0.2, dtype=torch.float64)


def some_chains(num_steps=12, description=NASTY):
    return chain_player(CHAINS, ["0", "1", "<2>", "3", "4"], TARGET, num_steps, description)


def some_runs(updates=12):
    """Means in [0, 1] and bounds of two runs; in the second the bound falls at update 4."""
    generator = torch.Generator().manual_seed(0)
    means = torch.rand(2, updates + 1, 4, dtype=torch.float64, generator=generator)
    rising = -5 + torch.arange(updates + 1, dtype=torch.float64) / 10
    falling = rising.clone()
    falling[4:] -= 1
    return {"step <0.5>": (means[0], rising), "step </script>": (means[1], falling)}


def some_traces(updates=12, description=NASTY, **changes):
    arguments = {
        "runs": some_runs(updates),
        "exact": torch.full((4,), 0.25),
        "goal": -3.0,
        "limits": (-8.0, -2.0),
        "description": description,
    }
    return trace_player(**(arguments | changes))


def some_visits(steps=12):
    """Three chains that turn around the temperatures: 0, 1, 2, then 1, 2, 0, and so on."""
    return [[(chain + step) % 3 for chain in range(3)] for step in range(steps + 1)]


def some_tempering(steps=12, description=NASTY):
    return tempering_player(some_visits(steps), [0.0, 0.25, 1.0], description)


def some_particles(moments=12, description=NASTY):
    """Two particles that walk to the right, one of which gains weight.

    In the second run they stand still.
    """
    walk = [[moment % 5, (moment + 1) % 5] for moment in range(moments + 1)]
    weights = [[0.1 * moment, 0.0] for moment in range(moments + 1)]
    betas = [moment / moments for moment in range(moments + 1)]
    captions = [f"beta </script> = {beta:.3f}" for beta in betas]
    still = [f"stands at {beta:.3f}" for beta in betas]
    runs = [
        particle_run("walk <2>", betas, walk, weights, captions),
        particle_run("stand", betas, [walk[0]] * len(walk), weights, still),
    ]
    return particle_player(
        runs, [0.0] * 5, [-1.0, 0.0, -2.0, 0.5, -1.0], description, "AIS", moments // 2
    )


def some_bracket(moments=12, description=NASTY):
    """K = 1, 2, 4, ...: the gap and the errors of AIS halve each time, and RAISE has no error.

    The first end of AIS is infinite.
    """
    gaps = [2.0**-moment for moment in range(moments + 1)]
    above = [(-5.0, -5 + gap, -5 + 2 * gap if gap < 1 else math.inf) for gap in gaps]
    below = [(-5 - 2 * gap,) * 3 for gap in gaps]
    return bracket_player(
        [2**moment for moment in range(moments + 1)], above, below, -5, description
    )


#: What makes a player of each kind; both arguments are optional.
KINDS = {
    "frames": some_frames,
    "chains": some_chains,
    "traces": some_traces,
    "ladders": some_tempering,
    "particles": some_particles,
    "brackets": some_bracket,
}
