"""Write the type stubs of the public names, from their signatures and docstrings.

Run ``python .ci/make_stubs.py`` after a change of a public signature or docstring. A
type is what the docstring says before "default"; what has no counterpart is `Any`.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

from numpydoc.docscrape import ClassDoc, FunctionDoc

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import skpacbayes  # noqa: E402

MODULES = [*skpacbayes._FAMILIES, "filtering.models", "online.river", "compile"]
HEADER = """\
# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray
"""
PLAIN = {"int", "float", "bool", "str", "None", "dict", "bytes"}
ARRAY = "NDArray[Any]"


def stub_of(module):
    """Return the text of the stub of a module."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", 0) == module.__name__
    ]
    imports, parts, above = set(), [], {}
    for name in sorted(names):
        value = getattr(module, name)
        if not value.__module__.startswith(module.__name__):
            family = value.__module__.split(".")[1]
            imports.add(f"from skpacbayes.{family} import {name} as {name}")
        elif inspect.isclass(value):
            bases = sklearn_bases(value)
            for base in bases:
                source = base.__module__.replace("._base", "")
                above.setdefault(source, set()).add(base.__name__)
            parts.append(class_stub(value, bases))
        else:
            parts.append(function_stub(value))
    for source, of_source in above.items():
        listed = ", ".join(sorted(of_source))
        imports.add(f"from {source} import {listed}  # type: ignore[import-untyped]")
    every = ["__all__ = [", *(f'    "{name}",' for name in sorted(names)), "]"]
    return "\n".join([HEADER, *sorted(imports), "", *every, "", *parts])


def sklearn_bases(cls):
    """Return the public bases that scikit-learn has, none a base of another."""
    found = []
    for base in cls.__mro__:
        public = base.__module__ in ("sklearn.base", "sklearn.feature_selection._base")
        if not (public and not base.__name__.startswith("_")):
            continue
        if not any(issubclass(other, base) for other in found):
            found.append(base)
    return found


def class_stub(cls, bases):
    """Return the stub of a class."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("skpacbayes")]
    doc = ClassDoc(cls)
    listed = f"({', '.join(base.__name__ for base in bases)})" if bases else ""
    lines = [f"class {cls.__name__}{listed}:"]
    if bases:
        lines[0] += "  # type: ignore[misc]"
    types = {entry.name: type_of(entry.type, cls) for entry in doc["Parameters"]}
    attributes = {**types, **{e.name: type_of(e.type, cls) for e in doc["Attributes"]}}
    callables = {name for base in own for name, v in vars(base).items() if callable(v)}
    for name, what in attributes.items():
        if name.isidentifier() and name not in callables:
            lines.append(f"    {name}: {what}")
    if cls.__init__ is not object.__init__:
        lines += signature(cls.__init__, types, "None", name="__init__")
    seen = set()
    # Without them, pyright takes the class for an abstract one.
    abstract = {n for base in bases for n in getattr(base, "__abstractmethods__", ())}
    for base in own:
        for name, value in vars(base).items():
            hidden = name.startswith("_") and name not in abstract
            if hidden or name in seen or name in attributes:
                continue
            seen.add(name)
            lines += member(name, value, cls)
    return "\n".join([*lines, "    ..." if len(lines) == 1 else "", ""])


def member(name, value, cls):
    """Return the lines of a method or a property."""
    if isinstance(value, classmethod):
        return ["    @classmethod", *method(name, value.__func__, cls)]
    if isinstance(value, staticmethod):
        return ["    @staticmethod", *method(name, value.__func__, cls)]
    value = getattr(value, "fn", value)  # of scikit-learn's `available_if`
    if inspect.isfunction(value):
        return method(name, value, cls)
    if inspect.isdatadescriptor(value):
        return ["    @property", f"    def {name}(self) -> Any: ..."]
    return []


def method(name, function, cls):
    """Return the lines of a method; two overloads where a flag adds an answer."""
    doc = FunctionDoc(inspect.unwrap(function))
    types = {entry.name: type_of(entry.type, cls) for entry in doc["Parameters"]}
    returns = [
        "Self" if entry.name == "self" else type_of(entry.type or entry.name, cls)
        for entry in doc["Returns"]
    ]
    default = inspect.signature(function).parameters.get("return_std")
    if default is not None and default.default is False and len(returns) == 2:
        lines = []
        for flag, answer in (("False", returns[0]), ("True", tuple_of(returns))):
            types["return_std"] = f"Literal[{flag}]"
            lines += ["    @overload"]
            lines += signature(function, types, answer, name=name, needs_flag=flag)
        return lines
    return signature(function, types, tuple_of(returns), name=name)


def function_stub(function):
    """Return the stub of a function."""
    doc = FunctionDoc(inspect.unwrap(function))
    types = {entry.name: type_of(entry.type, None) for entry in doc["Parameters"]}
    returns = [type_of(entry.type or entry.name, None) for entry in doc["Returns"]]
    lines = signature(function, types, tuple_of(returns), name=function.__name__)
    return "\n".join(line.removeprefix("    ") for line in lines) + "\n"


def tuple_of(types):
    """Return the type of an answer of several parts."""
    if len(types) > 1:
        return f"tuple[{', '.join(types)}]"
    return types[0] if types else "Any"


def signature(function, types, answer, *, name, needs_flag="False"):
    """Return the lines of a signature."""
    parts, starred = [], False
    for key, parameter in inspect.signature(function).parameters.items():
        if key in ("self", "cls"):
            parts.append(key)
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        what = types.get(key, types.get(f"*{key}", "Any"))
        if (
            parameter.default is None
            and what != "Any"
            and "None" not in what.split(" | ")
        ):
            what += " | None"
        text = f"{star.get(parameter.kind, '')}{key}: {what}"
        if key == "return_std" and needs_flag == "True":
            if not starred:
                parts.append("*")
        elif parameter.default is not parameter.empty:
            text += " = ..."
        starred = starred or bool(star.get(parameter.kind) == "*") or "*" in parts
        parts.append(text)
    return [f"    def {name}({', '.join(parts)}) -> {answer}: ..."]


def type_of(text, cls):
    """Return the type that a docstring's words stand for."""
    text = re.sub(r",? *(default\b.*|optional|keyword-only)$", "", text or "").strip()
    if cls is not None and text in (cls.__name__, "self", "object"):
        return "Self" if text != "object" else "Any"
    quoted = r"(?:\"[^\"]*\"|'[^']*'|None|True|False|-?\d+)"
    text = re.sub(r"\{([^{}]*)\}", lambda found: found[1], text)
    text = re.sub(r" in [\[(][^\[\]()]*[\])]", "", text)  # an interval
    text = re.sub(r" of shape \([^()]*(?:\([^()]*\)[^()]*)*\)", "", text)
    if re.match("dict of .* to ", text):
        return container("dict", text.removeprefix("dict of "))
    found = []
    for part in re.split(r",? or |, ", text):
        found.append(simple_type(part.strip(), quoted))
    if "Any" in found or not found:
        return "Any"
    literals = [part[8:-1] for part in found if part.startswith("Literal[")]
    found = [part for part in found if not part.startswith("Literal[")]
    if literals:
        found.insert(0, f"Literal[{', '.join(dict.fromkeys(literals))}]")
    return " | ".join(dict.fromkeys(found))


