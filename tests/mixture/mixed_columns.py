"""Rows of a number, a count and a category, in two groups."""

import numpy as np

MIXED = [
    ("size", "normal", [0]),
    ("number", "poisson", [1]),
    ("kind", "categorical", [2]),
]


def mixed(n, generator):
    """Draw rows; the groups differ in the number and in the count."""
    group = generator.integers(0, 2, n)
    return np.column_stack(
        [
            generator.normal(4.0 * group, 1.0),
            generator.poisson(2 + 6 * group),
            generator.integers(0, 3, n),
        ]
    ).astype(float)
