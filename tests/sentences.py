"""What README, the pages, the chapters, the report and Status say, sentence by sentence: in digits and without markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from notebooks import NOTEBOOKS, ROOT, read

from boltzmann_companion.build.status import claims_checked, status_table
from boltzmann_companion.claims import report
from boltzmann_companion.records import read_record


@dataclass(frozen=True)
class Sentence:
    """What one sentence says, in digits and without markup.

    `before` is its paragraph up to it, `paragraph` all of it, and `around` its section or what stands above a table. A row of a table has no
    other paragraph than itself, and `before` has the rows above.
    """

    page: str
    text: str
    before: str = ""
    paragraph: str = ""
    around: str = ""
    in_table: bool = False


# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
_PARTS = {"half": 0.5, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1, "hundredth": 0.01}
_PLAIN: Sequence[tuple[str, Any]] = [
    (r"\{[\w:]+\}`[^`]*`|<[^<>]+>", " "),
    (r"\[([^]]*)\]\([^)]*\)", r"\1"),
    (r"10\^\{?(\d)\}?", lambda found: str(10 ** int(found[1]))),
    (r"\\[,;]|\{,\}|\\hat|\\mathrm|\\|[*`$~]", ""),
    ("\N{MINUS SIGN}", "-"),
    (r"\s+", " "),
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"\b(?:an?|one) (?=hundred|thousand)", "1 "),
    (rf"\b({'|'.join(_WORDS)})\b", lambda found: str(_WORDS[found[1].lower()])),
    (r"\b(\d+) hundred thousand\b", r"\g<1>00000"),
    (r"\b(\d+) hundred\b", r"\g<1>00"),
    (r"\b(\d+) thousand\b", r"\g<1>000"),
    (r"\bhalf an?\b", "0.5"),
    (rf"\b(an?|\d+) ({'|'.join(_PARTS)})s?\b(?! model)(?: of an?)?",
     lambda found: f"{_PARTS[found[2].lower()] * (int(found[1]) if found[1].isdigit() else 1):g}"),
    (r"\bnat\b", "nats"),
    (r"\ba nats\b", "1 nats"),
]
# fmt: on


@cache
def plain(text: str) -> str:
    """A text without markup and with its numbers as digits."""
    for pattern, new in _PLAIN:
        text = re.sub(pattern, new, text, flags=re.IGNORECASE)
    return text.strip()


def paragraphs(text: str) -> Iterator[tuple[list[str], bool]]:
    """The sentences of each paragraph, item of a list or heading of a Markdown text, and the rows of a table, every cell after its heading."""
    text = re.sub(r"^```+[a-z]+$.*?^```+$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#)", text):
        lines = block.strip().splitlines()
        if block.strip().startswith("|"):
            rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
            cells = [[cell.strip() for cell in row] for row in rows]
            yield ["; ".join(map("{} {}".format, cells[0], row)) for row in cells[2:]], True
        elif lines:
            yield re.split(r"(?<=[.!?])\s+(?=[A-Z0-9\"(\-*$])", " ".join(lines)), False


def sentences(page: str, text: str, around: str = "") -> Iterator[Sentence]:
    """Every sentence of a Markdown text; `around` is what is said above it."""
    for parts, in_table in paragraphs(text):
        if parts[0].startswith("#"):
            around = ""
        before, whole = "", plain(" ".join(parts))
        for part in map(plain, parts):
            yield Sentence(page, part, before, part if in_table else whole, around, in_table)
            before += f" {part}"
        around += before


def _of_notebook(path: Path) -> Iterator[Sentence]:
    section = ""
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            yield from sentences(path.stem, cell.source, section)
            *headings, own = re.split(r"^#+ .*$", cell.source, flags=re.MULTILINE)
            section = plain(own if headings else f"{section} {own}")
            continue
        caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
        yield from sentences(path.stem, caption, section)
        for output in cell.get("outputs", []):
            printed = "\n\n".join(output.get("text", "").splitlines())
            shown = output.get("data", {}).get("text/markdown", printed)
            yield from sentences(path.stem, shown, f"{section} {plain(caption)}")


def written(root: Path = ROOT) -> list[Sentence]:
    """The sentences of README, of every page and of every chapter with its captions, stored tables and printed lines."""
    texts = [root / "README.md", *sorted((root / "book").glob("*.md"))]
    found = [
        sentence
        for path in texts
        for sentence in sentences(path.stem, path.read_text(encoding="utf-8"))
    ]
    return found + [
        sentence
        for path in sorted((root / "book").glob("*.ipynb"))
        for sentence in _of_notebook(path)
    ]


def made() -> list[Sentence]:
    """What the companion makes of the records now: the report's tables, and that of the page Status."""
    found, records = report.claim_findings(), sorted((ROOT / "figures").glob("*/*.json"))
    checked = {(path.stem, "digits"): claims_checked(read(path)) for path in NOTEBOOKS}
    tables = [
        ("13-reproduction-report", repr(report.conclusion_table(found)), ""),
        ("13-reproduction-report", repr(report.claim_table(found)), "our models"),
        (
            "13-reproduction-report",
            repr(report.bracket_table(report.report_rows())),
            "with the authors' weights",
        ),
        ("status", status_table(map(read_record, records), checked), ""),
    ]
    return [sentence for table in tables for sentence in sentences(*table)]
