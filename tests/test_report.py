"""The reproduction report: every published number once, with the verdict that its criterion gives."""

import functools
import math
import re
from dataclasses import replace

import pytest
from notebooks import NOTEBOOKS, cells_of, prose_of

from boltzmann_companion.claims.claims import CLAIMS, OUTCOMES, start_of
from boltzmann_companion.claims.report import (
    Report,
    bracket_table,
    claim_findings,
    claim_table,
    comparison_rows,
    comparison_table,
    counts,
    criteria_table,
    report_rows,
    rests_on,
)
from boltzmann_companion.claims.verdicts import VERDICTS, Judgement, deciding, judge, used_setting
from boltzmann_companion.published import Cell, Criterion, load_published
from boltzmann_companion.records import load_result
from boltzmann_companion.tables import cell_std_error, difference

ENTRIES = load_published()
ROWS = report_rows()
BY_ID = {row.entry.id: row for row in ROWS}


def test_every_published_number_is_there_once():
    assert [row.entry.id for row in ROWS] == [entry.id for entry in load_published()]
    assert sum(sum(verdicts.values()) for verdicts in counts(ROWS).values()) == len(ROWS)


def test_every_verdict_is_one_of_the_list_and_belongs_to_its_criterion():
    allowed = {
        "same-weights": {"agrees", "differs", "no estimate", "not run"},
        "same-recipe": {
            "typical",
            "typical at some lengths",
            "not typical",
            "says nothing",
            "no estimate",
            "not run",
        },
        "claim": set(OUTCOMES),
        "other-data": {"other data"},
        "setting": {"setting", "setting, ours differs"},
        "not-judged": {"not judged"},
    }
    for row in ROWS:
        assert row.judgement.verdict in VERDICTS
        assert row.judgement.verdict in allowed[row.entry.criterion.kind], row.entry.id
        assert row.judgement.evidence, row.entry.id


def test_our_numbers_name_the_command_that_makes_them_again():
    answered = [row for row in ROWS if row.value is not None]
    assert len(answered) > 100
    for row in answered:
        assert row.command.startswith("paperlib reproduce --profile paper --only ")


def test_every_row_has_the_papers_effort():
    """A verdict speaks of the paper's K and of its number of Gibbs steps for CSL, not of less."""
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    starts = [row for row in shown if row.cell and start_of(row.cell.column)]
    assert len(starts) > 100
    assert {row.steps for row in starts} == {100_000}
    for name in ("raise-table-1", "raise-own-weights"):
        assert {row["csl_states"] for row in load_result(name, "paper")["rows"]} == {5 * 10**8}
    own = BY_ID["raise2015/table-2/caption/intermediate-distributions"].judgement
    assert own == Judgement("setting", "ours is the same")
    shared = BY_ID["sm2008/section-5.1/samples-of-figure-2/alternating-gibbs-steps"]
    assert shared.entry.value == 100_000
    assert shared.judgement.verdict == "setting"


def test_architectures_are_compared_with_the_recipes():
    for key, value in (
        ("sm2008/section-5.1/cd3-500/hidden-units", 500),
        ("sm2008/section-5.1/cd25-500/cd-steps-t-first", 1),
        ("sm2008/section-5.1/cd25-500/cd-steps-t-last", 25),
        ("sm2008/section-5.2/dbn-cd25/units-of-the-second-hidden-layer", 2_000),
        ("raise2015/section-5.1/omnipcd-1000/hidden-units", 1_000),
    ):
        assert used_setting(BY_ID[key].entry, {}.get) == [value]
        assert BY_ID[key].judgement.evidence == "ours is the same"
        other = replace(BY_ID[key].entry, value=value + 1)
        assert judge(other, {}.get, {}).verdict == "setting, ours differs"


def test_fitted_recipes_are_marked():
    shown = [row for name in COMPARED for row in comparison_rows(name)]
    fitted = {row.model for row in shown if row.fitted}
    assert {"CD1(500)", "CD3(500)", "MoB(10)", "MoB(500)", "mnistCD1-500"} <= fitted
    assert not fitted & {"CD25(500)", "CD1(20)", "mnistPCD-500"}
    assert all("(fitted)" in row.ours for row in shown if row.fitted)
    # trainings by the released recipe, and mixtures that were started at images, are not
    assert not any(name.endswith(("trainings", "started at images")) for name in fitted)


