"""Conclusions of the two papers, in the authors' words, and what became of them.

A conclusion is tried case by case (a model, a length of training), each by the rows of records.
How many cases have to come out follows from its words: all of them, most, all but one. The sentence
that explains the outcome is written by hand in chapter 13.

A conclusion is a function of the rows of its records, marked with `conclusion`; it returns a `Word`
for each case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from scipy.stats import binomtest

from boltzmann_companion.claims.checks import Row, Rows, Stored
from boltzmann_companion.rows import where
from boltzmann_companion.seeds import FEWEST_SEEDS, prediction_interval
from boltzmann_companion.studies.bracket_tables import (
    PAPERS_IMAGES,
    closer_verdict,
    ends_of,
    gap_verdict,
)
from boltzmann_companion.studies.same_recipe import by_seed, judged_lengths
from paperlib.estimators import BracketVerdict, bracket_verdict
from paperlib.estimators.bracket import LARGEST_ERROR
from paperlib.uncertain import Uncertain


class Word(StrEnum):
    """What became of a conclusion, or of one case of it.

    Examples
    --------
    >>> print(*Word, sep=", ")
    came out, did not come out, cannot be told here
    """

    CAME_OUT = "came out"
    DID_NOT = "did not come out"
    CANNOT_TELL = "cannot be told here"


#: What became of each case, by its name.
Cases: TypeAlias = Mapping[str, Word]


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """A sentence of a paper, and how it is tried.

    Attributes
    ----------
    name : str
        Its name in the record `conclusions`.
    paper : str
        `sm2008` or `raise2015`.
    section : str
        Where the sentence stands.
    quote : str
        The authors' words.
    records : tuple of str
        Names of the records whose rows decide.
    rule : callable
        Takes the rows of each of `records`, and returns the cases.
    enough : callable
        How many of so many cases have to come out.
    """

    name: str
    paper: str
    section: str
    quote: str
    records: tuple[str, ...]
    rule: Callable[..., Cases]
    enough: Callable[[int], int]

    def cases(self, stored: Stored) -> Cases:
        """What became of each case, by these records."""
        return self.rule(*map(stored.rows, self.records))

    def word(self, cases: Cases) -> Word:
        """What became of the conclusion: cases that cannot be told may go either way."""
        words = list(cases.values())
        needed = max(1, self.enough(len(words)))
        came_out = words.count(Word.CAME_OUT)
        unknown = words.count(Word.CANNOT_TELL)
        if came_out >= needed:
            return Word.CAME_OUT
        return Word.CANNOT_TELL if came_out + unknown >= needed or not words else Word.DID_NOT


def every(number: int) -> int:
    """All cases."""
    return number


def most(number: int) -> int:
    """More than half of the cases."""
    return number // 2 + 1


def all_but_one(number: int) -> int:
    """All cases but one."""
    return number - 1


def one(number: int) -> int:
    """One case."""
    return 1


#: Every conclusion, in the order of the chapter.
CONCLUSIONS: list[Conclusion] = []
_Rule: TypeAlias = Callable[..., Cases]


def conclusion(
    paper: str, section: str, quote: str, *records: str, enough: Callable[[int], int] = every
) -> Callable[[_Rule], _Rule]:
    """Mark a function as the trial of a conclusion, which has the function's name."""

    def stated(rule: _Rule) -> _Rule:
        CONCLUSIONS.append(
            Conclusion(
                name=rule.__name__.replace("_", "-"),
                paper=paper,
                section=section,
                quote=quote,
                records=records,
                rule=rule,
                enough=enough,
            )
        )
        return rule

    return stated


def conclusion_rows(stored: Stored | None = None) -> list[dict[str, str | None]]:
    """The rows of the record `conclusions`: a word for each, and its cases by what became of them.

    Parameters
    ----------
    stored : Stored, optional
        The records; by default the committed ones at the papers' size.

    Examples
    --------
    >>> conclusion_rows()[0]["quote"]
    'AIS can almost exactly recover the true value of the partition function'
    """
    stored = stored or Stored()
    rows = []
    for each in CONCLUSIONS:
        cases = each.cases(stored)
        row: dict[str, str | None] = {
            "conclusion": each.name,
            "paper": each.paper,
            "section": each.section,
            "quote": each.quote,
            "word": str(each.word(cases)),
        }
        for column, word in zip(("came_out", "did_not", "unknown"), Word, strict=True):
            row[column] = ", ".join(name for name in cases if cases[name] == word) or None
        rows.append(row)
    return rows


