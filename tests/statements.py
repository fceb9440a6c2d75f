"""What several places say of the same quantity, and what the stored records make of it.

A `Quantity` is how a sentence states some numbers, what they depend on, and what the records have. No sentence is registered: a new one that
says something else is contradicted. What a sentence leaves out is taken from the ones before it in its paragraph; rows are the sentences of a
table. If whose weights, how many chains or how many epochs are named nowhere, it says it of all that there are.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from notebooks import NOTEBOOKS, read
from prose import both_averages
from sentences import Sentence

from boltzmann_companion.build.status import claims_checked
from boltzmann_companion.claims.checks import Row, Stored
from boltzmann_companion.claims.claims import CLAIMS, SUBJECTS
from boltzmann_companion.studies.bracket_tables import TABLES, verdict_of

RBMS, DEEP = "raise-table-1", "raise-table-2"
MODELS = [name for table in (RBMS, DEEP) for name in TABLES["paper"][table].models]

# fmt: off
#: What a number may depend on: the words for it, the longer ones first, and what they mean; several things if the words are a plural.
KEYS: Mapping[str, Sequence[tuple[str, Any]]] = {
    "model": [
        *((name, name) for name in MODELS),
        (r"CD25\(500\)", "mnistCD25-500"),
        ("DBMs|deep Boltzmann machines?", ("MNIST DBM", "Omniglot DBM")),
        ("DBNs", ("MNIST DBN", "Omniglot DBN")),
    ],
    "start": [
        ("base rates of (?:v|the pixels)(?! and)", "pixels"),
        (r"base[ _]rates?|\bbase\b|average brightness", "base_rate"),
        ("uniform(?:ly)?", "uniform"),
    ],
    "steps": [
        ("the paper's K|effort of the RAISE paper", 100_000),
        *((rf"\b{k}\b(?! (?:AIS|chains|images|chain-steps|runs|draws|test))", k) for k in (100_000, 10_000)),
        *((rf"\bK (?:= )?{k}\b|\b{k} (?:steps|intermediate|distributions)", k) for k in (1_000, 100, 10)),
    ],
    "chains": [(r"\b5000 (?:AIS )?chains|AIS (?:with|has) 5000", 5_000), (r"\b500 (?:AIS )?chains|AIS has 500", 500)],
    "weights": [
        ("[Aa]uthors' (?:own )?weights|released weights", "the authors'"),
        ("[Oo]ur (?:own )?(?:models?|weights|mnist)|of our own|is ours", "ours"),
    ],
    "estimator": [
        ("[Pp]arallel tempering", "parallel tempering"),
        ("mean[ -]field's start|AIS, mean-field start", "AIS, mean-field start"),
        (r"\bAIS\b", "AIS"),
    ],
    "budget": [("100000 chain-steps", 100_000), (r"10000 chain-steps|0\.1 of the chain-steps", 10_000)],
    "epochs": [(rf"after {n}\b|\b{n} epochs", n) for n in (*range(5, 30, 5), *range(30, 301, 10))],
    "about": [(r"\bAIS\b", "AIS"), (r"\bRAISE\b", "RAISE"), (r"\bCSL\b", "CSL"), ("[Mm]odels|Their", "models")],
}
# fmt: on
#: What is meant where nothing is said, and what is then said of all that there are.
USUAL = {"steps": 100_000}
OPEN = ("chains", "weights", "epochs")

_UPPER = "right to|less than|fewer than|below|under|within|at most|no more than|up to"
_LOWER = "more than|over|at least|above"
_ABOUT = "about|some|nearly|almost|around|roughly"
_WORDS = rf"(?:(?:{_UPPER}|{_LOWER}|{_ABOUT}|only|by|to|of) )*"
_VALUE = rf"{_WORDS}(?<![\w.-])[+-]?\d+(?:\.\d+)?(?![\d.]*\d)"
_VERDICT = r"(?:closed|closes?|open|crossed|cannot tell)\b"
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
        What the sentence, or what stands before it, must say; and what the sentence must not say.
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

        def group(found: re.Match[str]) -> str:
            return f"(?P<{found[2]}>{_VALUE if found[1] == '#' else _VERDICT})"

        return [re.compile(re.sub("([#@])([a-z_]+)", group, form)) for form in self.forms]


class Statement(NamedTuple):
    """The numbers or verdicts of a quantity that a sentence says, and of what."""

    sentence: Sentence
    said: Mapping[str, str]
    of: Mapping[str, Any]


def _mentions(dim: str, text: str) -> list[tuple[int, int, Any]]:
    found = []
    for pattern, value in KEYS[dim]:
        found += [(m.start(), m.end(), value) for m in re.finditer(pattern, text)]
        text = re.sub(pattern, lambda m: "\0" * len(m[0]), text)
    return sorted(found, key=lambda each: each[:2])


# between a number and what it belongs to, as in `4 nats for the MNIST DBM`
_BELONGS = r"(?: nats)?,? (?:for|on|of|from|with|at|after|in) (?:(?!and\b)[\w']+ ){0,4}"


def _key(dim: str, sentence: Sentence, match: re.Match[str]) -> Any:
    """What a match is about: what follows it at once, or was named last, or comes next."""
    mentions = _mentions(dim, sentence.text)
    before = [m for m in mentions if m[0] < match.end()]
    after = [m for m in mentions if m[0] >= match.end()]
    if after and re.fullmatch(_BELONGS, sentence.text[match.end() : after[0][0]]):
        return after[0][2]
    if chosen := before[-1:] or after[:1]:
        return chosen[0][2]
    # a row of a table goes on with the one above it only in so many words
    goes_on = not sentence.in_table or (dim not in OPEN and re.search("[Tt]hey ", sentence.text))
    earlier = _mentions(dim, sentence.before) if goes_on else []
    if not earlier and (dim in OPEN or (sentence.in_table and dim in ("start", "steps"))):
        earlier = _mentions(dim, sentence.around)
    return earlier[-1][2] if earlier else None


def statements(quantity: Quantity, dims: set[str], sentence: Sentence) -> Iterator[Statement]:
    """What a sentence says of a quantity that depends on `dims`."""
    found = [match for pattern in quantity.patterns for match in pattern.finditer(sentence.text)]
    if not found or re.search(quantity.unless, sentence.text):
        return
    if re.search(quantity.about, f"{sentence.around} {sentence.before} {sentence.text}"):
        for match in found:
            of = {dim: _key(dim, sentence, match) for dim in KEYS if dim in dims}
            if all(of[dim] is not None for dim in quantity.needs):
                yield Statement(sentence, match.groupdict(), of)


def meets(said: str, truth: float | str) -> bool:
    """Whether a number agrees with the true one as far as it is printed, or a verdict with the right one."""
    if isinstance(truth, str):
        return re.sub("closes?$", "closed", said.lower()) == truth
    words, number, digits = re.fullmatch(r"(.*?)[+-]?(\d+(?:\.(\d+))?)", said).groups()
    value, size = float(number), abs(truth)
    if re.search(_UPPER, words):
        return size <= value
    if re.search(_LOWER, words):
        return size >= value
    rounding = 0.5 * 10.0 ** -len(digits or "") + 1e-9
    return abs(size - value) <= (
        max(rounding, value / 10) if re.search(_ABOUT, words) else rounding
    )


def holds(statement: Statement, cases: Sequence[Case], on_page: set[str]) -> bool:
    """Whether the records say so, for all that the statement leaves open; of weights, for those that its page speaks of."""
    of = {dim: value or USUAL.get(dim) for dim, value in statement.of.items()}
    groups: dict[tuple[Any, ...], list[bool]] = {}
    for case in cases:
        known = [
            (case[dim], value) for dim, value in of.items() if dim in case and value is not None
        ]
        fits = all(
            own == value or (isinstance(value, tuple) and own in value) for own, value in known
        )
        if fits and (of.get("weights") or case.get("weights", "ours") in on_page):
            right = all(
                name in case and meets(said, case[name]) for name, said in statement.said.items()
            )
            groups.setdefault(tuple(case.get(dim) for dim in OPEN), []).append(right)
    # `the DBMs are closed, to less than 1 nats` is said of each, and `the gaps of the DBMs are 1 and 2 nats` of one
    bounds = rf"{_UPPER}|{_LOWER}|{_VERDICT}"
    of_each = any(re.search(bounds, said) for said in statement.said.values())
    some = all if of_each and isinstance(of.get("model"), tuple) else any
    return bool(groups) and all(map(some, groups.values()))


# ---- the quantities

_STARTS = {
    "base rates": "base_rate",
    "base rates of v": "pixels",
    "base rates of v and h2": "base_rate",
}


def _brackets(s: Stored) -> Iterator[Case]:
    """Every bracket of AIS and RAISE: its gap, and what that says."""

    def case(record: str, row: Row, start: str, column: str = "") -> dict[str, Any]:
        own = {"model": row["model"], "start": _STARTS.get(start, start), "steps": row["steps"]}
        if row["model"] == "mnistCD25-500":
            own["weights"] = "the authors'" if "own-weights" in record else "ours"
        return own | {
            "chains": 500 if record == "dbm-starts" else 5_000,
            "gap": row[f"{column}gap"],
        }

    for name, start in product((RBMS, DEEP, "raise-own-weights"), ("uniform", "base_rate")):
        for row in s.rows(name):
            yield case(name, row, start, f"{start}_") | {"verdict": verdict_of(row, start)}
    for name in ("raise-figure-3", "raise-figure-7", "raise-own-weights-by-k", "dbm-starts"):
        for row in s.rows(name):
            if row["steps"] < 100_000:
                yield case(name, row, row["start"]) | {"verdict": verdict_of(row)}


def _counts(s: Stored) -> Iterator[Case]:
    """How many brackets are closed, open or crossed: of the six RBMs, and of those that the report counts."""
    rbms, own, deep = s.rows(RBMS), s.rows("raise-own-weights"), s.rows(DEEP)
    for start in ("base_rate", "uniform"):
        judged = [row for row in rbms if row["model"] != own[0]["model"]] + own
        judged += [row for row in deep if start == "uniform" or row["model"].endswith("DBM")]
        for rows in (rbms, judged):
            said = Counter(verdict_of(row, start) for row in rows)
            yield {
                "start": start,
                "total": len(rows),
                **{v: said[v] for v in ("closed", "open", "crossed")},
            }


def _within(s: Stored) -> Iterator[Case]:
    """For how many RBMs the bracket from the base rates is closed to a tenth of a nat, with and without the paper's exception."""
    said = {row["model"]: verdict_of(row, "base_rate", tolerance=0.1) for row in s.rows(RBMS)}
    for left_out in ("none", "mnistCD1-20"):
        found = [verdict for model, verdict in said.items() if model != left_out]
        yield {"total": len(found), "within": found.count("closed")}