def entry_of(kind, published=-86.34, column="test", model="m"):
    """A published number, or an interval, that is judged by a cell of a record."""
    criterion = Criterion(kind, "because", judged_by=Cell("r", model, column))
    interval = published if isinstance(published, tuple) else None
    value = None if interval else published
    return replace(BOUND, value=value, interval=interval, criterion=criterion)


AIS = "base_rate_ais"
ONE, THREE = "interval_1_sigma", "interval_3_sigma"


@pytest.mark.parametrize(
    ("published", "row", "verdict"),
    [
        # three standard errors of a difference, 3 sqrt(2) 0.1, and half a hundredth: 0.429
        (-86.34, {"raise": -85.92, "raise_error": 0.1}, "agrees"),
        (-86.34, {"raise": -85.90, "raise_error": 0.1}, "differs"),
        (-86.34, {"raise": -86.76, "raise_error": 0.1}, "agrees"),
        (-86.34, {"raise": -86.78, "raise_error": 0.1}, "differs"),
        # half of the last printed digit is rounding: of hundredths, tenths, whole nats
        (-86.34, {"raise": -86.344, "raise_error": 1e-9}, "agrees"),
        (-86.34, {"raise": -86.346, "raise_error": 1e-9}, "differs"),
        (56.6, {"raise": 56.64, "raise_error": 1e-9}, "agrees"),
        (56.6, {"raise": 56.66, "raise_error": 1e-9}, "differs"),
        (-86.0, {"raise": -86.4, "raise_error": 1e-9}, "agrees"),
        (-86.0, {"raise": -86.6, "raise_error": 1e-9}, "differs"),
        # a missing error is not an error of zero
        (-86.34, {"csl": -86.34}, "no estimate"),
        (-86.34, {"csl": -110.15}, "no estimate"),
        # the middles of two intervals of one sigma, 0.3 and 0.4: 3 times 0.5
        ((1.0, 1.6), {ONE: [2.4, 3.2]}, "agrees"),
        ((1.0, 1.6), {ONE: [2.5, 3.3]}, "differs"),
        # of three sigma, 0.1 and 0.4 / 3: they overlap, and are three standard errors apart nevertheless
        ((1.0, 1.6), {THREE: [1.4, 2.2]}, "agrees"),
        ((1.0, 1.6), {THREE: [1.5, 2.3]}, "differs"),
        ((1.0, 1.6), {THREE: ["-inf", 2.3]}, "no estimate"),
        (-86.34, {}, "not run"),
        # an estimate of unknown error agrees with nothing
        (-86.34, {AIS: -86.34, "base_rate_ais_error": math.inf}, "no estimate"),
    ],
    ids=str,
)
def test_same_weights_by_hand(published, row, verdict):
    record, column = {"rows": [{"model": "m", **row}]}, next(iter(row), "test")
    found = judge(entry_of("same-weights", published, column), {"r": record}.get, {})
    assert found.verdict == verdict
    if "raise" in row:
        off = (row["raise"] - published) / row["raise_error"] / math.sqrt(2)
        assert found.standard_errors == pytest.approx(off, rel=1e-9)


@pytest.mark.parametrize(
    ("printed", "verdict"), [((-0.3, 0.3), "agrees"), ((-0.03, 0.03), "differs")]
)
def test_the_error_that_the_paper_prints_is_used(printed, verdict):
    """A three-sigma interval of ln Z is the error of the averages, too: 0.1 or 0.01, beside 0.1 of ours."""
    interval = entry_of("same-weights", printed, THREE)
    row = {"model": "m", "test": -85.95, "log_z_error": 0.1, THREE: [-0.3, 0.3]}
    stored = {"r": {"rows": [row]}}.get
    found = judge(entry_of("same-weights"), stored, {}, [interval])
    assert found.verdict == verdict
    assert "the printed one" in found.evidence