def simple_type(part, quoted):
    """Return the type of one alternative."""
    if part in PLAIN:
        return {"dict": "dict[Any, Any]"}.get(part, part)
    if re.fullmatch(quoted, part):
        return f"Literal[{part}]"
    if part in skpacbayes.__all__:
        return f"skpacbayes.{part}"
    if part == "callable":
        return "Callable[..., Any]"
    if part.startswith("array-like"):
        return "ArrayLike"
    if part.startswith("ndarray"):
        return ARRAY
    if part == "RandomState instance":
        return "np.random.RandomState"
    inner = re.fullmatch(r"(list|tuple|dict|iterable|sequence) of (.*)", part)
    if inner:
        return container(*inner.groups())
    return "Any"


def container(kind, inner):
    """Return the type of a list, a tuple or a dictionary."""
    if kind == "dict":
        of = [type_of(each, None) for each in inner.split(" to ", 1)]
        return f"dict[{', '.join(of)}]" if len(of) == 2 else "dict[Any, Any]"
    of = type_of(inner.removesuffix("s"), None)
    kind = {"tuple": "tuple", "list": "list"}.get(kind, kind.title())
    return f"tuple[{of}, ...]" if kind == "tuple" else f"{kind}[{of}]"


def package_stub():
    """Return the stub of the package itself."""
    lines = ["# Written by .ci/make_stubs.py.", ""]
    for family, names in sorted(skpacbayes._FAMILIES.items()):
        lines += [f"from skpacbayes import {family} as {family}"]
        lines += [f"from skpacbayes.{family} import {name} as {name}" for name in names]
    lines += ["", "__version__: str", "TRUSTED_TYPES: list[str]", ""]
    return "\n".join([*lines, "def show_versions() -> None: ...", ""])


def stubs():
    """Yield the path and the text of every stub."""
    yield ROOT / "skpacbayes" / "__init__.pyi", package_stub()
    for name in MODULES:
        module = importlib.import_module(f"skpacbayes.{name}")
        source = Path(module.__file__)
        yield source.with_suffix(".pyi"), stub_of(module)


if __name__ == "__main__":
    for path, text in stubs():
        path.write_text(text, encoding="utf-8")