def _longest(s: Stored) -> Iterator[Case]:
    """The largest K of every curve; no run at the paper's K is missing if it is that."""
    for name in ("raise-figure-3", "raise-figure-7"):
        for (model, start), rows in groupby(s.rows(name), lambda row: (row["model"], row["start"])):
            last = max(row["steps"] for row in rows)
            missing = math.nan if last == 100_000 else 100_000
            yield {
                "model": model,
                "start": _STARTS.get(start, start),
                "last": last,
                "missing": missing,
            }


def _coverage(s: Stored) -> Iterator[Case]:
    """How many 95 % intervals hold ln Z: of all on nine models, of those without a warning, on the tenth, and on all ten."""
    exact = s.rows("estimator-study-models", known_to="exact")
    models = sum(row["kind"] != "hidden mode" for row in exact)
    for row in s.rows("estimator-coverage"):
        held, without = round(row["held_95"] * row["runs"] / 100), row["unwarned"]
        held_without = round((row["unwarned_95"] or 0) * without / 100)
        own = {"estimator": row["estimator"], "budget": row["budget"], "models": models}
        for runs, number in ((row["runs"], held), (without, held_without), (1_000, held)):
            yield own | {"runs": runs, "held": number}


def _csl(s: Stored) -> Iterator[Case]:
    """By how much CSL falls short of RAISE and of AIS, and what it is for the authors' weights."""
    rows = s.rows(RBMS)
    short = sorted(row["base_rate_raise"] - row["csl"] for row in rows)[1:]
    tens = sum(row["base_rate_ais"] - row["csl"] > 10 for row in rows)
    yield {
        "low": short[0],
        "high": short[-1],
        "models": len(short),
        "tens": tens,
        "total": len(rows),
    }
    yield {"csl": s.rows("raise-own-weights")[0]["csl"]}


