"""Draws of ABCPosteriorKDE and of neural posterior estimation, against exact ones.

With equal simulations: the accuracy of a classifier that distinguishes draws from draws
of the exact posterior (C2ST, Lopez-Paz and Oquab, 2017); 0.5 is perfect. The classifier
is the network of Lueckmann et al. (2021), in five folds, trained for 60 epochs at a
rate of 0.01: on the default's draws for SLCP this is within 0.01 of a thousand epochs
at 0.001, and takes a sixth of the time. Neural posterior estimation is that of the
library `sbi`, with its defaults, and is left out if `sbi` is not installed.

"learnt summaries" are the predictions of a network, of the parameters and their squares
from the summaries, that was tried on SLCP; the other tasks confirm.
"""

import warnings
from unittest.mock import Mock

import numpy as np
from _abc_tasks import TASKS
from _harness import Report, arguments, cpu_seconds
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate

try:
    import torch
    from sbi.inference import NPE
except ImportError:
    NPE = None

NAMES = ("SLCP", "two moons", "SIR", "Gaussian mixture")


def c2st(draws, exact):
    """Accuracy in five folds of a network that tells draws from exact ones."""
    both = np.concatenate([draws, exact])
    both = (both - exact.mean(axis=0)) / exact.std(axis=0)
    network = MLPClassifier(
        hidden_layer_sizes=(10 * both.shape[1],) * 2,
        learning_rate_init=0.01,
        max_iter=60,
        random_state=0,
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = np.repeat([0, 1], [len(draws), len(exact)])
        return cross_val_score(network, both, labels, cv=folds).mean()


class OneRound:
    """The default, fitted once for all observations."""

    def __init__(self, task, n):
        self.task, self.n = task, n

    def simulated(self, n, seed, **proposal):
        """Return a table of simulations, with the support of the prior."""
        return simulate(
            self.task.prior,
            self.task.simulator,
            n,
            random_state=seed,
            bounds=self.task.bounds,
            **proposal,
        )

    def simulate(self):
        """Simulate what `fit` learns from."""
        self.table = self.simulated(self.n, 0)

    def fit(self):
        """Fit to the simulations."""
        self.posterior = ABCPosteriorKDE(random_state=0).fit(self.table)

    def sample(self, observed, n_draws):
        """Draw from the posterior of one observation, of shape (1, n_summaries)."""
        return self.posterior.sample(observed, n_draws, random_state=0)[0]


class LearntSummaries(OneRound):
    """The default, with what a network predicts from the summaries in their place."""

    def fit(self):
        """Fit the network to the parameters and their squares, and the posterior."""
        X, y, _ = self.table
        y = StandardScaler().fit_transform(y)
        network = MLPRegressor(
            hidden_layer_sizes=(64, 64), early_stopping=True, random_state=0
        )
        targets = StandardScaler().fit_transform(np.hstack([y, y**2]))
        self.network = make_pipeline(StandardScaler(), network).fit(X, targets)
        self.posterior = ABCPosteriorKDE(
            metric="whiten", bounds=self.task.bounds, random_state=0
        ).fit(self.network.predict(X), self.table.parameters)

    def sample(self, observed, n_draws):
        """Draw from the posterior of the predictions."""
        return super().sample(self.network.predict(observed), n_draws)


class TwoRounds(OneRound):
    """Half of the simulations for all observations, and as many for each."""

    def simulate(self):
        """Simulate the first round."""
        self.table = self.simulated(self.n // 2, 0)

    def sample(self, observed, n_draws):
        """Simulate and fit the second round, and draw."""
        table = self.simulated(
            self.n // 2, 1, proposal=self.posterior, observed=observed
        )
        second = ABCPosteriorKDE(random_state=0).fit(table)
        return second.sample(observed, n_draws, random_state=0)[0]


class Neural(OneRound):
    """Neural posterior estimation: a masked autoregressive flow, the default of sbi."""

    def fit(self):
        """Train on the simulations of `OneRound`, without writing a log."""
        torch.manual_seed(0)
        torch.set_num_threads(1)
        inference = NPE(tracker=Mock(log_dir=None), show_progress_bars=False)
        X, y = (torch.tensor(part, dtype=torch.float32) for part in self.table[:2])
        inference.append_simulations(y, X).train()
        self.posterior = inference.build_posterior()

    def sample(self, observed, n_draws):
        """Draw, and draw again where the prior is zero, as sbi does if told of it."""
        observed = torch.tensor(observed, dtype=torch.float32)
        least, most = np.full(
            (2, self.table.parameters.shape[1]), [[-np.inf], [np.inf]]
        )
        if self.task.bounds is not None:
            least, most = self.task.bounds.T
        kept = np.empty((0, len(least)))
        while len(kept) < n_draws:
            draws = self.posterior.sample(
                (n_draws,), x=observed, show_progress_bars=False
            ).numpy()
            inside = ((draws >= least) & (draws <= most)).all(axis=1)
            kept = np.concatenate([kept, draws[inside]])
        return kept[:n_draws]


def compare(report, tasks, n, n_observed, n_draws):
    methods = {
        "default": OneRound,
        "learnt summaries": LearntSummaries,
        "two rounds": TwoRounds,
    }
    if NPE is not None:
        methods["NPE"] = Neural
    rows = []
    for name, task in tasks.items():
        rng = np.random.default_rng(12)
        theta = task.prior(n_observed, rng)
        observed = task.simulator(theta, rng)[:, None]
        exact = [task.exact(x[0], n_draws, rng) for x in observed]
        for method, Kind in methods.items():
            model = Kind(task, n)
            model.simulate()
            with warnings.catch_warnings():  # some observations are far outside
                warnings.simplefilter("ignore", UserWarning)
                fitting = cpu_seconds(model.fit)
                draws = []
                sampling = cpu_seconds(
                    lambda m=model, d=draws, o=observed: d.extend(
                        m.sample(x, n_draws) for x in o
                    )
                )
            found = np.array(list(map(c2st, draws, exact)))
            rows.append(
                [
                    name,
                    method,
                    f"{found.mean():.3f}",
                    f"{found.std(ddof=1) / np.sqrt(n_observed):.3f}",
                    " ".join(f"{accuracy:.2f}" for accuracy in found),
                    f"{fitting:.1f}",
                    f"{sampling / n_observed:.2f}",
                ]
            )
            print(*rows[-1], flush=True)
    report.table(
        f"{n:,} simulations for an observation, {n_observed} observations: accuracy "
        f"that tells {n_draws:,} draws from as many exact ones",
        [
            "task",
            "method",
            "C2ST",
            "s.e.",
            "of each",
            "fit, CPU s",
            "an observation, CPU s",
        ],
        rows,
    )


def main():
    quick = arguments(__doc__).quick
    report = Report("abc_neural", quick=quick)
    if quick:
        compare(report, {"two moons": TASKS["two moons"]}, 2_000, 2, 200)
    else:
        compare(report, {name: TASKS[name] for name in NAMES}, 10_000, 5, 1_000)
    report.save()


if __name__ == "__main__":
    main()
