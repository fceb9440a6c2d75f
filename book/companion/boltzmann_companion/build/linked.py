"""`paperlib check`, the numbers: every link to a cell says what the cell holds, as far as printed.

`boltzmann_companion.cells` says how a link names its cell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from boltzmann_companion.cells import DERIVED, TABLE, Cell, find_cell
from boltzmann_companion.derived import COMMAND, is_current, write_derived
from paperlib.errors import InputError

#: A link to a cell: its words, the table and the address in it.
LINK = re.compile(
    rf"\[(?P<words>[^\[\]\n]*)\]\((?P<up>(?:\.\./)?)(?P<table>{TABLE})#(?P<address>[^()\s]+)\)"
)
_ADVICE = (
    "mend the text if it is mistaken; if the number moved on purpose, `paperlib check --write`, "
    "and say why in the changelog"
)
_MINUS = "\N{MINUS SIGN}"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"

# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
]
_TENS = ["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
# fmt: on
_WORDS = {word: number for number, word in enumerate(_ONES)}
_WORDS |= {word: number for number, word in zip(range(30, 100, 10), _TENS, strict=True)}
_OTHERS = {"no": 0, "none": 0, "a": 1, "an": 1, "both": 2}
_SIZES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
# Units of cells that may be said in per cent.
_SHARES = {"", "fraction", "share"}
_PER_CENT = {"%", "percent"}
# What may stand before a number, and whether the cell may be smaller or larger, by one in the last
# place, or either, by a tenth.
_BOUNDS = {
    "upper": r"(?:less|fewer) than|below|under|within|at most|no more than|up to|as much as",
    "lower": r"more than|over|at least|above",
    "about": r"about|some|nearly|almost|around|roughly|practically",
}
# What a word for a part means, and how far off the cell may be.
_PARTS = {
    "half": (0.5, 0.05),
    "quarter": (0.25, 0.05),
    "third": (1 / 3, 0.05),
    "fifth": (0.2, 0.05),
    "tenth": (0.1, 0.05),
    "hundredth": (0.01, 0.005),
}


@dataclass(frozen=True)
class Page:
    """A text of the book: a page of Markdown has one part, a notebook one for each Markdown cell.

    Attributes
    ----------
    path : Path
        The file.
    parts : tuple of str
        The texts.
    places : tuple of str
        How a message names each part: empty, or such as "cell 12, ".
    """

    path: Path
    parts: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True)
class Printed:
    """A number as words print it.

    Attributes
    ----------
    value : float
        The number.
    within : float
        How far the cell may be from it.
    signed : bool
        Whether its sign is printed.
    step : float
        One in its last place.
    bound : str
        Whether it is an "upper" or a "lower" bound, or "about" right.
    """

    value: float
    within: float
    signed: bool
    step: float = 1.0
    bound: str = ""


def pages(root: Path, names: Sequence[str] = ()) -> list[Page]:
    """README, every page of Markdown and every chapter.

    Parameters
    ----------
    root : Path
        The repository.
    names : sequence of str
        Parts of the names of those that are wanted, such as 05; by default all.

    Raises
    ------
    InputError
        If no page has one of these names.
    """
    every = [
        Page(path, (path.read_text(encoding="utf-8"),), ("",))
        for path in (root / "README.md", *sorted((root / "book").glob("*.md")))
        if path.is_file()
    ]
    for path in sorted((root / "book").glob("*.ipynb")):
        cells = list(enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], 1))
        texts = [(i, "".join(c["source"])) for i, c in cells if c["cell_type"] == "markdown"]
        parts = tuple(text for _, text in texts)
        every.append(Page(path, parts, tuple(f"cell {index}, " for index, _ in texts)))
    for name in names:
        if not any(name in page.path.stem for page in every):
            known = ", ".join(page.path.stem for page in every)
            raise InputError(f"names: expected part of a page's name ({known}), got {name!r}")
    return [p for p in every if not names or any(name in p.path.stem for name in names)]


def read_number(words: str) -> Printed | None:
    r"""What number some words print, or None if they print none.

    Examples
    --------
    >>> read_number("−121.56")
    Printed(value=-121.56, within=0.005, signed=True, step=0.01, bound='')
    >>> read_number("less than a hundredth").bound
    'upper'
    >>> [read_number(words).value for words in ("100,000", "10⁵", "ten thousand", "seven", "half")]
    [100000.0, 100000.0, 10000.0, 7.0, 0.5]
    """
    text = words.replace(_MINUS, "-").strip(" *").removesuffix("%").removesuffix("per cent").strip()
    for bound, before in _BOUNDS.items():
        start = re.match(rf"(?:{before}) ", text, re.IGNORECASE)
        if start:
            printed = read_number(text[start.end() :])
            return printed and replace(printed, bound=bound)
    if text.strip("±+-") == "∞":
        return Printed(-math.inf if text[0] == "-" else math.inf, 0, text[0] in "+-")
    power = re.fullmatch(rf"10([{_RAISED}]+)", text)
    if power:
        exponent = "".join(str(_RAISED.index(digit)) for digit in power[1])
        return Printed(10.0 ** int(exponent), 0.5, signed=False)
    number = re.fullmatch(r"([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?", text)
    if number:
        digits = number[3] or ""
        value = float(number[1] + number[2].replace(",", "") + digits)
        step = 10.0 ** -max(len(digits) - 1, 0)
        return Printed(value, step / 2, bool(number[1]), step)
    return _in_words(text.lower().split())


def _in_words(words: list[str]) -> Printed | None:
    known = _WORDS | _OTHERS
    if len(words) == 1 and words[0] in known:
        return Printed(float(known[words[0]]), 0.5, signed=False)
    if not words:
        return None
    last = words[-1].removesuffix("s")
    if last in _PARTS and len(words) <= 2 and (len(words) == 1 or words[0] in known):
        part, within = _PARTS[last]
        times = known[words[0]] if len(words) == 2 else 1
        return Printed(times * part, within, signed=False, step=part)
    if all(word.removesuffix("s") in _SIZES or word in known or word.isdecimal() for word in words):
        sizes = [word.removesuffix("s") for word in words if word.removesuffix("s") in _SIZES]
        others = [word for word in words if word.removesuffix("s") not in _SIZES]
        step = math.prod(_SIZES[word] for word in sizes)
        times = math.prod(int(word) if word.isdecimal() else known[word] for word in others)
        return Printed(float(times * step), 0.5, signed=False, step=float(step))
    return None


def agrees(words: str, cell: Cell, after: str = "") -> bool:
    """Whether words say what a cell holds, as far as they print it.

    A number without a sign is taken for the size of the cell: the sentence says in which direction.

    Parameters
    ----------
    words : str
        The words of the link.
    cell : Cell
        What it leads to.
    after : str
        The text after the link: a share may be said in per cent.

    Raises
    ------
    InputError
        If the words are no number and the cell holds one.

    Examples
    --------
    >>> agrees("1.2", Cell(-1.149, "nats", "", "")), agrees("1.1", Cell(-1.149, "nats", "", ""))
    (False, True)
    >>> agrees("29", Cell(0.288, "", "", ""), " to 58 % of the runs")
    True
    """
    if isinstance(cell.value, str):
        return _stem(words.strip(" *`")) == _stem(cell.value)
    if not isinstance(cell.value, int | float):
        raise InputError(f"the cell holds {cell.value!r}, which is no number")
    printed = read_number(words)
    if printed is None:
        formula = (
            ", and a screen reader would not read a formula: −1.5, 10⁵" if "$" in words else ""
        )
        raise InputError(f"these words are no number{formula}")
    return _fits(printed, _scaled(words, cell, after))


def _stem(word: str) -> str:
    """A verdict in any of its forms: a closed bracket, a bracket closes, steps close it."""
    return word.lower().removesuffix("d").removesuffix("s")


def _scaled(words: str, cell: Cell, after: str) -> float:
    """The cell's number in the unit of the words."""
    following = re.sub(r"\]\([^()]*\)|[$\[\\]", "", after[:300])
    per_cent = (
        "%" in words
        or "per cent" in words
        or re.match(r"(?: ?(?:to|and|or|–) ?[\d.,]+)* ?%", following)
    )
    if per_cent and cell.unit not in _SHARES | _PER_CENT:
        raise InputError(f"the cell is in {cell.unit}, not in per cent")
    return cell.value * 100 if per_cent and cell.unit in _SHARES else cell.value


