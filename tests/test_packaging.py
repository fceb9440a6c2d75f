"""The wheel in a clean environment, far from the checkout: the command gives a verdict, and a downloaded chapter runs as it is."""

import json
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from enumeration import all_states, log_z, random_rbm

ROOT = Path(__file__).parents[1]
# What reads all that a wheel must bring along: published numbers, models and records. It takes seconds.
CHAPTER = "13-reproduction-report"


def run(*command, folder, expected=0, **environment):
    """Nothing of this process's own paths or settings may help."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PAPERLIB"))}
    environment = kept | {"PYTHONNOUSERSITE": "1", "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == expected, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    for name in ("paperlib", "data", "figures"):
        ignored = shutil.ignore_patterns("__pycache__", "cache", "digits")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # setuptools is here, since torch needs it: nothing is fetched.
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run(*build, "--wheel-dir", "dist", ".", folder=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean_python(wheel, tmp_path_factory):
    """A fresh environment with the wheel. Its dependencies are those of the present one, which a path file adds."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install"]
    run(*install, "--quiet", "--no-index", "--no-deps", wheel, folder=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Path files there are not read, so that an editable paperlib of the present environment stays out.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return python


def test_the_installed_library_is_the_wheel(clean_python, tmp_path):
    where = run(clean_python, "-c", "import paperlib; print(paperlib.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(clean_python.parents[1])


def test_evaluate_gives_a_verdict_from_an_empty_folder(clean_python, tmp_path):
    rbm = random_rbm(6, 3, seed=31, scale=0.5)
    rbm.save(tmp_path / "model.npz")
    np.save(tmp_path / "test.npy", all_states(6).numpy().astype(np.uint8))
    command = [clean_python.parent / "paperlib", "evaluate", "model.npz", "--data", "test.npy"]
    said = run(*command, "--json", "result.json", folder=tmp_path)
    assert "Verdict: trustworthy" in said
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["exact"]["log_z"] == pytest.approx(log_z(rbm), abs=1e-9)


def test_downloaded_chapter_runs_from_an_empty_folder(clean_python, tmp_path):
    shutil.copy(ROOT / "book" / f"{CHAPTER}.ipynb", tmp_path)
    execute = (
        "import nbclient, nbformat\n"
        f"notebook = nbformat.read('{CHAPTER}.ipynb', 4)\n"
        "nbclient.NotebookClient(notebook, kernel_name='python3', timeout=300).execute()\n"
        f"nbformat.write(notebook, '{CHAPTER}.ipynb')"
    )
    # No kernel that someone registered by hand may take the place of this environment's own.
    run(clean_python, "-c", execute, folder=tmp_path, JUPYTER_PATH="", HOME=str(tmp_path))
    done = (tmp_path / f"{CHAPTER}.ipynb").read_text()
    assert "every published number has one verdict: yes" in done
    assert "mnist-cd1-20" in done
    assert [path.name for path in (tmp_path / "figures" / "digits").iterdir()] == [
        "reproduction-report.json"
    ]


def test_commands_for_the_checkout_say_so_elsewhere(clean_python, tmp_path):
    command = [clean_python.parent / "paperlib", "reproduce", "--only", "05"]
    said = run(*command, folder=tmp_path, expected=2)
    assert said.startswith("paperlib: expected to run inside a clone")
    assert len(said.splitlines()) == 1
