"""Runs checks in changed copies of the library, for `test_mutation.py`.

`run_mutants.py JOBS FOLDER` is a program of its own. Each copy is checked in a fork of this
process, which imports what all of them need and nothing of the library: every check sees one
library from its first import on, and the seconds that torch and numba take to import are spent
once.

JOBS is a JSON list of {"file", "old", "new", "checks", "options"}. The first copy stays as it is
and passes all checks. The others are copies of it, so that what Python and numba have compiled once
is at hand. What else a check imports of other packages is imported here after it, for those that
follow.
"""

import importlib
import json
import keyword
import os
import re
import shutil
import sys
from pathlib import Path

import numba  # noqa: F401
import pytest
import safetensors.torch  # noqa: F401
import torch
import tqdm  # noqa: F401

ROOT = Path(__file__).parents[2]
# What a copy consists of, besides pyproject.toml, and where a file to be changed is looked for.
COPIED = ("paperlib", "likelihood/boltzmann_likelihood", "tests")
NAME = re.compile(r"[A-Za-z_]\w*")
TOKEN = re.compile(rf"{NAME.pattern}|\s+|.")


class Recorder:
    """A plugin of pytest: what passed, what failed and with which exception, and the warnings."""

    def __init__(self):
        self.outcome = {"passed": [], "failed": {}, "warnings": []}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.outcome["passed"].append(report.nodeid)

    def pytest_exception_interact(self, node, call):
        names = [kind.__name__ for kind in call.excinfo.type.__mro__]
        self.outcome["failed"][node.nodeid] = {"kinds": names, "message": str(call.excinfo.value)}

    def pytest_warning_recorded(self, warning_message):
        self.outcome["warnings"].append(str(warning_message.message))


def run_checks(folder, checks, options):
    """In this process, which ends with it."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    torch.set_num_threads(1)
    with open(folder / "log.txt", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    recorder = Recorder()
    arguments = ["-q", "--rootdir", str(folder), *options, *checks]
    status = int(pytest.main(arguments, plugins=[recorder]))
    library = Path(sys.modules["paperlib"].__file__)
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    imported = [name for name, file in files.items() if "site-packages" in Path(file or "").parts]
    outcome = recorder.outcome | {"status": status, "library": str(library.parents[1])}
    outcome["imported"] = imported
    (folder / "outcome.json").write_text(json.dumps(outcome))
    sys.stdout.flush()
    os._exit(0)


def in_a_fork(folder, checks, options):
    child = os.fork()
    if child == 0:
        try:
            run_checks(folder, checks, options)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    log = folder / "log.txt"
    answer = folder / "outcome.json"
    outcome = json.loads(answer.read_text()) if answer.exists() else {"status": -1}
    for name in outcome.pop("imported", ()):
        importlib.import_module(name)
    return outcome | {"log": log.read_text()[-4_000:] if log.exists() else ""}


def copy_of(source, target):
    """A copy that keeps times, by which Python and numba know what they have compiled."""
    # Another process may be compiling, and its temporary files are gone in a moment.
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc.*", "*.tmp*", "tmp*"))


def changed(text, old, new):
    """`text` with `old` changed to `new`, or None unless it has one such place.

    If `old` is not there, its variables may have new names: then it is the one place that is the
    same but for names, and those in `new` become what they are called there.
    """
    if text.count(old) == 1:
        return text.replace(old, new)
    pattern = ""
    groups = {}
    for token in TOKEN.findall(old):
        if token.isspace():
            pattern += r"\s+"
        elif not token.isidentifier() or keyword.iskeyword(token):
            pattern += re.escape(token)
        elif token in groups:
            pattern += rf"(?P={groups[token]})\b"
        else:
            groups[token] = f"name{len(groups)}"
            pattern += rf"\b(?P<{groups[token]}>{NAME.pattern})\b"
    places = list(re.finditer(pattern, text))
    if len(places) != 1:
        return None
    [place] = places
    now = {name: place[group] for name, group in groups.items()}
    renamed = NAME.sub(lambda name: now.get(name[0], name[0]), new)
    return text[: place.start()] + renamed + text[place.end() :]


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    intact = folder / "intact"
    for name in COPIED:
        copy_of(ROOT / name, intact / Path(name).name)
    shutil.copy(ROOT / "pyproject.toml", intact)
    every_check = sorted({check for job in jobs for check in job["checks"]})
    answers = [in_a_fork(intact, every_check, [])]
    for number, job in enumerate(jobs):
        copy = folder / str(number)
        for name in COPIED:
            copy_of(intact / Path(name).name, copy / Path(name).name)
        shutil.copy(intact / "pyproject.toml", copy)
        [source] = copy.glob(f"*/{job['file']}")
        text = changed(source.read_text(), job["old"], job["new"])
        if text is None:
            log = f"{job['file']} has no place, or several, that is {job['old']!r}"
            answers.append({"status": -1, "log": log})
            continue
        source.write_text(text)
        answers.append(in_a_fork(copy, job["checks"], job["options"]))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