def _fits(printed: Printed, value: float) -> bool:
    if math.isinf(value) or math.isinf(printed.value):
        return printed.value == value or (not printed.signed and abs(printed.value) == abs(value))
    size = value if printed.signed else abs(value)
    if printed.bound == "upper":
        return max(printed.value - printed.step, printed.value / 10) <= size <= printed.value
    if printed.bound == "lower":
        return printed.value <= size <= printed.value + printed.step
    within = max(printed.within, printed.value / 10) if printed.bound else printed.within
    # a cell may lie on the edge but for its last binary digit
    return abs(size - printed.value) <= within * (1 + 1e-9) + 1e-12


def rewritten(words: str, cell: Cell, after: str = "") -> str | None:
    """The words with the cell's number, in the same form; None if that cannot be done."""
    printed = read_number(words)
    if isinstance(cell.value, str) or printed is None or not math.isfinite(cell.value):
        return None
    if printed.bound:
        return None
    value = _scaled(words, cell, after)
    plain = words.replace(_MINUS, "-")
    number = re.search(r"[+-]?\d[\d,]*(?:\.(\d+))?", plain)
    if number is None:
        whole = round(abs(value))
        names = {known: word for word, known in _WORDS.items()}
        if words.lower() not in _WORDS:
            return None
        word = names.get(whole, f"{whole:,}")
        return word.capitalize() if words[0].isupper() else word
    digits = len(number[1] or "")
    # without the sign of a zero
    value = round(value if printed.signed else abs(value), digits) + 0.0
    grouped = "," if "," in number[0] or abs(value) >= 10_000 else ""
    sign = "+" if number[0][0] == "+" else ""
    new = f"{value:{sign}{grouped}.{digits}f}"
    new = new.replace("-", _MINUS) if _MINUS in words else new
    return plain[: number.start()] + new + plain[number.end() :]