def _lead(s: Stored) -> Iterator[Case]:
    """By how much CD3(500) is better than CD1(500), by the length of training, as a mean and from seed to seed."""
    better, worse = (
        {
            (row["epoch"], row["seed"]): row["test"]
            for row in s.rows("sm2008-training-paths", model=model, distrusted="no")
        }
        for model in ("CD3(500)", "CD1(500)")
    )
    for epoch, seeds in groupby(sorted(better.keys() & worse.keys()), lambda each: each[0]):
        leads = [better[each] - worse[each] for each in seeds]
        yield {"epochs": epoch, "lead": fmean(leads), "low": min(leads), "high": max(leads)}


def _start(s: Stored) -> Iterator[Case]:
    """How wrong AIS is on mnistPCD-20."""
    row = s.row(RBMS, model="mnistPCD-20")
    for start in ("uniform", "base_rate"):
        yield {"start": start, "off": row[f"{start}_ais"] - row["exact"]}


def _above_exact(s: Stored) -> Iterator[Case]:
    """By how much RAISE from the base rates exceeds the exact value."""
    rows = [row for row in s.rows(RBMS) if row["exact"] is not None]
    first, second = (row["base_rate_raise"] - row["exact"] for row in rows)
    for row, over in zip(rows, (first, second), strict=True):
        yield {"model": row["model"], "over": over, "first": first, "second": second}


