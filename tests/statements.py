"""Every place that states a verdict, a count or a comparison, sentence by sentence, and what the stored records make of it.

A `Quantity` is what several pages say of the same numbers, in whatever words: how a sentence says it, what the number depends on, and what the
records have. No sentence is registered: whoever writes a new one that says something else is contradicted. Words that a sentence leaves out
are taken from the ones before it in its paragraph; a table is a paragraph, whose rows are sentences. If whose weights or how many chains are
named nowhere, the sentence says it of all that there are.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby, product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from notebooks import NOTEBOOKS, read

from boltzmann_companion.build.book import claims_checked
from boltzmann_companion.build.status import status_table
from boltzmann_companion.claims import report
from boltzmann_companion.claims.checks import Row, Stored
from boltzmann_companion.claims.claims import CLAIMS, SUBJECTS
from boltzmann_companion.records import read_record
from boltzmann_companion.studies.bracket_tables import TABLES, verdict_of

# ---- sentences


@dataclass(frozen=True)
class Sentence:
    """What one sentence says, in digits and without markup; `before` is its paragraph up to it, and `around` its section or caption."""

    page: str
    text: str
    before: str = ""
    around: str = ""
    paragraph: str = ""
    in_table: bool = False


_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: n for n, word in enumerate(_UNITS.split())}
_WORDS |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
_PARTS = {"half": 0.5, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1, "hundredth": 0.01}
_NUMBER = "|".join(_WORDS)
_PLAIN: Sequence[tuple[str, Any]] = [
    (r"\{[\w:]+\}`([^`<]*?)(?: ?<[^>]*>)?`", " "),  # roles
    (r"<[^<>]+>", " "),
    (r"\[([^]]*)\]\([^)]*\)", r"\1"),
    (r"10\^\{?(\d)\}?", lambda found: str(10 ** int(found[1]))),
    (r"\\[,;]|\{,\}|\\hat|\\mathrm|\\|[*`$~]|&nbsp;", ""),
    ("[\N{MINUS SIGN}]", "-"),
    (r"\s+", " "),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"\b(?:an?|one) (?=hundred|thousand|million)", "1 "),
    (rf"\b({_NUMBER})\b", lambda found: str(_WORDS[found[1].lower()])),
    (r"\b(\d+) hundred thousand\b", r"\g<1>00000"),
    (r"\b(\d+) (?:hundred)\b", r"\g<1>00"),
    (r"\b(\d+) thousand\b", r"\g<1>000"),
    (r"\bhalf an?\b", "0.5"),
    (
        rf"\b(an?|\d+) ({'|'.join(_PARTS)})s?\b(?: of an?)?",
        lambda found: f"{_PARTS[found[2]] * (int(found[1]) if found[1].isdigit() else 1):g}",
    ),
    (r"\bnat\b", "nats"),
    (r"\ba nats\b", "1 nats"),
]


@cache
def plain(text: str) -> str:
    """A text without markup and with its numbers as digits.

    >>> plain("the **MNIST DBM**: less than half a nat at $K = 100{,}000$, two hundredths with ten thousand")
    'the MNIST DBM: less than 0.5 nats at K = 100000, 0.02 with 10000'
    """
    for pattern, new in _PLAIN:
        text = re.sub(pattern, new, text, flags=re.IGNORECASE)
    return text.strip()


def table_rows(lines: Sequence[str]) -> list[str]:
    """Each row of a Markdown table as a sentence: every cell after its heading."""
    cells = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    head, rows = cells[0], cells[2:]
    return ["; ".join(f"{h.strip()} {c.strip()}" for h, c in zip(head, row)) for row in rows]


def paragraphs(text: str) -> Iterator[list[str]]:
    """The sentences of each paragraph, item of a list or table of a Markdown text; a heading is a paragraph that begins with `#`."""
    text = re.sub(r"^```+[a-z]+$.*?^```+$", "", text, flags=re.M | re.S)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#)", text):
        lines = block.strip().splitlines()
        if lines and lines[0].startswith("|"):
            yield table_rows(lines)
        elif lines:
            yield re.split(r"(?<=[.!?])\s+(?=[A-Z0-9\"(\-*$])", " ".join(lines))


def sentences(page: str, text: str, around: str = "") -> Iterator[Sentence]:
    """Every sentence of a Markdown text, with what stands before it; `around` is what is said above it, as in a caption."""
    for parts in paragraphs(text):
        if parts[0].startswith("#"):
            around = ""
        before, in_table = (
            "",
            len(parts) > 1 and "; " in parts[0] and parts[0].count("; ") == parts[1].count("; "),
        )
        whole = plain(" ".join(parts))
        for part in map(plain, parts):
            yield Sentence(
                page, part, before, around, f"{around} {part}" if in_table else whole, in_table
            )
            before += f" {part}"
        around += before


def _of_notebook(path: Path) -> Iterator[Sentence]:
    page, section = path.stem, ""
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            yield from sentences(page, cell.source, section)
            *headings, own = re.split(r"^#+ .*$", cell.source, flags=re.MULTILINE)
            section = plain(own if headings else f"{section} {own}")
            continue
        places = [
            cell.metadata.get("paperlib", {}).get("table"),
            *cell.metadata.get("mystnb", {}).values(),
        ]
        caption = " ".join(each.get("caption", "") for each in places if isinstance(each, dict))
        yield from sentences(page, caption, section)
        for output in cell.get("outputs", []):
            printed = "\n\n".join(output.get("text", "").splitlines())
            shown = output.get("data", {}).get("text/markdown", printed)
            yield from sentences(page, shown, f"{section} {plain(caption)}")


def pages(root: Path) -> dict[str, list[Sentence]]:
    """The sentences of README, of every page and every chapter, by the name of the page."""
    texts = [root / "README.md", *sorted((root / "book").glob("*.md"))]
    found = {path.stem: list(sentences(path.stem, path.read_text())) for path in texts}
    for path in sorted((root / "book").glob("*.ipynb")):
        found[path.stem] = list(_of_notebook(path))
    return found


def made(root: Path) -> dict[str, list[Sentence]]:
    """What the companion makes of the records now: the report's tables, and the page Status."""
    found = report.claim_findings()
    tables = [
        report.conclusion_table(found),
        report.claim_table(found),
        report.bracket_table(report.report_rows()),
    ]
    captions = ["", "", "The brackets, with the authors' weights"]
    text = [
        s
        for t, c in zip(tables, captions, strict=True)
        for s in sentences("13-reproduction-report", repr(t), c)
    ]
    records = [read_record(path) for path in sorted((root / "figures/digits").glob("*.json"))]
    notebooks = {p.stem: read(p) for p in (root / "book").glob("*.ipynb")}
    checked = {(name, "digits"): claims_checked(each) for name, each in notebooks.items()}
    return {"the report": text, "status": list(sentences("status", status_table(records, checked)))}


