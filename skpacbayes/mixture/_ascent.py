"""Coordinate ascent on the tempered evidence bound: Algorithm 1 of the paper.

The bound of a distribution rho of the weights and the components, with the
responsibilities that are optimal for it, is

    J(rho) = alpha sum_i c_i log sum_k exp(E log p_k + E log q_k(x_i)) - KL(rho, pi).

alpha, the inverse temperature, multiplies the statistics and the entropy of the
responsibilities; the responsibilities themselves are not tempered.
"""

from math import lgamma
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ._rows import expect

PRIOR_UPDATES = 4  # M-steps before priors are compared
MOST_UPDATES, UPDATES_AT_ONCE = 40, 5  # M-steps at the same statistics,
SMALL_RISE = 1.0  # which end when so many raise the criterion by less, in nats
REFINING_SWEEPS = 8  # sweeps before a refinement of the family is compared


class State(NamedTuple):
    """Distribution of the weights, Dirichlet(concentration), and of the components."""

    concentration: np.ndarray
    components: tuple

    @property
    def log_weights(self):
        """Expected log-weights."""
        return digamma(self.concentration) - digamma(self.concentration.sum())


class Fit(NamedTuple):
    """Result of an ascent: `state` is a local maximum of the bound.

    `mixture` has the final prior. `statistics` are those of the rows under `state`,
    `history` the bounds, the last of which is that of `state`.
    """

    mixture: object
    state: State
    statistics: np.ndarray
    history: list
    converged: bool

    @property
    def n_components(self):
        """Number of components."""
        return len(self.state.concentration)

    @property
    def bound(self):
        """The bound J at `state`."""
        return self.history[-1]

    @property
    def criterion(self):
        """The bound plus its correction for missing values, for comparisons."""
        return (
            self.bound + self.mixture.family.missing_gains(self.state.components).sum()
        )

    def following(self, before):
        """Return the fit with its history appended to that of an earlier fit."""
        rising = [bound for bound in self.history if bound > before.bound]
        return self._replace(history=before.history + rising)


