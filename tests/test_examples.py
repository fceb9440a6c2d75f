"""Every example in a docstring runs and is right, and public names of the rooms below have one."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest
import torch
from public import public

import boltzmann_companion
import boltzmann_likelihood
import paperlib

MODULES = [
    ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
    for package in (paperlib, boltzmann_likelihood, boltzmann_companion)
    for folder in [Path(package.__file__).parent]
    for path in sorted(folder.rglob("*.py"))
    if path.name != "__main__.py"
]
ROOMS = [
    "paperlib.models",
    "paperlib.datasets",
    "paperlib.variational",
    "paperlib.mcmc",
    "paperlib.learning",
    "paperlib.annealing",
    "paperlib.estimators",
    "boltzmann_likelihood.planted",
    "boltzmann_likelihood.evaluation",
]
# Loaders of data that are not at hand wherever the tests run.
WITHOUT = {"load_mnist", "load_mnist_2008", "load_omniglot", "load_authors_rbm"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, capsys):
    # a module may be hidden by a function of its name
    importlib.import_module(name)
    module = inspect.sys.modules[name]
    threads = torch.get_num_threads()
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0, capsys.readouterr().out
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_have_an_example(room):
    defined = {
        name: value
        for name, value in public(importlib.import_module(room)).items()
        if callable(value) and name not in WITHOUT
    }
    assert defined
    missing = [name for name, value in defined.items() if ">>>" not in (value.__doc__ or "")]
    assert not missing