# ---- what they say, and what the records have

#: What a number may depend on: the words for it, the longer ones first, and what they mean; several things if the words are a plural.
KEYS: Mapping[str, Sequence[tuple[str, Any]]] = {
    "model": [
        *(
            (name, name)
            for table in ("raise-table-1", "raise-table-2")
            for name in TABLES["paper"][table].models
        ),
        (r"CD25\(500\)", "mnistCD25-500"),
        (r"DBMs|deep Boltzmann machines?", ("MNIST DBM", "Omniglot DBM")),
        ("DBNs", ("MNIST DBN", "Omniglot DBN")),
    ],
    "start": [
        ("base rates of (?:v|the pixels)(?! and)", "pixels"),
        (r"base[ _]rates?|\bbase\b|average brightness", "base_rate"),
        ("uniform(?:ly)?", "uniform"),
    ],
    "steps": [
        ("the paper's K|effort of the RAISE paper", 100_000),
        *(
            (rf"\b{k}\b(?! (?:AIS|chains|images|chain-steps|runs|draws|test))", k)
            for k in (100_000, 10_000)
        ),
        *(
            (rf"\bK (?:= )?{k}\b|\b{k} (?:steps|intermediate|distributions)", k)
            for k in (1_000, 100, 10)
        ),
    ],
    "images": [("20 (?:of the |test )?images|images 20|20 of them", 20)],
    "chains": [
        (r"\b5000 (?:AIS )?chains|AIS (?:with|has) 5000", 5_000),
        (r"\b500 (?:AIS )?chains|AIS has 500", 500),
    ],
    "weights": [
        (r"[Aa]uthors' (?:own )?weights|released weights", "the authors'"),
        ("our (?:own )?(?:model|weights)", "ours"),
    ],
    "estimator": [
        ("[Pp]arallel tempering", "parallel tempering"),
        ("mean[ -]field's start|AIS, mean-field start", "AIS, mean-field start"),
        (r"\bAIS\b", "AIS"),
    ],
    "epochs": [
        (rf"after {n}\b|\b{n} epochs", n)
        for n in (5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100)
    ],
    "about": [
        (r"\bAIS\b", "AIS"),
        (r"\bRAISE\b", "RAISE"),
        (r"\bCSL\b", "CSL"),
        ("[Mm]odels|Their", "models"),
    ],
}
#: What is meant where nothing is said, and what is then said of all that there are.
USUAL = {"steps": 100_000, "images": 100}
OPEN = ("chains", "weights", "epochs")