class TemperedMixture:
    """Prior and inverse temperature of a mixture, with the steps of the ascent.

    Parameters
    ----------
    family : object
        Family of the components with its prior, see `Family`.
    inverse_temperature : float
        The paper's alpha.
    concentration : float
        Prior concentration of each weight.
    """

    def __init__(self, family, inverse_temperature, concentration):
        self.family = family
        self.inverse_temperature = inverse_temperature
        self.concentration = concentration

    def blank(self, n_components, origin):
        """Return the state of `n_components` components before any data."""
        concentration = np.full(n_components, float(self.concentration))
        return State(concentration, self.family.blank(n_components, origin))

    def density(self, state):
        """Return the expected log joint density of rows and components."""
        return self.family.density(state.components, state.log_weights)

    def e_step(self, state, X, sample_weight=None):
        """Return statistics of the rows, and their log-normaliser (E-step)."""
        return expect(self.density(state), X, sample_weight)

    def m_step(self, statistics, previous):
        """Return the optimal state for statistics (M-step)."""
        tempered = self.inverse_temperature * statistics
        return State(
            self.concentration + tempered[:, 0],
            self.family.update(tempered, previous.components),
        )

    def m_step_of_all(self, statistics, previous):
        """Return the mixture with the prior that the bound chooses, and the state."""
        tempered = self.inverse_temperature * statistics
        family, components = self.family.updated(tempered, previous.components)
        mixture = self if family is self.family else self.with_family(family)
        return mixture, State(self.concentration + tempered[:, 0], components)

    def at_rest(self, statistics, state):
        """Return the state after M-steps at the same statistics, and its criterion.

        A component becomes narrow in many steps: its precision and that of its mean
        follow each other. If it is still broad in the first E-step, it takes rows of
        others, and stays so.
        """
        before = -np.inf
        for _ in range(MOST_UPDATES // UPDATES_AT_ONCE):
            for _ in range(UPDATES_AT_ONCE):
                state = self.m_step(statistics, state)
            criterion = self.criterion_of(state, statistics)
            if criterion - before < SMALL_RISE:
                break
            before = criterion
        return state, criterion

    def divergence(self, state):
        """Return KL(rho, pi)."""
        weights = self.weights_divergence(state)
        return weights + self.family.divergence(state.components)

    def weights_divergence(self, state):
        """Return the divergence of the weights from their prior."""
        rows = state.concentration - self.concentration
        return rows @ state.log_weights - self.evidence_of(state.concentration)

    def bound(self, state, log_normalizer, settled=None):
        """Return the evidence bound of rows with the given log-normaliser.

        Rows in the `settled` statistics are included, with fixed responsibilities.
        """
        if settled is not None:
            log_normalizer += (
                self.family.expected_log_likelihood(state.components, settled)
                + settled[:, 0] @ state.log_weights
                + settled[:, -1].sum()
            )
        return self.inverse_temperature * log_normalizer - self.divergence(state)

    def criterion_of(self, state, statistics):
        """Return the criterion of a state, from statistics of the rows."""
        gains = self.family.missing_gains(state.components)
        return self.bound(state, 0.0, statistics) + gains.sum()

    def component_terms(self, statistics, previous):
        """Return each component's term of the criterion, at its optimum.

        Parameters
        ----------
        statistics : ndarray of shape (n_components, n_columns)
        previous : posterior of the same components, the start of the update

        Returns
        -------
        terms : ndarray of shape (n_components,)
        components : the posterior at that optimum
        """
        family, alpha = self.family, self.inverse_temperature
        components = family.update(alpha * statistics, previous)
        expected = family.expected_log_likelihoods(components, statistics)
        terms = alpha * (expected + statistics[:, -1]) - family.divergences(components)
        return terms + family.missing_gains(components), components

    def concentration_of(self, counts):
        """Return the concentration of the weights after rows with these counts."""
        return self.concentration + self.inverse_temperature * counts

    def weights_term(self, counts):
        """Return the term of the weights: the log evidence of the counts."""
        return self.evidence_of(self.concentration_of(counts))

    def evidence_of(self, concentration):
        """Return the log evidence of counts, given the concentration after them."""
        K, own = len(concentration), self.concentration
        return log_beta(concentration) - (K * lgamma(own) - lgamma(K * own))

    def ascend(self, state, X, sample_weight, settled=None, *, max_iter, tol):
        """Alternate E and M steps until the bound rises by less than `tol` per row.

        The `settled` statistics, of earlier rows, are fixed.
        """
        mixture, history = self, []
        enough = self.enough(X, sample_weight, tol)
        for n_iter in range(max_iter + 1):
            statistics, log_normalizer = mixture.e_step(state, X, sample_weight)
            history.append(mixture.bound(state, log_normalizer, settled))
            converged = n_iter > 0 and history[-1] - history[-2] < enough
            if converged or n_iter == max_iter:
                return Fit(mixture, state, statistics, history, converged)
            if settled is None:
                mixture, state = mixture.m_step_of_all(statistics, state)
                components = self.family.recentred(state.components)
                state = state._replace(components=components)
            else:
                state = mixture.m_step(statistics + settled, state)

    def rounded(self, statistics):
        """Return statistics with entropies clipped to possible values.

        For narrow components, entropies are differences of large sums: rounding errors.
        """
        if not self.family.completes_rows:
            most = statistics[:, 0].sum() * np.log(len(statistics))
            entropies = np.maximum(statistics[:, -1], 0.0)
            total = entropies.sum()
            statistics[:, -1] = entropies * (most / total if total > most else 1.0)
        return statistics

    def check_statistics(self, statistics, state):
        """Raise ValueError if statistics cannot be those of rows.

        With missing values, entropies may be negative.
        """
        counts, entropies = statistics[:, 0], statistics[:, -1]
        if not np.isfinite(statistics).all() or (counts < 0).any():
            raise ValueError("statistics must be finite, with counts >= 0.")
        total = counts.sum()
        slack = 1e-6 * (1 + total)
        most = total * np.log(len(counts))
        wrong = (entropies < -slack).any() or entropies.sum() > most + slack
        if wrong and not self.family.completes_rows:
            raise ValueError(
                "The entropies in the last column of statistics must be >= 0, and "
                f"together at most the count times log(n_components), {most:g}; got "
                f"from {entropies.min():g}, together {entropies.sum():g}."
            )
        self.family.check_statistics(statistics, state.components)

    def reshaped(self, statistics, state, n_updates):
        """Return the mixture with a better prior for statistics, and its state."""
        mixture = self
        for _ in range(n_updates):
            mixture, state = mixture.m_step_of_all(statistics, state)
            family = mixture.family.reshaped(state.components)
            mixture = mixture.with_family(family)
        return mixture, state

    def best_prior(self, fit, X, sample_weight, tol):
        """Return the mixture with the best prior of its family for a fit, and a state.

        The priors are compared at the statistics of the fit, each of them once.
        """
        enough = self.enough(X, sample_weight, 10 * tol)
        mixture, state, statistics = fit.mixture, fit.state, fit.statistics
        best = mixture.bound(state, 0.0, statistics)
        found, tried = True, {mixture.family.prior_choice}
        while found:
            found = False
            for family in mixture.family.alternatives():
                choice = family.prior_choice
                if choice in tried and choice != mixture.family.prior_choice:
                    continue
                tried.add(choice)
                other = mixture.with_family(family)
                bound, *other = other.compared(statistics, state, best + enough)
                if bound > best + enough:
                    best, (mixture, state), found = bound, other, True
                    break
        return mixture, state

    def prior_after(self, fit, X, sample_weight, tol):
        """Return the mixture with the best prior, and a state, if the bound rises.

        The prior of the family is adapted to the fit first, as in the ascent of a fit.
        """
        mixture, state, statistics = fit.mixture, fit.state, fit.statistics
        least = mixture.bound(state, 0.0, statistics)
        least += self.enough(X, sample_weight, 10 * tol)
        bound, *other = mixture.compared(statistics, state, least)
        if bound > least:
            mixture, state = other
            fit = Fit(mixture, state, statistics, [bound], True)
        return mixture.best_prior(fit, X, sample_weight, tol)

    def compared(self, statistics, state, to_beat, n_updates=PRIOR_UPDATES):
        """Return the bound after updates of prior and state, the mixture and the state.

        The updates end where the bound can hardly exceed `to_beat`.
        """
        mixture, before = self, -np.inf
        for _ in range(n_updates):
            mixture, state = mixture.reshaped(statistics, state, 1)
            bound = mixture.bound(state, 0.0, statistics)
            if bound + n_updates * (bound - before) < to_beat:
                break
            before = bound
        return bound, mixture, state

    def with_best_prior(self, fit, X, sample_weight, **to):
        """Return the fit, or a better one with an alternative prior of the family."""
        mixture, state = self.best_prior(fit, X, sample_weight, to["tol"])
        if mixture is fit.mixture:
            return fit
        better = mixture.ascend(state, X, sample_weight, **to)
        return better._replace(history=fit.history + better.history)

    def refined(self, fit, X, sample_weight, **to):
        """Return the fit, or a better one with a refinement of its family.

        A refinement is compared after a few sweeps over the rows.
        """
        enough = self.enough(X, sample_weight, 10 * to["tol"])
        brief = {**to, "max_iter": min(REFINING_SWEEPS, to["max_iter"])}
        best = fit
        while True:
            for family in best.mixture.family.refinements():
                found = best.mixture.with_family(family)
                found = found.ascend(best.state, X, sample_weight, **brief)
                if found.bound > best.bound + enough:
                    best = found.following(best)
                    break
            else:
                break
        if best is fit:
            return fit
        return best.mixture.ascend(best.state, X, sample_weight, **to).following(best)

    def with_family(self, family):
        """Return the mixture with another prior of the components."""
        return TemperedMixture(family, self.inverse_temperature, self.concentration)

    def at(self, inverse_temperature):
        """Return the mixture at another temperature."""
        return TemperedMixture(self.family, inverse_temperature, self.concentration)

    def enough(self, X, sample_weight, tol):
        """Return the tolerance on the total bound, for `tol` nats per row."""
        total = X.shape[0] if sample_weight is None else sample_weight.sum()
        return tol * self.inverse_temperature * total

    def sweep(self, state, X, sample_weight, settled, *, n_sweeps):
        """Make `n_sweeps` E and M steps with the `settled` statistics fixed."""
        history = []
        for _ in range(n_sweeps):
            statistics, log_normalizer = self.e_step(state, X, sample_weight)
            history.append(self.bound(state, log_normalizer, settled))
            state = self.m_step(statistics + settled, state)
        return state, history


def log_beta(concentration):
    """Return the log normaliser of a Dirichlet density."""
    return gammaln(concentration).sum() - gammaln(concentration.sum())
