"""What became of the papers' conclusions: each rule gives each of three words, on made-up rows."""

import inspect
import math

import pytest
from notebooks import NOTEBOOKS, prose_of

from boltzmann_companion.claims.checks import Stored
from boltzmann_companion.claims.conclusions import (
    CONCLUSIONS,
    Word,
    all_but_one,
    conclusion_rows,
    every,
    most,
    one,
)
from boltzmann_companion.records import load_result

BY_NAME = {conclusion.name: conclusion for conclusion in CONCLUSIONS}
CAME = Word.CAME_OUT
NOT = Word.DID_NOT
UNKNOWN = Word.CANNOT_TELL


def small(off, runs=10, warned="no", model="A"):
    """AIS on a small model, so far from the exact ln Z."""
    row = {"model": model, "runs": runs, "warned": warned}
    return row | {"exact_log_z": 100.0, "log_z": 100.0 + off}


def runs_below(*below, repeats=100):
    """So many of AIS's runs are below ln Z, for each of some models; others do not count."""
    rows = []
    for number, count in enumerate(below):
        row = {"model": f"{number}", "repeats": repeats, "budget": 1_000, "estimator": "AIS"}
        rows.append(row | {"below": count})
        rows.append(row | {"below": 0, "budget": 100})
        rows.append(row | {"below": 0, "estimator": "SMC"})
    return rows


def leads(lead, spread=1.0, seeds=5, epoch=50):
    """CD3(500) ahead of CD1(500) by so much after one length of training."""
    ends = ((0.0, 0.0), (lead - spread, lead + spread))
    rows = []
    for model, (low, high) in zip(("CD1(500)", "CD3(500)"), ends, strict=True):
        for seed in range(seeds):
            test = low + (high - low) * seed / (seeds - 1)
            row = {"model": model, "seed": seed, "epoch": epoch, "distrusted": "no", "test": test}
            rows.append(row)
    return rows


def layers(gain_of_cd3, low=-0.3):
    """Gains of second layers, and three standard errors of AIS on that of DBN-CD3."""
    gains = [{"model": "DBN-CD1", "gain": 20.0}, {"model": "DBN-CD3", "gain": gain_of_cd3}]
    bounds = [{"model": "Test DBN-CD1", "ais_error": [-0.3, 0.2]}]
    bounds.append({"model": "Test DBN-CD3", "ais_error": [low, 0.2]})
    return gains, bounds


def on_cd25(*gains, low=-0.3):
    """Gains of second layers on CD25(500), each from another start."""
    names = [f"DBN-CD25, start {number}" for number in range(len(gains))]
    rows = [{"model": name, "gain": gain} for name, gain in zip(names, gains, strict=True)]
    return rows, [{"model": f"Test {name}", "ais_error": [low, 0.2]} for name in names]


def tempering(half_width=0.2, exact=None, **averages):
    """Averages by parallel tempering, with half their 95 % intervals."""
    return [
        {
            "model": name.replace("_", " "),
            "exact": exact,
            "ladder": value,
            "interval": [-value - half_width, -value + half_width],
        }
        for name, value in averages.items()
    ]


def full_size(truth=-100.0, error=0.02):
    """The long runs on the authors' CD25(500)."""
    name = "CD25(500) of the authors"
    return [{"model": name, "truth": truth, "truth_std_error": error}]


def evaluation(gap, ais_error, model="CD-1", width=0.1):
    return {
        "model": model,
        "gap": gap,
        "ais_interval_3_sigma": [-100.0 - width, -100.0 + width],
        "raise_std_error": 0.02,
        "ais_error": ais_error,
        "raise_error": ais_error - gap,
    }


def studies(*rows):
    """Three studies, in the last two of which agreement is right."""
    return [*rows], [evaluation(0.1, 0.1)], [evaluation(0.1, 0.1)]


def bracket(model="A", gap=0.0, uniform=0.0, error=0.1, ais_error=0.01, exact=None, csl=-150.0):
    """Gaps from both starts around an average of AIS of -100."""
    row = {"model": model, "steps": 100_000, "exact": exact, "csl": csl, "csl_error": error}
    for start, value in (("base_rate", gap), ("uniform", uniform)):
        row |= {
            f"{start}_ais": -100.0,
            f"{start}_ais_error": ais_error,
            f"{start}_raise": -100.0 - value,
            f"{start}_raise_error": error,
            f"{start}_gap": value,
            f"{start}_gap_error": math.hypot(error, ais_error),
        }
    return row