_UPPER = "right to|less than|fewer than|below|under|within|at most|no more than|up to"
_LOWER = "more than|over|at least|above"
_ABOUT = "about|some|nearly|almost|around|roughly"
_VALUE = (
    rf"(?:(?:{_UPPER}|{_LOWER}|{_ABOUT}|only|by|to|of) )*(?<![\w.-])[+-]?\d+(?:\.\d+)?(?![\d.]*\d)"
)
_VERDICT = "closed|closes?|open|crossed|cannot tell"
Case: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Quantity:
    """What several pages say of the same numbers.

    Attributes
    ----------
    name : str
        What it is.
    cases : callable
        From the records: for each case what it depends on, named as in `KEYS`, and its numbers and verdicts.
    forms : tuple of str
        How a sentence says it: regular expressions, in which `#name` is a number of a case, and `@name` a verdict.
    about, unless : str
        Words that the sentence or what stands before it must have, and words that the sentence must not have.
    needs : tuple of str
        What has to be known, or the sentence is about nothing in particular.
    """

    name: str
    cases: Callable[[Stored], Iterator[Case]]
    forms: tuple[str, ...]
    about: str = ""
    unless: str = "$^"
    needs: tuple[str, ...] = ()

    @cached_property
    def patterns(self) -> list[re.Pattern[str]]:
        """The forms, with a group for each name."""
        groups = {"#": _VALUE, "@": rf"(?:{_VERDICT})\b"}
        return [
            re.compile(re.sub("([#@])([a-z_]+)", lambda m: f"(?P<{m[2]}>{groups[m[1]]})", form))
            for form in self.forms
        ]


@dataclass(frozen=True)
class Statement:
    """That a sentence says numbers or verdicts of a quantity, and of what."""

    quantity: Quantity
    sentence: Sentence
    said: Mapping[str, str]
    of: Mapping[str, Any]


def _mentions(dim: str, text: str) -> list[tuple[int, int, Any]]:
    found = []
    for pattern, value in KEYS[dim]:
        found += [(m.start(), m.end(), value) for m in re.finditer(pattern, text)]
        text = re.sub(pattern, lambda m: "\0" * len(m[0]), text)
    return sorted(found, key=lambda each: each[:2])


