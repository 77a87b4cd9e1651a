"""The complete state of an object, in a form that is compared bit for bit."""

import types

import numpy as np
from scipy.sparse import issparse


def state_of(value):
    """Leaves of the state of `value`: {path: what is there}, bit for bit.

    The state is what pickle keeps: `__getstate__` of every object reached, arrays by
    their bytes, random generators by the state of their bit generator, floats by
    their digits (NaN equals NaN; 0.0 and -0.0 differ). NumPy's scalars and Python's
    are the same.
    """
    leaves = {}
    _walk(value, "", leaves, inside={})
    return leaves


def changes(before, after):
    """Paths of two states at which they differ."""
    return sorted(
        path
        for path in before.keys() | after.keys()
        if path not in before or path not in after or before[path] != after[path]
    )


def assert_same_state(actual, expected, *, apart_from=()):
    """Two objects have the same state, bit for bit."""
    paths = [
        path
        for path in changes(state_of(expected), state_of(actual))
        if not path.startswith(tuple(f".{name}" for name in apart_from))
    ]
    assert not paths, f"states differ at {', '.join(paths[:8])}"


def _walk(value, path, leaves, inside):
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str | bytes | complex):
        leaves[path] = (type(value).__name__, value)
    elif isinstance(value, float):
        leaves[path] = ("float", value.hex())
    elif isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        leaves[path] = ("name", value.__module__, value.__qualname__)
    elif id(value) in inside:  # a cycle
        leaves[path] = ("same as", inside[id(value)])
    else:
        inside[id(value)] = path
        for key, part in _parts(value, path, leaves):
            _walk(part, f"{path}{key}", leaves, inside)
        del inside[id(value)]


def _parts(value, path, leaves):
    """Note the type of a compound value, and return what it is made of."""
    kind = type(value).__name__
    if issparse(value):
        leaves[path] = (kind, value.shape)
        return [(f".{part}", array) for part, array in vars(value).items()]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        leaves[path] = (kind, value.dtype.str, value.shape, value.tobytes())
        return []
    leaves[path] = (kind, len(value)) if hasattr(value, "__len__") else (kind,)
    if isinstance(value, np.ndarray):
        return [(f"[{i}]", part) for i, part in enumerate(value.ravel())]
    if isinstance(value, np.random.Generator):
        return [(".bit_generator", value.bit_generator.state)]
    if isinstance(value, np.random.RandomState):
        return [(".bit_generator", value.get_state(legacy=False))]
    if isinstance(value, dict):
        parts = [(f"[{key!r}]", value[key]) for key in value]
    elif isinstance(value, set | frozenset):
        parts = [("{}", sorted(value, key=repr))]
    elif hasattr(value, "__iter__") and hasattr(value, "__len__"):
        parts = [(f"[{i}]", part) for i, part in enumerate(value)]
    else:
        parts = []
    attributes = value.__getstate__()
    if isinstance(attributes, tuple):  # (dictionary, slots)
        attributes = {**(attributes[0] or {}), **(attributes[1] or {})}
    if isinstance(attributes, dict):
        parts += [(f".{name}", part) for name, part in attributes.items()]
    return parts