def _trusted(s: Stored) -> Iterator[Case]:
    """How many evaluations with a known answer were trusted, and what became of the others, by study."""
    first, held_out, deep = (s.rows(f"evaluate-study{name}") for name in ("", "-held-out", "-deep"))
    for rows in (first + held_out, first, held_out, deep):
        outcomes = Counter(row["outcome"] for row in rows)
        yield {
            "evaluations": len(rows),
            "drawn": len(held_out),
            "trusted": sum(
                number for outcome, number in outcomes.items() if outcome.endswith(", trusted")
            ),
            "suspected": outcomes["right, suspected"],
            "right": sum(abs(row["value_error"]) <= 1 for row in rows),
        }


def _conclusions(s: Stored) -> Iterator[Case]:
    """How many of the papers' conclusions hold, by what they are about."""
    for about in (*SUBJECTS, ""):
        found = Counter(
            claim.finding(s.record).outcome for claim in CLAIMS if about in ("", claim.about)
        )
        own = {"hold": found["holds"], "partly": found["partly"], "fail": found["does not hold"]}
        yield own | {"claims": found.total()} | ({"about": about} if about else {})


def _coin_flips(s: Stored) -> Iterator[Case]:
    """By how much the authors' CD25(500) is better on its training images, as they were and binarised anew."""
    gaps = s.column("exact-binarization", "gap")
    own = gaps.pop("as in training")
    yield {"own": own, "low": min(gaps.values()), "high": max(gaps.values())}


def _meeting(s: Stored) -> Iterator[Case]:
    """The values of ln Z that give both published averages to the last digit."""
    low, high = both_averages(s)
    yield {"low": low, "high": high}


def _claims(_: Stored) -> Iterator[Case]:
    """How many claims each chapter checks; all came out as the text says, or its run would have stopped."""
    for path in NOTEBOOKS:
        number = claims_checked(read(path)).total()
        yield {"as_said": number, "claims": number}


