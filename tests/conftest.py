"""Shared fixtures: tiny models whose every state can be enumerated."""

import pytest
import torch
from backends import backend  # noqa: F401
from enumeration import random_rbm


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    # The suite runs in parallel processes; threads within each would only fight for the cores.
    torch.set_num_threads(1)


@pytest.fixture
def tiny_rbm():
    return random_rbm(num_visible=5, num_hidden=4, seed=1)
