"""Records, tables, the runner and the command: what is written, when, and said on a failure."""

import ast
import errno
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch
from notebooks import ROOT, notebook
from safetensors import safe_open

from boltzmann_companion import DEVICE, SETTINGS, profiles, records, tables
from boltzmann_companion.build import runner
from boltzmann_companion.columns import Column
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.recipes import RECIPES
from boltzmann_companion.record_files import read_record
from boltzmann_companion.records import Run
from paperlib.annealing import BaseRatePath
from paperlib.errors import InputError, ReproductionError
from paperlib.models import RBM


@pytest.fixture
def figures(monkeypatch, tmp_path):
    monkeypatch.setenv("PAPERLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.delenv("PAPERLIB_REFRESH", raising=False)
    return tmp_path / "figures" / "digits"


COLUMNS = {
    "model": Column("model"),
    "log_z": Column("ln Z", "nats", 1e-6),
    "interval": Column("interval", "nats", 1e-6),
    "minutes": Column("time", "minutes", None),
}


def row(**changes):
    values = {"model": "A", "log_z": 1.5, "interval": (-math.inf, 2.0), "minutes": 0.1}
    return values | changes


def save(rows, name="table", **options):
    return Run("05-x", get_profile("digits"), 7).save(name, COLUMNS, rows, **options)


def test_record_comes_back_as_it_was_saved(figures):
    record = save([row(log_z=torch.tensor(1.5))])
    stored = read_record(figures / "table.json")
    assert stored == record
    assert stored["rows"] == [{**row(), "interval": [-math.inf, 2.0]}]
    json.loads((figures / "table.json").read_text(), parse_constant=pytest.fail)  # strict JSON
    provenance = stored["provenance"]
    assert provenance["seed"] == 7
    assert provenance["command"].startswith("paperlib reproduce --profile digits --only 05-x")
    assert len(provenance["commit"]) == 40
    assert set(provenance["data"]) == {"digits"}


# What the first run and the second save, from which code and on which processor.
@pytest.mark.parametrize(
    ("first", "then", "rewritten"),
    [
        ({}, {}, False),
        ({}, {"log_z": 1.5 + 5e-7}, False),
        ({}, {"minutes": 9.0}, False),
        ({}, {"log_z": 1.6}, True),
        ({}, {"model": "B"}, True),
        ({}, {"interval": (1.0, 2.0)}, True),
        # a record of uncommitted code gives way to one of committed code
        ({"dirty": True}, {"dirty": False}, True),
        ({"dirty": True}, {"dirty": True}, False),
        ({"dirty": False}, {"dirty": True}, False),
        ({"dirty": None}, {"dirty": False}, False),
        # one that is bound to a processor is kept by others
        ({"bound": True}, {"bound": True, "log_z": 1.6}, True),
        ({"bound": True}, {"bound": True, "log_z": 1.6, "instructions": "AVX2"}, False),
        ({}, {"log_z": 1.6, "instructions": "AVX2"}, True),
        # one that was made from something else says so no longer
        ({"draws": "0.1.0"}, {}, True),
        ({"settings": {"runs": 10}}, {"settings": {"runs": 20}}, True),
        ({"settings": {"runs": 10}}, {"settings": {"runs": 10}}, False),
    ],
    ids=str,
)
def test_file_is_rewritten_only_when_it_must_be(figures, monkeypatch, first, then, rewritten):
    def saved(
        dirty=False,
        instructions="AVX512",
        bound=False,
        draws=records.DRAWS,
        settings=None,
        **values,
    ):
        monkeypatch.setattr(records, "DRAWS", draws)
        monkeypatch.setattr(
            "boltzmann_likelihood.provenance.repository_state", lambda: ("1f0c", dirty)
        )
        monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: instructions)
        save([row(**values)], processor_bound=bound, settings=settings)
        return (figures / "table.json").read_bytes()

    before = saved(**first)
    assert (saved(**then) != before) is rewritten


def test_a_refreshed_record_that_agrees_says_when_it_was_made_again(figures, monkeypatch):
    monkeypatch.setenv("PAPERLIB_REFRESH", "1")
    first = save([row()])
    assert "again" not in read_record(figures / "table.json")["provenance"]
    again = save([row(log_z=1.5 + 5e-7)])["provenance"]
    stored = read_record(figures / "table.json")
    assert stored["rows"] == first["rows"]
    assert stored["provenance"].pop("again")["commit"] == again["commit"]
    assert stored["provenance"] == first["provenance"]
    save([row(log_z=1.6)])
    assert "again" not in read_record(figures / "table.json")["provenance"]


