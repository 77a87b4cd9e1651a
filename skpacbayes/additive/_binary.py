"""What the classifier and the ranker share: two classes, and draws of scores."""

from typing import NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .._convergence import split_r_hat
from ._base import Fitted, _SparseAdditiveGibbs
from ._basis import Dictionary, Orthonormal, weighted_moments
from ._chain import Prior, advance_all
from ._posterior import Posterior
from ._statistics import Rows

MOST_VARIABLES = 50  # of a model, unless `max_active` says otherwise
N_POINTS = 2001  # of the grid over which functions are orthonormal under "pac"


class Problem(NamedTuple):
    """Rows of two classes, as functions of one variable each."""

    X: np.ndarray
    dictionary: Dictionary
    functions: Orthonormal
    values: np.ndarray  # (n_features, max_order, n_samples)
    positive: np.ndarray
    weights: np.ndarray


class _BinaryAdditiveGibbs(ClassifierMixin, _SparseAdditiveGibbs):
    """Two classes, told apart by the sign of a sum of effects."""

    # A few hundred draws, and the largest of many R-hats: of right chains, too, some
    # are above 1.1.
    _largest_r_hat = 1.2

    def predict(self, X):
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels: the second class where `decision_function` is positive.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _ready(self):
        check_is_fitted(self, "_result")
        return self._result

    def __sklearn_is_fitted__(self):
        return "_result" in self.__dict__

    def _two_classes(self, X, y, sample_weight=None, class_weight=None):
        """Rows of positive weight, and whether they are of the second class."""
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", ensure_min_samples=2
        )
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}."
            )
        weights = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
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
                raise ValueError(f"class_weight must be positive: {class_weight!r}.")
        self.classes_ = classes
        positive = y == classes[1]
        return Rows.of(X, positive.astype(np.float64), weights), positive

    def _problem(self, rows, positive):
        """Evaluate the functions, orthonormal over the rows or over their range."""
        self._check_range()
        dictionary = self._dictionary(rows)
        values = dictionary(rows.X)
        if self.inverse_temperature == "pac":  # the prior may not depend on the rows
            low, high = dictionary.low, dictionary.high
            grid = low + np.linspace(0, 1, N_POINTS)[:, None] * (high - low)
            moments = weighted_moments(dictionary(grid), np.ones(N_POINTS))
        else:
            moments = weighted_moments(values, rows.weights)
        functions = Orthonormal(*moments, dictionary.along(), rows.weights.sum())
        values = functions(values)
        return Problem(rows.X, dictionary, functions, values, positive, rows.weights)

    def _advanced(self, chains, n_burn_in, n_kept):
        """Advance the chains, first unrecorded; what they recorded."""
        advance_all(chains, n_burn_in, n_kept, self._parts, self.n_jobs)
        return [chain.drawn() for chain in chains]

    def _prior(self, ranks, variance):
        most = MOST_VARIABLES if self.max_active is None else self.max_active
        return Prior.of(ranks, self.beta, most, variance=variance)

    def _published(self, problem, prior, drawn, inverse_temperature, rng):
        """Put the draws of the chains together."""
        p, width = problem.functions.means.shape
        columns = [found for chain in drawn for found in chain.columns]
        coefficients = [found for chain in drawn for found in chain.coefficients]
        intercepts = np.concatenate([chain.intercepts for chain in drawn])
        largest = max(len(found) for found in columns)
        filled = np.full((len(columns), largest), -1)
        means = np.zeros((len(columns), largest))
        for row, (place, values) in enumerate(zip(columns, coefficients, strict=True)):
            filled[row, : len(place)], means[row, : len(place)] = place, values
        n_draws = len(columns)
        posterior = Posterior(
            np.full(n_draws, 1 / n_draws),
            filled,
            means,
            np.zeros(n_draws),
            (p, width),
            unit=1.0,
            ridge=None,
            among=None,
        )
        self._intercepts = intercepts
        chosen, intercept = self._chosen_draws(posterior, intercepts, rng)
        sizes = [np.unique(place // width).size for place in columns]
        n_usable = np.count_nonzero(problem.functions.orders)
        tried = sum(chain.tried for chain in drawn)
        return Fitted(
            dictionary=problem.dictionary,
            functions=problem.functions,
            posterior=posterior,
            coefficients=chosen,
            intercept=intercept,
            inverse_temperature=inverse_temperature,
            acceptance_rate=sum(chain.accepted for chain in drawn) / max(tried, 1),
            r_hat=self._disagreement(drawn, width),
            full=prior.most if max(sizes) == prior.most < n_usable else 0,
        )

    def _scores_of_draws(self, X):
        """Yield slices of validated rows, and the scores that all draws give them."""
        found = self._ready()
        posterior, width = found.posterior, found.posterior.shape[1]
        features = np.unique(posterior.visited // width)
        columns = posterior.columns
        places = np.searchsorted(features, columns // width) * width + columns % width
        places[columns < 0] = len(features) * width  # a place of their own
        table = np.zeros((len(columns), len(features) * width + 1))
        np.put_along_axis(table, places, posterior.means, axis=1)
        for rows in self._blocks(X, features):
            values = found.functions(found.dictionary(X[rows], features), features)
            flat = values.reshape(len(features) * width, values.shape[2])
            yield rows, table[:, :-1] @ flat + self._intercepts[:, None]

    def _chosen_draws(self, posterior, intercepts, rng):
        """Coefficients and intercept that predict, as `prediction` says."""
        if self.prediction == "mean":
            return posterior.mean(), float(intercepts.mean())
        if self.prediction == "randomized":
            draws = np.array([rng.integers(len(intercepts))])
        else:  # the mean within the model that was visited most often
            _, group, counts = np.unique(
                posterior.columns, axis=0, return_inverse=True, return_counts=True
            )
            draws = np.flatnonzero(group.ravel() == counts.argmax())
        coefficients = np.zeros(posterior.shape)
        columns = posterior.columns[draws[0]]
        columns = columns[columns >= 0]
        means = posterior.means[draws, : len(columns)].mean(axis=0)
        coefficients.flat[columns] = means
        return coefficients, float(intercepts[draws].mean())

    def _disagreement(self, drawn, width):
        """Largest R-hat: of the risk, and of what is in with a probability between."""
        n_draws = min(len(chain.columns) for chain in drawn)
        p = self.n_features_in_
        inside = np.zeros((len(drawn), n_draws, p))
        for number, chain in enumerate(drawn):
            for row, columns in enumerate(chain.columns[:n_draws]):
                inside[number, row, columns // width] = 1.0
        share = inside.mean(axis=(0, 1))
        series = [np.array([chain.losses[:n_draws] for chain in drawn])]
        series += list(np.moveaxis(inside[..., (share > 0.05) & (share < 0.95)], 2, 0))
        return float(split_r_hat(np.array(series)).max())