def links(page: Page) -> Iterator[tuple[str, re.Match[str]]]:
    """Each link of a page to a cell, and where it is."""
    for part, place in zip(page.parts, page.places, strict=True):
        for link in LINK.finditer(part):
            yield f"{place}line {part.count(chr(10), 0, link.start()) + 1}", link


def check_links(root: Path, page: Page) -> list[str]:
    """What is wrong with the links of a page, in words, one line for each."""
    wrong = []
    up = "../" * (len(page.path.relative_to(root).parts) - 1)
    for place, link in links(page):
        where = f"{page.path.relative_to(root)}, {place}: [{link['words']}]"
        try:
            if link["up"] != up:
                raise InputError(f"from here the path is {up}{link['table']}")
            cell = find_cell(root, link["table"], link["address"])
            if agrees(link["words"], cell, link.string[link.end() :]):
                continue
            address = f"{link['table']}#{link['address']}"
            wrong.append(f"{where}, but {address} has {_shown(cell.value)}: {_ADVICE}")
        except InputError as error:
            wrong.append(f"{where}: {error}")
    return wrong


def check_pages(root: Path, chosen: Sequence[Page]) -> list[str]:
    """What is wrong with the numbers of some pages: links, and numbers that should be links.

    Parameters
    ----------
    root : Path
        The repository.
    chosen : sequence of Page
        From `pages`.
    """
    wrong = [line for page in chosen for line in check_links(root, page)]
    if _use_derived(chosen) and not is_current(root):
        wrong.append(f"{DERIVED} was made of other records: `{COMMAND}` makes it again")
    known = exceptions()
    for page in chosen:
        name = page.path.stem
        excepted = known.get(name, {})
        text = "\n".join(page.parts)
        wrong += [
            f"unlinked.yaml, {name}: {words!r} is not on the page any more"
            for words in excepted
            if words not in text
        ]
        wrong += [
            f"{page.path.relative_to(root)}, {place} is no link to a cell, in: ...{around}..."
            for place, around in unlinked(page, excepted)
        ]
    return wrong


def write_pages(root: Path, chosen: Sequence[Page]) -> list[str]:
    """Make the derived numbers again, and write what cells hold into the links of some pages.

    Returns what was written, one line for each number.
    """
    if _use_derived(chosen):
        write_derived(root)
    return [line for page in chosen for line in write_links(root, page)]


