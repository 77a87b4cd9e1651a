"""Hidden Markov models whose transitions depend on inputs.

Ours with and without inputs, against statsmodels' `MarkovRegression` with time-varying
transitions (normal regimes, maximum likelihood), and the truth. Inputs matter, do not,
or are a season of the day. Needs `statsmodels` (extra `bench`).

    python benchmarks/bench_hmm_inputs.py [--quick]
"""

import time
import warnings

import numpy as np
from _harness import Report, arguments
from _hmm_problems import accuracy
from scipy import stats
from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

from skpacbayes.hmm import DirichletProcessHMM

TRANSITIONS = np.array([[0.9, 0.1], [0.15, 0.85]])
NORMAL, HEAVY = stats.norm(), stats.t(3)
# Inputs, effects on the log odds to enter the second state, and noise.
PROBLEMS = {
    "one input that matters": ("noise", [2.0], NORMAL),
    "one that matters, heavy tails": ("noise", [2.0], HEAVY),
    "hour of the day": ("hour", [1.5, 0.0], NORMAL),
    "one that does not matter": ("noise", [0.0], NORMAL),
    "three that do not matter": ("noise", [0.0, 0.0, 0.0], NORMAL),
}


def draw(title, n_rows, rng):
    """Rows, inputs, states, and the log density of each row given those before."""
    kind, effects, noise = PROBLEMS[title]
    inputs = rng.normal(size=(n_rows, len(effects)))
    if kind == "hour":
        angle = 2 * np.pi * np.arange(n_rows) / 24
        inputs = np.column_stack([np.sin(angle), np.cos(angle)])
    odds = TRANSITIONS * np.exp(np.outer(inputs @ effects, [0, 1]))[:, None]
    chances = odds / odds.sum(axis=2, keepdims=True)
    states = np.zeros(n_rows, dtype=int)
    for t in range(1, n_rows):
        states[t] = rng.random() < chances[t, states[t - 1], 1]
    X = 2.5 * states + noise.rvs(n_rows, random_state=rng)
    densities = noise.pdf(X[:, None] - [0.0, 2.5])
    now, log_densities = np.array([1.0, 0.0]), np.empty(n_rows)
    for t in range(n_rows):
        now = (now @ chances[t] if t else now) * densities[t]
        log_densities[t] = np.log(now.sum())
        now /= now.sum()
    return X[:, None], inputs, states, log_densities


def peer_of(X, inputs):
    """Return the model of statsmodels."""
    exog = np.column_stack([np.ones(len(X)), inputs])
    return MarkovRegression(
        X[:, 0], 2, trend="c", switching_variance=True, exog_tvtp=exog
    )


def answers(title, seed, n_train, n_test):
    """Nats a row of new rows, accuracy, coverage and CPU seconds."""
    rng = np.random.default_rng((seed, len(title)))
    X, inputs, _, _ = draw(title, n_train, rng)
    new, ahead, states, truth = draw(title, n_test, rng)
    nats, shares, seconds = [truth.mean()], [], []
    for given, of_new in ((inputs, ahead), (None, None)):
        start = time.process_time()
        fit = DirichletProcessHMM(2, random_state=seed).fit(X, inputs=given)
        seconds.append(time.process_time() - start)
        nats.append(fit.score(new, inputs=of_new))
        share, label_of = accuracy(states, fit.predict(new, inputs=of_new), 2)
        shares.append(share)
        if given is not None:
            drawn = fit.input_effects_samples_[:, label_of]
            drawn = drawn[:, 1] - drawn[:, 0]
            low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
            effects = np.array(PROBLEMS[title][1])
            covered = (low <= effects) & (effects <= high)
            errors = np.abs(drawn.mean(axis=0) - effects)
    np.random.seed(seed)  # noqa: NPY002 (the starts of the peer)
    start = time.process_time()
    found = peer_of(X, inputs).fit(search_reps=5, maxiter=200, disp=False)
    seconds.append(time.process_time() - start)
    smoothed = peer_of(new, ahead).smooth(found.params)
    nats.append(smoothed.llf / n_test)
    path = smoothed.smoothed_marginal_probabilities.argmax(axis=1)
    shares.append(accuracy(states, path, 2)[0])
    return nats, shares, covered, errors, seconds


def main():
    quick = arguments(__doc__).quick
    report = Report("hmm_inputs", quick=quick)
    n_train, n_test, seeds = (300, 500, 1) if quick else (800, 2000, 3)
    table = []
    for title in PROBLEMS:
        found = [answers(title, seed, n_train, n_test) for seed in range(seeds)]
        nats, shares, covered, errors, seconds = (
            np.array(part) for part in zip(*found, strict=True)
        )
        cells = [f"{value:.3f}" for value in nats.mean(axis=0)]
        cells += [f"{value:.3f}" for value in shares.mean(axis=0)]
        cells += [f"{covered.sum()} of {covered.size}", f"{errors.mean():.2f}"]
        cells += [f"{value:.1f}" for value in np.median(seconds, axis=0)]
        table.append([title, *cells])
    three = ["inputs", "no inputs", "MarkovRegression"]
    report.table(
        f"Inputs to the transitions: {n_train} rows learnt, nats a row and states of "
        f"{n_test} new rows, means of {seeds} draws; 90 % intervals of effects",
        [
            *("inputs are", *(f"nats, {name}" for name in ["truth", *three])),
            *(f"accuracy, {name}" for name in three),
            *("covered", "error of effects", *(f"CPU s, {name}" for name in three)),
        ],
        table,
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