def test_pictures_are_reproducible_and_move_with_their_record(figures, monkeypatch):
    import matplotlib.pyplot as plt

    from boltzmann_companion.plots import use_style

    use_style()

    def picture(height):
        figure, axes = plt.subplots()
        axes.plot([0, height])
        plt.close(figure)
        return figure

    save([row()], figure=picture(1))
    first = {path.name: path.read_bytes() for path in figures.iterdir()}
    assert set(first) == {"table.json", "table.svg", "table.png"}
    monkeypatch.setenv("PAPERLIB_REFRESH", "1")
    save([row()], figure=picture(1))
    for name in ("table.svg", "table.png"):
        assert (figures / name).read_bytes() == first[name]
    monkeypatch.delenv("PAPERLIB_REFRESH")
    save([row()], figure=picture(2))
    assert (figures / "table.svg").read_bytes() == first["table.svg"]
    save([row(log_z=3.0)], figure=picture(2))
    assert (figures / "table.svg").read_bytes() != first["table.svg"]


def test_rows_must_fit_the_columns(figures):
    with pytest.raises(ValueError, match=r"rows: expected the keys .* got sigma"):
        save([row(sigma=1.0)])
    with pytest.raises(ValueError, match="rows: expected numbers"):
        save([row(log_z={1: 2})])
    assert not figures.exists()


@pytest.mark.parametrize("content", ["", "[1]", '{"name": "x"}', '{"name": '])
def test_damaged_record_is_named(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ValueError, match=r"path: .*x\.json"):
        read_record(tmp_path / "x.json")


def table_of(columns, *rows, **options):
    record = {
        "columns": {key: {"label": key} | column for key, column in columns.items()},
        "rows": rows,
        "name": "n",
        "profile": "digits",
        "provenance": {"command": "paperlib reproduce --only 05"},
    }
    return tables.record_table(record, **options)


def test_tables_are_markdown_with_units_and_proper_signs():
    contents = {"a": {"label": "x", "unit": "nats"}}, {"a": -1.234}, {"a": [-math.inf, 1]}
    *table, empty, source = repr(table_of(*contents)).splitlines()
    assert table == ["| x (nats) |", "| --- |", "| −1.23 |", "| (−∞, 1) |"]
    # Without the empty line the source would be a row of the table.
    assert empty == ""
    assert "[figures/digits/n.json](../figures/digits/n.json)" in source
    assert "`paperlib reproduce --only 05`" in source
    assert table_of(*contents, labels={"a": "y"}).heading == ["y (nats)"]


def test_tables_with_significant_digits_leave_settings_and_counts_as_they_are():
    units = {"a": ("", 0), "b": ("nats", 1e-6), "c": ("count", 1), "d": ("count", 1)}
    columns = {key: {"unit": unit, "tolerance": within} for key, (unit, within) in units.items()}
    numbers = {"a": -0.8, "b": -0.04567, "c": 13.0, "d": 94.69}
    others = {"a": 1.0, "b": -3.14e-6, "c": math.inf, "d": None}
    assert table_of(columns, numbers, others, digits=3).rows == [
        ["−0.8", "−0.0457", "13", "94.7"],
        ["1", "$-3.14 \\cdot 10^{-6}$", "∞", "–"],
    ]


# ---- executing chapters


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """A small checkout with one chapter, in which the runner works."""
    monkeypatch.setattr(runner.storage, "repository_root", lambda: tmp_path)
    (tmp_path / "book").mkdir()
    nbformat.write(notebook("print(seed + 1, profile)"), tmp_path / "book" / "01-one.ipynb")
    return tmp_path


@pytest.fixture
def earlier(checkout):
    """The executed copy of the chapter that an earlier run has left."""
    target = runner.executed_path(checkout / "book" / "01-one.ipynb", "digits")
    target.parent.mkdir(parents=True)
    target.write_text("what was there")
    return target


