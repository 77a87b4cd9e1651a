"""The logistic loss: a Gibbs sampler over models, coefficients and Pólya-Gamma rates.

Given a rate for each row, the tempered logistic likelihood is Gaussian in the scores:
the models are then walked as in regression, with weighted rows. Given the scores, the
rates are Pólya-Gamma. The intercept is integrated out of the walk.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ._chain import Chain
from ._polya_gamma import polya_gamma
from ._quadratic import WeightedRows, precision_factor

MOVES = 10  # of the walk, for each draw of the rates
INTERCEPT_VARIANCE = 100.0  # of the prior of the intercept, a log odds


class Drawn(NamedTuple):
    """What a chain recorded, step by step, and how many moves were accepted."""

    columns: list
    coefficients: list
    intercepts: list
    losses: list
    bounded: list
    tried: int
    accepted: int


class RatedRows(WeightedRows):
    """The quadratic form of the scores, its intercept integrated out.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    rates : ndarray of shape (n_samples,)
        Pólya-Gamma rates.
    pulls : ndarray of shape (n_samples,)
        The linear term of the log likelihood: half the weight of a row, negative where
        the label is.
    ranks : ndarray of shape (n_features,)
        Number of functions there are of each variable.
    """

    def __init__(self, values, rates, pulls, ranks):
        super().__init__(values, rates, ranks)
        self._precision = rates.sum() + 1 / INTERCEPT_VARIANCE
        self._pull = pulls.sum()
        self._sums = self._flat @ rates
        sums = self._sums.reshape(self.diagonal.shape[:2])
        self.diagonal -= sums[:, :, None] * sums[:, None, :] / self._precision
        self.linear = self._flat @ pulls - self._sums * (self._pull / self._precision)

    def among(self, columns):
        """Return G among some functions."""
        sums = self._sums[columns]
        return super().among(columns) - np.outer(sums, sums / self._precision)

    def fetch(self, feature, start, stop, out):
        """Write the rows of G of some functions of a variable."""
        super().fetch(feature, start, stop, out)
        first = feature * self.values.shape[1]
        sums = self._sums[first + start : first + stop]
        out -= np.outer(sums, self._sums / self._precision)

    def draw_intercept(self, scores, rng):
        """Draw the intercept, given the sum of the effects at each row."""
        mean = (self._pull - self.weights @ scores) / self._precision
        return mean + rng.standard_normal() / math.sqrt(self._precision)


class LogisticChain:
    """One chain.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions at the rows.
    positive : ndarray of bool of shape (n_samples,)
        The labels.
    weights : ndarray of shape (n_samples,)
        Exponent of the likelihood of each row.
    ranks : ndarray of shape (n_features,)
        Number of functions there are of each variable.
    prior : Prior
        Prior of models and coefficients.
    score_bound : float
        Bound on the scores whose loss is recorded, too.
    rng : numpy.random.Generator
        Source of random numbers.
    """

    def __init__(self, values, positive, weights, ranks, prior, score_bound, rng):
        self.values, self.weights, self.ranks = values, weights, ranks
        self.prior, self.score_bound, self.rng = prior, score_bound, rng
        self._flat = values.reshape(-1, values.shape[2])
        self._pulls = np.where(positive, 0.5, -0.5) * weights
        share = (weights @ positive + 1) / (weights.sum() + 2)
        self.intercept = math.log(share / (1 - share))
        self.columns = np.zeros(0, dtype=np.int64)
        self.coefficients = np.zeros(0)
        self.scores = np.full(len(weights), self.intercept)
        self._positive = positive
        self._chain = None
        self.draws = []

    @property
    def model(self):
        """Variables and orders of the current model."""
        return self._chain.model

    def advance(self, n_sweeps, *, recorded=True):
        """Sweep; record the intercept, the functions and their coefficients."""
        for _ in range(n_sweeps):
            self.sweep()
            if recorded:
                bounded = self.scores.clip(-self.score_bound, self.score_bound)
                self.draws.append(
                    (
                        self.columns,
                        self.coefficients,
                        self.intercept,
                        self._loss(self.scores),
                        self._loss(bounded),
                    )
                )

    def _loss(self, scores):
        """Weighted mean of the log loss."""
        margins = np.where(self._positive, scores, -scores)
        return self.weights @ np.logaddexp(0.0, -margins) / self.weights.sum()

    @property
    def n_recorded(self):
        """Number of draws recorded."""
        return len(self.draws)

    def drawn(self):
        """Return what was recorded."""
        tried, accepted = self._chain.moves[:, :2].sum(axis=1)
        return Drawn(*map(list, zip(*self.draws, strict=True)), tried, accepted)

    def sweep(self, n_moves=MOVES):
        """Draw the rates, walk over the models, and draw the coefficients."""
        rates = polya_gamma(self.weights, self.scores, self.rng)
        form = RatedRows(self.values, rates, self._pulls, self.ranks)
        if self._chain is None:
            self._chain = Chain(form.reader(), form.linear, self.prior, self.rng)
        else:
            self._chain.change(form.reader(), form.linear, self.prior)
        self._chain.advance(n_moves, recorded=False)
        self.columns = self._columns()
        self.coefficients = self._draw_coefficients(form)
        effects = self.coefficients @ self._flat[self.columns]
        self.intercept = form.draw_intercept(effects, self.rng)
        self.scores = self.intercept + effects

    def _columns(self):
        """Numbers of the functions in the model, ascending."""
        width = self.values.shape[1]
        features, orders = self.model
        places = np.arange(width) < orders[:, None]
        return np.sort((features[:, None] * width + np.arange(width))[places])

    def _draw_coefficients(self, form):
        """Draw the coefficients of the model, a normal law given the rates."""
        factor = precision_factor(form.among(self.columns), self.prior.ridge)
        linear = form.linear[self.columns]
        whitened = solve_triangular(factor, linear, lower=True, check_finite=False)
        whitened += self.rng.standard_normal(len(whitened))
        return solve_triangular(
            factor, whitened, lower=True, trans=1, check_finite=False
        )
