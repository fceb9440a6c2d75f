"""The helper of the chapters: claims bind with the book's parameters, and else are findings."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell
from notebooks import (
    EACH_NOTEBOOK,
    NOTEBOOKS,
    ROOT,
    cells_of,
    nodes_of,
    notebook,
    parameters_of,
)

from boltzmann_companion import chapter as module
from boltzmann_companion import jupyter, records
from boltzmann_companion.chapter import open_chapter, read_settings
from boltzmann_companion.claims.checks import Check
from boltzmann_companion.columns import Column
from boltzmann_companion.limits import EVERYWHERE, LIMITS
from boltzmann_companion.profiles import Profile, get_profile
from boltzmann_companion.studies.bracket_rows import entries_of
from boltzmann_companion.studies.bracket_tables import TABLES
from boltzmann_companion.tables import Record
from paperlib.datasets import BinaryImages, binary_images
from paperlib.errors import InputError
from paperlib.threads import step_bar

PARAMETERS = {"profile": "digits", "seed": 7, "chains": 100}


@pytest.fixture(autouse=True)
def figures(monkeypatch, tmp_path):
    monkeypatch.setenv("PAPERLIB_FIGURES", str(tmp_path / "figures"))
    # a chapter of the papers' size is opened without MNIST
    monkeypatch.setattr(Profile, "images", lambda size: binary_images("digits"))
    return tmp_path / "figures"


@pytest.fixture(autouse=True)
def committed_parameters(monkeypatch):
    """The parameters of the chapter opened here, as its committed notebook would have them."""
    parameters = dict(PARAMETERS)
    committed = module.book_parameters
    monkeypatch.setattr(
        module,
        "book_parameters",
        lambda name: (parameters, True) if name == "05-x" else committed(name),
    )
    return parameters


def opened(**changes):
    return open_chapter("05-x", PARAMETERS | changes)


@pytest.mark.parametrize(
    ("changes", "holds", "answer"),
    [
        ({}, True, "yes"),
        ({"chains": 3}, True, "yes (with your settings)"),
        ({"chains": 3}, False, "no (with your settings)"),
        ({"seed": 8}, None, "cannot be told (with your settings)"),
    ],
    ids=str,
)
def test_claim_is_printed_with_its_answer_and_says_whose_settings_it_is_about(
    changes, holds, answer, capsys
):
    opened(**changes).check("enough chains", holds)
    assert capsys.readouterr().out == f"enough chains: {answer}\n"


def test_claim_about_stored_records_is_about_no_settings(capsys):
    opened(chains=3).checks([Check("enough chains", False, of_stored=True)])
    assert capsys.readouterr().out == "enough chains: no\n"


@pytest.mark.parametrize("profile", ["digits", "paper"])
@pytest.mark.parametrize(("holds", "answer"), [(False, "no"), (None, "cannot be told")])
def test_claim_that_does_not_come_out_with_the_given_parameters_stops_the_run(
    profile, holds, answer, capsys
):
    chapter = opened(profile=profile)
    with pytest.raises(AssertionError, match="enough chains: something else"):
        chapter.check("enough chains", holds)
    assert capsys.readouterr().out == f"enough chains: {answer}\n"


def test_reader_may_let_the_run_go_on_after_a_change_of_the_code(capsys):
    chapter = opened()
    chapter.as_given = False
    chapter.check("enough chains", False)
    assert capsys.readouterr().out == "enough chains: no (with your settings)\n"


def chapter_of_book(name, **changes):
    """A chapter with the parameters of its notebook, but for changes."""
    return open_chapter(name, parameters_of(ROOT / "book" / f"{name}.ipynb") | changes)


def test_claim_about_another_setting_is_only_reported(capsys):
    chapter = chapter_of_book("05-exact-partition-functions")
    with pytest.raises(AssertionError, match="enough chains"):
        chapter.check("enough chains", False)
    chapter.settings["runs"] = [10]
    chapter.check("enough chains", False)
    assert capsys.readouterr().out.splitlines()[-1] == "enough chains: no (with your settings)"


def test_a_later_assignment_to_a_parameter_is_the_chapters_own():
    parameters = dict(PARAMETERS)
    chapter = open_chapter("05-x", parameters)
    parameters["chains"] = 50
    assert chapter.as_given


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"profile": "imagenet"}, "profile: expected one of digits, paper, got 'imagenet'"),
        ({"profile": 8}, "profile: expected text, got 8; the book has 'digits'"),
        ({"chains": "ten"}, "chains: expected a whole number, got 'ten'; the book has 100"),
        ({"chains": 0.5}, "chains: expected a whole number, got 0.5; the book has 100"),
        ({"chains": 0}, "chains: expected a number above 0, got 0; the book has 100"),
        ({"seed": None}, "seed: expected a whole number, got None; the book has 7"),
    ],
    ids=str,
)
def test_a_parameter_that_cannot_be_is_refused_with_what_may_be(changes, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        opened(**changes)
    assert opened(seed=0, chains=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1_000, r"a list of numbers, got 1000; the book has \[2000, 8000\]"),
        ([1_000, "many"], r"numbers above 0, got \[1000, 'many'\]"),
        ("many", "a list of numbers, got 'many'"),
        ({"digits": [1_000]}, r"a value for each of \['digits', 'paper'\], got"),
    ],
)
def test_a_parameter_with_a_value_for_each_profile_takes_one_like_these(value, message):
    def study(budgets):
        return chapter_of_book("17-which-estimator-tells-the-truth", budgets=budgets)

    with pytest.raises(InputError, match=f"budgets: expected {message}"):
        study(value)
    assert not study([1_000]).as_given
    assert not study({"digits": [1_000], "paper": [10_000, 100_000]}).as_given
    # what the book has at this size
    assert study([2_000, 8_000]).as_given
    assert study({"digits": [2_000, 8_000], "paper": [1_000]}).as_given


def test_a_parameter_that_is_none_in_the_book_takes_numbers():
    def study(repeats):
        return chapter_of_book("16-tempering-and-bennetts-ratio", repeats=repeats)

    with pytest.raises(InputError, match="repeats: expected numbers or None, got 'many'"):
        study("many")
    assert study(None).as_given
    assert not study(3).as_given


@pytest.fixture
def notebook_in(tmp_path, monkeypatch):
    """A chapter in the book of a checkout; returns a function that writes its parameters."""

    def write(parameters):
        path = tmp_path / "book" / "01-one.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook(parameters=parameters), path)

    monkeypatch.setattr("paperlib.storage.repository_root", lambda: tmp_path)
    return write


def test_the_parameters_of_the_book_are_those_that_are_committed(notebook_in, tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert module.book_parameters("01-one") == ({}, False)
    notebook_in('profile = "digits"\nseed = 1\nchains = 100  # of AIS\nold = 2')
    parameters = {"profile": "digits", "seed": 1, "chains": 100, "old": 2}
    assert module.book_parameters("01-one") == (parameters, False)
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    assert module.book_parameters("01-one") == (parameters, True)
    # Jupyter has saved what a reader changed, and somebody is about to rename one
    notebook_in('profile = "digits"\nseed = 1\nchains = 3\nnew = 2')
    parameters = {"profile": "digits", "seed": 1, "chains": 100, "new": 2}
    assert module.book_parameters("01-one") == (parameters, True)


@pytest.mark.parametrize("committed", [True, False])
def test_a_notebook_that_is_not_committed_may_have_been_changed_so_that_its_claims_do_not_stop_it(
    committed, monkeypatch, capsys
):
    monkeypatch.setattr(module, "book_parameters", lambda name: (dict(PARAMETERS), committed))
    chapter = opened()
    if committed:
        with pytest.raises(AssertionError, match="enough chains"):
            chapter.check("enough chains", False)
    else:
        chapter.check("enough chains", False)
    assert capsys.readouterr().out == "enough chains: no\n"


def test_a_parameter_whose_cell_was_not_run_is_named():
    with pytest.raises(
        InputError, match="chains: expected a parameter, got none; run the cell of the p"
    ):
        open_chapter("05-x", {"profile": "digits", "seed": 7})


def test_a_profile_without_its_images_is_refused_before_anything_runs(monkeypatch):
    def missing(size):
        raise InputError("MNIST: expected a file")

    monkeypatch.setattr(Profile, "images", missing)
    with pytest.raises(
        InputError, match=r'^MNIST: expected a file; without .* profile = "digits"$'
    ):
        opened(profile="paper")


def _claims(rows):
    yield "the first is one", rows[0] == 1
    yield "the second is two", rows[1] == 2


def test_claims_about_rows_that_are_not_there_cannot_be_told(capsys):
    opened(chains=3).checks(_claims([1]))
    assert capsys.readouterr().out.splitlines() == [
        "the first is one: yes (with your settings)",
        "the claims that follow here: cannot be told (with your settings)",
    ]
    with pytest.raises(AssertionError, match=r"told here \(IndexError: .*`chapter.as_given = Fa"):
        opened().checks(_claims([1]))


@pytest.mark.parametrize(("profile", "left"), [("digits", 1), ("paper", 2)])
def test_torch_has_one_thread_on_digits(profile, left, threads):
    threads(2)
    opened(profile=profile)
    assert torch.get_num_threads() == left


def test_saved_record_is_that_of_the_chapter(figures):
    record = opened().record("one", [{"steps": 1}])
    assert json.loads((figures / "digits" / "one.json").read_text()) == record
    assert record["provenance"]["seed"] == 7
    assert record["provenance"]["command"].endswith("--only 05-x")


def test_saved_figure_is_shown_once_and_names_its_record(figures, monkeypatch):
    shown = []
    monkeypatch.setattr(
        module, "display", lambda figure, metadata: shown.append((figure, metadata))
    )
    figure, _ = plt.subplots()
    for name in ("one", "two"):
        opened().record(name, [{"steps": 1}], figure=figure)
        assert (figures / "digits" / f"{name}.svg").is_file()
    assert shown == [(figure, {"paperlib": {"record": "one"}})]
    assert not plt.fignum_exists(figure.number)


def test_stored_record_shows_itself_or_a_sentence():
    stored = opened().stored("sm2008-table-1")
    assert stored["rows"] == records.load_result("sm2008-table-1", "paper")["rows"]
    assert stored.view().heading[:2] == ["model", "true $\\ln Z$ (nats)"]
    assert stored._repr_markdown_() == repr(stored) == repr(stored.view())
    with pytest.raises(InputError, match=r"view: expected one of sm2008-table-1 .*, got 'short'"):
        stored.view("short")
    missing = opened().stored("no-such")
    assert "`no-such` has not been computed" in missing._repr_markdown_()
    for ask in (lambda: missing["rows"], lambda: missing.only(steps=1), missing.view):
        with pytest.raises(InputError, match=r"`no-such` has not been computed .*make paper"):
            ask()


def test_views_of_a_record_are_those_of_columns_yaml():
    rounded = opened().stored("tempering-seconds").only(model="CD25(500)", estimator="AIS")
    (row,) = rounded["rows"]
    assert f"| {row['tenth']:.0f} |" in rounded._repr_markdown_()  # two digits, of tens of seconds
    assert 10 < row["tenth"] < 99
    both = opened().stored("tempering-brackets")
    assert both.view("averages").heading == both.view().heading != both.view("log_z").heading
    turned = opened().stored("raise-own-weights").view(transpose=True)
    assert [turned.heading[0], turned.rows[1][0]] == ["model", "CSL (nats)"]


def test_view_without_a_list_leaves_out_columns_that_no_row_fills():
    stored = opened().stored("raise-figure-5")
    emptied = stored.only([row | {"ais": None} for row in stored["rows"]])
    assert "AIS (nats)" in stored.view().heading
    assert "AIS (nats)" not in emptied.view().heading


def test_joint_table_has_the_rows_of_this_run_above_the_stored_ones():
    record = Record(records.load_result("dbm-control-variate", "paper"), profile="digits")
    record["rows"] = [record["rows"][0] | {"model": "mine"}]
    table = opened().joint_table(record, model="Omniglot DBM")
    assert [row[0] for row in table.rows] == ["mine", "Omniglot DBM"]
    assert table.source.count("dbm-control-variate.json") == 4  # text and address, of either record
    assert len(opened().joint_table(record).rows) == 3
    # at the papers' size, and without a stored record, there is nothing to set below
    for alone in (record | {"profile": "paper"}, record | {"name": "no-such"}):
        assert [row[0] for row in opened().joint_table(Record(alone)).rows] == ["mine"]


def test_settings_are_those_of_the_profile_and_show_both():
    for profile, runs in (("digits", 10), ("paper", 10_000)):
        settings = chapter_of_book("05-exact-partition-functions", profile=profile).settings
        assert runs in (settings["runs"][0], settings["runs"][-1])
        shown = settings._repr_markdown_()
        assert "| `evaluate_every` | `10` | `20` |" in shown
        assert "settings/05-exact-partition-functions.yaml" in shown
    assert opened().settings == {}
    mixed = read_settings("06-full-size-rbms", "digits")
    assert "trained_anew" in mixed
    assert (
        "| `trained_anew` | `['digits-cd1-50', 'digits-cd3-50']` | – |" in mixed._repr_markdown_()
    )


@pytest.fixture
def book(monkeypatch):
    """Record `a-table` as in the book, and what a chapter prints that computed another log_z.

    The latter is a function.
    """
    stored = {"a-table": opened().record("a-table", [{"model": "tiny", "log_z": 1.0, "steps": 10}])}
    monkeypatch.setattr(module, "load_result", lambda name, profile: stored.get(name))
    return stored


def test_numbers_are_compared_with_those_of_the_book(book, capsys):
    def printed(log_z=1.0, name="a-table", **changes):
        chapter = opened(**changes)
        chapter.record(name, [{"model": "tiny", "log_z": log_z, "steps": 10}])
        chapter.compare()
        return capsys.readouterr().out.splitlines()

    assert printed() == ["1 records with 3 values, all as in the book"]
    hint, moved = printed(1.05)
    assert moved == "a-table, tiny, ln Z: 1.0000 -> 1.0500 (within 1e-6)"
    assert "`make refresh`" in hint
    assert "CHANGELOG.md" in hint
    assert printed(name="new")[1] == "new: is not among the records of the book"
    (line,) = printed(1.05, chains=3)
    assert line.startswith("with your settings")


# ---- where results go


STATE = ["git", "status", "--porcelain", "--untracked-files=all", "--", "figures", "book"]


@pytest.mark.parametrize("inside", ["", "book", None], ids=["checkout", "book", "elsewhere"])
def test_results_of_a_notebook_stay_beside_it_and_leave_the_checkout_alone(
    monkeypatch, tmp_path, inside
):
    monkeypatch.delenv("PAPERLIB_FIGURES")
    monkeypatch.chdir(tmp_path if inside is None else ROOT / inside)
    before = subprocess.run(STATE, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # the name of a committed record, which must not be overwritten
    opened().record("sm2008-table-1", [{"model": "one", "test": 2}])
    after = subprocess.run(STATE, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert after == before
    home = tmp_path if inside is None else ROOT / "_build"
    written = home / "figures" / "digits" / "sm2008-table-1.json"
    assert json.loads(written.read_text())["rows"] == [{"model": "one", "test": 2}]
    written.unlink()


def test_results_in_another_clone_than_the_installed_one_stay_in_that_clone(monkeypatch, tmp_path):
    monkeypatch.delenv("PAPERLIB_FIGURES")
    (tmp_path / "book").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "published.csv").touch()
    (tmp_path / "_toc.yml").touch()
    monkeypatch.chdir(tmp_path / "book")
    assert records.results_folder("digits") == tmp_path / "_build" / "figures" / "digits"


# ---- a run with settings of one's own


@pytest.mark.parametrize(
    ("changes", "folder", "options"),
    [
        ({"seed": 8}, "seed=8", "--set seed=8"),
        ({"seed": 8, "chains": 3}, "chains=3,seed=8", "--set seed=8 --set chains=3"),
    ],
    ids=str,
)
def test_a_record_of_ones_own_has_a_folder_and_the_command_that_makes_it_again(
    figures, changes, folder, options
):
    opened().record("one", [{"steps": 1}])
    saved = opened(**changes).record("one", [{"steps": 2}])
    assert saved["provenance"]["command"].endswith(f"--only 05-x {options}")
    assert saved["provenance"]["own"] == changes
    written = [
        json.loads((path / "one.json").read_text())
        for path in (figures / "digits", figures / "digits" / "own" / folder)
    ]
    assert [record["rows"][0]["steps"] for record in written] == [1, 2]
    assert "own" not in written[0]["provenance"]


def test_below_a_table_of_ones_own_it_says_so_and_leads_to_its_file(figures, monkeypatch):
    monkeypatch.chdir(figures.parent)
    for seed in (8, 9):
        shown = repr(opened(seed=seed).record("one", [{"steps": seed}]))
        assert f"**With your settings**, `seed = {seed}`" in shown
        assert f"--only 05-x --set seed={seed}`" in shown
        (address,) = re.findall(r"\]\((.*?)\)", shown)
        assert json.loads(Path(unquote(address)).read_text())["rows"] == [{"steps": seed}]
    assert "your settings" not in repr(opened().record("one", [{"steps": 1}]))


def test_below_a_figure_of_ones_own_it_says_so(monkeypatch):
    shown = []
    monkeypatch.setattr(module, "display", lambda what, **options: shown.append(what))
    for changes in ({}, {"chains": 3}):
        figure, _ = plt.subplots()
        opened(**changes).record("one", [{"steps": 1}], figure=figure)
    (text,) = [what.data for what in shown if hasattr(what, "data")]
    assert "**With your settings**, `chains = 3`" in text


def test_a_changed_setting_has_a_folder_and_a_remark_since_no_option_sets_it(figures):
    chapter = chapter_of_book("05-exact-partition-functions")
    chapter.settings["runs"].append(3_000)
    chapter.settings["runs"] = chapter.settings["runs"][-2:]
    record = chapter.record("one", [{"steps": 1}])
    assert record["provenance"]["own"] == {"runs": [1_000, 3_000]}
    assert record["provenance"]["command"].endswith('# with settings["runs"] = [1000, 3000]')
    (folder,) = (figures / "digits" / "own").iterdir()
    assert (folder / "one.json").is_file()


def test_settings_have_readable_folders_that_differ():
    values = ({"a": 1}, {"a": [1, 2]}, {"a": [1, 3]}, {"a": [12]}, {"a": "1/2"}, {"a": "x" * 500})
    names = [records.results_folder("digits", settings).name for settings in values]
    assert len(set(names)) == len(values)
    assert names[0] == "a=1"
    assert all(re.fullmatch(r"[\w=.,-]{1,80}", name) for name in names)


@pytest.mark.parametrize(
    ("chapter", "changes", "message"),
    [
        ("16-tempering-and-bennetts-ratio", {"repeats": 1}, "repeats: expected at least 2"),
        ("16-tempering-and-bennetts-ratio", {"max_chain_steps": 100}, "at least 2000, the small"),
        ("04-importance-sampling-and-ais", {"repetitions": 1}, "repetitions: expected at least 2"),
        ("06-full-size-rbms", {"schedule_fraction": 2.0}, "schedule_fraction: expected at most 1"),
        ("05-exact-partition-functions", {"num_chains": 1}, "num_chains: expected at least 2"),
        ("06-full-size-rbms", {"num_chains": 1}, "num_chains: expected at least 2"),
        ("06-full-size-rbms", {"max_runs": 9}, "max_runs: expected at least 10"),
        ("09-control-variates", {"num_images": 1}, "num_images: expected from 10 to 358"),
        ("09-control-variates", {"num_images": 359}, "num_images: expected from 10 to 358"),
        ("10-deep-boltzmann-machines", {"max_k": 9}, "max_k: expected at least 10"),
        ("10-deep-boltzmann-machines", {"test_images": 5000}, "test_images: expected at most 359"),
    ],
)
def test_a_parameter_with_which_a_chapter_cannot_go_on_is_refused(chapter, changes, message):
    with pytest.raises(InputError, match=message):
        chapter_of_book(chapter, **changes)


@pytest.mark.parametrize(
    ("chapter", "changes"),
    [
        ("16-tempering-and-bennetts-ratio", {"repeats": 2, "max_chain_steps": 2_000}),
        ("04-importance-sampling-and-ais", {"repetitions": 2}),
        ("06-full-size-rbms", {"schedule_fraction": 1.0, "num_chains": 2, "max_runs": 10}),
        ("09-control-variates", {"num_images": 10}),
        ("10-deep-boltzmann-machines", {"max_k": 10, "test_images": 359}),
    ],
)
def test_the_least_with_which_it_can_is_not(chapter, changes):
    assert not chapter_of_book(chapter, **changes).as_given


def test_every_limit_is_of_a_parameter_that_a_chapter_has():
    """Otherwise a parameter that is renamed would lose its limit."""
    parameters = {path.stem: set(parameters_of(path)) for path in NOTEBOOKS}
    for name, limits in LIMITS.items():
        assert set(limits) <= parameters[name]
    assert set(EVERYWHERE) <= set.union(*parameters.values())


def test_an_open_notebook_shows_progress_and_one_that_is_executed_does_not(monkeypatch, capsys):
    for asks in (False, True):
        shell = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=asks))
        monkeypatch.setattr("IPython.get_ipython", lambda shell=shell: shell)
        with step_bar(2, "runs", None) as bar:
            assert bar.disable is not asks
            assert bar.disable or (bar.fp is not sys.stderr and not bar.leave)
    capsys.readouterr()


def test_below_numbers_that_depend_on_the_processor_it_is_named():
    bound = opened().record("one", [{"steps": 1}], processor_bound=True)
    shown = repr(bound)
    assert f"computed on {bound['provenance']['processor']}, " in shown
    assert "computed on" not in repr(opened().record("one", [{"steps": 1}]))


# ---- images of one's own


@pytest.fixture
def entry():
    return next(
        iter(entries_of(get_profile("digits"), TABLES["digits"]["raise-table-1"], 1).values())
    )


def test_assignment_says_what_to_write_instead(entry):
    for holder, name, advice in (
        (entry, "images", r"entries\[name\] = dataclasses\.replace\("),
        (entry.images, "test", r"images = dataclasses\.replace\("),
        (get_profile("digits"), "images", r"replace\(size\.images\(\), test="),
    ):
        with pytest.raises(AttributeError, match=advice):
            setattr(holder, name, None)


@pytest.mark.parametrize("form", [torch.Tensor.numpy, torch.Tensor.bool, torch.Tensor.double])
def test_own_images_may_have_any_type(entry, form):
    mine = replace(entry.images, test=form(entry.images.test[:30]))
    changed = replace(entry, images=mine, cases=range(20))
    assert torch.equal(changed.log_p, entry.log_p[:30])


def test_own_images_that_do_not_fit_are_refused_in_words(entry):
    few = replace(entry.images, test=entry.images.test[:10])
    with pytest.raises(InputError, match=r"choose others with cases=torch\.arange\(10\)"):
        replace(entry, images=few)
    with pytest.raises(InputError, match="cases: expected two test images or more, got 1"):
        replace(entry, cases=[0])
    for test, message in (
        (entry.images.grey.test, "test: expected only 0 and 1"),
        (torch.ones(30, 8, 8), r"got shape \[30, 8, 8\]; test\.flatten\(1\) makes rows"),
        (torch.ones(30, 784), r"test: expected shape \[any, 64\], got \[30, 784\]"),
    ):
        with pytest.raises(InputError, match=message):
            replace(entry.images, test=test)
    others = BinaryImages(torch.zeros(5, 784), torch.zeros(30, 784), entry.images.grey)
    with pytest.raises(InputError, match=r"images.test: expected shape \[any, 64\]"):
        replace(entry, images=others, cases=range(20))


# ---- every notebook


@EACH_NOTEBOOK
def test_chapter_is_opened_with_its_parameters_and_ends_with_its_numbers(path):
    parameters = parameters_of(path)
    assert isinstance(parameters["seed"], int)
    assert parameters["profile"] == "digits"
    calls = [ast.unparse(node) for node in nodes_of(path) if isinstance(node, ast.Call)]
    assert calls.count(f"open_chapter('{path.stem}', globals())") == 1
    assert sum(call.startswith("open_chapter(") for call in calls) == 1
    if any(call.startswith("chapter.record(") for call in calls):
        last = cells_of(path)[-1]
        assert last.source == "chapter.compare()"
        assert "nbval-check-output" in last.metadata["tags"]
        assert last.outputs[0].text.rstrip().endswith("all as in the book")


@EACH_NOTEBOOK
def test_no_parameter_is_also_a_setting(path):
    assert not parameters_of(path).keys() & read_settings(path.stem, "paper").both.keys()


def test_a_number_that_is_none_is_refused_in_words():
    """For example the standard deviation of a single repetition."""
    run = records.Run("05-x", get_profile("digits"), 7)
    with pytest.raises(InputError, match="got nan; a spread, such as"):
        run.save("one", {"a": Column("a")}, [{"a": float("nan")}])


def test_jupyterlab_shows_the_caption_of_what_a_cell_has_made(monkeypatch):
    """It sends the cell's metadata with the code; other clients send none."""
    shown = []
    monkeypatch.setattr(jupyter, "display", lambda text: shown.append(text.data))

    def after(source="1", **properties):
        info = ExecutionInfo(source, False, False, True, "id", cell_meta=properties)
        jupyter._say_stored(info)
        jupyter._show_caption(ExecutionResult(info))

    after(mystnb={"figure": {"caption": "Two chains.", "name": "fig-01-chains"}})
    after(mystnb={"figure": {"caption": "Their means.", "name": "tab-01-means"}})
    after(tags=["hide-input"])
    after()
    assert shown == [
        "**Figure fig-01-chains.** Two chains.",
        "**Table tab-01-means.** Their means.",
    ]
    shown.clear()
    monkeypatch.setitem(jupyter._OWN_PARAMETERS, "chains", 3)
    after(mystnb={"figure": {"caption": "Two chains.", "name": "fig-01-chains"}})
    assert shown == ["**Figure fig-01-chains.** Two chains. **With your settings**, `chains = 3`."]