def _use_derived(chosen: Sequence[Page]) -> bool:
    return any(link["table"] == DERIVED for page in chosen for _, link in links(page))


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_links(root: Path, page: Page) -> list[str]:
    """Write what the cells hold into the links of a page; returns what was written."""
    changes = []
    text = page.path.read_text(encoding="utf-8")

    def follow(link: re.Match[str]) -> str:
        raw = link["words"]
        words = json.loads(f'"{raw}"') if page.path.suffix == ".ipynb" else raw
        after = link.string[link.end() : link.end() + 300]
        try:
            cell = find_cell(root, link["table"], link["address"])
            new = None if agrees(words, cell, after) else rewritten(words, cell, after)
        except InputError:
            return link[0]
        if new is None:
            return link[0]
        changes.append(f"{page.path.relative_to(root)}: {words} -> {new}")
        if page.path.suffix == ".ipynb":
            new = json.dumps(new, ensure_ascii=False)[1:-1]
        return f"[{new}]{link[0][len(raw) + 2 :]}"

    new_text = LINK.sub(follow, text)
    if new_text != text:
        page.path.write_text(new_text, encoding="utf-8")
    return changes


# ---- numbers that are no links

# What is no prose: comments, roles, code, addresses, labels, options of directives, and formulas
# other than a single number.
_NO_PROSE = re.compile(
    r"\$\$.*?\$\$|<!--.*?-->|\{[\w:]+\}`[^`]*`|`[^`\n]+`|!?\[[^\[\]]*\]\([^()\s]*\)"
    r"|^:[\w-]+:.*?$|<[^<>\n]+>|https?://\S+"
    r"|\$(?!\s*[-+\d.,{}\\\s%]+\$)[^$\n]+\$",
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r" *(`{3,}|:{3,})(\S*)")
# Blocks that state no result: code, formulas, exercises and their solutions.
_NO_RESULTS = re.compile(r"[a-z]*|\{(?:math|code|code-block|bibliography|exercise|solution)\}.*")
_DECIMAL = re.compile(rf"(?<![\w.]){_MINUS}?-?\d[\d,]*\.\d+(?!\.?\w)")
_NAMED_BEFORE = re.compile(
    r"(?:[Ss]ections?|[Cc]hapters?|[Ff]igures?|[Tt]ables?|[Ee]qs?\.|[Ee]quations?"
    r"|[Pp]ython|[Vv]ersions?)"
    r"[\s\d.,]*(?:and |to |or )?$"
)


def _blank(text: str) -> str:
    """As many characters on as many lines."""
    return re.sub(r"[^\n]", "\0", text)


def _without_code(text: str) -> str:
    """A text whose blocks of code and exercises are blank, but not what other directives hold."""
    lines = []
    fences = list[tuple[str, bool]]()
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence and fences and not fence[2] and fence[1] == fences[-1][0]:
            fences.pop()
            lines.append(_blank(line))
            continue
        in_code = line.startswith("    ") or (bool(fences) and fences[-1][1])
        if fence and not in_code:
            fences.append((fence[1], bool(_NO_RESULTS.fullmatch(fence[2]))))
            in_code = fences[-1][1]
        lines.append(_blank(line) if in_code else line)
    return "\n".join(lines)


def unlinked(page: Page, excepted: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Where a page has a number with a decimal point that is no link, and the words around it.

    Parameters
    ----------
    page : Page
        From `pages`.
    excepted : mapping of str to str, optional
        Words that may stand there, with the reason.
    """
    places = []
    for part, place in zip(page.parts, page.places, strict=True):
        prose = LINK.sub(lambda link: _blank(link[0]), _without_code(part))
        prose = _NO_PROSE.sub(lambda no: _blank(no[0]), prose)
        for words in excepted or {}:
            prose = prose.replace(words, "\0" * len(words))
        for number in _DECIMAL.finditer(prose):
            line_start = prose.rfind("\n", 0, number.start()) + 1
            if not _NAMED_BEFORE.search(prose[line_start : number.start()]):
                line = prose.count("\n", 0, number.start()) + 1
                around = part[max(line_start, number.start() - 40) : number.end() + 40]
                places.append((f"{place}line {line}: {number[0]}", around.partition("\n")[0]))
    return places


@cache
def exceptions() -> Mapping[str, Any]:
    """The numbers that need no link, by page, with the reason."""
    path = Path(__file__).with_name("unlinked.yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))