def _key(dim: str, sentence: Sentence, match: re.Match[str]) -> Any:
    """What a match is about: what follows it as in `4 nats for the MNIST DBM`, or was named last, or comes next."""
    mentions = _mentions(dim, sentence.text)
    inside = [m for m in mentions if match.start() <= m[0] < match.end()]
    after = [m for m in mentions if m[0] >= match.end()]
    before = [m for m in mentions if m[1] <= match.start()]
    if after:
        between = sentence.text[match.end() : after[0][0]]
        if re.fullmatch(
            r"(?: nats)?,? (?:for|on|of|from|with|at|after|in) (?:(?!and\b)[\w']+ ){0,4}", between
        ):
            return after[0][2]
    if chosen := inside[-1:] or before[-1:] or after[:1]:
        return chosen[0][2]
    # a row of a table goes on with the one above it only in so many words
    goes_on = not sentence.in_table or (dim not in OPEN and re.search("[Tt]hey ", sentence.text))
    earlier = _mentions(dim, sentence.before) if goes_on else []
    if not earlier and (dim in OPEN or dim == "start" or (dim == "steps" and sentence.in_table)):
        earlier = _mentions(dim, sentence.around)
    return earlier[-1][2] if earlier else None


def statements(quantity: Quantity, cases: list[Case], sentence: Sentence) -> Iterator[Statement]:
    """What a sentence says of a quantity."""
    found = [match for pattern in quantity.patterns for match in pattern.finditer(sentence.text)]
    if (
        found
        and not re.search(quantity.unless, sentence.text)
        and re.search(quantity.about, f"{sentence.around} {sentence.before} {sentence.text}")
    ):
        dims = [dim for dim in KEYS if any(dim in case for case in cases)]
        for match in found:
            of = {dim: _key(dim, sentence, match) for dim in dims}
            if all(of[dim] is not None for dim in quantity.needs):
                yield Statement(quantity, sentence, match.groupdict(), of)


def _meets(said: str, truth: float | str) -> bool:
    """Whether a number agrees with the true one as far as it is printed, or a verdict with the right one."""
    if isinstance(truth, str):
        return re.sub("closes?$", "closed", said) == truth
    digits = re.search(r"\d+(?:\.(\d+))?$", said)
    assert digits
    number, truth = float(digits[0]), abs(truth)
    if re.search(_UPPER, said):
        return truth <= number
    if re.search(_LOWER, said):
        return truth >= number
    half = 0.5 * 10.0 ** -len(digits[1] or "") + 1e-9
    return abs(truth - number) <= (max(half, 0.1 * number) if re.search(_ABOUT, said) else half)


def _fits(value: Any, of: Any) -> bool:
    return of is None or value == of or (isinstance(of, tuple) and value in of)


def holds(statement: Statement, cases: list[Case], on_page: Mapping[str, set[Any]]) -> bool:
    """Whether the records say so, for everything that the statement leaves open."""
    of = {dim: statement.of[dim] or USUAL.get(dim) for dim in statement.of}
    chosen = [case for case in cases if all(_fits(case[dim], of[dim]) for dim in of if dim in case)]
    groups: dict[tuple[Any, ...], list[Case]] = {}
    for case in chosen:
        group = tuple(case.get(dim) for dim in OPEN)
        if all(
            of.get(d) or d not in on_page or v in on_page[d]
            for d, v in zip(OPEN, group, strict=True)
        ):
            groups.setdefault(group, []).append(case)
    bound = any(
        re.search(rf"{_UPPER}|{_LOWER}", said) or not said[-1].isdigit()
        for said in statement.said.values()
    )
    some = all if bound and isinstance(of.get("model"), tuple) else any
    return bool(groups) and all(
        some(
            all(name in case and _meets(said, case[name]) for name, said in statement.said.items())
            for case in group
        )
        for group in groups.values()
    )


# ---- the quantities


RBMS, DEEP = "raise-table-1", "raise-table-2"
_STARTS = {
    "base rates": "base_rate",
    "base rates of v": "pixels",
    "base rates of v and h2": "base_rate",
}