# fmt: off
_MODEL = f"(?:{'|'.join(MODELS)})"
QUANTITIES = [
    Quantity("a bracket", _brackets, (
        r"\b(?<!\d )(?:bracket|[Ii]t|[Tt]hat(?= of)|[Tt]his)\b[^.;:]{0,60}? (?:is|stays?|remains?) @verdict",
        r"\b(?<!\d )brackets\b[^.;:]{0,60}? (?:are|stay|remain) @verdict",
        r"brackets?\b[^.;:]{0,40}? (?P<verdict>closes?)\b",
        r"(?P<verdict>closes?) the brackets?",
        r"close the brackets? of [^.;,]*? #gap nats",
        r"(?P<verdict>[Cc]losed|[Oo]pen|[Cc]rossed) brackets? of",
        r"gap [^;]*nats, @verdict",
        r"bracket, (?:uniform|base)(?: rates)? @verdict",
        r"@verdict(?:: ours for [\w-]+|,)? #gap nats",
        rf"{_MODEL} #gap(?= ± [\d.]+ at K)",
        rf"(?:open|crossed|cannot tell|,) {_MODEL}(?: \(the authors' weights\))? #gap(?=,|;|$)",
        r"(?<!error of the )(?<!their )(?<!largest )\bgaps?\b(?!\")(?:, (?:uniform|base|mean)[^;\d]*|(?:(?! closes)[^.;\d±]){0,60}?)"
        r"#gap(?= ?±| nats|;|, where| and \d|\.? ?$)",
        r"(?:,| and) #gap(?: nats)? for the (?:MNIST|Omniglot) DB",
        r"gaps of [^.;]* \d+\.\d+ and #gap nats",
        r"\b\d+ leaves? #gap(?! (?:hidden|of))",
    ), about="[Bb]racket|gap", needs=("model",),
       unless=r"digits|\b[Ii]f\b|[Pp]ublished|CSL|lowest AIS|paper has|training|Table \d has|would|not close|may close"),
    Quantity("how many brackets are closed", _counts, (
        r"#closed of (?:the |our )?#total brackets[^.;]*? (?:is|are) closed",
        r"#closed (?:brackets? )?(?:is|are|stays?) closed",
        r"#open (?:brackets? )?(?:is|are|stays?) open",
        r"#crossed (?:brackets? )?(?:is|are|stays?) crossed",
        "brackets #total; closed #closed",
    ), about="bracket", unless="digits|trials"),
    Quantity("brackets within a tenth of a nat", _within, (
        r"#within of #total within 0\.1", r"[Nn]o gap of the #total RBMs is within 0\.1",
    )),
    Quantity("the largest K", _longest, (
        r"(?:start|K|DBMs|it)\b[^.;]{0,40} ends? at #last",
        "(?:K goes to|runs, with|runs with) (?:the paper's )?#last(?: steps, are all|, from both|,)",
        r"#missing steps, those of [^.]* are missing",
    ), about="DBM|bracket|longest"),
    Quantity("intervals that hold ln Z", _coverage, (
        r"#held of (?:the )?(?P<runs>900|1000|690)\b", "#runs intervals[^.;]*?, #held hold", r"those of AIS (?:hold it )?in #held(?=[.;])",
        "on #models models whose ln Z is known",
    ), about="95 % intervals|intervals (?:with|of parallel|hold)"),
    Quantity("CSL", _csl, (
        "CSL is #low to #high nats below RAISE[^.]* for #models models",
        r"#tens of #total models(?:,|\.| by more)",
        "CSL[^.;]*?[:,] (?:it is )?#csl nats(?: here|, where)",
    ), about=r"CSL[^.]*tens of nats|CSL[^.]*paper|CSL is", unless="cannot tell"),
    Quantity("CD3(500) over CD1(500)", _lead, (
        r"CD3\(500\) (?:leads|is ahead of) CD1\(500\) by #lead nats",
        "and by #lead after",
        r"#low to #high nats(?= after \d+ epochs)",
        r"after \d+: #low to #high nats",
    ), about=r"CD3\(500\)[^.]* CD1\(500\)", unless=r"CD25\(500\) is"),
    Quantity("AIS on mnistPCD-20", _start, (
        r"\b(?:AIS|it) is wrong #off nats", "(?:[Ff]rom|[Ss]tarted)[^.;]* it is #off nats",
    ), about="mnistPCD-20|model with (?:only )?20 hidden"),
    Quantity("RAISE above the exact value", _above_exact, (
        "by #first and by #second nats",
        "less the exact value: #over nats",
        "RAISE exceeds the exact value[^.]*? by #over nats",
    ), about="exact value"),
    Quantity("evaluations that were trusted", _trusted, (
        "[Oo]f #evaluations evaluations[^.]*?, #drawn of them[^.]* trusted #trusted",
        "[Oo]f #evaluations evaluations(?! of 9)[^.]*? trusted #trusted",
        "suspected #suspected of the #right",
    ), about="evaluat"),
    Quantity("the papers' conclusions", _conclusions, (
        "#hold of #claims (?:claims )?hold",
        "claims #claims; hold #hold; hold in part #partly; do not hold #fail",
        "hold, (?:and )?#partly in part(?!, and)",
        "hold, (?:and )?#partly in part, and #fail do",
    ), about="claims|conclusions"),
    Quantity("coin flips", _coin_flips, (
        r"(?:training images|test images)[^.;]{0,40} by #own nats",
        "#low to #high (?:nats |of these )?(?:are|is) left",
        "the gap is #low to #high nats",
    ), about="binarised anew|coin flips"),
    Quantity("the ln Z of both averages", _meeting, ("ln Z,? (?:lies )?between #low and #high",)),
    Quantity("claims of a chapter", _claims, (r"claims [a-z ]*#as_said of #claims\b",), about="claims that hold|as the text says"),
]
#: A headline, and all that the same paragraph must say with it: its exception, or what makes it comparable.
EXCEPTIONS = [
    ("853 of 900 intervals", r"(?<![.\d])853\b", ("hidden|tenth|planted", r"\b(?:none|no run|0 of (?:the )?100|every run)\b", "warning")),
    ("CSL beside the paper's", r"CSL.*-145", (r"\b(?:kept|every)\b.*\bstates?\b|\bstates?\b.*\bkept\b|says nothing|not judged",)),
]
# fmt: on