@pytest.fixture
def shell(monkeypatch):
    """The shell of a notebook, which collects its errors: kind, message and traceback."""
    shell = InteractiveShell()
    shell.shown = []
    monkeypatch.setattr(
        shell,
        "_showtraceback",
        lambda kind, error, lines: shell.shown.append(
            (kind.__name__, str(error), re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines)))
        ),
    )
    monkeypatch.setattr(jupyter, "get_ipython", lambda: shell)
    return shell


def test_an_opened_chapter_shows_captions_once(shell):
    opened()
    opened()
    assert shell.events.callbacks["post_run_cell"].count(jupyter._show_caption) == 1


def test_an_error_that_explains_itself_is_shown_with_the_notebooks_own_lines(shell):
    opened(chains=3)
    shell.push({"refuse": lambda: get_profile("imagenet")})
    shell.run_cell("def mine():\n    return refuse()\n\n\nmine()")
    expected = (
        "profile: expected one of digits, paper, got 'imagenet' (your parameters: chains = 3)"
    )
    ((kind, message, traceback),) = shell.shown
    assert (kind, message) == ("InputError", expected)
    assert "return refuse()" in traceback
    assert "profiles.py" not in traceback
    shell.run_line_magic("tb", "")
    assert "profiles.py" in shell.shown[-1][2]


def _interrupted():
    raise KeyboardInterrupt


def test_an_interrupted_run_is_shown_in_a_few_lines(shell):
    opened()
    shell.push({"interrupted": _interrupted})
    shell.run_cell("interrupted()")
    ((kind, _, traceback),) = shell.shown
    assert kind == "KeyboardInterrupt"
    assert "interrupted()" in traceback
    assert "_interrupted" not in traceback


def _faulty():
    return no_such_name  # noqa: F821


def test_a_cell_that_was_not_run_is_asked_for_and_a_fault_of_the_library_is_shown_in_full(shell):
    opened()
    shell.run_cell("print(no_such_name)")
    message = "name 'no_such_name' is not defined; run the cells above this one first, or look for"
    assert shell.shown[-1][1].startswith(message)
    shell.push({"faulty": _faulty})
    shell.run_cell("faulty()")
    assert shell.shown[-1][1] == "name 'no_such_name' is not defined"
    assert "in _faulty()" in shell.shown[-1][2]
