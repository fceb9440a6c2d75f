"""Where the links of numbers lead: a page for each record, with every row and where it comes from.

A part of the book's extension for Sphinx. A link such as
`[3.2](../figures/paper/NAME.json#ROW/COLUMN)` becomes one to the page `cells/paper/NAME.html`, at
its row. These pages are made beside the chapters, so that neither the table of contents nor the
search has them. `boltzmann_companion.build.linked` compares the numbers themselves.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from boltzmann_companion.cells import TABLE, find_row, read_table, row_names
from paperlib import storage

# The scheme of a link to a cell while a page is parsed, and the folder of the tables' pages.
_SCHEME = "cell"
_FOLDER = "cells"
_LINKED = re.compile(rf"\]\((?:\.\./)?(?P<table>{TABLE})(?P<address>#[^()\s]+)?\)")


def to_cells(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give links to cells and to records an address that the parser leaves alone.

    Parameters
    ----------
    app, docname
        As Sphinx passes them to listeners of `source-read`.
    source : list of str
        The text of the page, which is changed.

    Examples
    --------
    >>> text = ["[3.2](../figures/paper/a.json#x/y) of [a](../figures/paper/a.json)"]
    >>> to_cells(None, "page", text)
    >>> text
    ['[3.2](cell:figures/paper/a.json#x/y) of [a](cell:figures/paper/a.json)']
    """
    source[0] = with_cells(source[0])


def with_cells(text: str) -> str:
    """A text whose links to cells and records have that address."""
    return _LINKED.sub(lambda link: f"]({_SCHEME}:{link['table']}{link['address'] or ''})", text)


def page_of(table: str) -> str:
    """The page of a table, as Sphinx names pages.

    Examples
    --------
    >>> page_of("figures/paper/raise-gaps.json"), page_of("data/published.csv")
    ('cells/paper/raise-gaps', 'cells/published')
    """
    return f"{_FOLDER}/{Path(table).with_suffix('').as_posix().partition('/')[2]}"


def anchor(root: Path, table: str, address: str) -> str:
    """The place of a row on its table's page."""
    path = root / table
    if path.suffix == ".csv":
        ids = {row["id"] for row in read_table(path)["rows"]}
        return _anchor(address if address in ids else address.rpartition("/")[0])
    record = read_table(path)
    return _anchor(row_names(record)[find_row(record, address.partition("/")[0])])


def _anchor(name: str) -> str:
    """The name of a row as a selector can have it."""
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-")
    return plain if plain[:1].isalpha() else f"row-{plain}"


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let links to cells lead to the pages of their tables.

    Parameters
    ----------
    app, docname
        As Sphinx passes them to listeners of `doctree-resolved`.
    doctree : document
        The page, whose links are changed.
    """
    for link in doctree.findall(nodes.reference):
        scheme, _, rest = link.get("refuri", "").partition(":")
        if scheme != _SCHEME:
            continue
        table, _, address = rest.partition("#")
        uri = app.builder.get_relative_uri(docname, page_of(table))
        link["refuri"] = (
            f"{uri}#{anchor(storage.repository_root(), table, address)}" if address else uri
        )
        link["internal"] = True
        link["classes"].append("number" if address else "record")


def pages_of_tables(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for every record, for what is derived of them and for the published numbers."""
    root = storage.repository_root()
    paths = [*sorted((root / "figures").glob("*/*.json")), root / "figures" / "derived.json"]
    for path in (*paths, root / "data" / "published.csv"):
        table = path.relative_to(root).as_posix()
        if re.fullmatch(TABLE, table) and path.is_file():
            place = page_of(table)
            download = Path(app.outdir) / f"{place}{path.suffix}"
            download.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, download)
            body = body_of(table, read_table(path))
            yield place, {"title": path.name, "body": body, "meta": {}}, "page.html"


def body_of(table: str, record: Mapping[str, Any]) -> str:
    """What a table's page shows, as HTML.

    Examples
    --------
    >>> columns = {"model": {"label": "model", "unit": "", "tolerance": 0}}
    >>> record = {"columns": columns, "rows": [{"model": "CD1(25)"}], "provenance": {}}
    >>> body_of("figures/paper/a.json", record).count('id="CD1-25"')
    1
    """
    path = Path(table)
    provenance = record["provenance"]
    lines = [f"<h1>{escape(path.name)}</h1>", "<p>"]
    if table.endswith(".csv"):
        lines.append("What the papers print, with the place where they print it.")
    if "command" in provenance:
        lines.append(f"Made by <code>{escape(provenance['command'])}</code>.")
    lines.append(f'The file: <a href="{path.name}" download>{escape(table)}</a>.</p>')
    columns = record["columns"]
    heads = "".join(f"<th>{escape(_label(key, columns[key]))}</th>" for key in columns)
    lines.append('<div class="pst-scrollable-table-container"><table class="table cells">')
    lines.append(f"<thead><tr>{heads}</tr></thead><tbody>")
    for name, row in zip(_names(record, path), record["rows"], strict=True):
        cells = "".join(f"<td>{_cell(key, row.get(key))}</td>" for key in columns)
        lines.append(f'<tr id="{_anchor(name)}">{cells}</tr>')
    lines.append("</tbody></table></div>")
    lines += _origin(provenance)
    return "\n".join(lines)


def _cell(key: str, value: Any) -> str:
    """A cell as HTML; the records that a derived number comes from are links to their pages."""
    if key == "records":
        folders = {name: "" if name == "published" else "paper/" for name in value}
        return ", ".join(f'<a href="{folders[name]}{name}.html">{name}</a>' for name in value)
    return escape(_shown(value))


def _names(record: Mapping[str, Any], path: Path) -> list[str]:
    if path.suffix == ".csv":
        return [row["id"] for row in record["rows"]]
    return row_names(record)


def _label(key: str, column: Mapping[str, Any]) -> str:
    """A column's key, as links have it, with its unit."""
    unit = column["unit"]
    return f"{key} ({unit})" if unit and unit != "count" else key


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")
    if isinstance(value, list):
        return " to ".join(map(_shown, value)) if len(value) == 2 else "; ".join(map(_shown, value))
    return "" if value is None else str(value)


def _origin(provenance: Mapping[str, Any]) -> list[str]:
    """The provenance of a record, as a table."""
    if not provenance:
        return []
    texts = {
        name: _pairs(value) if isinstance(value, dict) else _shown(value)
        for name, value in provenance.items()
    }
    rows = [
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in texts.items()
    ]
    head = ["<h2>Where it comes from</h2>", '<div class="pst-scrollable-table-container">']
    return [*head, '<table class="table cells">', *rows, "</table></div>"]


def _pairs(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {_shown(each)}" for name, each in value.items())


def _add_scheme(app: Sphinx, config: Config) -> None:
    """Let the parser of Markdown take links to cells as they are."""
    schemes = config.myst_url_schemes
    if not isinstance(schemes, dict):
        schemes = dict.fromkeys(schemes or ())
    config.myst_url_schemes = {**schemes, _SCHEME: None}


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension.

    Parameters
    ----------
    app : Sphinx
        The running build.
    """
    app.connect("config-inited", _add_scheme)
    app.connect("source-read", to_cells)
    app.connect("doctree-resolved", resolve)
    app.connect("html-collect-pages", pages_of_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