# The authors' weights, in place of a row of ours that would not come out.
OURS = bracket("mnistCD25-500", 9.0, 0.0, csl=-100.0)
AUTHORS = [bracket("mnistCD25-500", 0.1, 3.0)]


def table(*rows):
    """Table 1 of ours, and the authors' weights of one row."""
    return [*rows, OURS], AUTHORS


def truth(uniform_ais, error=0.05, known=0.1):
    """AIS from the uniform start on a model whose average is -100."""
    row = bracket("A") | {"uniform_ais": uniform_ais, "uniform_ais_error": error}
    return [row], AUTHORS, tempering(known, A=-100.0), full_size()


def above_truth(*values, error=0.05):
    """RAISE so far above the average of each of some models."""
    names = [f"M{number}" for number in range(len(values))]
    rows = [bracket(n, -value, error=error) for n, value in zip(names, values, strict=True)]
    return rows, AUTHORS, [], tempering(0.02, **dict.fromkeys(names, -100.0)), full_size()


def without_chains(raise_off, gap=0.5):
    """A bracket whose AIS has one chain from the uniform start, and RAISE so far below exact."""
    return bracket(gap=gap, uniform=raise_off, exact=-100.0) | {"uniform_ais_error": 1.0}


def slopes(*alphas, error=0.05):
    row = {"steps": 10, "alpha_error": error}
    rows = [row | {"model": f"{number}", "alpha": alpha} for number, alpha in enumerate(alphas)]
    # a DBN's runs start elsewhere than the paper's, and with three steps nothing is asked
    return [*rows, row | {"model": "MNIST DBN", "alpha": 0.1}, row | {"model": "x", "steps": 3}]


RULES = [
    ("many-runs", CAME, [small(9.0), small(0.09, runs=100)]),
    ("many-runs", NOT, [small(0.0), small(0.11, runs=100)]),
    ("many-runs", UNKNOWN, [small(0.0, runs=100, warned="yes")]),
    # a miss decides no more than a hit if the library warns of it
    ("many-runs", UNKNOWN, [small(-4.0, runs=100, warned="yes")]),
    ("ais-errs-low", CAME, runs_below(70, 70, 50)),
    ("ais-errs-low", NOT, runs_below(70, 30, 30)),
    ("ais-errs-low", UNKNOWN, runs_below(70, 50, 50)),
    ("ais-errs-low", UNKNOWN, runs_below(9, repeats=10)),
    ("cd3-over-cd1", CAME, leads(10) + leads(5, epoch=100)),
    ("cd3-over-cd1", NOT, leads(10) + leads(-10, epoch=100)),
    ("cd3-over-cd1", UNKNOWN, leads(10) + leads(1, spread=5.0, epoch=100)),
    ("cd3-over-cd1", UNKNOWN, leads(10, seeds=4)),
    ("second-layer", CAME, *layers(5.0)),
    ("second-layer", NOT, *layers(-5.0)),
    ("second-layer", UNKNOWN, *layers(5.0, low="-inf")),
    ("second-layer", UNKNOWN, *layers(0.2)),
    ("extra-layer", CAME, *on_cd25(0.1, -3.0)),
    ("extra-layer", NOT, *on_cd25(2.0, 3.0)),
    ("extra-layer", UNKNOWN, *on_cd25(2.0, 0.1)),
    ("extra-layer", UNKNOWN, *on_cd25(1.05, 1.05)),
    ("extra-layer", UNKNOWN, *on_cd25(2.0, 2.0, low="-inf")),
    ("agreement-judges", CAME, *studies(evaluation(0.5, 0.8), evaluation(5.0, 5.0))),
    ("agreement-judges", NOT, *studies(evaluation(0.1, 3.0))),
    # also of a model with a mode that somebody planted
    ("agreement-judges", NOT, *studies(evaluation(0.1, 3.0, "mode"), evaluation(0.1, 0.2))),
    # wide errors are no agreement
    ("agreement-judges", UNKNOWN, *studies(evaluation(0.1, 3.0, width=math.inf))),
    ("errs-low", CAME, *above_truth(-1.0, -1.0, 1.0)),
    # with the authors' weights in place of ours, against the long runs on these
    ("errs-low", CAME, [OURS], [bracket("mnistCD25-500", 2.0)], [], [], full_size()),
    ("errs-low", NOT, [OURS], [bracket("mnistCD25-500", -2.0)], [], [], full_size()),
    ("errs-low", NOT, *above_truth(-1.0, 1.0, 1.0)),
    ("errs-low", UNKNOWN, *above_truth(-1.0, 0.01, 1.0)),
    ("close-to-truth", CAME, [bracket(gap=0.5, exact=-100.0), bracket("B", 9.0)]),
    ("close-to-truth", NOT, [bracket(gap=-2.0, exact=-100.0)]),
    ("close-to-truth", UNKNOWN, [bracket(gap=-1.1, exact=-100.0)]),
    ("base-rates-better", CAME, *table(bracket(gap=0.5, uniform=2.0))),
    ("base-rates-better", NOT, *table(bracket(gap=-2.0, uniform=0.5))),
    ("base-rates-better", UNKNOWN, *table(bracket(gap=0.5, uniform=0.6))),
    ("base-rates-better", UNKNOWN, *table(bracket(gap=0.5, uniform=9.0, ais_error=0.5))),
    # the exact average stands in for an AIS that one chain makes up
    ("base-rates-better", CAME, *table(without_chains(9.0))),
    ("base-rates-better", NOT, *table(without_chains(0.1, gap=9.0))),
    ("ais-misleads", CAME, *truth(-94.0)),
    ("ais-misleads", NOT, *truth(-100.1)),
    ("ais-misleads", NOT, *truth(-106.0)),
    ("ais-misleads", UNKNOWN, *truth(-94.0, error=0.5)),
    ("ais-misleads", UNKNOWN, *truth(-98.9)),
    ("csl-falls-short", CAME, *table(bracket(), bracket("B", csl=-101.0))),
    ("csl-falls-short", NOT, *table(bracket(csl=-102.0), bracket("B", csl=-101.0))),
    ("csl-falls-short", UNKNOWN, *table(bracket(csl=-110.1), bracket("B", csl=-101.0))),
    ("control-variate", CAME, slopes(0.7, 1.2)),
    ("control-variate", NOT, slopes(0.7, 0.3)),
    ("control-variate", UNKNOWN, slopes(0.7, 0.6)),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule[0]}: {rule[1]}")
