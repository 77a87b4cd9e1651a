"""Models of filters: leverage, proposals, smoothing, bearings; the time of clusters.

The peer, `particles`, is left out where it is not installed (see bench_filtering.py).

    python benchmarks/bench_filtering_models.py [--quick]
"""

import time
import warnings

import numpy as np
from _filtering_models import particles
from _harness import Report, arguments, interleaved, median_ratio
from scipy.stats import norm
from sklearn.base import BaseEstimator

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import LinearGaussian, StochasticVolatility

warnings.filterwarnings("ignore", module="particles")  # NumPy's deprecations

PHI, SIGMA, BETA, RHO = 0.9, 0.4, 0.7, -0.7


class LeverageByRow(StochasticVolatility):
    """A row whose noise is correlated with the move into its state, as the peer's."""

    def transition(self, x, z, t):
        """States at row t."""
        return self.phi * x + self.sigma * z

    def log_transition(self, x, x_next, t):
        """Log density of a move."""
        return norm.logpdf(x_next[:, 0], self.phi * x[:, 0], self.sigma)

    def log_likelihood(self, x, y, t, x_prev=None):
        """Log density of row t, given the move into its state."""
        if x_prev is None:
            score = x[:, 0] * np.sqrt(1 - self.phi**2) / self.sigma
        else:
            score = (x[:, 0] - self.phi * x_prev[:, 0]) / self.sigma
        spread = self.beta * np.exp(x[:, 0] / 2)
        rest = np.sqrt(1 - self.leverage**2)
        z = (y[0] - spread * self.leverage * score) / (spread * rest)
        return -0.5 * (z**2 + np.log(2 * np.pi)) - np.log(spread * rest)

    def draw(self, n_rows, rng):
        """Rows drawn from the model."""
        x, score, X = None, rng.normal(), []
        for _ in range(n_rows):
            if x is None:
                x = score * self.sigma / np.sqrt(1 - self.phi**2)
            else:
                score = rng.normal()
                x = self.phi * x + self.sigma * score
            noise = self.leverage * score + np.sqrt(1 - self.leverage**2) * rng.normal()
            X.append([self.beta * np.exp(x / 2) * noise])
        return np.array(X)


def peer_leverage(X, n_particles):
    """Run the peer's model of volatility with leverage by SQMC."""
    model = particles.state_space_models.StochVolLeverage(
        mu=2 * np.log(BETA), rho=PHI, sigma=SIGMA, phi=RHO
    )
    run = particles.SMC(
        fk=particles.state_space_models.Bootstrap(ssm=model, data=X[:, 0]),
        N=n_particles,
        qmc=True,
    )
    run.run()
    return run.logLt


def leverage(report, n_rows, n_runs):
    """Variance of SQMC's log-likelihood, of the same model."""
    table = []
    model = LeverageByRow(PHI, SIGMA, BETA, RHO)
    X = model.draw(n_rows, np.random.default_rng(0))

    def ours(model, seed):
        tracker = ClusteredParticleFilter(
            model, method="sqmc", n_particles=1024, random_state=seed
        )
        return tracker.fit(X).log_likelihood_

    runs = {
        "x_prev in log_likelihood": lambda seed: ours(model, seed),
        "y_prev in transition": lambda seed: ours(
            StochasticVolatility(PHI, SIGMA, BETA, RHO), seed
        ),
    }
    if particles is not None:
        np.random.seed(0)  # noqa: NPY002 (the peer uses the global state)
        runs["particles 0.4, StochVolLeverage"] = lambda seed: peer_leverage(X, 1024)
    for name, run in runs.items():
        start = time.process_time()
        found = [run(seed) for seed in range(n_runs)]
        spent = (time.process_time() - start) / n_runs / n_rows
        variance = np.var(found, ddof=1)
        table.append(
            [
                *(name, f"{np.mean(found):.2f}"),
                f"{variance:.2e} ± {variance * np.sqrt(2 / n_runs):.0e}",
                f"{1e6 * spent:.0f}",
            ]
        )
    report.table(
        f"Volatility with leverage, SQMC with 1,024 particles, {n_rows} rows of the "
        f"first model, {n_runs} runs (the second is another model)",
        ["model", "mean log-likelihood", "variance", "us a row"],
        table,
    )


