"""The wheels in a clean environment, far from the checkout.

The command gives a verdict, and a downloaded chapter runs as it is.
"""

import hashlib
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import threading
import zipfile
from email import message_from_string
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from enumeration import log_z
from evaluations import SMALL
from packaging.metadata import Metadata

import paperlib
from boltzmann_companion import model_store
from boltzmann_companion.recipes import RECIPES, load_model
from boltzmann_likelihood.cli import _OF_THE_BOOK
from paperlib import storage
from paperlib.models import RBM

ROOT = Path(__file__).parents[1]
# It reads all that a wheel must bring along: published numbers, models and records.
CHAPTER = "13-reproduction-report"


def run(*command, folder, expected=0, **environment):
    """Nothing of this process's own paths or settings may help."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PAPERLIB"))}
    environment = inherited | {"PYTHONNOUSERSITE": "1", "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == expected, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


# Setuptools is here, since torch needs it: nothing is fetched.
SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A folder with the source distributions of the three packages, and wheels built from them."""
    source = tmp_path_factory.mktemp("source")
    for name in ("paperlib", "likelihood", "book/companion", "data", "figures"):
        ignored = shutil.ignore_patterns("__pycache__", "cache", "digits", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, ignore=ignored, symlinks=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    dist = source / "dist"
    for name in ("", "likelihood", "book/companion"):
        run(sys.executable, "-c", SDIST, dist, folder=source / name)
    for sdist in dist.glob("*.tar.gz"):
        build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
        run(*build, "--wheel-dir", dist, sdist, folder=dist)
    return dist


@pytest.fixture(scope="module")
def wheels(distributions):
    """Those of the library, of the tool and of the book's companion."""
    return [
        next(distributions.glob(f"boltzmann_{name}-*.whl"))
        for name in ("paperlib", "likelihood", "companion")
    ]


def environment(folder, *installed):
    """A fresh one with these wheels.

    Their dependencies are those of the present one, without its own three packages.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install"]
    run(*install, "--quiet", "--no-index", "--no-deps", *installed, folder=folder)
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for path in (entry for place in site.getsitepackages() for entry in Path(place).glob("*")):
        if not path.name.startswith(("boltzmann_", "paperlib", "__editable__")):
            (dependencies / path.name).symlink_to(path)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return python


@pytest.fixture(scope="module")
def clean_python(wheels, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("environment"), *wheels)


# ---- contents


def test_wheels_have_names_of_their_own_and_the_version_of_the_code(wheels):
    """`paperlib` on the package index is another project's."""
    packages = ("paperlib", "boltzmann_likelihood", "boltzmann_companion")
    names = (model_store._DISTRIBUTION, "boltzmann-likelihood", "boltzmann-companion")
    for wheel, package, name in zip(wheels, packages, names, strict=True):
        with zipfile.ZipFile(wheel) as archive:
            (file,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
            metadata = message_from_string(archive.read(file).decode())
            folders = {name.partition("/")[0] for name in archive.namelist()}
            assert any(name.endswith("/licenses/LICENSE") for name in archive.namelist())
        assert (metadata["Name"], metadata["Version"]) == (name, paperlib.__version__)
        assert {name for name in folders if "." not in name} == {package}


def test_an_index_accepts_what_distributions_say_of_themselves(distributions):
    """What `twine check` looks at: valid fields, and a description that can be shown.

    Those of a source distribution are the same.
    """
    for wheel in distributions.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (file,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
            text = archive.read(file)
        metadata = Metadata.from_email(text, validate=True)
        assert metadata.description_content_type == "text/markdown"
        assert metadata.description.startswith("# ")
        with tarfile.open(
            next(distributions.glob(f"{wheel.name.split('-')[0]}-*.tar.gz"))
        ) as sdist:
            (member,) = (m for m in sdist.getmembers() if re.fullmatch(r"[^/]+/PKG-INFO", m.name))
            source = Metadata.from_email(sdist.extractfile(member).read(), validate=True)
        assert (source.name, source.version) == (metadata.name, metadata.version)
        assert source.description == metadata.description


def test_wheels_are_small_and_have_what_a_chapter_reads(wheels):
    assert sum(wheel.stat().st_size for wheel in wheels) < 3_000_000
    names = [name for wheel in wheels for name in zipfile.ZipFile(wheel).namelist()]
    share = {name.partition("/share/paperlib/")[2] for name in names if "/share/paperlib/" in name}
    stored = [path.name for path in (ROOT / "data" / "models").glob("digits-*")]
    models = {*stored, "mnist-cd1-20", "mnist-cd1-25", "mnist-cd3-25", "mnist-pcd-20"}
    pictures = (ROOT / "figures" / "paper").iterdir()
    assert share == {
        "data/published.csv",
        "data/models/SHA256SUMS",
        *(f"data/models/{Path(name).stem}.safetensors" for name in models),
        *(f"figures/paper/{path.name}" for path in pictures if path.suffix != ".png"),
    }
    # Nothing of the packages themselves is forgotten, whatever its kind.
    for folder in (
        ROOT / "paperlib",
        ROOT / "likelihood" / "boltzmann_likelihood",
        ROOT / "book" / "companion" / "boltzmann_companion",
    ):
        package = [path for path in folder.rglob("*") if path.is_file()]
        expected = {
            str(p.relative_to(folder.parent)) for p in package if "__pycache__" not in p.parts
        }
        assert {name for name in names if name.startswith(f"{folder.name}/")} == expected


def test_every_stored_model_has_its_checksum():
    folder = ROOT / "data" / "models"
    checksums = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.glob("*.s*")}
    # After training: cd data/models && sha256sum *.safetensors > SHA256SUMS
    assert model_store.stored_checksums() == checksums


# ---- models that did not come along


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def served(tmp_path):
    """A folder, and the address at which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An installation without any model: their checksums only. Gives the cache."""
    models = tmp_path / "share" / "data" / "models"
    models.mkdir(parents=True)
    shutil.copy(ROOT / "data" / "models" / "SHA256SUMS", models)
    monkeypatch.setattr(storage, "companion_folder", lambda: tmp_path / "share")
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PAPERLIB_MODELS", raising=False)
    return tmp_path / "cache"


STORED = ROOT / "data" / "models" / "mnist-mixture-10.safetensors"


def test_model_is_downloaded_once_and_checked(installed, served, monkeypatch):
    folder, address = served
    shutil.copy(STORED, folder)
    monkeypatch.setenv("PAPERLIB_MODELS", address)
    first = load_model("mnist-mixture-10", torch.float32)
    assert (installed / "models" / STORED.name).read_bytes() == STORED.read_bytes()
    monkeypatch.delenv("PAPERLIB_MODELS")
    assert load_model("mnist-mixture-10", torch.float32).checksum() == first.checksum()


@pytest.mark.parametrize(
    "contents", [None, b"", STORED.read_bytes()[:-1]], ids=["missing", "empty", "truncated"]
)
def test_missing_or_damaged_download_is_refused(installed, served, monkeypatch, contents):
    folder, address = served
    if contents is not None:
        (folder / STORED.name).write_bytes(contents)
    monkeypatch.setenv("PAPERLIB_MODELS", address)
    with pytest.raises(
        ValueError, match=f"or a download from {address}/{STORED.name}, which failed"
    ):
        load_model("mnist-mixture-10", torch.float32)
    assert [path for path in installed.rglob("*") if path.is_file()] == []


def test_without_an_address_it_says_where_to_put_the_file(installed, monkeypatch):
    monkeypatch.setattr(model_store, "metadata", lambda name: Declared())
    with pytest.raises(ValueError, match="put the file mnist-mixture-10") as raised:
        load_model("mnist-mixture-10", torch.float32)
    place = installed / "models" / STORED.name
    assert str(place) in str(raised.value)
    assert "PAPERLIB_MODELS" in str(raised.value)
    place.parent.mkdir(parents=True)
    shutil.copy(STORED, place)
    assert load_model("mnist-mixture-10", torch.float32).num_components == 10


class Declared:
    """Metadata of a package, with these addresses."""

    def __init__(self, *addresses):
        self.addresses = addresses

    def get_all(self, key):
        return list(self.addresses) or None


def test_the_repository_of_the_metadata_is_the_address(monkeypatch):
    monkeypatch.delenv("PAPERLIB_MODELS", raising=False)
    declared = Declared("Issues, https://example.org/i", "Repository, https://example.org/a/b")
    monkeypatch.setattr(model_store, "metadata", lambda name: declared)
    assert model_store._models_address() == "https://example.org/a/b/raw/HEAD/data/models"


def test_model_that_was_never_stored_wants_training(installed, monkeypatch):
    monkeypatch.setitem(RECIPES, "mnist-new", RECIPES["mnist-cd1-20"])
    with pytest.raises(ValueError, match="`paperlib train mnist-new` makes it"):
        load_model("mnist-new", torch.float32)


# ---- the wheels at work


def test_the_installed_library_is_the_wheel_with_style_and_script_of_its_players(
    clean_python, tmp_path
):
    show = (
        "import paperlib\n"
        "from boltzmann_companion.players.page import player\n"
        "print(paperlib.__file__)\n"
        "print(player('frames', '', '', '', '', '', 1, {}).card)"
    )
    where, _, shown = run(clean_python, "-c", show, folder=tmp_path).partition("\n")
    assert Path(where).is_relative_to(clean_python.parents[1])
    assert ".paperlib-player {" in shown
    assert "const startPlayers" in shown


def test_evaluate_gives_a_verdict_far_from_the_checkout(clean_python, folder):
    command = [clean_python.parent / "paperlib", "evaluate", "m.npz", "--data", "t.npy"]
    output = run(*command, "--json", "result.json", folder=folder)
    assert "Verdict: trusted" in output
    result = json.loads((folder / "result.json").read_text())
    assert result["exact"]["log_z"] == pytest.approx(log_z(SMALL), abs=1e-9)
    # A wheel knows no commit, wherever it is used.
    assert (result["version"], result["commit"]) == (paperlib.__version__, None)
    assert result["quote"].endswith(f"; paperlib {paperlib.__version__})")


def test_downloaded_chapter_runs_from_an_empty_folder(clean_python, tmp_path):
    shutil.copy(ROOT / "book" / f"{CHAPTER}.ipynb", tmp_path)
    execute = (
        "import nbclient, nbformat\n"
        f"notebook = nbformat.read('{CHAPTER}.ipynb', 4)\n"
        "nbclient.NotebookClient(notebook, kernel_name='python3', timeout=None).execute()\n"
        f"nbformat.write(notebook, '{CHAPTER}.ipynb')"
    )
    # No kernel that someone registered by hand may take the place of this environment's own.
    run(clean_python, "-c", execute, folder=tmp_path, JUPYTER_PATH="", HOME=str(tmp_path))
    done = (tmp_path / f"{CHAPTER}.ipynb").read_text()
    assert "the library was committed when each record was made: yes" in done
    assert "mnist-cd1-20" in done
    written = {path.name for path in (tmp_path / "figures" / "digits").glob("*.json")}
    assert written == {"conclusions.json", "likelihood-scale.json", "reproduction-report.json"}


def test_commands_for_the_checkout_say_so_elsewhere(clean_python, tmp_path):
    command = [clean_python.parent / "paperlib", "reproduce", "--only", "05"]
    output = run(*command, folder=tmp_path, expected=2)
    assert output.startswith("paperlib: expected to run inside a clone")
    assert len(output.splitlines()) == 1


# ---- the library alone, and the tool without the companion

WALK = """
import sys
import torch
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, exact_log_z
from paperlib.models import RBM

rbm = RBM(torch.zeros(6, 3), torch.zeros(6), torch.zeros(3))
estimate = ais(BaseRatePath(rbm), uniform_betas(10), 5)
rbm.save("model.npz")
print(f"{exact_log_z(RBM.load('model.npz')) - estimate.log_z:.6f}")
others = {"boltzmann_likelihood", "boltzmann_companion", "typer"}
print("imported:", sorted(others & {name.partition(".")[0] for name in sys.modules}))
"""


def test_the_library_alone_estimates_and_stores_and_brings_no_command(wheels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    python = environment(folder, wheels[0])
    # what is compiled there need not be fast
    output = run(python, "-c", WALK, folder=folder, NUMBA_OPT="0")
    assert output.split("\n")[:2] == ["0.000000", "imported: []"]
    assert not (python.parent / "paperlib").exists()


ONE_AFTER_THE_OTHER = """
import sys
from boltzmann_likelihood import cli

for line in {lines}:
    sys.argv[1:] = line.split()
    try:
        cli.main()
    except SystemExit as ended:
        print("ended with", ended.code)
packages = {{"paperlib", "boltzmann_likelihood", "boltzmann_companion"}}
print("imported:", sorted(packages & {{name.partition(".")[0] for name in sys.modules}}))
"""


def test_the_tool_alone_has_its_four_commands_and_says_what_brings_the_others(
    wheels, folder, tmp_path_factory
):
    python = environment(tmp_path_factory.mktemp("tool"), *wheels[:2])
    RBM(*(0.5 * tensor for tensor in SMALL.tensors().values())).save(folder / "earlier.npz")
    lines = [
        "evaluate m.npz --data t.npy",
        f"audit m.npz --data t.npy --claimed-log-z {log_z(SMALL) + 1}",
        "compare m.npz other.npz --data t.npy",
        "training earlier.npz m.npz --data t.npy",
        *_OF_THE_BOOK,
        "--help",
    ]
    output = run(python, "-c", ONE_AFTER_THE_OTHER.format(lines=lines), folder=folder)
    assert re.findall("ended with (.*)", output) == ["0", "4", "0", "0", *["2"] * 7, "0"]
    assert "Verdict: trusted" in output
    shown = [line.split()[1] for line in output.splitlines() if re.match("│ [a-z]", line)]
    assert shown == ["evaluate", "audit", "compare", "training"]
    for name in _OF_THE_BOOK:
        assert (
            f"paperlib: {name}: expected the package boltzmann-companion to be installed,"
            " which brings this command (in a clone"
        ) in output
    assert output.count("paperlib:") == len(_OF_THE_BOOK)
    assert "imported: ['boltzmann_likelihood', 'paperlib']" in output
