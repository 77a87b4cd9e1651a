"""How rows are learnt: what the parameters of a mixture make of a data set."""

from typing import NamedTuple
from warnings import warn

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import user_stack_level
from ._ascent import Fit, TemperedMixture
from ._diagnostics import (
    inflation_in,
    warn_of_atoms,
    warn_of_inflation,
    warn_of_outliers,
)
from ._moves import exchange_components
from ._search import best_fit, restarts
from ._selection import Choice, best_by_number, with_best_prior
from ._temperature import TEMPERATURES, TemperatureChoice


class Learned(NamedTuple):
    """A mixture fitted to a data set: its prior, the best fit, and the path over K."""

    mixture: TemperedMixture
    fit: Fit
    path: dict


class Learner:
    """Fits of a data set, and of the window of a stream.

    Parameters
    ----------
    begin : callable
        Returns the family with its prior, given rows and weights.
    seed : int
        Seeds the starts, exchanges and cuts.
    parameters : dict
        Those of the estimator, by name.
    """

    def __init__(self, begin, seed, parameters):
        self.begin = begin
        self.seed = seed
        self.names = parameters.get("feature_names_in_", ())
        self.inverse_temperature = parameters["inverse_temperature"]
        self.concentration = parameters["weight_concentration_prior"]
        self.chooses = parameters["n_components"] == "auto"
        self.max_components = parameters["max_components"]
        self.n_components = parameters["n_components"]
        if self.chooses:
            self.n_components = self.max_components
        self.n_init, self.n_jobs = parameters["n_init"], parameters["n_jobs"]
        self.n_sweeps = parameters["n_sweeps"]
        self.to = {"max_iter": parameters["max_iter"], "tol": parameters["tol"]}
        self.choice = Choice(
            surprises(parameters["component_prior"], self.max_components), seed, self.to
        )

    def learn(self, X, weight, tasks=range):
        """Fit rows alone, for each number of components that is asked for."""
        alpha = self.inverse_temperature
        chosen = alpha == "auto"
        mixture = TemperedMixture(
            self.begin(X, weight),
            TEMPERATURES[0] if chosen else alpha,
            self.concentration,
        )
        paths = self.searched(mixture, X, weight, tasks)
        if chosen:
            inflation = inflation_in(best_by_number(paths), X, weight)
            if inflation > 1.0:
                mixture = mixture.at(TEMPERATURES[0] / inflation)
                paths = self.searched(mixture, X, weight, range)
            temperatures = TemperatureChoice(best_by_number(paths), self.choice)
            alpha = temperatures.best(X, weight, self.n_jobs)
            if alpha != mixture.inverse_temperature:
                paths = self.searched(mixture.at(alpha), X, weight, range)
        elif self.chooses:
            warn_of_inflation(inflation_in(best_by_number(paths), X, weight), alpha)
        if self.chooses:
            fit, path = self.choice.best_of(paths, X, weight)
        else:
            fit, _ = self.exchanged(paths[0][self.n_components], X, weight)
            path = {self.n_components: self.choice.of(fit)}
        if not fit.converged:
            warn(
                f"The bound was still rising after max_iter={self.to['max_iter']} "
                "iterations: increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=user_stack_level(),
            )
        if not warn_of_atoms(fit, X, weight, self.names):
            warn_of_outliers(fit, X, weight, self.choice.surprise)
        return Learned(fit.mixture, fit, path)

    def warn_if_more_than(self, n_rows, rows):
        """Warn if there are more components than so many rows."""
        if not self.chooses and n_rows is not None and self.n_components > n_rows:
            warn(
                f"n_components={self.n_components} is more than the {n_rows} {rows}: "
                "components without rows keep their prior. Reduce n_components.",
                ConvergenceWarning,
                stacklevel=user_stack_level(),
            )

    def searched(self, mixture, X, weight, tasks):
        """Fits by their number of components: paths of merges, or the best start.

        The best start has the prior that the bound chooses.
        """
        seeds = np.random.default_rng(self.seed).integers(2**31 - 1, size=self.n_init)
        rows, K = (X, weight), self.n_components
        search = {"tasks": tasks, "n_jobs": self.n_jobs}
        if self.chooses:
            return self.choice.paths(mixture, K, seeds, *rows, **search)
        fits = restarts(mixture, K, seeds, *rows, **search, **self.to)
        return [{K: with_best_prior(best_fit(fits), *rows, **self.to)}]

    def exchanged(self, fit, X, weight, settled=None):
        """Improve a fit by exchanges of components."""
        return exchange_components(
            fit, X, weight, settled, seed=self.seed, options=self.to
        )

    def improve(self, mixture, state, X, weight, settled):
        """Ascend and exchange components on the window of a stream.

        As long as no row has settled, the window holds all of them: new starts too.
        """
        fit = mixture.ascend(state, X, weight, settled, **self.to)
        if not settled.any():
            K = len(state.concentration)
            seeds = np.random.default_rng([self.seed, len(weight)])
            others = restarts(
                mixture,
                K,
                seeds.integers(2**31 - 1, size=self.n_init),
                X,
                weight,
                tasks=range,
                n_jobs=self.n_jobs,
                settled=settled,
                **self.to,
            )
            fit = best_fit([fit, *others])
        fit, settled = self.exchanged(fit, X, weight, settled)
        return self.renumber(fit, X, weight, settled)

    def renumber(self, fit, X, weight, settled):
        """Merge and cut components on the window of a stream, if "auto"."""
        if not self.chooses:
            return fit, settled
        return self.choice.on_window(fit, self.max_components, X, weight, settled)


def surprises(component_prior, most):
    """Return log(1 / pi_K) as a function of K, for the prior of that name."""
    if component_prior == "geometric":
        return lambda n_components: n_components * np.log(2)
    return lambda n_components: np.log(most)
