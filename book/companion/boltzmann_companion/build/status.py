"""When each chapter and each record was computed, in what time and with which versions, from the records themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from nbformat import NotebookNode
from sphinx.util.docutils import SphinxDirective

from boltzmann_companion.build.chapter_pages import shown_notebook
from boltzmann_companion.claims.checks import Answer, answers
from boltzmann_companion.record_files import read_record

_HEAD = """
| chapter | size | seconds | shards | seconds of these | records | computed on | library | Python | torch | numpy | claims that hold |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
_RECORDS_HEAD = """
| record | size | made on | made again on | draws | processor | on another | seconds | seconds of shards |
|---|---|---|---|---|---|---|---|---|
"""


def status_table(
    records: Iterable[Mapping[str, Any]], claims: Mapping[tuple[str, str], Counter[str]]
) -> str:
    """A row for each chapter and profile, as Markdown.

    A record that has not moved keeps the date at which it was written, so a row has the date of the
    last one.

    Parameters
    ----------
    records : iterable of dict
        From `boltzmann_companion.record_files.read_record`. Those that no chapter has written are
        passed over.
    claims : mapping of (str, str) to Counter
        How many claims a chapter has checked with a profile, by the answer.

    Examples
    --------
    >>> made = {"chapter": "05-exact", "utc": "2026-11-24T22:55:46+00:00", "seconds": 56.3}
    >>> made |= {"version": "0.3.0", "commit": "0123456789", "python": "3.11.7", "torch": "2.13.0"}
    >>> made |= {"numpy": "2.4.6", "shards": {"count": 3, "unknown": 1, "seconds": 40.2}}
    >>> record = {"profile": "digits", "provenance": made}
    >>> claims = {("05-exact", "digits"): Counter({"yes": 7, "no": 1})}
    >>> print(status_table([record], claims).splitlines()[-1].partition(" | ")[2])
    digits | 56 | 3 | at least 40 | 1 | 2026-11-24 | 0.3.0, 0123456 | 3.11.7 | 2.13.0 | 2.4.6 | 7 of 8 |
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        made = record["provenance"]
        if "chapter" in made:
            found.setdefault((made["chapter"], record["profile"]), []).append(made)
    rows = []
    for (chapter, profile), all_made in sorted(found.items()):
        last = max(all_made, key=lambda made: made["utc"])
        # from the beginning of the chapter to its last record
        seconds = max(made["seconds"] for made in all_made)
        checked = claims.get((chapter, profile), Counter())
        cells = [
            f"{{doc}}`{chapter}`",
            profile,
            f"{seconds:,.0f}",
            *_shards(all_made),
            len(all_made),
            last["utc"].partition("T")[0],
            ", ".join(filter(None, (last.get("version"), (last["commit"] or "")[:7]))),
            *(last.get(name) or "" for name in ("python", "torch", "numpy")),
            f"{checked[Answer.YES]} of {checked.total()}" if checked else "",
        ]
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    return _HEAD + "".join(rows)


def records_table(records: Iterable[Mapping[str, Any]]) -> str:
    """A row for each record of a chapter, as Markdown: when it was made, and when it was last made again with the same result.

    Parameters
    ----------
    records : iterable of dict
        From `boltzmann_companion.record_files.read_record`.

    Examples
    --------
    >>> made = {"utc": "2026-11-29T08:10:00+00:00", "seconds": 56.3, "draws": "0.2.0"}
    >>> made |= {"processor": "AMD EPYC", "instructions": "AVX512"}
    >>> made["again"] = {"utc": "2026-11-30T10:00:00+00:00", "processor": "Intel Xeon"}
    >>> made["chapter"] = "05-exact-partition-functions"
    >>> record = {"name": "sm2008-table-1", "profile": "paper", "provenance": made}
    >>> record["processor_bound"] = True
    >>> print(records_table([record]).splitlines()[-1].partition(" | ")[2])
    paper | 2026-11-29 | 2026-11-30, Intel Xeon | 0.2.0 | AMD EPYC, AVX512 | other numbers | 56 |  |
    """
    rows = []
    of_chapters = [record for record in records if "chapter" in record["provenance"]]
    for record in sorted(of_chapters, key=lambda record: (record["name"], record["profile"])):
        made = record["provenance"]
        again = made.get("again", {})
        shards = made.get("shards") or {}
        name = record["name"]
        profile = record["profile"]
        cells = [
            f"[{name}](cell:figures/{profile}/{name}.json)",
            profile,
            _day(made),
            ", ".join(filter(None, (_day(again), again.get("processor")))),
            made.get("draws") or "unknown",
            ", ".join(filter(None, (made.get("processor"), made.get("instructions")))),
            "other numbers" if record.get("processor_bound") else "",
            f"{made['seconds']:,.0f}",
            f"{shards['seconds']:,.0f}" if shards.get("seconds") else "",
        ]
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    return _RECORDS_HEAD + "".join(rows)


def _shards(all_made: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """How many shards a chapter had used at its last record, and their seconds, as far as these are known."""
    used = [made["shards"] for made in all_made if (made.get("shards") or {}).get("count")]
    if not used:
        return "", ""
    last = max(used, key=lambda shards: shards["count"])
    # the files of the oldest shards do not say what computed them, nor in what time
    at_least = "at least " if last["unknown"] else ""
    return f"{last['count']:,}", f"{at_least}{last['seconds']:,.0f}"


def _day(made: Mapping[str, Any]) -> str:
    return made.get("utc", "").partition("T")[0]


def claims_checked(notebook: NotebookNode) -> Counter[str]:
    r"""How many claims an executed chapter has checked, by the answer.

    Examples
    --------
    >>> from nbformat import v4
    >>> printed = v4.new_output("stream", text="it holds: yes\n")
    >>> cell = v4.new_code_cell("", outputs=[printed], metadata={"tags": ["checks"]})
    >>> claims_checked(v4.new_notebook(cells=[cell]))
    Counter({'yes': 1})
    """
    checks = (cell for cell in notebook.cells if "checks" in cell.metadata.get("tags", []))
    printed = (output.get("text", "") for cell in checks for output in cell.outputs)
    return sum(map(answers, printed), Counter())


class StatusTable(SphinxDirective):
    """The directive `{status-table}`, which `book/running.md` uses: the table of the chapters, or that of the records."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the table as it is now."""
        root = Path(self.env.srcdir)
        files = sorted((root / "figures").glob("*/*.json"))
        chapters = sorted((root / "book").glob("*.ipynb"))
        for path in (*files, *chapters):
            self.env.note_dependency(str(path))
        records = [read_record(path) for path in files]
        if self.arguments == ["records"]:
            table = records_table(records)
        else:
            table = status_table(records, self._claims(chapters))
        shown = nodes.Element()
        self.state.nested_parse(StringList(table.splitlines(), "status"), 0, shown)
        return shown.children

    def _claims(self, chapters: Iterable[Path]) -> dict[tuple[str, str], Counter[str]]:
        profile = self.config.paperlib_executed
        return {
            (chapter.stem, profile or "digits"): claims_checked(shown_notebook(chapter, profile))
            for chapter in chapters
        }