def test_copy_is_executed_and_refresh_stores_its_outputs_without_traces_of_the_run(checkout):
    chapter = checkout / "book" / "02-two.ipynb"
    nbformat.write(notebook("print(seed + 1, profile)", reads=["01-one"]), chapter)
    before = chapter.read_bytes()
    done = nbformat.read(runner.execute_chapter(chapter, "digits"), as_version=4)
    assert chapter.read_bytes() == before
    assert done.cells[-1].outputs[0].text == "2 digits\n"
    # no cell repeats what the chapter's own says
    assert not any("injected-parameters" in c.metadata.get("tags", []) for c in done.cells)
    assert all("papermill" not in cell.metadata for cell in done.cells)
    assert set(done.metadata) == {"kernelspec", "language_info", "paperlib"}
    assert set(done.metadata["paperlib"]) == {"reads", "inputs"}

    assert runner.refresh_stored_outputs([chapter]) == [chapter]
    stored = nbformat.read(chapter, as_version=4)
    assert [cell.source for cell in stored.cells] == [
        'profile = "digits"\nseed = 1',
        "print(seed + 1, profile)",
    ]
    assert stored.cells[-1].outputs[0].text == "2 digits\n"
    assert stored.metadata["paperlib"] == {"reads": ["01-one"]}
    assert runner.refresh_stored_outputs([chapter]) == []
    # what was written meanwhile stays, and outputs of other code are not stored
    stored.cells.append(nbformat.v4.new_markdown_cell("a new sentence"))
    nbformat.write(stored, chapter)
    runner.refresh_stored_outputs([chapter])
    assert "a new sentence" in chapter.read_text()
    chapter.write_text(chapter.read_text().replace("print(seed + 1, profile)", "print(seed)"))
    with pytest.raises(ReproductionError, match="02-two has changed since it was executed"):
        runner.refresh_stored_outputs([chapter])


DRAWING = """
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot([1, 2]);"""
OF_A_FIGURE = {"mystnb": {"figure": {"name": "fig-01-line", "caption": "A line."}}}


def with_figure(chapter, source):
    made = notebook(source)
    made.cells[-1].metadata.update(OF_A_FIGURE)
    nbformat.write(made, chapter)