def _brackets(s: Stored) -> Iterator[Case]:
    """Every bracket of AIS and RAISE: its gap, and what that says."""

    def case(row: Row, start: str, column: str = "", **more: Any) -> Case:
        own = {
            "model": row["model"],
            "start": _STARTS.get(start, start),
            "steps": row["steps"],
            "chains": 5_000,
        } | more
        return own | {"gap": row[f"{column}_gap".lstrip("_")]}

    theirs = {"weights": "the authors'"}
    for name in (RBMS, DEEP, "raise-own-weights"):
        for row, start in product(s.rows(name), ("uniform", "base_rate")):
            weights = (
                theirs if "own" in name else {"weights": "ours"} if "CD25" in row["model"] else {}
            )
            yield case(row, start, start, **weights, verdict=verdict_of(row, start))
    for name in ("raise-figure-3", "raise-figure-7", "raise-own-weights-by-k", "dbm-starts"):
        for row in s.rows(name):
            if row["steps"] < 100_000:
                weights = (
                    theirs
                    if "own" in name
                    else {"weights": "ours"}
                    if "CD25" in row["model"]
                    else {}
                )
                few = {"chains": 500} if name == "dbm-starts" else {}
                yield case(row, row["start"], **weights, **few, verdict=verdict_of(row))
    for row in s.rows("raise-longer"):
        yield case(row, "base_rate", images=20)


def _counts(s: Stored) -> Iterator[Case]:
    """How many brackets are closed, open or crossed: of the six RBMs, and of those that the report counts."""
    for start in ("base_rate", "uniform"):
        rbms = s.rows(RBMS)
        deep = [row for row in s.rows(DEEP) if start == "uniform" or row["model"].endswith("DBM")]
        judged = (
            [row for row in rbms if row["model"] != "mnistCD25-500"]
            + s.rows("raise-own-weights")
            + deep
        )
        for rows in (rbms, judged):
            said = Counter(verdict_of(row, start) for row in rows)
            yield {"start": start, "total": len(rows)} | {
                word: said[word] for word in ("closed", "open", "crossed")
            }


def _within(s: Stored) -> Iterator[Case]:
    """For how many RBMs the bracket from the base rates is closed to a tenth of a nat, with and without the paper's exception."""
    rows = {row["model"]: verdict_of(row, "base_rate", tolerance=0.1) for row in s.rows(RBMS)}
    for left_out in ("", "mnistCD1-20"):
        found = [said for model, said in rows.items() if model != left_out]
        yield {
            "total": len(found),
            "within": found.count("closed"),
            "outside": found.count("open") + found.count("crossed"),
        }


def _longest(s: Stored) -> Iterator[Case]:
    """The largest K of every curve; no run at the paper's K is missing if it is that."""
    for name in ("raise-figure-3", "raise-figure-7"):
        for (model, start), rows in groupby(s.rows(name), lambda row: (row["model"], row["start"])):
            last = max(row["steps"] for row in rows)
            yield {
                "model": model,
                "start": _STARTS.get(start, start),
                "last": last,
                "missing": math.nan if last == 100_000 else 100_000,
            }


def _coverage(s: Stored) -> Iterator[Case]:
    """How many 95 % intervals hold ln Z, of all and of those without a warning, on nine models, on the tenth, and on all."""
    rows = s.rows("estimator-coverage")
    for row in rows:
        held = round(row["held_95"] * row["runs"] / 100)
        own = {"estimator": row["estimator"], "budget": row["budget"]}
        yield own | {"runs": row["runs"], "held": held, "unwarned": row["unwarned"]}
        yield own | {
            "runs": row["unwarned"],
            "held": round((row["unwarned_95"] or 0) * row["unwarned"] / 100),
        }
        if row["models"] == "no hidden mode":
            yield own | {"runs": row["runs"] + 100, "held": held}


def _csl(s: Stored) -> Iterator[Case]:
    """By how much CSL falls short of RAISE and of AIS, and what it is for the authors' weights."""
    rows = s.rows(RBMS)
    short = sorted(r["base_rate_raise"] - r["csl"] for r in rows)
    tens = [r["base_rate_ais"] - r["csl"] > 10 for r in rows]
    yield {
        "low": short[1],
        "high": short[-1],
        "models": len(rows) - 1,
        "tens": sum(tens),
        "total": len(rows),
    }
    yield {"csl": s.rows("raise-own-weights")[0]["csl"]}


