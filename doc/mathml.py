"""Formulas as MathML, made when the pages are: no script, nothing from the network."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.errors import SphinxError


def mathml(latex, display):
    """Return the MathML of a formula; raise where a command is unknown."""
    found = convert(latex, display=display)
    if "\\" in found:
        raise SphinxError(f"a formula has a command that is unknown: {latex!r}")
    return found


def visit_inline(page, node):
    """Write a formula within a line."""
    page.body.append(mathml(node.astext(), "inline"))
    raise SkipNode  # the source of the formula


def visit_display(page, node):
    """Write a formula on lines of its own."""
    page.body.append(page.starttag(node, "div", CLASS="math"))
    page.body.append(mathml(node.astext(), "block") + "</div>\n")
    raise SkipNode  # the source of the formula


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