def test_numbers_of_one_estimate_are_counted_once():
    """Of the sixteen that rest on the authors' weights, eight are of one AIS run, and a gap is the difference of two ends."""
    numbers = [row for row in ROWS if row.judgement.verdict in ("agrees", "differs")]
    cells = {row.cell for row in numbers}
    ln_z, ends = "sm2008-own-weights", "raise-own-weights"
    assert len([row for row in numbers if row.cell.record == ln_z]) == 8
    assert {cell.column for cell in cells if cell.record == ends} == {
        f"{start}_{what}" for start in ("uniform", "base_rate") for what in ("ais", "raise", "gap")
    }
    others = {cell for cell in cells if cell.record not in (ln_z, ends)}
    assert rests_on(ROWS)["same-weights"] == 1 + 4 + len(others) < len(numbers)
    assert rests_on(ROWS)["same-recipe"] == 5
    [weights, recipe, *_, together] = criteria_table(ROWS, claim_findings()).rows
    assert weights[2] == f"{5 + len(others)} estimates"
    # chance alone: 0.27 % beyond three standard errors, 5 % outside a 95 % interval
    assert float(weights[3]) == pytest.approx(0.0027 * len(numbers), rel=0.05)
    assert recipe[3] == "1.3 after each length"
    # in words on the page
    [page] = [path for path in NOTEBOOKS if path.name.startswith("13-")]
    text = prose_of(page)
    assert "more than half of them follow from a single AIS run" in text
    assert len(numbers) < 2 * 8
    assert "one difference in 370 beyond three standard errors" in text
    assert round(1 / math.erfc(3 / math.sqrt(2))) == 370
    assert int(together[1]) < len(ROWS) - 105 - 17  # settings and what is not judged
    assert re.fullmatch(r"\d+ of \d+ claims", together[2])


def seeds(**tests):
    """Trainings of CD1(500) by five seeds, by their average after so many epochs, which is printed as -125.53; five is too short to be judged."""
    spread = (-1.0, -0.5, 0.0, 0.5, 1.0)
    return [
        {"model": "CD1(500)", "seed": seed, "epoch": int(epochs[1:]), "distrusted": "no"}
        | dict.fromkeys(("log_z", "test", "train"), test + off)
        for epochs, test in tests.items()
        for seed, off in enumerate(spread)
    ]


@pytest.mark.parametrize(
    ("tests", "verdict", "said"),
    [
        ({"e10": -125.5, "e50": -125.5}, "typical", "hold it after 10, 50 epochs"),
        ({"e10": -185.0, "e50": -125.5}, "typical at some lengths", "hold it after 50 epochs"),
        ({"e10": -185.0, "e50": -125.5}, "typical at some lengths", "end below it after 10 epochs"),
        (
            {"e10": -125.5, "e100": -100},
            "typical at some lengths",
            "begin above it after 100 epochs",
        ),
        # ten epochs are one length of several, and shorter or longer ones decide nothing
        (
            {"e5": -125.5, "e10": -185.0, "e300": -125.5},
            "not typical",
            "end below it after 10 epochs",
        ),
        ({"e10": -185.0, "e50": -160.0}, "not typical", "end below it after 10, 50 epochs"),
    ],
)
def test_same_recipe_by_hand(tests, verdict, said):
    rows = [*seeds(**tests)]
    entry = entry_of("same-recipe", -125.53, model="CD1(500)")
    found = judge(entry, {"r": {"rows": rows}}.get, {})
    assert (found.verdict, said in found.evidence) == (verdict, True)
    assert judge(entry, {}.get, {}).verdict == "not run"
    few = [row for row in rows if row["seed"] < 4]
    assert judge(entry, {"r": {"rows": few}}.get, {}).verdict == "no estimate"
    # the interval of such seeds also holds what is printed for CD3(500)
    wide = [row | {"test": -115.0 + 10 * row["seed"] - 20} for row in rows]
    both = [*wide, *({**row, "model": "CD3(500)"} for row in wide)]
    assert judge(entry, {"r": {"rows": both}}.get, {}).verdict == "says nothing"


def test_whose_weights_a_model_of_two_has():
    """The second paper's mnistCD25-500 is the authors' in the table of brackets, and ours in that of claims."""
    [released] = re.findall(r"mnistCD25-500[^,|]*", repr(bracket_table(ROWS)))
    assert released.startswith("mnistCD25-500 (the authors' weights) ")
    claims = repr(claim_table(claim_findings()))
    assert claims.count("mnistCD25-500") == claims.count("mnistCD25-500 (ours)") > 3


def test_what_cannot_be_judged_has_a_sign_of_its_own():
    claims = repr(claim_table(claim_findings()))
    for verdict in ("says nothing", "no estimate"):
        assert f"<span class='verdict-open'>– {verdict}</span>" in claims
    assert "<span class='verdict-mixed'>~ partly</span>" in claims
    assert "<span class='verdict-bad'>✗ does not hold</span>" in claims
    assert ".verdict-open" in Report(ROWS)._repr_html_()