def test_a_chapter_has_its_pictures_whatever_backend_the_user_has_chosen(checkout, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    chapter = checkout / "book" / "01-one.ipynb"
    with_figure(chapter, DRAWING)
    done = nbformat.read(runner.execute_chapter(chapter, "digits"), as_version=4)
    kinds = [kind for output in done.cells[-1].outputs for kind in output.get("data", {})]
    assert "image/png" in kinds
    assert runner.refresh_stored_outputs([chapter]) == [chapter]


@pytest.mark.parametrize(
    "source",
    [
        f"{DRAWING}\nplt.close(figure)",
        f"{DRAWING}\nplt.close(figure)\nfigure.number",
        f"import matplotlib\nmatplotlib.use('agg'){DRAWING}\nplt.show()",
    ],
)
def test_a_chapter_without_its_pictures_is_neither_executed_nor_stored(checkout, source):
    chapter = checkout / "book" / "01-one.ipynb"
    with_figure(chapter, source)
    message = "01-one: expected a picture of fig-01-line among the outputs, got none"
    with pytest.raises(ReproductionError, match=message):
        runner.execute_chapter(chapter, "digits")
    assert not runner.executed_path(chapter, "digits").exists()
    # a cell that says why has been executed, but is not stored in place of a picture
    with_figure(chapter, "print('there is nothing to draw')")
    before = chapter.read_bytes()
    runner.execute_chapter(chapter, "digits")
    with pytest.raises(ReproductionError, match=f"{message}; nothing of it is stored"):
        runner.refresh_stored_outputs([chapter])
    assert chapter.read_bytes() == before


def test_printed_text_is_stored_in_one_piece():
    pieces = [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")]
    printed = notebook("print()")
    printed.cells[-1].outputs = [
        nbformat.v4.new_output("stream", name=n, text=t) for n, t in pieces
    ]
    stored = runner.clean_notebook(printed).cells[-1].outputs
    assert [(o.name, o.text) for o in stored] == [
        ("stdout", "ab"),
        ("stderr", "c"),
        ("stdout", "d"),
    ]


CAPTION = {"caption": "Errors.", "name": "tab-01-errors"}


@pytest.mark.parametrize(
    ("tags", "source", "folded"),
    [
        ([], "a = 1", set()),
        (["parameters"], "seed = 1", set()),
        (["hide-input", "nbval-check-output"], "print(1)", {"source_hidden"}),
        (["remove-input"], "print(1)", {"source_hidden"}),
        (["hide-output"], "print(1)", {"outputs_hidden"}),
        (["hide-cell"], "print(1)", {"source_hidden", "outputs_hidden"}),
        (["remove-cell"], "print(1)", {"source_hidden", "outputs_hidden"}),
        # what the run gives is open, also where the page folds it
        (["checks", "hide-cell"], "chapter.checks(claims.mean(own))", {"source_hidden"}),
        (["hide-cell", "nbval-check-output"], "print(verdict)", {"source_hidden"}),
        (["table", "hide-cell"], 'chapter.record("errors", rows)', {"source_hidden"}),
        (
            ["table", "hide-cell"],
            'chapter.joint_table(chapter.record("a", rows))',
            {"source_hidden"},
        ),
        # what lies in the clone is folded, also where the page shows it
        (["table", "hide-input"], 'chapter.stored("errors")', {"source_hidden", "outputs_hidden"}),
        (["table"], 'comparison_table("errors")', {"outputs_hidden"}),
        (["nbval-check-output"], 'print(chapter.stored("errors"))', {"outputs_hidden"}),
        (
            ["checks", "hide-cell"],
            'claims.all(chapter.stored("a"))',
            {"source_hidden", "outputs_hidden"},
        ),
    ],
)
def test_jupyter_shows_what_the_run_gives_whatever_a_user_has_folded(tags, source, folded):
    by_hand = notebook(source)
    caption = {"mystnb": {"figure": CAPTION}} if "table" in tags else {}
    by_hand.cells[-1].metadata = {"tags": tags, "jupyter": {"outputs_hidden": False}, **caption}
    cell = runner.clean_notebook(by_hand).cells[-1]
    assert cell.metadata.get("jupyter", {}) == dict.fromkeys(folded, True)


def test_results_of_other_settings_lie_elsewhere_and_name_them(checkout, monkeypatch):
    monkeypatch.delenv("PAPERLIB_FIGURES", raising=False)
    chapter = checkout / "book" / "01-one.ipynb"
    save = """
import os
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.columns import Column
from boltzmann_companion.records import Run
record = Run("01-one", get_profile(profile), seed).save("one", {"a": Column("a")}, [{"a": 1}])
made = record["provenance"]
print(os.environ.get("PAPERLIB_FIGURES"), made["command"], made["seed"], sep="\\n")"""
    nbformat.write(notebook(save), chapter)
    command = "paperlib reproduce --profile digits --only 01-one"
    elsewhere = str(checkout / "_build" / "figures")
    for settings, expected in (
        ({}, [str(checkout / "figures"), command, "1"]),
        ({"seed": 2}, [elsewhere, f"{command} --set seed=2", "2"]),
    ):
        (done,) = runner.execute_chapters([chapter], "digits", settings, report=lambda line: None)
        *before, last = nbformat.read(done, as_version=4).cells
        assert last.outputs[0].text.splitlines() == expected
    assert before[1].metadata["tags"] == ["injected-parameters", "remove-cell"]
    assert SETTINGS not in os.environ


def test_paper_profile_names_the_device_that_chains_walk_on(figures, monkeypatch):
    monkeypatch.setenv(DEVICE, "cuda")
    on_gpu = get_profile("paper")
    small = get_profile("digits")
    assert (on_gpu.device, small.device) == ("cuda", "cpu")
    # a machine that tests run on may have no GPU: what is asked for reaches the estimators
    devices = []
    monkeypatch.setattr(profiles, "kept", lambda run, *arguments: devices.append(run.device))
    path = BaseRatePath(RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)))
    on_gpu.ais(path, [0, 1], 1, 1)
    on_gpu.raise_log_prob(path, torch.zeros(1, 3), [0, 1], 1, 1)
    assert [device.type for device in devices] == ["cuda", "cuda"]
    monkeypatch.setattr(
        records, "binary_images", lambda name: SimpleNamespace(grey=SimpleNamespace(checksum=""))
    )
    made = Run("05-x", on_gpu, 7).save("one", {"a": Column("a")}, [{"a": 1}])["provenance"]
    assert (made["device"], made["command"].endswith(" --device cuda")) == ("cuda", True)
    monkeypatch.delenv(DEVICE)
    assert get_profile("paper").device == "cpu"