def _lead(s: Stored) -> Iterator[Case]:
    """By how much CD3(500) is better than CD1(500), by the length of training, as a mean and from seed to seed."""
    paths = {
        (row["model"], row["epoch"], row["seed"]): row["test"]
        for row in s.rows("sm2008-training-paths", distrusted="no")
        if row["model"] in ("CD3(500)", "CD1(500)")
    }
    leads: dict[int, list[float]] = {}
    for (model, epoch, seed), test in paths.items():
        if model == "CD3(500)" and ("CD1(500)", epoch, seed) in paths:
            leads.setdefault(epoch, []).append(test - paths["CD1(500)", epoch, seed])
    for epoch, found in leads.items():
        yield {"epochs": epoch, "lead": fmean(found), "low": min(found), "high": max(found)}


def _start(s: Stored) -> Iterator[Case]:
    """How wrong AIS is on mnistPCD-20."""
    row = s.row(RBMS, model="mnistPCD-20")
    for start in ("uniform", "base_rate"):
        yield {"start": start, "off": row[f"{start}_ais"] - row["exact"]}


def _above_exact(s: Stored) -> Iterator[Case]:
    """By how much RAISE from the base rates exceeds the exact value."""
    over = {
        row["model"]: row["base_rate_raise"] - row["exact"]
        for row in s.rows(RBMS)
        if row["exact"] is not None
    }
    for model, value in over.items():
        yield {
            "model": model,
            "over": value,
            "first": over["mnistCD1-20"],
            "second": over["mnistPCD-20"],
        }


def _trusted(s: Stored) -> Iterator[Case]:
    """How many evaluations with a known answer were trusted, and what became of the others: in both studies, and in the first."""
    held_out = s.rows("evaluate-study-held-out")
    first, deep = (s.rows(name) for name in ("evaluate-study", "evaluate-study-deep"))
    for rows in (first + held_out, first, held_out, deep):
        outcomes = Counter(row["outcome"] for row in rows)
        right = sum(abs(row["value_error"]) <= 1 for row in rows)
        yield {
            "evaluations": len(rows),
            "drawn": len(held_out),
            "trusted": sum(
                number for outcome, number in outcomes.items() if outcome.endswith(", trusted")
            ),
            "suspected": outcomes["right, suspected"],
            "right": right,
        }


def _conclusions(s: Stored) -> Iterator[Case]:
    """How many of the papers' conclusions hold, by what they are about."""
    for about in (*SUBJECTS, "all"):
        found = Counter(
            claim.finding(s.record).outcome for claim in CLAIMS if about in ("all", claim.about)
        )
        own = {
            "hold": found["holds"],
            "partly": found["partly"],
            "fail": found["does not hold"],
            "claims": found.total(),
        }
        yield own | ({} if about == "all" else {"about": about})


def _coin_flips(s: Stored) -> Iterator[Case]:
    """By how much the authors' CD25(500) is better on its training images, as they were and binarised anew."""
    gaps = {row["model"]: row["gap"] for row in s.rows("exact-binarization")}
    own = gaps.pop("as in training")
    yield {"own": own, "low": min(gaps.values()), "high": max(gaps.values())}


def _meeting(s: Stored) -> Iterator[Case]:
    """The values of ln Z that give both published averages to the last digit."""
    row = s.row("exact-binarization", model="as in training")
    over = [row["train"] + 83.10, row["test"] + 86.34]
    yield {"low": max(over) - 0.005, "high": min(over) + 0.005}