def precise_rows(report, n_rows, n_runs):
    """Mean squared error of the log-likelihood where rows say much."""
    table = []
    rng = np.random.default_rng(0)
    for noise in (1.0, 0.1, 0.01):
        one = np.eye(2)
        model = LinearGaussian(0.9 * one, one, one, noise * one)
        x, X = np.zeros(2), []
        for _ in range(n_rows):
            x = 0.9 * x + rng.normal(size=2)
            X.append(x + np.sqrt(noise) * rng.normal(size=2))
        exact = model.kalman(X)[2].sum()
        for method in ("bootstrap", "sqmc"):
            squares = {}
            for proposal in ("prior", "auto", "auxiliary"):
                found = [
                    ClusteredParticleFilter(
                        model,
                        n_particles=512,
                        n_clusters=None,
                        method=method,
                        proposal=proposal,
                        random_state=seed,
                    )
                    .fit(X)
                    .log_likelihood_
                    for seed in range(n_runs)
                ]
                squares[proposal] = np.mean(np.square(np.array(found) - exact))
            table.append(
                [
                    *(method, f"{noise:g}"),
                    *(f"{square:.2e}" for square in squares.values()),
                ]
            )
    report.table(
        f"Mean squared error of the log-likelihood: two dimensions, 512 particles, "
        f"{n_rows} rows, {n_runs} runs",
        ["method", "variance of a row", "prior", "auto (guided)", "auxiliary"],
        table,
    )


