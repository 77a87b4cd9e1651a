"""Hidden Markov models: the posterior distribution of the number of states.

`DirichletProcessHMM("auto")` chooses a number by predictive scores;
`n_states_posterior` compares marginal likelihoods, each estimated four times. How the
rows are revealed was chosen on families of `_hmm_families.FAMILIES`, with other rows;
nothing was chosen on the families of these tables.

    python benchmarks/bench_hmm_number.py [--quick]
"""

import time
import warnings

from _harness import Report, arguments
from _hmm_families import CONFIRMING, LATER, MIXED, Mixed, simulated
from bench_hmm_durations import timed

TITLES = [
    *("family", "rows", "states", "auto", "most probable", "P(true)", "P(auto)"),
    *(
        "largest error, nats",
        "isolated rows",
        "warns",
        "CPU s, fit",
        "CPU s, posterior",
    ),
]


def compared(X, k, seed, **parameters):
    """Cells of a row: the choice, the posterior and the CPU seconds of both."""
    fit, seconds, _ = timed(X, "auto", seed, **parameters)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = fit.n_states_posterior()
    share = dict(zip(found.n_states.tolist(), found.probabilities, strict=True))
    rivals = found.probabilities > 1e-3
    return [
        *(len(X), k, fit.n_states_, found.n_states[found.probabilities.argmax()]),
        *(f"{share.get(number, 0.0):.3f}" for number in (k, fit.n_states_)),
        f"{found.log_evidence_std[rivals].max():.1f}",
        len(found.isolated_rows),
        "yes" if caught else "no",
        *(f"{value:.1f}" for value in (seconds, time.process_time() - start)),
    ]


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_number", quick=quick)
    table = []
    for title in list(CONFIRMING | LATER)[: 2 if quick else None]:
        X, _, _, _, k = simulated(title, 0, n_train=600)
        table.append([title, *compared(X, k, 0)])
    for title in list(MIXED)[: 0 if quick else None]:
        family = Mixed(title)
        X, _ = family.draw(600, (0, 0))
        table.append(
            [title, *compared(X, len(family.states), 0, emission=family.kinds)]
        )
    report.table("The number of states: choice and posterior", TITLES, table)
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        main()
