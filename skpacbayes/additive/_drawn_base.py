"""Base class of the estimators whose chains draw coefficients."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._base import as_fitted
from .._chains import run_chains
from .._stream import CheckedScoreMixin, checked_weights
from .._validation import validate_data
from ..certificates import Certificate
from ..certificates.additive import logistic_normal
from ..certificates.pac_bayes import catoni_terms
from ._base import _SparseAdditiveGibbs
from ._basis import Dictionary, Orthonormal, weighted_moments
from ._chain import NO_PAIRS
from ._conditional_draws import INTERCEPT_VARIANCE
from ._interactions import Pairs, with_pairs
from ._logistic_chains import LogisticChain, SoftmaxChain
from ._posterior import Fitted, Posterior, Run
from ._rated_chain import ModelSpace

LEAST_TOTAL, LARGEST_TOTAL = 1e-9, 1e12  # range of the total weight
N_FIRST = 300  # draws without interactions that determine the candidate pairs
N_POINTS = 2001  # of the grid on which functions are orthonormal under "pac"
SMALLEST = 1e-290  # least sum of probabilities with an accurate logarithm


class Rows(NamedTuple):
    """Rows of positive weight."""

    X: np.ndarray
    # Whether rows are of the second class; with several classes one-hot codes,
    # (n_classes, n_samples); or counts.
    targets: np.ndarray
    weights: np.ndarray


class Problem(NamedTuple):
    """Values of the functions of single variables at the rows."""

    dictionary: Dictionary
    functions: Orthonormal
    values: np.ndarray  # (n_features, max_order, n_samples)
    targets: np.ndarray  # see Rows
    weights: np.ndarray
    ranks: np.ndarray  # number of functions of each variable, then of each pair
    pairs: Pairs | None = None  # pairs of variables, numbered after the variables

    def among(self, columns):
        """Return sums over the rows of products of some functions."""
        width = self.values.shape[1]
        values = self.values[columns // width, columns % width]
        return (values * self.weights) @ values.T


class _DrawnAdditiveGibbs(_SparseAdditiveGibbs):
    """Base class of scores whose draws are averaged in predictions."""

    _what_chains_report = "loss"

    def __sklearn_is_fitted__(self):
        return "_computed" in vars(self)

    def _problem(self, rows):
        """Return functions at rows, orthonormal over the rows or their range."""
        self._check_range()
        dictionary = self._dictionary(rows)
        values = dictionary(rows.X)
        if self.inverse_temperature == "pac":  # the prior may not depend on the rows
            if dictionary.missing.any() or self._categorical():
                raise ValueError(
                    "inverse_temperature='pac' needs rows without missing values and "
                    "no categorical_features."
                )
            low, high = dictionary.low, dictionary.high
            grid = low + np.linspace(0, 1, N_POINTS)[:, None] * (high - low)
            moments = weighted_moments(dictionary(grid), np.ones(N_POINTS))
        else:
            moments = weighted_moments(values, rows.weights)
        functions = dictionary.orthogonal(*moments, rows.weights.sum())
        values, ranks = functions(values), functions.orders
        return Problem(dictionary, functions, values, *rows[1:], ranks)

    def _paired(self, problem, make):
        """Return the problem with functions of given pairs, or of candidate pairs.

        Parameters
        ----------
        problem : Problem
            The problem without pairs.
        make : callable
            Returns a chain for a problem.
        """
        if self.interactions is None:
            return problem

        def probabilities():
            chain = make(problem)
            chain.advance(self.burn_in, keep=False)
            chain.advance(min(N_FIRST, self.n_iter))
            shape = problem.values.shape[:2]
            return Posterior([chain], shape).inclusion()[:, 0]

        pairs = self._candidates(problem.functions.orders, probabilities)
        found, values, ranks = with_pairs(
            pairs,
            problem.dictionary,
            problem.functions,
            problem.values,
            problem.weights,
        )
        return problem._replace(values=values, ranks=ranks, pairs=found)

    def _chain_of(self, kind, problem, exponents, variance, rng):
        """Return a chain of a kind for likelihoods of the rows raised to exponents."""
        most = self._most_variables()
        pairs = NO_PAIRS if problem.pairs is None else problem.pairs.pairs
        space = ModelSpace(
            problem.values, problem.ranks, self.beta, most, variance, pairs
        )
        return kind(space, problem.targets, exponents, rng)

    def _run(self, chains):
        """Advance the chains."""
        run_chains(
            chains,
            burn_in=self.burn_in,
            n_iter=self.n_iter,
            tasks=self._parts,
            n_jobs=self.n_jobs,
        )

    def _fitted(self, problem, chains, inverse_temperature, rng):
        """Return the results of the chains, with several classes for each score."""
        several = problem.targets.ndim == 2
        scores = [chains]
        if several:
            scores = zip(*(chain.classes for chain in chains), strict=True)
        parts = [
            self._put_together(problem, own, inverse_temperature) for own in scores
        ]
        chosen = self._chosen_draws([part.posterior for part in parts], rng)
        parts = [part.predicting_by(chosen) for part in parts]
        if not several:
            return parts[0]
        found = self._put_together(problem, chains, inverse_temperature)
        return found._replace(
            classes=tuple(parts),
            coefficients=np.array([part.coefficients for part in parts]),
            intercept=np.array([part.intercept for part in parts]),
            r_hat=max(part.r_hat for part in [found, *parts]),
            full=max(part.full for part in parts),
        )

    def _put_together(self, problem, chains, inverse_temperature):
        """Return the results of chains of one score."""
        posterior = Posterior(chains, problem.values.shape[:2])
        draws = [draw for chain in chains for draw in chain.kept]
        runs = [
            Run(*chain.recorded()[:2], np.array([draw.loss for draw in chain.kept]))
            for chain in chains
        ]
        return Fitted.of_chains(
            problem,
            chains,
            posterior,
            runs,
            inverse_temperature=inverse_temperature,
            intercepts=np.array([draw.intercept for draw in draws]),
            slab_scale=float(np.mean([draw.slab_scale for draw in draws])),
        )

    def _scores_of_draws(self, X):
        """Yield slices of validated rows, and their scores for all draws.

        The shape is (n_draws, n_rows), with several classes (n_classes, n_draws,
        n_rows).
        """
        found = self._answer()
        parts, width = found.scores, found.posterior.shape[1]
        visited = np.concatenate([part.posterior.visited for part in parts])
        features = np.unique(visited // width)
        tables = [_coefficients_of_draws(part.posterior, features) for part in parts]
        for rows in self._blocks(X, features, len(parts) * len(tables[0])):
            values = found.values(X[rows], features)
            flat = values.reshape(len(features) * width, values.shape[2])
            scores = [
                table @ flat + part.intercepts[:, None]
                for table, part in zip(tables, parts, strict=True)
            ]
            yield rows, np.array(scores) if found.classes else scores[0]

    def _chosen_draws(self, posteriors, rng):
        """Return the draws used in predictions; None: all of them."""
        n_draws = len(posteriors[0].weights)
        if self.prediction == "mean":
            return None
        if self.prediction == "randomized":
            return np.array([rng.integers(n_draws)])
        _, group, counts = np.unique(  # those of the model that was visited most often
            np.hstack([posterior.columns for posterior in posteriors]),
            axis=0,
            return_inverse=True,
            return_counts=True,
        )
        return np.flatnonzero(group.ravel() == counts.argmax())


class _AdditiveGibbsClassifier(CheckedScoreMixin, ClassifierMixin, _DrawnAdditiveGibbs):
    """Base class of classifiers by the sign of a score, or by the largest score."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _classes(self, X, y, sample_weight=None, class_weight=None, several=False):
        """Validate rows and labels; return the rows of positive weight."""
        X, y = self._validated(X, y)
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary" and not (several and kind == "multiclass"):
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}."
            )
        weights = checked_weights(sample_weight, X, some=True)
        some = weights > 0
        X, y, weights = X[some], y[some], weights[some]
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class"
            )
        if class_weight is not None:
            factors = compute_class_weight(
                class_weight, classes=classes, y=y, sample_weight=weights
            )
            weights = weights * factors[classes.searchsorted(y)]
            if not (factors > 0).all():
                raise ValueError(
                    f"class_weight must be positive, got {class_weight!r}."
                )
        check_total(weights)
        self.classes_ = classes
        positive = y == classes[1] if len(classes) == 2 else y == classes[:, None]
        return Rows(X, positive, weights)

    def _certified(self, theorem, risk, confidence, observed, largest, loss, rows):
        """Certify the risk of the fit by Catoni's theorem, or that `observed`.

        `risk`: its name; `largest`: the largest loss; `loss` and `rows`: what is
        assumed of both.
        """
        terms = catoni_terms(
            **self._risk,
            inverse_temperature=self.inverse_temperature_,
            largest=largest,
            confidence=confidence,
        )
        ranges = "ranges of the features known before the rows"
        basis = self.basis != "auto" if isinstance(self.basis, str) else None
        return Certificate(
            theorem=theorem,
            observed=terms["observed"] if observed is None else observed,
            bound=sum(terms.values()),
            terms=terms,
            assumptions={
                loss: True,
                ranges: self.feature_range is not None,
                "basis known, not chosen by the rows": basis,
                "parameters chosen without the rows": None,
                rows: None,
            },
            largest=largest,
            statement=f"With probability {confidence:g}, the {risk} on new rows",
        )

    def _labelled(self, X, y):
        """Validate new rows and labels, for a certificate."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", reset=False)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y must be of the classes {self.classes_}, got {unknown}."
            )
        return X, y == self.classes_[1]

    def _chain(self, problem, exponents, variance, rng):
        """Return a chain of the logistic likelihood with exponents of the rows."""
        several = problem.targets.ndim == 2
        kind = SoftmaxChain if several else LogisticChain
        return self._chain_of(kind, problem, exponents, variance, rng)

    @as_fitted
    def _log_odds(self, X):
        """Return log odds of the mean probability of the draws, or of one function."""
        if self.prediction != "mean":
            return self._bounded(self._decision(X))
        log_odds = np.empty(len(X))
        for rows, scores in self._scores_of_draws(X):
            log_odds[rows] = log_odds_of_mean(self._bounded(scores))
        return log_odds

    def _bounded(self, scores):
        """Return the scores; a subclass may clip them."""
        return scores


def check_total(weights):
    """Raise ValueError if the total weight cannot be a number of rows."""
    total = weights.sum()
    if not LEAST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            "sample_weight counts rows, and must sum to a number from "
            f"{LEAST_TOTAL:g} to {LARGEST_TOTAL:g}, got {total:g}: multiply "
            "sample_weight by a constant."
        )


def logistic_normal_of(problem, design, variance, exponents):
    """Return the normal approximation of a logistic posterior, given its design."""
    variances = np.full(len(design), variance)
    variances[0] = INTERCEPT_VARIANCE
    return logistic_normal(design, problem.targets, exponents, variances)


def _coefficients_of_draws(posterior, features):
    """Return the coefficients of some features: a row for each draw."""
    columns, width = posterior.columns, posterior.shape[1]
    places = np.searchsorted(features, columns // width) * width + columns % width
    places[columns < 0] = len(features) * width  # padding goes to an extra column
    table = np.zeros((len(columns), len(features) * width + 1))
    np.put_along_axis(table, places, posterior.means, axis=1)
    return table[:, :-1]


def log_odds_of_mean(scores):
    """Return the log odds of the mean over draws of the logistic function of scores."""
    tails = np.exp(-np.abs(scores))
    near, far = 1 / (1 + tails), tails / (1 + tails)
    positive = np.where(scores > 0, near, far).sum(axis=0)
    negative = np.where(scores > 0, far, near).sum(axis=0)
    extreme = np.minimum(positive, negative) < SMALLEST
    with np.errstate(divide="ignore"):
        log_odds = np.log(positive) - np.log(negative)
    if extreme.any():
        log_expits = log_expit(scores[:, extreme]), log_expit(-scores[:, extreme])
        positive, negative = (logsumexp(each, axis=0) for each in log_expits)
        log_odds[extreme] = positive - negative
    return log_odds