# ---- words from numbers


# What is left to chance: beyond three standard deviations of a normal distribution.
_BY_CHANCE = math.erfc(3 / math.sqrt(2))
# Half a 95 % interval of a normal distribution, in standard errors.
_NORMAL_95 = 1.96
# Degrees of freedom of the error of RAISE's average over the images.
_DOF = PAPERS_IMAGES - 1.0


def _word(verdict: BracketVerdict, *came_out: BracketVerdict) -> Word:
    """The word for a verdict of the rule for brackets: *came out* if it is one of these."""
    if verdict == BracketVerdict.CANNOT_TELL:
        return Word.CANNOT_TELL
    return Word.CAME_OUT if verdict in came_out else Word.DID_NOT


def _within(difference: Uncertain, limit: float) -> Word:
    """Whether a difference is at most `limit`, with three standard errors on either side."""
    return _word(bracket_verdict(difference, tolerance=limit), BracketVerdict.CLOSED)


def _above(difference: Uncertain, ais_error: float = 0.0) -> Word:
    """Whether a difference is above zero by more than three standard errors."""
    return _word(bracket_verdict(difference, ais_error, 0.0), BracketVerdict.OPEN)


# ---- the first paper


@conclusion(
    "sm2008",
    "5.1",
    "AIS can almost exactly recover the true value of the partition function",
    "sm2008-figure-3",
)
def many_runs(rows: Rows) -> Cases:
    """Within a tenth of a nat of the exact ln Z, with the most runs of Figure 3.

    An estimate with a warning decides nothing.
    """
    largest = max(row["runs"] for row in rows)
    cases = {}
    for row in where(rows, runs=largest):
        near = abs(row["log_z"] - row["exact_log_z"]) <= 0.1
        word = Word.CAME_OUT if near else Word.DID_NOT
        cases[row["model"]] = Word.CANNOT_TELL if row["warned"] == "yes" else word
    return cases


@conclusion(
    "sm2008",
    "6",
    "it is more likely to underestimate of the true value of the partition function",
    "estimator-study",
    enough=most,
)
def ais_errs_low(rows: Rows) -> Cases:
    """More than half of the runs with the most steps are below ln Z, beyond chance."""
    largest = max(row["budget"] for row in rows)
    chosen = where(rows, estimator="AIS", budget=largest)
    # a comma stands between cases
    return {row["model"].replace(",", ""): mostly_low(row) for row in chosen}


def mostly_low(row: Row) -> Word:
    """Whether more than half of the runs in a row of `estimator-study` are below ln Z."""
    if binomtest(row["below"], row["repeats"]).pvalue >= _BY_CHANCE:
        return Word.CANNOT_TELL
    return Word.CAME_OUT if 2 * row["below"] > row["repeats"] else Word.DID_NOT


@conclusion(
    "sm2008",
    "5.1",
    "contrastive divergence learning with T=3 results in considerably better generative model "
    "than CD learning with T=1",
    "sm2008-training-paths",
)
def cd3_over_cd1(rows: Rows) -> Cases:
    """After each length of training, by the prediction interval of the lead of one more seed."""
    better = "CD3(500)"
    worse = "CD1(500)"
    cases = {}
    for epoch in judged_lengths(rows, better, worse):
        ahead = by_seed(rows, better, epoch, "test")
        behind = by_seed(rows, worse, epoch, "test")
        leads = [ahead[seed] - behind[seed] for seed in sorted(ahead.keys() & behind.keys())]
        cases[f"{epoch} epochs"] = _ahead(leads)
    return cases


def _ahead(leads: list[float]) -> Word:
    if len(leads) < FEWEST_SEEDS:
        return Word.CANNOT_TELL
    low, high = prediction_interval(leads)
    if low > 0:
        return Word.CAME_OUT
    return Word.DID_NOT if high < 0 else Word.CANNOT_TELL


