"""What built pages must have: working links, words for pictures, all public names."""

import inspect
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import skpacbayes

AWAY = re.compile(r"[a-z]+:", re.I)  # http:, mailto:, data:
LOADED = re.compile(
    r'<(?:script|img|iframe)\b[^>]*\bsrc="([^"]+)"'
    r'|<link\b(?=[^>]*stylesheet)[^>]*\bhref="([^"]+)"'
)


def faults(folder):
    """Return the faults of the pages below a folder, a line for each.

    Parameters
    ----------
    folder : path-like
        Where the pages were built.

    Returns
    -------
    lines : list of str
        Links and pictures that lead to no file or anchor, pictures without words, and
        scripts, styles and pictures that the network would have to give.
        A picture in a link that has words of its own, as a thumbnail has, needs none.
    """
    folder = Path(folder).resolve()
    pages = {
        page: page.read_text(encoding="utf-8")
        for page in sorted(folder.rglob("*.html"))
        if "_static" not in page.relative_to(folder).parts
    }
    anchors = {
        page: set(re.findall(r'\b(?:id|name)="([^"]+)"', text))
        for page, text in pages.items()
    }
    found = []
    for page, text in pages.items():
        name = page.relative_to(folder).as_posix()
        loaded = {"".join(link) for link in LOADED.findall(text)}
        for link in set(re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            path, _, anchor = unquote(unescape(link)).partition("#")
            if AWAY.match(path):
                if link in loaded and not path.startswith("data:"):
                    found.append(f"{name}: from the network {link}")
                continue
            path = path.partition("?")[0]
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                found.append(f"{name}: no file {link}")
            elif anchor and anchor not in anchors.get(target, {anchor}):
                found.append(f"{name}: no anchor {link}")
        for picture in re.findall(r"<img\b[^>]*>", text):
            words = re.search(r'\balt="([^"]*)"', picture)
            if "_thumb." in picture and words:
                continue
            if not words or not words[1].strip() or words[1].startswith("plot "):
                found.append(f"{name}: no words for {picture}")
    return found


def undocumented(documented):
    """Return the public names and methods that the reference does not describe.

    Parameters
    ----------
    documented : collection of str
        Full names of the objects that the pages describe.

    Returns
    -------
    lines : list of str
        A line for each name that is missing.
    """
    expected = []
    for name in skpacbayes.__all__:
        value = getattr(skpacbayes, name)
        path = f"skpacbayes.{skpacbayes._FAMILY_OF[name]}.{name}"
        expected.append(path)
        if inspect.isclass(value):
            expected += [
                f"{path}.{method}"
                for method in dir(value)
                if not method.startswith("_") and callable(getattr(value, method, None))
            ]
    return [f"not in the reference: {path}" for path in set(expected) - {*documented}]
