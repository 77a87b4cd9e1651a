"""Fits of mixtures to a data set, for the parameters of an estimator."""

from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._sentinels import warn_of_angles, warn_of_sentinels
from ._ascent import Fit, TemperedMixture
from ._copied_columns import warn_of_copied_columns, warn_of_copied_counts
from ._diagnostics import (
    inflation_in,
    times_repeated,
    warn_of_atoms,
    warn_of_copies,
    warn_of_far_values,
    warn_of_heavy_row,
    warn_of_inflation,
    warn_of_measurements,
    warn_of_outliers,
    warn_of_shares,
    warn_of_small_weights,
    warn_of_underflow,
    warn_of_unequal_weights,
)
from ._dual import in_dual_form, lifted
from ._exchanges import exchange_components, limited
from ._heavy_tails import warn_of_heavy_tails
from ._held_out import (
    TEMPERATURES,
    TemperatureChoice,
    best_on_held_out_rows,
    prices_of,
    undecided,
)
from ._merged_groups import warn_of_merged_groups
from ._moves import best_merge, best_split
from ._other_families import warn_of_other_families, warn_of_shapes
from ._outliers import without_outliers
from ._row_order import warn_of_order
from ._search import best_fit, from_last, in_rounds, remembered, restarts
from ._selection import AT_LEAST, Choice, best_by_number, few_more, with_best_prior
from ._skewed_groups import SkewedGroups

