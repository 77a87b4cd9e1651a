"""Probabilities of a rare class: the sum of those of new rows over its expectation.

The expectation is the sum of the true probabilities. The scale of the prior of the
intercept was chosen on other streams and seeds, except for the rows of a softmax and of
the network, for which nothing was chosen.

    python benchmarks/bench_online_rare.py [--quick]
"""

import numpy as np
from _harness import Report, arguments
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import OnlineVIClassifier, OnlineVIMLPClassifier

MODELS = {
    "OnlineVIClassifier()": OnlineVIClassifier(random_state=0),
    "multi_class='one_vs_rest'": OnlineVIClassifier(
        multi_class="one_vs_rest", random_state=0
    ),
    "OnlineVIMLPClassifier()": OnlineVIMLPClassifier(random_state=0),
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
}
# Scores of the classes, the rare one last; X : (n_rows, 6).
STREAMS = {
    "two classes, 1 in 1,200": lambda X: [0 * X[:, 0], X[:, 0] - 7.5],
    "two classes, 1 in 700, no effects": lambda X: [0 * X[:, 0], 0 * X[:, 0] - 6.6],
    "two classes, 1 in 60": lambda X: [0 * X[:, 0], X[:, 0] - 4.5],
    "four classes, one 1 in 1,800": lambda X: [*X[:, :3].T, 0.7 * X[:, 3] - 6.2],
    "six classes, one 1 in 1,100": lambda X: [*X[:, :5].T, 0 * X[:, 5] - 4.9],
}
N_ROWS = 3000


def ratios(score, models, seeds):
    """Return the ratio of each model, over all seeds where every class occurs."""
    sums, expected = dict.fromkeys(models, 0.0), 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2 * N_ROWS, 6))
        scores = np.column_stack(score(X))
        y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        learnt, rare = slice(N_ROWS), scores.shape[1] - 1
        if len(np.unique(y[learnt])) <= rare:
            continue
        shares = np.exp(scores[N_ROWS:])
        expected += (shares[:, rare] / shares.sum(axis=1)).sum()
        for name, model in models.items():
            model.fit(X[learnt], y[learnt])
            sums[name] += model.predict_proba(X[N_ROWS:])[:, rare].sum()
    return [f"{total / expected:.2f}" for total in sums.values()]


def main():
    quick = arguments(__doc__).quick
    report = Report("online_rare", quick=quick)
    seeds = range(500, 502 if quick else 520)
    report.table(
        f"Sum of the probabilities of the rare class over its expectation: {N_ROWS} "
        f"rows learnt in one pass, {len(seeds)} seeds",
        ["stream", *MODELS],
        [[name, *ratios(score, MODELS, seeds)] for name, score in STREAMS.items()],
    )
    report.save()


if __name__ == "__main__":
    main()