# ---- the order of chapters that read each other's records


class Shelf:
    """Chapters without content, `name: names it reads`, and a runner that notes what it starts."""

    def __init__(self, folder, monkeypatch, books):
        self.log = []
        self.running = set()
        self.failing = set()
        self.meet = None
        self._lock = threading.Lock()
        self._runs = itertools.count()
        (folder / "book").mkdir()
        monkeypatch.setattr(runner.storage, "repository_root", lambda: folder)
        monkeypatch.setattr(runner, "_start", lambda arguments, environment: arguments)
        monkeypatch.setattr(runner, "_finish", self._run)
        self.chapters = [folder / "book" / f"{name}.ipynb" for name in books]
        for chapter, others in zip(self.chapters, books.values(), strict=True):
            nbformat.write(notebook(reads=others), chapter)

    def _run(self, arguments):
        chapter, profile, *_ = arguments
        chapter = Path(chapter)
        with self._lock:
            assert not self.running & {other.stem for other in runner.reads(chapter)}
            self.running.add(chapter.stem)
            self.log.append(chapter.stem)
        if self.meet is not None:
            self.meet.wait(60)
        if chapter.stem not in self.failing:
            copy = nbformat.read(chapter, as_version=4)
            made_from = {"inputs": runner._inputs(chapter, profile, {})}
            copy.metadata.setdefault("paperlib", {}).update(made_from)
            copy.metadata["run"] = next(self._runs)  # no two executed copies are alike
            target = runner.executed_path(chapter, profile)
            target.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(copy, target)
        with self._lock:
            self.running.remove(chapter.stem)
        return "it failed" if chapter.stem in self.failing else None

    def execute(self, *names, **options):
        """Names in the order in which they were started."""
        self.log.clear()
        chosen = [chapter for chapter in self.chapters if not names or chapter.stem in names]
        runner.execute_chapters(chosen, "digits", report=lambda line: None, **options)
        return list(self.log)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    return partial(Shelf, tmp_path, monkeypatch)


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_chapter_starts_when_all_that_it_reads_is_done(shelf, jobs):
    books = {"1": ["5"], "2": [], "3": ["2", "4"], "4": ["5"], "5": [], "6": []}
    order = shelf(books).execute(jobs=jobs)
    assert sorted(order) == sorted(books)
    for name, others in books.items():
        assert all(order.index(other) < order.index(name) for other in others)
    if jobs == 1:
        assert order == ["2", "5", "1", "4", "3", "6"]


def test_chapters_that_do_not_read_each_other_run_at_the_same_time(shelf):
    filled = shelf({"1": [], "2": [], "3": ["1"], "4": ["2"]})
    filled.meet = threading.Barrier(2)  # nobody gets on alone
    assert sorted(filled.execute(jobs=2)) == ["1", "2", "3", "4"]


def test_what_is_read_need_not_be_selected(shelf):
    assert shelf({"1": ["2"], "2": []}).execute("1", jobs=1) == ["1"]


def test_resumed_run_leaves_out_what_is_done_but_not_what_reads_a_chapter_executed_since(shelf):
    filled = shelf({"1": [], "2": ["1"], "3": [], "4": ["2"]})
    filled.execute("1", "2", "4", jobs=1)
    for expected in (["3"], []):
        assert filled.execute(jobs=1, resume=True) == expected
    filled.execute("1", jobs=1)
    for expected in (["2", "4"], []):
        assert filled.execute(jobs=1, resume=True) == expected
    assert filled.execute(jobs=1) == ["1", "2", "3", "4"]


def test_resumed_run_executes_what_reads_a_chapter_that_it_executes(shelf):
    filled = shelf({"1": ["4"], "2": [], "3": ["1"], "4": []})
    filled.execute(jobs=1)
    changed = nbformat.read(filled.chapters[3], as_version=4)
    changed.cells.append(nbformat.v4.new_markdown_cell("More."))
    nbformat.write(changed, filled.chapters[3])
    assert filled.execute(jobs=1, resume=True) == ["4", "1", "3"]