NEARLY = 0.01  # deficit of another family after one start, in nats per row


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
        Returns the families to compare, with their priors, given rows and weights.
    seed : int
        Seed of the starts and of the split-merge moves.
    parameters : dict
        Parameters of the estimator, by name.
    of_stream : bool, default=False
        Whether the rows to fit are the first of a stream, which warnings then say.
    warn_of_family : callable, default=None
        Warns if other families suit a fit better, given the fit, the fits of other
        numbers, rows, weights and the learner.
    """

    def __init__(self, begin, seed, parameters, of_stream=False, warn_of_family=None):
        self.begin = begin
        self.warn_of_family = warn_of_family
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
        self.found_atoms = self.found_pieces = self.found_skewed = False
        self.to = {"max_iter": parameters["max_iter"], "tol": parameters["tol"]}
        surprise = surprises(parameters["component_prior"], self.max_components)
        self.choice = Choice(surprise, seed, self.to, of_stream)

    def learn(self, X, weight, tasks=range, last=None, rival=None, early=False):
        """Fit the rows, for each requested number of components.

        The search starts from the `last` solution, if there is one. The `rival`,
        another fit of the same rows, is kept if its criterion is larger. The checks for
        outliers and for other families are left out of an `early` fit, which later
        rows will change.
        """
        if last is None:
            search = self if rival is None else self.near(rival)
            fit, path, fits = search.found(X, weight, tasks)
            if rival is not None and self.choice.of(rival) > self.choice.of(fit):
                fit = rival
        else:
            fit = self.followed(last, X, weight, tasks)
            self.warn_if_more(fit, X, weight)
            K = fit.n_components
            fits, path = {K: fit}, {K: self.choice.of(fit)}
        self.warn_of(fit, fits, X, weight)
        if not early:
            self.warn_of_outliers(fit, X, weight, fits.values())
            self.warn_of_families(fit, fits, X, weight)
        return Learned(fit.mixture, fit, path)

    def near(self, fit):
        """Return a learner that tries few more components than those of a fit."""
        learner, K = copy(self), fit.n_components
        learner.n_components = min(self.n_components, few_more(K))
        return learner

    def mixtures(self, X, weight, inverse_temperature):
        """Return the mixtures to compare, with their priors."""
        return [
            TemperedMixture(family, inverse_temperature, self.concentration)
            for family in self.begin(X, weight)
        ]

    def followed(self, last, X, weight, tasks):
        """Return the fit started from the responsibilities of the last solution.

        Components are merged or split until their number is the requested one.
        """
        alpha, rows = self.inverse_temperature, (X, weight)
        alpha = last.mixture.inverse_temperature if alpha == "auto" else alpha
        mixtures = self.mixtures(*rows, alpha)

        def run(mixture):
            state = from_last(mixture, last.mixture, last.state, *rows)
            fit = mixture.ascend(state, *rows, **limited(self.to, 1))
            fit = mixture.with_best_prior(fit, *rows, **self.to)
            if not fit.converged:
                better = fit.mixture.ascend(fit.state, *rows, **self.to)
                fit = better.following(fit)
            return with_best_prior(fit, *rows, **self.to)

        fit = best_fit(in_rounds(run, mixtures, tasks, self.n_jobs))
        most = self.n_components
        while (K := fit.n_components) != most:
            if most > K and self.chooses:
                break
            move = partial(best_split, seed=self.seed) if most > K else best_merge
            state, _ = move(fit, *rows)
            fit = fit.mixture.ascend(state, *rows, **self.to)
        fit, _ = self.exchanged(fit, *rows)
        return self.renumber(fit, *rows, None)[0]

    def found(self, X, weight, tasks):
        """Return the best fit, and a criterion and a fit for each number."""
        alpha = self.inverse_temperature
        chosen = alpha == "auto"
        mixtures = self.mixtures(X, weight, TEMPERATURES[0] if chosen else alpha)
        if chosen:
            first = TEMPERATURES[0] / times_repeated(mixtures[0].family, X, weight)
            mixtures = [mixture.at(first) for mixture in mixtures]
        mixtures = [in_dual_form(mixture, X, weight) for mixture in mixtures]
        mixture, paths = self.searched_among(mixtures, X, weight, tasks)
        rows = mixture.family.encoded(X), weight
        if chosen:
            inflation = inflation_in(best_by_number(paths), *rows)
            if inflation > 1.0:
                mixture = mixture.at(mixture.inverse_temperature / inflation)
                paths = self.searched(mixture, self.n_components, X, weight, range)
            temperatures = TemperatureChoice(best_by_number(paths), self.choice)
            alpha = temperatures.best(X, weight, self.n_jobs)
            if alpha != mixture.inverse_temperature:
                mixture = mixture.at(alpha)
                paths = self.searched(mixture, self.n_components, X, weight, range)
        if self.chooses:
            fits = best_by_number(paths)
            fit, path = self.choice.best_of(paths, mixture, *rows)
            self.warn_if_more(fit, *rows)
            return lifted(fit, X, weight), path, fits
        fit = lifted(self.exchanged(paths[0][self.n_components], *rows)[0], X, weight)
        return fit, {self.n_components: self.choice.of(fit)}, {self.n_components: fit}

    def warn_of(self, fit, fits, X, weight):
        """Warn of a fit, chosen among those of some numbers of components.

        Parameters
        ----------
        fit : Fit
            The fit that is kept.
        fits : dict of int to Fit
            The best fits before their improvement, by their number of components.
        """
        alpha = self.inverse_temperature
        self.found_atoms = self.warn_of_values(fit, X, weight)
        if self.chooses and alpha != "auto":
            warn_of_inflation(inflation_in(fits, X, weight), alpha)
            warn_of_unequal_weights(weight, alpha)
        if self.chooses:
            rows, of_stream = without_outliers(fit, X, weight), self.choice.of_stream
            self.found_pieces = warn_of_merged_groups(
                *rows, of_stream=of_stream, names=self.names
            )
            if not (self.found_pieces or self.found_atoms):
                kinds = [SkewedGroups]
                self.found_skewed = warn_of_merged_groups(*rows, kinds, of_stream)
            warn_of_order(fit, X, self.names, alpha == "auto")
        if self.found_atoms or self.found_pieces or not self.chooses:
            warn_of_shapes(fit, fits.values(), self.choice.of)
        else:
            others = fits.values(), X, weight, self.choice, self.names
            warn_of_other_families(fit, *others)
        if not fit.converged:
            warn_user(
                f"The bound was still rising after max_iter={self.to['max_iter']} "
                "iterations: increase max_iter or tol.",
                ConvergenceWarning,
            )
        warn_of_small_weights(weight)
        warn_of_heavy_row(weight)
        fit.mixture.family.warn_of(fit.state.components)
        warn_of_measurements(fit.mixture.family, X, self.names)
        warn_of_underflow(fit.mixture.family, X, self.names)
        warn_of_far_values(fit.mixture.family, X, self.names)
        warn_of_copied_columns(fit, X, weight, self.names)
        warn_of_copied_counts(fit.mixture.family, X, weight, self.names)
        warn_of_shares(fit.mixture.family, X)
        if self.chooses and not self.found_atoms:
            warn_of_copies(fit, X, weight, alpha == "auto")

    def warn_of_outliers(self, fit, X, weight, fits=()):
        """Warn of a component of outliers, unless values repeat or counts vary more.

        Otherwise, warn of heavy tails, unless another reason for pieces was found.
        `fits` are those of the numbers of components that were tried.
        """
        counted = fit.mixture.family.columns_that_are("counted", range(X.shape[1]))
        if self.found_atoms or (self.found_pieces and counted):
            return
        found = warn_of_outliers(fit, X, weight, self.choice)
        if self.chooses and not (found or self.found_pieces or self.found_skewed):
            warn_of_heavy_tails(fit, fits, X, weight, self.choice)

    def warn_of_families(self, fit, fits, X, weight):
        """Warn of families that suit the rows better, unless values are repeated."""
        first = self.choice.of_stream and not self.chooses  # more rows than these come
        if not (self.found_atoms or first or self.warn_of_family is None):
            self.warn_of_family(fit, fits, X, weight, self)

    def warn_of_values(self, fit, X, weight):
        """Warn of values that many rows share; return whether there are any."""
        return self.warn_of_sentinels(fit.mixture, X) or warn_of_atoms(
            fit, X, weight, self.names, self.chooses
        )

    def warn_of_sentinels(self, mixture, X):
        """Warn of codes for missing values, and of angles; return whether of codes."""
        family, columns = mixture.family, range(X.shape[1])
        if issparse(X):
            return False
        others = set(columns).difference(family.columns_that_are("ordered", columns))
        warn_of_angles(X, self.names, others)
        missing = {"allows_missing": family.allows_missing}
        return warn_of_sentinels(X, self.names, others, **missing)

    def warn_if_more_than(self, n_rows, rows):
        """Warn if there are more components than `n_rows`."""
        if not self.chooses and n_rows is not None and self.n_components > n_rows:
            warn_user(
                f"n_components={self.n_components} is more than the {n_rows} {rows}: "
                "components without rows keep their prior. Reduce n_components.",
                ConvergenceWarning,
            )

    def searched_among(self, mixtures, X, weight, tasks):
        """Return the mixture with the best criterion, and the result of its search.

        Mixtures whose first start is nearly the best are searched with all starts, up
        to few more components than the first mixture has, unless they need them all.
        The first path of a mixture ends where it cannot become a rival of the others.
        Where the criteria are not decisive, held-out rows choose the mixture.

        Returns
        -------
        mixture : TemperedMixture
        paths : list of dict
            As returned by `searched`.
        """
        rows, K, known = (X, weight), self.n_components, {}
        if len(mixtures) == 1:
            return mixtures[0], self.searched(mixtures[0], K, *rows, tasks)

        def first_fit(mixture, most, first=AT_LEAST, least=-np.inf):
            one = {"n_init": 1, "first": first, "least": least}
            paths = self.searched(mixture, most, *rows, range, known, **one)
            return self.best_of(best_by_number(paths))

        fits = [first_fit(mixtures[0], K)]
        best = [self.choice.of(fits[0])]
        if self.chooses:
            K = min(K, few_more(fits[0].n_components))
        nearly = mixtures[0].enough(X, weight, NEARLY)
        prices = prices_of(mixtures, X, weight)
        for mixture, price in zip(mixtures[1:], prices[1:], strict=True):
            behind = max(nearly, max(prices) - price)  # and still a rival
            fits.append(first_fit(mixture, K, K, max(best) - behind))
            best.append(self.choice.of(fits[-1]))
        near = max(best) - nearly
        mosts = [self.n_components]  # others that do not need K are tried up to K
        mosts += [K if fit.n_components < K else mosts[0] for fit in fits[1:]]
        kept = [i for i, of in enumerate(best) if of >= near]
        rivals = undecided(mixtures, best, X, weight)
        if len(rivals) > 1:
            tried = [fits[i] for i in rivals]
            kept = [rivals[best_on_held_out_rows(self, tried, X, weight)]]
        firsts = [AT_LEAST] + [K] * len(mixtures[1:])
        paths = [
            self.searched(
                mixtures[i],
                mosts[i],
                *rows,
                tasks if i == kept[0] else range,
                known,
                first=firsts[i],
            )
            for i in kept
        ]
        best = [self.choice.of(self.best_of(best_by_number(each))) for each in paths]
        best = int(np.argmax(best))
        return mixtures[kept[best]], paths[best]

    def best_of(self, fits):
        """Return the fit with the largest criterion, of a dict."""
        return max(fits.values(), key=self.choice.of)

    def searched(
        self,
        mixture,
        most,
        X,
        weight,
        tasks,
        known=None,
        n_init=None,
        first=AT_LEAST,
        **to,
    ):
        """Return fits by number of components: paths of merges, or the best start.

        The paths begin with `first` components, or more where these are few. The bound
        chooses the prior of the best start. Results in `known` are not computed again.
        Other options are those of `Choice.paths`.
        """
        n_init = n_init or self.n_init
        known = {} if known is None else known
        X = mixture.family.encoded(X)
        generator = np.random.default_rng(self.seed)
        seeds = generator.integers(2**31 - 1, size=max(n_init, 2))
        search = {"tasks": tasks, "n_jobs": self.n_jobs, "known": known}
        if self.chooses:
            rows = X, weight
            to["n_init"] = n_init
            return self.choice.paths(mixture, first, most, seeds, *rows, **search, **to)
        starts = mixture, most, seeds[:n_init]
        fits = restarts(*starts, X, weight, **search, **self.to)
        best = best_fit(fits)
        return [
            remembered(
                known,
                ("best prior", id(best)),
                lambda: {most: with_best_prior(best, X, weight, **self.to)},
            )
        ]

    def exchanged(self, fit, X, weight, settled=None):
        """Return a fit improved by exchanges of components."""
        return exchange_components(
            fit, X, weight, settled, seed=self.seed, options=self.to
        )

    def improve(self, mixture, state, X, weight, settled):
        """Ascend and exchange components on the window of a stream.

        As long as the window holds all rows, new starts are tried too.
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
        fit, settled = self.renumber(fit, X, weight, settled)
        self.warn_if_more(fit, X, weight, settled)
        return fit, settled

    def rearranged(self, mixture, state, X, weight):
        """Return a fit to all rows of a stream, from its state."""
        if self.chooses:
            fit = mixture.ascend(state, X, weight, **limited(self.to, 1))
            return self.renumber(fit, X, weight, None)[0]
        fit = mixture.ascend(state, X, weight, **self.to)
        return self.exchanged(fit, X, weight)[0]

    def renumber(self, fit, X, weight, settled):
        """Merge and split components while the criterion rises, if "auto"."""
        if not self.chooses:
            return fit, settled
        return self.choice.on_window(fit, self.max_components, X, weight, settled)

    def warn_if_more(self, fit, X, weight, settled=None):
        """Warn if "auto" chose the largest number, and one more is better."""
        if self.chooses and fit.n_components == self.max_components:
            self.choice.warn_if_more(fit, X, weight, settled)


def surprises(component_prior, most):
    """Return log(1 / pi_K) as a function of K, for the prior of that name."""
    if component_prior == "geometric":
        return lambda n_components: n_components * np.log(2)
    return lambda n_components: np.log(most)