def test_no_verdict_on_csl():
    """The paper matches its Gibbs steps (footnote 4), and does not say how many of their states it kept."""
    numbers = [row for row in ROWS if row.entry.column == "CSL"]
    assert len(numbers) == 6
    for row in numbers:
        assert row.judgement.verdict == "says nothing", row.entry.id
        assert "number of kept states" in row.judgement.evidence


def test_difference_of_an_inverse_ratio():
    """The paper prints -24.18 for what its own definition makes +24.18; ours is -134.60."""
    (row,) = [row for row in ROWS if row.entry.id.endswith("cd1-20-over-cd1-25/true")]
    assert difference(row.entry.meant, row.value) == pytest.approx(-134.60 - 24.18, abs=0.01)


def test_page_holds_every_row_and_no_other_host():
    page = Report(ROWS)._repr_html_()
    assert page.count("<tr data-verdict=") == len(ROWS)
    assert "http" not in page
    assert repr(Report(ROWS)) == f"Report({len(ROWS)} published numbers)"


def answer(column, row):
    """A published number that this row of a record answers, and the record."""
    source = replace(BOUND.reproduced_by, row="m", column=column)
    return replace(BOUND, reproduced_by=source), {"rows": [{"model": "m", **row}]}


BOUND = next(
    entry
    for entry in load_published()
    if entry.reproduced_by is not None and entry.reproduced_by.column == "bound"
)


@pytest.mark.parametrize(
    ("column", "row", "error"),
    [
        ("bound", {"bound": -86.0, "error_bound": 0.6}, 0.2),
        ("raise", {"raise": -86.0, "raise_error": 0.6}, 0.6),
        ("test", {"test": -86.0, "interval_1_sigma": [1.0, 1.5]}, 0.25),
        ("test", {"test": -86.0, "interval_1_sigma": [-math.inf, 1.5]}, None),
        ("test", {"test": -86.0, "interval_1_sigma": ["-inf", 1.5]}, None),
        ("raise", {"raise": -86.0, "raise_error": math.inf}, None),
        ("bound", {"bound": -86.0, "error_bound": math.inf}, None),
        ("exact", {"exact": 1.0}, None),
        ("test", {"test": -86.0, "log_z_error": 0.1}, 0.1),
    ],
)
def test_standard_errors_by_hand(column, row, error):
    entry, record = answer(column, row)
    found = cell_std_error(entry.reproduced_by, record)
    assert found is None if error is None else found == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize(
    ("published", "value", "expected"),
    [
        (-86.34, -85.84, 0.5),
        (-86.34, -87.34, -1.0),
        ([1.0, 2.0], [1.5, 1.0], [0.5, -1.0]),
        (-math.inf, -math.inf, 0.0),
        (1.0, math.nan, None),
        ("yes", "no", None),
        (1.0, None, None),
    ],
)
def test_differences_are_ours_less_theirs(published, value, expected):
    assert difference(published, value) == pytest.approx(expected, abs=1e-12)


def test_comparison_table_has_a_row_for_every_number_that_the_record_answers():
    entries = [e for e in ENTRIES if e.reproduced_by and e.reproduced_by.record == "raise-table-1"]
    apart = [entry for entry in entries if deciding(entry) != entry.reproduced_by]
    assert apart
    table = comparison_table("raise-table-1")
    assert len(table.rows) == len(entries) + len(apart)
    assert table.heading[-2:] == ["judged by", "verdict"]
    assert any("(K = 100,000)" in cell for row in table.rows for cell in row)
    (csl,) = [row for row in table.rows if row[0] == "mnistCD1-500" and row[1] == "CSL"]
    assert "(fitted)" in csl[3]


# ---- every row judges the number that it shows

SHOWN = [
    (path.stem, cell, name)
    for path in NOTEBOOKS
    for cell in cells_of(path)
    for name in re.findall(r'comparison_table\("(.*?)"', cell.source)
]
COMPARED = sorted({name for *_, name in SHOWN})


def numbers(cell):
    """The numbers in a cell of a rendered table, as they are read from the page."""
    cell = cell.replace("−", "-").replace("∞", "inf").replace(",", "")
    return [float(found) for found in re.findall(r"-?(?:\d+\.\d+|inf)", cell)]