def test_nothing_starts_after_a_failure(shelf):
    filled = shelf({"1": [], "2": [], "3": ["1"]})
    filled.failing = {"1"}
    with pytest.raises(ReproductionError, match="it failed"):
        filled.execute(jobs=1)
    assert filled.log == ["1"]
    # with two at a time, the other one is completed
    filled.meet = threading.Barrier(2)
    with pytest.raises(ReproductionError, match="it failed"):
        filled.execute(jobs=2)
    assert sorted(filled.log) == ["1", "2"]


def test_circle_of_chapters_is_named_before_anything_runs(shelf):
    filled = shelf({"1": ["3"], "2": ["1"], "3": ["2"]})
    with pytest.raises(InputError, match=r"reads: expected no circle .*1 -> .* -> "):
        filled.execute(jobs=1)
    assert filled.log == []


def test_chapter_that_is_read_but_not_there_is_named(shelf):
    with pytest.raises(InputError, match=r"reads: expected names of chapters in .*, got '7'"):
        shelf({"1": ["7"]}).execute(jobs=1)


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
KILLED_LATER = "import os; get_ipython().events.register('post_run_cell', lambda _: os._exit(9))"
# The cells of a chapter, and what is said of the first of them.
ENDS = {
    "a cell fails": (
        ["raise RuntimeError('no luck')", "print('never')"],
        "failed with RuntimeError: no luck",
    ),
    "a cell is killed": ([KILLED, "print('never')"], "was running when the kernel"),
    "the last cell is killed": ([KILLED], "was running when the kernel"),
    "killed after the last answer": ([KILLED_LATER], "was running when the kernel"),
}


@pytest.mark.parametrize(("sources", "message"), ENDS.values(), ids=ENDS)
def test_cell_that_fails_or_kills_its_kernel_is_named_and_earlier_output_kept(
    checkout, earlier, sources, message
):
    chapter = checkout / "book" / "01-one.ipynb"
    nbformat.write(notebook("x = 1", *sources), chapter)
    with pytest.raises(ReproductionError, match=rf"01-one: cell \d+ {message}") as caught:
        runner.execute_chapter(chapter, "digits")
    assert f"the cell begins: {sources[0]}" in str(caught.value)
    assert earlier.read_text() == "what was there"
    assert sorted(path.name for path in earlier.parent.iterdir()) == [
        "01-one.failed.ipynb",
        "01-one.ipynb",
    ]


def test_chapter_whose_process_is_killed_counts_as_failed():
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert runner._finish(process) == "its process ended with status -9"


