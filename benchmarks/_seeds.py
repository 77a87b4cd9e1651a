"""How often seeds agree: the answers of many, and whether the others were warned of."""

import warnings
from collections import Counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

SAME = 0.95
COLUMNS = ["table", "same, %", "warned, %", "kept", "answers"]


def repeated(make, X, y, answer, n_seeds):
    """Return the answer of each seed, and whether it came with a warning."""
    answers, warned = [], []
    for seed in range(n_seeds):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answers.append(answer(make(seed).fit(X, y)))
        kinds = [warning.category for warning in caught]
        warned.append(any(issubclass(kind, ConvergenceWarning) for kind in kinds))
    return answers, warned


def row(name, answers, warned):
    """Share of the commonest answer, and of other answers without a warning."""
    (commonest, count), *others = Counter(answers).most_common()
    silent = [a for a, w in zip(answers, warned, strict=True) if not w]
    silent_others = sum(a != commonest for a in silent)
    kept = 1 - silent_others / len(answers) >= SAME
    shown = ", ".join(f"{a} x{n}" for a, n in [(commonest, count), *others][:4])
    return [
        name,
        f"{100 * count / len(answers):.0f}",
        f"{100 * np.mean(warned):.0f}",
        "yes" if kept else "no",
        shown,
    ]