@pytest.mark.parametrize("name", COMPARED)
def test_rendered_rows_bear_their_verdicts_out(name):
    """By what the page prints alone: value, error, interval and K in the row decide as its verdict says."""
    table = comparison_table(name)
    for row in table.rows:
        cells = dict(zip(table.heading, row, strict=True))
        printed, ours = numbers(cells["published"]), numbers(cells["ours"])
        verdict = cells["verdict"]
        if cells["judged by"] == "same weights" and ours:
            # a value with its error, or an interval of one sigma or three; half a hundredth on either side is rounding
            if len(printed) == 2:
                sigmas = (
                    1 if "1-sigma" in cells["quantity"] or "\\pm \\hat" in cells["quantity"] else 3
                )
                off = (sum(ours) - sum(printed)) / 2
                error = math.hypot(ours[1] - ours[0], printed[1] - printed[0]) / 2 / sigmas
            else:
                off, error = ours[0] - printed[0], math.sqrt(2) * (ours[1] + 0.005)
            assert (verdict == "agrees") == (abs(off) <= 3 * error + 0.01), row
        if cells["judged by"] == "same recipe":
            # the lowest and the highest mean, and the ends of the intervals
            least, most, low, high = ours
            assert low < least < most < high
            outside = not low <= printed[0] <= high
            assert not (outside and verdict != "not typical"), row


def test_every_number_of_a_row_comes_from_one_row_of_a_record():
    """Value, error, interval, K and verdict; the verdict stays if every other model of every record had other numbers."""
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    seen = [row for row in shown if row.value is not None]
    assert len(seen) > 300
    for row in seen:
        cell, entry = row.cell, row.entry
        record = load_result(cell.record, "paper")
        own = next(r for r in record["rows"] if r["model"] == cell.row)
        if row.interval is None:
            assert row.value == own[cell.column], row
        else:
            trained = [r for r in record["rows"] if r["model"] == cell.row and r["epoch"] >= 10]
            values = [r[cell.column] for r in trained if r["distrusted"] == "no"]
            assert min(values) <= row.value[0] < row.value[1] <= max(values)
            assert row.interval[0] < row.value[0] < row.value[1] < row.interval[1]
            assert row.std_error is None
            continue
        start = re.match("uniform|base_rate|", cell.column)[0]
        k = own.get(f"{start}_steps", own.get("steps")) if start else None
        assert row.steps == k, row
        assert row.std_error == cell_std_error(cell, record), row
        if f"{cell.column}_error" in own:
            assert row.std_error == own[f"{cell.column}_error"], row
        # Whether a mixture is worse than an RBM cannot be told from the mixture alone.
        if cell == deciding(entry) and entry.criterion.claim != "mixtures-below-rbm":
            stored = functools.partial(others_changed, cell)
            claims = {c.id: c.finding(stored) for c in CLAIMS if c.id == entry.criterion.claim}
            assert judge(entry, stored, claims, ENTRIES).verdict == row.judgement.verdict, row


def others_changed(cell, name):
    """A stored record in which all models but that of the cell have other numbers."""
    record = load_result(name, "paper")
    return record | {
        "rows": [
            row
            if (name, row.get("model")) == (cell.record, cell.row)
            else {key: other(value) for key, value in row.items()}
            for row in record["rows"]
        ]
    }


def other(value):
    if isinstance(value, list):
        return [other(part) for part in value]
    return 1.5 * value if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("cell", "name"),
    [(cell, name) for _, cell, name in SHOWN],
    ids=[f"{chapter}: {name}" for chapter, _, name in SHOWN],
)
def test_pages_show_these_tables(cell, name):
    [output] = cell.outputs
    assert output.data["text/markdown"] == repr(comparison_table(name))


def test_an_interval_that_holds_another_models_number_says_nothing():
    # the only intervals of ln Z that hold the 280.09 of CD3(500) also hold the 255.41 of CD1(25)
    wide, narrow = (
        BY_ID[f"sm2008/table-1/cd3-500/{what}"].judgement for what in ("log-z-hat", "test-estimate")
    )
    assert wide.verdict == "says nothing"
    assert "CD1(25) 255.41" in wide.evidence
    assert narrow.verdict == "typical at some lengths"


def test_a_number_that_is_printed_twice_has_one_verdict():
    again = BY_ID["sm2008/section-5.1/cd25-500-over-cd3-500/log-z-hat-cd3-500"].judgement
    assert again == BY_ID["sm2008/table-1/cd3-500/log-z-hat"].judgement