def test_kernel_is_of_this_interpreter_and_its_sockets_are_in_a_short_folder(checkout, monkeypatch):
    """Whatever is called python3, and however long the path of temporary files is."""
    long = checkout / ("project-scratch-" * 5)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    for variable in ("JUPYTER_PATH", "JUPYTER_DATA_DIR"):
        spec = checkout / variable / "kernels" / "python3" / "kernel.json"
        spec.parent.mkdir(parents=True)
        other = {"argv": ["/bin/false", "{connection_file}"], "display_name": "x", "language": "x"}
        spec.write_text(json.dumps(other))
        monkeypatch.setenv(variable, str(checkout / variable))
    chapter = checkout / "book" / "01-one.ipynb"
    nbformat.write(notebook("import sys; print(sys.executable)"), chapter)
    copy = nbformat.read(runner.execute_chapter(chapter, "digits"), as_version=4)
    assert copy.cells[-1].outputs[0].text == f"{sys.executable}\n"
    assert copy.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(
    ("moment", "code"),
    [
        ("tempfile.mkstemp", errno.EACCES),
        ("tempfile.mkdtemp", errno.EROFS),
        ("os.replace", errno.ENOSPC),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_earlier_output_kept(
    checkout, earlier, monkeypatch, code, moment
):
    chapter = checkout / "book" / "01-one.ipynb"

    def refuse(*arguments, **options):
        raise OSError(code, os.strerror(code), str(earlier))

    monkeypatch.setattr(moment, refuse)
    with pytest.raises(ReproductionError, match="01-one: expected to be able to write") as caught:
        runner.execute_chapter(chapter, "digits")
    assert os.strerror(code) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert earlier.read_text() == "what was there"


@pytest.mark.parametrize("use", ["refresh", "book"])
def test_a_copy_with_parameters_of_its_own_is_not_published(checkout, command, use):
    (checkout / "figures").mkdir()
    for name in ("_toc.yml", "_config.yml", "book/glossary.md"):
        shutil.copy(ROOT / name, checkout / name)
    chapter = checkout / "book" / "01-one.ipynb"
    code, _, err = command(use)
    assert code == 1
    assert "01-one has not been executed; run `paperlib reproduce" in err
    before = chapter.read_bytes()
    runner.execute_chapter(chapter, "digits", {"seed": 7})
    code, _, err = command(use)
    assert (code, len(err.splitlines())) == (1, 1)
    assert "01-one was last executed with seed=7, which are not the book's parameters" in err
    assert chapter.read_bytes() == before
    assert not runner.is_executed(chapter, "digits")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("chains=3", "set: expected parameters of 01-one (profile, seed, rate, most), got chains"),
        ("profile='paper'", "set: expected --profile paper, got --set profile=..."),
        ("seed='abc'", "set: expected a whole number for seed of 01-one, got 'abc'"),
        ("seed=1.5", "set: expected a whole number for seed of 01-one, got 1.5"),
        ("seed=None", "set: expected a whole number for seed of 01-one, got None"),
        ("rate='x'", "set: expected a number for rate of 01-one, got 'x'"),
        ("most='x'", "set: expected numbers or None for most of 01-one, got 'x'"),
        ("rate=1", None),
        ("most=3", None),
    ],
)
def test_parameters_are_of_the_chapters_kind(checkout, setting, message):
    chapter = checkout / "book" / "01-one.ipynb"
    cell = 'profile = "digits"\nseed = 1_000  # a comment\nrate = 0.5\nmost = None'
    nbformat.write(notebook(parameters=cell), chapter)
    name, _, value = setting.partition("=")
    parameters = {name: ast.literal_eval(value)}
    if message is None:
        runner.check_parameters(chapter, parameters)
        return
    with pytest.raises(InputError, match=re.escape(message)):
        runner.execute_chapters([chapter], "digits", parameters, report=pytest.fail)
    with pytest.raises(InputError, match=re.escape(message)):
        runner.execute_chapter(chapter, "digits", parameters)
    assert not (checkout / "_build").exists()


# In a process of its own, with the folder as its argument.
IN_CHECKOUT = """
import sys
from pathlib import Path
from boltzmann_companion.build import runner
root = Path(sys.argv[1])
runner.storage.repository_root = lambda: root
"""


def test_checkout_with_an_accent_where_ascii_is_forced(tmp_path):
    root = tmp_path / "dépôt"
    (root / "book").mkdir(parents=True)
    nbformat.write(notebook("print(seed + 1)"), root / "book" / "01-one.ipynb")
    script = f"{IN_CHECKOUT}print(*runner.execute_chapters(runner.chapters(), 'digits'))"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = subprocess.run(
        [sys.executable, "-c", script, root],
        env=os.environ | ascii_only | {"PYTHONIOENCODING": "utf-8:backslashreplace"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    copy = root / "_build" / "executed" / "digits" / "01-one.ipynb"
    assert nbformat.read(copy, as_version=4).cells[-1].outputs[0].text == "2\n"


def test_models_are_listed(command):
    assert "mnist-cd1-20" in command("models")[1]


def test_training_command_stores_a_model_with_its_recipe(command, tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    short = replace(RECIPES["digits-cd1-12"].training, epochs=10)
    monkeypatch.setitem(RECIPES, "digits-cd1-12", replace(RECIPES["digits-cd1-12"], training=short))
    path = tmp_path / "model.safetensors"
    code, _, err = command("train", "digits-cd1-12", "--output", str(path))
    assert code == 0, err
    with safe_open(path, "pt") as stored:
        metadata = stored.metadata()
        assert stored.get_tensor("weights").dtype == torch.float16
    assert json.loads(metadata["recipe"])["num_hidden"] == 12
    assert {"dataset_sha256", "seed", "commit", "binarization_seed"} <= set(metadata)
    assert list((tmp_path / "cache" / "checkpoints").iterdir()) == []