_MODEL = r"(?:mnist\w+-\d+|omniPCD-1000|(?:MNIST|Omniglot) DB[MN])"
QUANTITIES = [
    Quantity(
        "a bracket",
        _brackets,
        (
            r"\b(?<!\d )(?:bracket|it|that|this|This|That|It)\b[^.;:]{0,60}? (?:is|stays?|remains?) @verdict",
            r"(?<!\d )\bbrackets\b[^.;:]{0,60}? (?:are|stay|remain) @verdict",
            r"brackets?\b[^.;:]{0,40}? (?P<verdict>closes?)\b",
            r"(?P<verdict>closes?) the brackets?",
            r"close the brackets? of [^.;,]*? #gap nats",
            r"(?P<verdict>[Cc]losed|[Oo]pen|[Cc]rossed) brackets? of",
            r"gap [^;]*nats, @verdict",
            r"bracket, (?:uniform|base)(?: rates)? @verdict",
            r"@verdict(?:: ours for [\w-]+|,)? #gap nats",
            rf"{_MODEL} #gap(?= ± [\d.]+ at K)",
            rf"(?:open|crossed|cannot tell|,) {_MODEL} #gap(?=,|;|$)",
            r"(?<!error of the )\bgaps?\b(?!\")(?:, (?:uniform|base|mean)[^;\d]*|(?:(?! closes)[^.;\d±]){0,60}?)#gap(?= ?±| nats|;|, where| and \d|\.? ?$)",
            r"\b\d+ leaves? #gap(?! (?:hidden|of))",
        ),
        about="[Bb]racket|gap",
        unless=r"digits|\b[Ii]f\b|[Pp]ublished|CSL|lowest AIS|paper has|training|Table \d has|would|not close",
        needs=("model",),
    ),
    Quantity(
        "how many brackets are closed",
        _counts,
        (
            r"#closed of (?:the |our )?#total brackets[^.;]*? (?:is|are) closed",
            r"#closed (?:brackets? )?(?:is|are|stays?) closed",
            r"#open (?:brackets? )?(?:is|are|stays?) open",
            r"#crossed (?:brackets? )?(?:is|are|stays?) crossed",
            r"brackets #total; closed #closed",
        ),
        about="bracket",
        unless="digits|trials",
    ),
    Quantity(
        "brackets within a tenth of a nat",
        _within,
        ("#within of #total within 0\\.1", "[Nn]o gap of the #total RBMs is within 0\\.1"),
    ),
    Quantity(
        "the largest K",
        _longest,
        (
            r"(?:start|K|DBMs|it)\b[^.;]{0,40} ends? at #last",
            r"#missing steps, those of [^.]* are missing",
        ),
        about="DBM|bracket|Boltzmann",
        needs=("model",),
    ),
    Quantity(
        "intervals that hold ln Z",
        _coverage,
        (r"#held of (?:the )?(?P<runs>900|1000|690)\b", "#runs intervals[^.;]*?, #held hold"),
        about="95 % intervals|intervals (?:with|of parallel|hold)",
        unless="experiments|99 of",
    ),
    Quantity(
        "CSL",
        _csl,
        (
            r"CSL is #low to #high nats below RAISE[^.]* for #models models",
            r"#tens of #total models(?:,| by more)",
            r"CSL[^.;]*?[:,] (?:it is )?#csl nats(?: here|, where)",
        ),
        about=r"CSL[^.]*tens of nats|CSL[^.]*paper|CSL is",
    ),
    Quantity(
        "CD3(500) over CD1(500)",
        _lead,
        (
            r"CD3\(500\) (?:leads|is ahead of) CD1\(500\) by #lead nats",
            r"and by #lead after",
            r"#low to #high nats(?= after \d+ epochs)",
        ),
        about=r"CD3\(500\)[^.]* CD1\(500\)",
        unless=r"CD25\(500\) is",
    ),
    Quantity(
        "the start of AIS on mnistPCD-20",
        _start,
        (r"AIS is wrong #off nats", r"(?:[Ff]rom|[Ss]tarted)[^.;]* it is #off nats"),
        about="mnistPCD-20|model with (?:only )?20 hidden",
    ),
    Quantity(
        "RAISE above the exact value",
        _above_exact,
        (
            r"by #first and by #second nats",
            r"less the exact value: #over nats",
            r"RAISE exceeds the exact value[^.]*? by #over nats",
        ),
        about="exact value",
    ),
    Quantity(
        "evaluations that were trusted",
        _trusted,
        (
            r"[Oo]f #evaluations evaluations[^.]*?, #drawn of them[^.]* trusted #trusted",
            r"suspected #suspected of the #right",
            r"[Oo]f #evaluations evaluations(?! of 9)[^.]*? trusted #trusted",
        ),
        about="evaluat",
    ),
    Quantity(
        "the papers' conclusions",
        _conclusions,
        (
            r"#hold of #claims (?:claims )?hold",
            r"claims #claims; hold #hold; hold in part #partly; do not hold #fail",
            r"hold, #partly in part",
            r"hold, (?:and )?#partly in part, and #fail do",
        ),
        about="claims|conclusions",
    ),
    Quantity(
        "coin flips",
        _coin_flips,
        (
            r"(?:training images|test images)[^.;]{0,40} by #own nats",
            r"#low to #high (?:nats |of these )?(?:are|is) left",
            r"the gap is #low to #high nats",
        ),
        about="binarised anew|coin flips",
    ),
    Quantity("the ln Z of both averages", _meeting, (r"ln Z,? (?:lies )?between #low and #high",)),
]


