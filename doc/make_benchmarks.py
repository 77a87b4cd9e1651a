"""Write the pages of the benchmarks from their saved results, as the site is built."""

import ast
import json
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst.directives import flag
from docutils.parsers.rst.directives.tables import ListTable
from docutils.statemachine import StringList

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

INDEX = """\
.. _benchmarks:

==========
Benchmarks
==========

Each page has the tables that one script printed: the package and its peers in one
process, on the same data, taking turns. Times are CPU seconds of one thread; the ratios
depend on the machine much less than the seconds do. ``benchmarks/README.md`` of the
sources says how to run the scripts. A table that is older than the code says so.

.. toctree::
   :maxdepth: 1

"""


def older_than_the_code():
    """Names of the benchmarks that the list of them says to be older than the code."""
    listed = (BENCHMARKS / "README.md").read_text("utf-8")
    found = re.search(r"^\*\*Older than the code\.(.+?)\n\n", listed, re.M | re.S)
    return set(re.findall(r"`bench_(\w+)\.py`", found[1])) if found else set()


def age(result):
    """Sentence below the table of a benchmark that is older than the code, or none."""
    if result["benchmark"] not in older_than_the_code():
        return ""
    return f"*Measured on {result['date']}, before the estimators last changed.*"


def pages():
    """Text of each page by its name: the list of the benchmarks, then one for each."""
    names = sorted(path.stem for path in BENCHMARKS.glob("results/*.json"))
    names = [name for name in names if not name.endswith("_quick")]
    yield "index", INDEX + "".join(f"   {name}\n" for name in names)
    for name in names:
        script = ast.parse((BENCHMARKS / f"bench_{name}.py").read_text("utf-8"))
        result = json.loads((BENCHMARKS / f"results/{name}.json").read_text("utf-8"))
        yield name, page(ast.get_docstring(script), result)


def page(docstring, result):
    """One benchmark: what it asks, where it ran, its tables."""
    first, _, rest = docstring.partition("\n\n")
    title = " ".join(first.split()).rstrip(".")
    parts = [
        "=" * len(title) + f"\n{title}\n" + "=" * len(title),
        escaped(rest),
        f"``python benchmarks/bench_{result['benchmark']}.py``, {result['date']}: "
        f"{result['machine']}; {result['cpu_seconds']} CPU s.",
        age(result),
        *(table(result["benchmark"], content["title"]) for content in result["tables"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(name, title):
    """A whole table of a benchmark, its title above."""
    return f"{escaped(title)}\n\n.. benchmark-table:: {name} {title}\n   :ageless:"


class BenchmarkTable(ListTable):
    """A table of a benchmark, as it was saved, so that no page has another number.

    `.. benchmark-table:: mixture_tables Beginning of the title`; the option `columns`
    names the columns to show, one a line, all if there is none. `rows` names rows by
    their first cells, with " | " between two. `ageless`: the page says how old the
    table is. Cells are plain text, which is not parsed.
    """

    required_arguments = 1
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"columns": str, "rows": str, "ageless": flag}

    def run(self):
        """Return the table."""
        name, title = self.arguments
        path = BENCHMARKS / f"results/{name}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        self.state.document.settings.record_dependencies.add(
            str(BENCHMARKS / "README.md")
        )
        result = json.loads(path.read_text("utf-8"))
        found = [t for t in result["tables"] if t["title"] == title]
        found = found or [t for t in result["tables"] if t["title"].startswith(title)]
        if len(found) != 1:
            raise self.error(f"{len(found)} tables of {name} begin with {title!r}.")
        header, rows = found[0]["columns"], found[0]["rows"]
        kept = list(range(len(header)))  # names may be empty, or the same
        if "columns" in self.options:
            names = lines(self.options["columns"])
            if missing := set(names) - set(header):
                raise self.error(f"No columns {sorted(missing)} in {title!r}: {header}")
            kept = [header.index(name) for name in names]
        if "rows" in self.options:
            rows = [self.row(rows, line, title) for line in lines(self.options["rows"])]
        cells = [[cell(row[i]) for i in kept] for row in [header, *rows]]
        widths = self.get_column_widths(len(kept))
        shown = self.build_table_from_list(cells, widths, 1, 0)
        said = "" if "ageless" in self.options else age(result)
        parent = nodes.Element()
        self.state.nested_parse(StringList([said], str(path)), 0, parent)
        return [shown, *parent.children]

    def row(self, rows, line, title):
        """Return the one row that begins with the cells of a line."""
        first = line.split(" | ")
        found = [
            row for row in rows if [str(value) for value in row[: len(first)]] == first
        ]
        if len(found) != 1:
            raise self.error(f"{len(found)} rows of {title!r} begin with {line!r}.")
        return found[0]


def lines(text):
    """Return the lines of an option, without the space around them."""
    return [line.strip() for line in text.strip().splitlines()]


def cell(value):
    """Content of a cell: a paragraph, or nothing."""
    text = str(value)
    return [nodes.paragraph(text, text)] if text else []


def escaped(text):
    """Text in which no character but that of literals has a meaning of its own."""
    for mark in "*|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("_ ", "\\_ ")


def write_benchmarks(app):
    """Write the pages that changed, as the builder begins."""
    folder = Path(app.srcdir) / "benchmarks"
    folder.mkdir(exist_ok=True)
    for name, text in pages():
        write_if_changed(folder / f"{name}.rst", text)


def write_if_changed(path, text):
    """Write a page, unless it has that text: a page that is newer is built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