def test_rules_by_hand(rule):
    name, word, *rows = rule
    conclusion = BY_NAME[name]
    assert conclusion.word(conclusion.rule(*rows)) == word


@pytest.mark.parametrize("name", BY_NAME)
def test_every_rule_can_give_every_word(name):
    assert {word for each, word, *_ in RULES if each == name} == set(Word)


@pytest.mark.parametrize(
    ("enough", "words"),
    [
        # none to three of three cases that come out, the others not
        (every, [NOT, NOT, NOT, CAME]),
        (most, [NOT, NOT, CAME, CAME]),
        (all_but_one, [NOT, NOT, CAME, CAME]),
        (one, [NOT, CAME, CAME, CAME]),
    ],
)
def test_how_many_cases_are_enough(enough, words):
    conclusion = BY_NAME["many-runs"].__class__(
        **{**vars(BY_NAME["many-runs"]), "enough": enough},
    )
    for came_out, word in enumerate(words):
        for other, expected in ((NOT, word), (UNKNOWN, CAME if word == CAME else UNKNOWN)):
            cases = {f"{n}": CAME if n < came_out else other for n in range(3)}
            assert conclusion.word(cases) == expected
    assert conclusion.word({}) == UNKNOWN


def test_at_most_fifteen_conclusions_whose_cases_are_the_record():
    rows = conclusion_rows()
    assert len({row["conclusion"] for row in rows}) == len(rows) <= 15
    for profile in ("digits", "paper"):
        assert load_result("conclusions", profile)["rows"] == rows
    for row in rows:
        assert any(row[column] for column in ("came_out", "did_not", "unknown"))


def test_the_chapter_has_a_sentence_for_every_conclusion_and_quotes_it():
    [page] = [path for path in NOTEBOOKS if path.name.startswith("13-")]
    text = prose_of(page)
    for row in conclusion_rows():
        assert f"conclusions.json#{row['conclusion']}/word" in text
        assert row["section"] in text


def test_a_rule_reads_the_records_that_it_names():
    for conclusion in CONCLUSIONS:
        read = []

        def record(name, read=read):
            read.append(name)
            return load_result(name, "paper")

        conclusion.cases(Stored(record))
        assert tuple(read) == conclusion.records
        assert inspect.getdoc(conclusion.rule)
