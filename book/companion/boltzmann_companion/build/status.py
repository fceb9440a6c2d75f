"""When each chapter and each record was computed, in what time and with which versions.

All of it is in the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from nbformat import NotebookNode
from sphinx.util.docutils import SphinxDirective

from boltzmann_companion.build.runner import copy_for_the_book
from boltzmann_companion.claims.checks import Answer, answers_of
from boltzmann_companion.record_files import read_record

_CHAPTER_HEADINGS = [
    "chapter",
    "size",
    "seconds",
    "shards",
    "seconds of these",
    "records",
    "computed on",
    "library",
    "Python",
    "torch",
    "numpy",
    "claims that hold",
]
_RECORD_HEADINGS = [
    "record",
    "size",
    "made on",
    "made again on",
    "draws",
    "processor",
    "on another",
    "seconds",
    "seconds of shards",
]


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
    >>> print(status_table([record], claims).splitlines()[-1].partition(" | 1 | ")[2])
    2026-11-24 | 0.3.0, 0123456 | 3.11.7 | 2.13.0 | 2.4.6 | 7 of 8 |
    """
    by_run: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        provenance = record["provenance"]
        if "chapter" in provenance:
            by_run.setdefault((provenance["chapter"], record["profile"]), []).append(provenance)
    rows = []
    for (chapter, profile), provenances in sorted(by_run.items()):
        last = max(provenances, key=lambda provenance: provenance["utc"])
        # from the beginning of the chapter to its last record
        seconds = max(provenance["seconds"] for provenance in provenances)
        checked = claims.get((chapter, profile), Counter())
        rows.append(
            [
                f"{{doc}}`{chapter}`",
                profile,
                f"{seconds:,.0f}",
                *_shards(provenances),
                len(provenances),
                _day(last),
                _listed(last.get("version"), (last["commit"] or "")[:7]),
                *(last.get(name) or "" for name in ("python", "torch", "numpy")),
                f"{checked[Answer.YES]} of {checked.total()}" if checked else "",
            ]
        )
    return _markdown(_CHAPTER_HEADINGS, rows)


def records_table(records: Iterable[Mapping[str, Any]]) -> str:
    """A row for each record of a chapter, as Markdown.

    It says when the record was made, and when it was last made again with the same result.

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
    chapter_records = [record for record in records if "chapter" in record["provenance"]]
    for record in sorted(chapter_records, key=lambda record: (record["name"], record["profile"])):
        provenance = record["provenance"]
        again = provenance.get("again", {})
        shards = provenance.get("shards") or {}
        name = record["name"]
        profile = record["profile"]
        rows.append(
            [
                f"[{name}](cell:figures/{profile}/{name}.json)",
                profile,
                _day(provenance),
                _listed(_day(again), again.get("processor")),
                provenance.get("draws") or "unknown",
                _listed(provenance.get("processor"), provenance.get("instructions")),
                "other numbers" if record.get("processor_bound") else "",
                f"{provenance['seconds']:,.0f}",
                f"{shards['seconds']:,.0f}" if shards.get("seconds") else "",
            ]
        )
    return _markdown(_RECORD_HEADINGS, rows)


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["", f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    lines += [f"| {' | '.join(map(str, cells))} |" for cells in rows]
    return "\n".join(lines) + "\n"


def _shards(provenances: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """How many shards a chapter had used at its last record, and their seconds if known."""
    used = [each["shards"] for each in provenances if (each.get("shards") or {}).get("count")]
    if not used:
        return "", ""
    last = max(used, key=lambda shards: shards["count"])
    # the files of the oldest shards do not say what computed them, nor in what time
    at_least = "at least " if last["unknown"] else ""
    return f"{last['count']:,}", f"{at_least}{last['seconds']:,.0f}"


def _day(provenance: Mapping[str, Any]) -> str:
    return provenance.get("utc", "").partition("T")[0]


def _listed(*texts: str | None) -> str:
    """Those of the texts that there are, separated by commas."""
    return ", ".join(filter(None, texts))


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
    return sum((answers_of(cell.outputs) for cell in checks), Counter())


class StatusTable(SphinxDirective):
    """The directive `{status-table}` of `book/running.md`: the table of chapters, or of records."""

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
            (chapter.stem, profile or "digits"): claims_checked(copy_for_the_book(chapter, profile))
            for chapter in chapters
        }