@conclusion(
    "sm2008",
    "5.2",
    "models DBN-CD1 and DBN-CD3 significantly outperform their single layer counterparts",
    "dbn-bound-gap",
    "sm2008-table-2",
)
def second_layer(gains: Rows, bounds: Rows) -> Cases:
    """By log-probability, with three standard errors of the upper layer's ln Z."""
    by_model = _gains(gains, bounds)
    models = ("DBN-CD1", "DBN-CD3")
    return {model: _above(by_model[model], by_model[model].std_error) for model in models}


@conclusion(
    "sm2008",
    "5.2",
    "if the first level RBM already models data well, adding extra layers will not help",
    "dbn-bound-gap",
    "sm2008-table-2",
)
def extra_layer(gains: Rows, bounds: Rows) -> Cases:
    """None of the second layers on CD25(500) gains more than a nat of log-probability.

    If one does and another does not, it depends on how the layer is trained, and cannot be told.
    """
    words = set()
    for model, gain in _gains(gains, bounds).items():
        if model.startswith("DBN-CD25"):
            verdict = bracket_verdict(gain, gain.std_error)
            words.add(_word(verdict, BracketVerdict.CLOSED, BracketVerdict.CROSSED))
    return {"our CD25(500)": words.pop() if len(words) == 1 else Word.CANNOT_TELL}


def _gains(gains: Rows, bounds: Rows) -> dict[str, Uncertain]:
    """What each second layer gains, with the standard error of AIS on that layer."""
    lower_ends = {row["model"]: float(row["ais_error"][0]) for row in bounds}
    return {
        row["model"]: Uncertain(row["gain"], -lower_ends[f"Test {row['model']}"] / 3)
        for row in gains
    }


# ---- the second paper


@conclusion(
    "raise2015",
    "6",
    "by using RAISE and AIS in conjunction, one can judge the accuracy of one's results by "
    "measuring the agreement",
    "evaluate-study",
    "evaluate-study-held-out",
    "evaluate-study-deep",
)
def agreement_judges(*studies: Rows) -> Cases:
    """Wherever they agree to within a nat, both are right to one.

    A case is a study; a study in which they never agree decides nothing.
    """
    cases = {}
    for name, rows in zip(("shallow", "drawn anew", "deep"), studies, strict=True):
        agreeing = [row for row in rows if agree(row)]
        right = [max(abs(row["ais_error"]), abs(row["raise_error"])) <= 1 for row in agreeing]
        word = Word.CAME_OUT if all(right) else Word.DID_NOT
        cases[name] = word if agreeing else Word.CANNOT_TELL
    return cases


def agree(row: Row) -> bool:
    """Whether the bracket in a row of the studies of chapter 14 is closed."""
    low, high = map(float, row["ais_interval_3_sigma"])
    verdict = gap_verdict(row["gap"], row["raise_std_error"], (high - low) / 6)
    return verdict == BracketVerdict.CLOSED


@conclusion(
    "raise2015",
    "Abstract",
    "typically errs on the side of underestimating, rather than overestimating, the log-likelihood",
    "raise-table-1",
    "raise-own-weights",
    "raise-table-2",
    "tempering-brackets",
    "evaluate-full-size",
    enough=most,
)
def errs_low(rbms: Rows, authors: Rows, deep: Rows, tempering: Rows, full_size: Rows) -> Cases:
    """From the start that the paper has for each model, against what is known of its average."""
    known = _known_averages(tempering, full_size)
    cases = {}
    for row in (*_with_authors(rbms, authors), *deep):
        start = "uniform" if row["model"].endswith("DBN") else "base_rate"
        estimate = Uncertain(row[f"{start}_raise"], row[f"{start}_raise_error"], _DOF)
        cases[row["model"]] = _above(known[row["model"]] - estimate)
    return cases


def _with_authors(rows: Rows, authors: Rows) -> list[Row]:
    """Table 1 with the authors' weights of mnistCD25-500 in place of ours."""
    [theirs] = authors
    return [theirs if row["model"] == theirs["model"] else row for row in rows]