def smoothing(report, n_rows, n_runs):
    """Errors of smoothed means in units of the exact spread, and what they cost."""
    table = []
    model = LinearGaussian([[0.9]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
    rng = np.random.default_rng(0)
    x, X = 0.0, []
    for _ in range(n_rows):
        x = 0.9 * x + rng.normal()
        X.append([x + rng.normal()])
    X = np.array(X)
    means, covariances, _ = model.kalman(X)
    exact, spread = means.copy(), covariances.copy()
    for t in range(n_rows - 2, -1, -1):
        ahead = 0.81 * covariances[t] + 1.0
        gain = 0.9 * covariances[t] / ahead
        exact[t] = means[t] + gain[0] * (exact[t + 1] - 0.9 * means[t])
        spread[t] = covariances[t] + gain**2 * (spread[t + 1] - ahead)
    runs = {}
    for n in (200, 1000):

        def ours(seed, n=n):
            tracker = ClusteredParticleFilter(
                model,
                n_particles=n,
                n_clusters=None,
                proposal="prior",
                random_state=seed,
            )
            return tracker.fit_smooth(X)[0]

        runs[f"ours, {n}"] = ours
        if particles is not None:
            runs[f"particles 0.4, {n}, mcmc"] = lambda seed, n=n: peer_smoothed(X, n)
    for name, run in runs.items():
        start = time.process_time()
        gaps = [(run(seed) - exact) / np.sqrt(spread[:, 0]) for seed in range(n_runs)]
        spent = (time.process_time() - start) / n_runs
        table.append([name, f"{np.sqrt(np.mean(np.square(gaps))):.3f}", f"{spent:.3f}"])
    report.table(
        f"Smoothed means of {n_rows} rows of a linear model, {n_runs} runs",
        ["method, particles", "error, in standard deviations", "CPU s"],
        table,
    )


def peer_smoothed(X, n):
    """As many trajectories as particles, by the peer's Metropolis backward sampling."""
    one = np.eye(1)
    model = particles.kalman.MVLinearGauss(
        F=0.9 * one, G=one, covX=one, covY=one, cov0=one
    )
    run = particles.SMC(
        fk=particles.state_space_models.Bootstrap(ssm=model, data=X),
        N=n,
        store_history=True,
    )
    run.run()
    paths = run.hist.backward_sampling_mcmc(n, nsteps=4)
    return np.array([np.reshape(states, (n, 1)).mean(axis=0) for states in paths])


class Bearings(BaseEstimator):
    """A ship of which only the direction is seen (Gordon, Salmond and Smith 1993)."""

    n_noise, std = 4, 0.005

    def initial(self, z):
        """States at row 0: place and speed along two axes."""
        return np.array([0.0, 0.0, 0.4, -0.05]) + z * [0.5, 0.005, 0.3, 0.01]

    def transition(self, x, z, t):
        """States at row t."""
        push = 0.001 * z[:, :2]
        moved = x.copy()
        moved[:, ::2] += x[:, 1::2] + 0.5 * push
        moved[:, 1::2] += push
        return moved

    def log_likelihood(self, x, y, t):
        """Log density of row t."""
        gap = np.arctan2(x[:, 2], x[:, 0]) - y[0]
        gap = (gap + np.pi) % (2 * np.pi) - np.pi
        return norm.logpdf(gap, 0.0, self.std)

    def draw(self, rng, n_rows=24):
        """Rows drawn from the model, from the start of the paper."""
        x, X = np.array([[-0.05, 0.001, 0.7, -0.055]]), []
        for t in range(n_rows):
            x = self.transition(x, rng.normal(size=(1, 4)), t) if t else x
            X.append(np.arctan2(x[:, 2], x[:, 0]) + self.std * rng.normal(size=1))
        return np.array(X)


def bearings(report, n_sets, n_runs):
    """How often is the ship lost? The reference is the mean of three large runs."""
    model, table = Bearings(), []
    methods = {
        "plain, 1,000": {"n_clusters": None},
        "30 clusters, 1,000": {},
        "plain, 20,000": {"n_clusters": None, "n_particles": 20_000},
        "tempering=1, 1,000": {"n_clusters": None, "tempering": 1},
        "tempering=5, 1,000": {"n_clusters": None, "tempering": 5},
        "tempering=5, 30 clusters, 1,000": {"tempering": 5},
    }
    gaps, seconds = {name: [] for name in methods}, dict.fromkeys(methods, 0.0)
    for data in range(10, 10 + n_sets):
        X = model.draw(np.random.default_rng(data))

        def run(seed, X=X, **parameters):
            tracker = ClusteredParticleFilter(model, random_state=seed, **parameters)
            return tracker.fit(X).log_likelihood_

        large = {"n_clusters": None, "n_particles": 300_000}
        reference = np.logaddexp.reduce([run(seed, **large) for seed in range(3)])
        reference -= np.log(3)
        for name, parameters in methods.items():
            start = time.process_time()
            gaps[name] += [
                run(seed, **parameters) - reference for seed in range(n_runs)
            ]
            seconds[name] += time.process_time() - start
    for name, found in gaps.items():
        lost = 100 * np.mean(np.array(found) < -10)
        spent = 1e3 * seconds[name] / len(found) / len(X)
        table.append(
            [
                *(name, f"{lost:.0f} %", f"{np.min(found):.1f}"),
                *(f"{np.median(found):.1f}", f"{spent:.2f}"),
            ]
        )
    report.table(
        f"Bearings of a ship, {len(X)} rows, {n_sets} series of {n_runs} runs: "
        "log-likelihood less the reference; lost is below -10",
        ["filter, particles", "lost", "worst", "median", "ms a row"],
        table,
    )


class Growth(BaseEstimator):
    """The growth model of Gordon, Salmond and Smith (1993)."""

    n_noise = 1

    def initial(self, z):
        """States at row 0."""
        return z

    def transition(self, x, z, t):
        """States at row t."""
        return x / 2 + 25 * x / (1 + x * x) + 8 * np.cos(1.2 * t) + np.sqrt(10) * z

    def log_likelihood(self, x, y, t):
        """Log density of row t."""
        return -0.5 * np.square(y[0] - x[:, 0] ** 2 / 20)


def clusters(report, n_rows, n_turns):
    """Time of clustering where the model costs little."""
    rng = np.random.default_rng(0)
    x, X = np.zeros((1, 1)), []
    for t in range(n_rows):
        x = Growth().transition(x, rng.normal(size=(1, 1)), t)
        X.append(x[0] ** 2 / 20 + rng.normal())
    trackers = {
        name: ClusteredParticleFilter(Growth(), random_state=0, n_clusters=n)
        for name, n in {"plain": None, "30 clusters": 30}.items()
    }
    actions = {name: lambda f=f: f.fit(X) for name, f in trackers.items()}
    seconds = interleaved(actions, n_turns)
    table = [
        [
            name,
            f"{1e3 * np.median(spent):.1f}",
            f"{median_ratio(seconds, name, 'plain'):.2f}",
        ]
        for name, spent in seconds.items()
    ]
    report.table(
        f"Growth model, 1,000 particles, {n_rows} rows",
        ["filter", "ms", "ratio"],
        table,
    )


def main():
    quick = arguments(__doc__).quick
    report = Report("filtering_models", quick=quick)
    leverage(report, 100, 20 if quick else 300)
    precise_rows(report, 40, 10 if quick else 100)
    smoothing(report, 100, 3 if quick else 20)
    bearings(report, *((2, 3) if quick else (10, 5)))
    clusters(report, 100, 3 if quick else 15)
    report.save()


if __name__ == "__main__":
    main()
