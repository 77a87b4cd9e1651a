"""Inheritance of docstring entries, and removal of methods that do not apply."""

import inspect
import re

ENTRY = re.compile(r"\n(?=\w+ : )")


class NotInherited:
    """A method of the base class that a subclass does not have."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner):
        raise AttributeError(f"{owner.__name__} has no {self.name!r}")


def inherits_entries(cls):
    """Decorate a class: add parameters and attributes that only its base documents.

    An entry of the class replaces that of the base. Parameters follow the signature,
    attributes the order of the class and then that of the base.
    """
    if cls.__doc__ is None:  # python -OO
        return cls
    own, base = (inspect.cleandoc(each.__doc__) for each in (cls, cls.__mro__[1]))
    names = list(inspect.signature(cls).parameters)
    for section in ("Parameters", "Attributes"):
        given = entries(own, section)
        found = {**entries(base, section), **given}
        order = names if section == "Parameters" else [*given, *found]
        text = "\n".join(found[name] for name in dict.fromkeys(order))
        own = own.replace("\n".join(given.values()), text, 1)
    cls.__doc__ = own + "\n"
    return cls


def entries(docstring, section):
    """Return the entries of a section of a numpydoc docstring, by name."""
    start = f"\n{section}\n{'-' * len(section)}\n"
    text = docstring.split(start, 1)[1].split("\n\n", 1)[0]
    return {entry.split(" : ", 1)[0]: entry for entry in ENTRY.split(text)}