def _known_averages(tempering: Rows, full_size: Rows) -> dict[str, Uncertain]:
    """The exact average of a model, or else that by parallel tempering.

    That of mnistCD25-500 is of the authors' weights, by the long runs of `evaluate-full-size`.
    """
    known = {}
    for row in tempering:
        low, high = row["interval"]  # of 95 %
        known[row["model"]] = Uncertain(row["ladder"], (high - low) / 2 / _NORMAL_95)
        if row["exact"] is not None:
            known[row["model"]] = Uncertain(row["exact"])
    long = where(full_size, model="CD25(500) of the authors")[0]
    known["mnistCD25-500"] = Uncertain(long["truth"], long["truth_std_error"])
    return known


@conclusion(
    "raise2015",
    "1",
    "The RAISE estimates agree closely with the true log-probabilities on small RBMs",
    "raise-table-1",
)
def close_to_truth(rows: Rows) -> Cases:
    """Within a nat of the exact average, from the base rates."""
    return {
        row["model"]: _within(
            Uncertain(row["base_rate_raise"] - row["exact"], row["base_rate_raise_error"], _DOF), 1
        )
        for row in rows
        if row["exact"] is not None
    }


@conclusion(
    "raise2015",
    "5.1",
    "the DBR initial distribution gave consistently better agreement between the two methods",
    "raise-table-1",
    "raise-own-weights",
)
def base_rates_better(rows: Rows, authors: Rows) -> Cases:
    """The gap from the base rates is smaller than that from the uniform start."""
    return {
        row["model"]: _word(
            closer_verdict(_ends(row, "base_rate"), _ends(row, "uniform")), BracketVerdict.OPEN
        )
        for row in _with_authors(rows, authors)
    }


def _ends(row: Row, start: str) -> tuple[float, float, float]:
    """The gap and its two errors, with the exact average in place of an AIS with too few chains."""
    exact = row.get("exact")
    if exact is None or row[f"{start}_ais_error"] <= LARGEST_ERROR:
        return ends_of(row, start)
    return exact - row[f"{start}_raise"], row[f"{start}_raise_error"], 0.0


@conclusion(
    "raise2015",
    "Abstract",
    "AIS is prone to overestimate the log-likelihood with little indication that anything is wrong",
    "raise-table-1",
    "raise-own-weights",
    "tempering-brackets",
    "evaluate-full-size",
    enough=one,
)
def ais_misleads(rows: Rows, authors: Rows, tempering: Rows, full_size: Rows) -> Cases:
    """From the uniform start AIS is more than a nat too high, and its error does not say so."""
    known = _known_averages(tempering, full_size)
    cases = {}
    for row in _with_authors(rows, authors):
        error = row["uniform_ais_error"]
        over = Uncertain(row["uniform_ais"], error) - known[row["model"]]
        cases[row["model"]] = _above(over.shifted(-1), error)
    return cases


@conclusion(
    "raise2015",
    "5.1",
    "The CSL estimator [...] underestimated [...] by tens of nats in almost all cases",
    "raise-table-1",
    "raise-own-weights",
    enough=all_but_one,
)
def csl_falls_short(rows: Rows, authors: Rows) -> Cases:
    """By more than ten nats, with every state of our runs kept; with fewer CSL is lower."""
    return {
        row["model"]: _above(
            Uncertain(
                row["base_rate_ais"] - row["csl"] - 10,
                math.hypot(row["csl_error"], row["base_rate_ais_error"]),
            )
        )
        for row in _with_authors(rows, authors)
    }


@conclusion(
    "raise2015",
    "4",
    "Y - X has significantly smaller variance than Y, even when the number of intermediate "
    "distributions is relatively small",
    "control-variate-few-steps",
)
def control_variate(rows: Rows) -> Cases:
    """With ten distributions: a slope of Y on X above one half says the same.

    Our runs of DBNs start elsewhere than the paper's, so that they are no case of it.
    """
    return {
        row["model"]: _above(Uncertain(row["alpha"] - 0.5, row["alpha_error"]))
        for row in where(rows, steps=10)
        if not row["model"].endswith("DBN")
    }