def _claims_as_said(_: Stored) -> Iterator[Case]:
    """How many claims each chapter checks; all came out as the text says, or its run would have stopped."""
    for path in NOTEBOOKS:
        number = claims_checked(read(path)).total()
        yield {"as_said": number, "of": number}


QUANTITIES.append(
    Quantity(
        "claims of a chapter",
        _claims_as_said,
        ("claims [a-z ]*#as_said of #of\\b",),
        about="claims that hold|as the text says",
    )
)

_NONE = r"\b(?:none|no run|0 of (?:the )?100|every run)\b"
#: What is not said without its exception, or without what makes it comparable, in the same paragraph.
EXCEPTIONS = [
    ("853 of 900 intervals hold ln Z", r"(?<![.\d])853\b", rf"hidden.*{_NONE}|{_NONE}.*hidden"),
    ("CSL beside the paper's", r"CSL.*-145", r"\b(?:kept|keep|keeps)\b"),
]


class Contradiction(NamedTuple):
    """A sentence that the records contradict, or another one."""

    page: str
    sentence: str
    why: str


def walk(
    sentences: Sequence[Sentence], s: Stored
) -> tuple[list[Contradiction], Counter[tuple[str, str]]]:
    """What the records contradict, and how many statements of each quantity stand on which page."""
    wrong, number = dict[Contradiction, None](), Counter[tuple[str, str]]()
    for quantity in QUANTITIES:
        cases = list(quantity.cases(s))
        found = [said for sentence in sentences for said in statements(quantity, cases, sentence)]
        named: dict[str, set[Any]] = {}
        for each in found:
            named.setdefault(each.sentence.page, {"ours"}).add(each.of.get("weights"))
        for each in found:
            number[quantity.name, each.sentence.page] += 1
            if not holds(each, cases, {"weights": named[each.sentence.page]}):
                of = {dim: value for dim, value in each.of.items() if value is not None}
                why = f"{quantity.name}: {dict(each.said)} of {of}"
                wrong[Contradiction(each.sentence.page, each.sentence.text, why)] = None
    for each, (what, headline, exception) in product(sentences, EXCEPTIONS):
        if re.search(headline, each.text):
            number[what, each.page] += 1
            if not re.search(exception, each.paragraph):
                wrong[Contradiction(each.page, each.text, f"{what}: its exception is left out")] = (
                    None
                )
    return list(wrong), number


def of_two_runs(page: str, text: str) -> Iterator[Contradiction]:
    """Reports of `evaluate` in a text whose average is not the one to quote."""
    for report_text in re.findall(
        r"^Average test log-prob.*?^To quote: .*?$", text, re.MULTILINE | re.DOTALL
    ):
        first, *_, last = report_text.splitlines()
        if re.findall(r"-?\d+\.\d+", first) != re.findall(r"-?\d+\.\d+", last):
            yield Contradiction(page, last, f"of another run than: {first}")