class Contradiction(NamedTuple):
    """A sentence that the records contradict, or another sentence."""

    page: str
    sentence: str
    why: str


class Walk(NamedTuple):
    """What is contradicted, and all statements by quantity, each with the cases of the records and with the weights that its page speaks of."""

    wrong: list[Contradiction]
    found: dict[str, list[tuple[Statement, list[Case], set[str]]]]


def walk(sentences: Sequence[Sentence], stored: Stored) -> Walk:
    """Hold every sentence against the records."""
    wrong, found = dict[Contradiction, None](), {}
    for quantity in QUANTITIES:
        cases = list(quantity.cases(stored))
        dims = {dim for case in cases for dim in case}
        own = [each for sentence in sentences for each in statements(quantity, dims, sentence)]
        on_page: dict[str, set[str]] = {}
        for each in own:
            on_page.setdefault(each.sentence.page, {"ours"}).add(each.of.get("weights") or "ours")
        found[quantity.name] = [(each, cases, on_page[each.sentence.page]) for each in own]
        for each, *known in found[quantity.name]:
            if not holds(each, *known):
                of = {dim: value for dim, value in each.of.items() if value is not None}
                why = f"{quantity.name}: {dict(each.said)} of {of}"
                wrong[Contradiction(each.sentence.page, each.sentence.text, why)] = None
    for each, (what, headline, rest) in product(sentences, EXCEPTIONS):
        if re.search(headline, each.text) and not all(
            re.search(part, each.paragraph) for part in rest
        ):
            wrong[
                Contradiction(each.page, each.text, f"{what}: what belongs to it is left out")
            ] = None
    return Walk(list(wrong), found)


def of_two_runs(page: str, text: str) -> Iterator[Contradiction]:
    """Reports of `evaluate` in a text whose average is not the one to quote."""
    reports = re.findall(
        r"^Average test log-prob.*?^To quote: .*?$", text, re.MULTILINE | re.DOTALL
    )
    for first, *_, last in map(str.splitlines, reports):
        averages = [re.findall(r"-?\d+\.\d+", line) for line in (first, last)]
        if averages[0] != averages[1]:
            yield Contradiction(page, last, f"of another run than: {first}")
