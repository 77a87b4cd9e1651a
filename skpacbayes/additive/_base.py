"""Base classes of the sparse additive estimators: parameters, functions, results."""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_count
from .._arviz import ArviZMixin, ChainDraws, feature_labels
from .._base import MissingValuesEstimator
from .._chains import run_chains
from .._compat import HasMethods, Interval, StrOptions
from .._sentinels import warn_of_sentinels
from .._stream import checked_weights
from .._validation import as_numbers, refuse_hidden, validate_data
from ._basis import (
    NAMED,
    Dictionary,
    Orthonormal,
    Pairs,
    usual_range,
    weighted_moments,
    with_pairs,
)
from ._chain import MOST_VARIABLES, NO_PAIRS
from ._doubts import warn_of_far_rows, warn_of_newly_absent
from ._posterior import Fitted, Posterior, Run, variables_of
from ._rated_chain import ModelSpace
from ._selection import _Selection

POSITIVE = Interval(Real, 0, None, closed="neither")
SCALE = Interval(Real, 1e-150, 1e150, closed="both")  # squares, inverses: above 0
# Of estimators whose chains draw coefficients.
LEAST_TOTAL, LARGEST_TOTAL = 1e-9, 1e12  # range of the total weight
N_FIRST = 300  # draws without interactions that determine the candidate pairs
N_POINTS = 2001  # of the grid on which functions are orthonormal under "pac"


N_FUNCTIONS = 8  # of each variable if max_order="auto"


class _SparseAdditiveGibbs(ArviZMixin, _Selection, MissingValuesEstimator):
    """An additive model; its `_answer()` is a `Fitted`."""

    _what_chains_report = "log_weight"  # of the model of each draw
    # What is wrong with predictions at mean effects of values that are not known.
    _what_mean_effects_miss = None

    _parameter_constraints: dict = {
        "basis": [StrOptions(set(NAMED)), HasMethods(["fit", "transform"])],
        "max_order": [Interval(Integral, 1, None, closed="left")],
        "feature_range": [None, tuple, list],
        "categorical_features": [None, "array-like"],
        "beta": [Interval(Real, 0, 1, closed="neither")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "max_active": [None, Interval(Integral, 1, None, closed="left")],
        "prediction": [StrOptions({"mean", "randomized", "map"})],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
    }

    def sample_posterior(self, n_samples=1, random_state=None):
        """Draw functions from the posterior, as coefficients.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None: a new seed at each call.

        Returns
        -------
        coefficients : ndarray of shape (n_samples, n_features, max_order)
            Draws; `coefficients_` is their expectation. Those of pairs follow those of
            the variables. For a classifier of more than two classes the shape is
            (n_samples, n_classes, n_features, max_order).
        """
        check_is_fitted(self)
        n_samples = check_count("n_samples", n_samples)
        seed = check_random_state(random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        found = self._answer()
        first = found.draw(rng)
        draws = np.empty((n_samples, *first.shape))  # too many raise MemoryError here
        draws[0] = first
        for i in range(1, n_samples):
            draws[i] = found.draw(rng)
        return draws

    @property
    def coefficients_(self):
        """Coefficients of the orthonormal functions."""
        return self._answer().coefficients.copy()

    @property
    def intercept_(self):
        """Prediction where all effects are 0."""
        return float(self._answer().intercept)

    @property
    def models_(self):
        """Orders of the variables in each model visited."""
        return self._models()[0]

    @property
    def model_weights_(self):
        """Probabilities of the models visited."""
        return self._models()[1]

    @property
    def inverse_temperature_(self):
        """Inverse temperature used."""
        return float(self._answer().inverse_temperature)

    @property
    def acceptance_rate_(self):
        """Share of the moves to other variables that were accepted."""
        return self._answer().acceptance_rate

    @property
    def r_hat_(self):
        """Largest R-hat of the chains."""
        return self._answer().r_hat

    @property
    def feature_ranges_(self):
        """Range that is mapped to [-1, 1]."""
        dictionary = self._answer().dictionary
        return np.column_stack([dictionary.low, dictionary.high])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _models(self):
        """Return distinct models and their weights, the most probable first."""
        posterior = self._answer().posterior
        orders = posterior.orders()
        if posterior.ridge is not None:
            return orders, posterior.weights.copy()
        orders, group = np.unique(orders, axis=0, return_inverse=True)
        counts = np.bincount(group.ravel(), weights=posterior.counts)
        order = np.argsort(-counts, kind="stable")
        return orders[order], counts[order] / counts.sum()

    def _dictionary(self, rows, basis=None, max_order=None):
        """Return functions of the variables, on the usual range unless it is given."""
        ends = self._given_range() or usual_range(rows.X, rows.weights)
        return self._on(ends, basis or self.basis, rows, max_order=max_order)

    def _on(self, ends, basis, rows, bounded=False, max_order=None):
        """Return functions of a basis on ranges with these ends."""
        order, categorical = max_order or self._first_order, self._categorical()
        return Dictionary(basis, order, *ends, rows.X, categorical, bounded=bounded)

    @property
    def _first_order(self):
        """Largest number of functions of a variable, unless rows ask for more."""
        return N_FUNCTIONS if self.max_order == "auto" else self.max_order

    def _given_range(self):
        """Return the given ends of the ranges of the variables, or None."""
        if self.feature_range is None:
            return None
        shape = self.n_features_in_
        ends = (np.asarray(end, dtype=float) for end in self.feature_range)
        return [np.broadcast_to(end, shape).copy() for end in ends]

    def _categorical(self):
        """Return the columns of the categorical features."""
        given = self.categorical_features
        if given is None or len(given) == 0:
            return []
        refuse_hidden(given, "categorical_features")
        array = np.asarray(given)
        if array.dtype == bool:
            if array.shape != (self.n_features_in_,):
                raise ValueError(
                    "categorical_features as a mask should have shape "
                    f"({self.n_features_in_},), got {array.shape}."
                )
            return np.flatnonzero(array).tolist()
        found = [self._column(each, "categorical_features") for each in array.tolist()]
        if len(set(found)) < len(found):  # as for a mask of zeros and ones
            raise ValueError(
                "categorical_features must name each column once, or be a mask of "
                f"bool, got {given!r}."
            )
        return found

    def _validated(self, X, y, *, reset=True, least=2, **checks):
        """Validate rows, NaN where they are missing, and their targets."""
        return validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
            reset=reset,
            ensure_min_samples=least,
            **checks,
        )

    def _check_range(self):
        """Raise ValueError unless the range is two finite ends, low < high."""
        if self.feature_range is None:
            return
        try:
            ends = (as_numbers("feature_range", end) for end in self.feature_range)
            low, high = np.broadcast_arrays(*ends)
            valid = low.shape in ((), (1,), (self.n_features_in_,))
            valid = valid and np.isfinite([low, high]).all() and (low < high).all()
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise ValueError(
                "feature_range must be two finite ends, low < high, for all features "
                f"or for each of {self.n_features_in_}; got {self.feature_range!r}."
            )

    def _most_variables(self):
        """Return the largest number of variables in a model."""
        return MOST_VARIABLES if self.max_active is None else self.max_active

    def _parts(self, count):
        """Yield the parts of a run, after which callbacks may stop it."""
        return self._tasks(count, "moves")

    def _decision(self, X):
        """Return intercept plus effects of each score, at validated rows."""
        return self._answer().decision(X)

    def _warn_of_sentinels(self, X):
        """Warn if rows contain codes for missing values."""
        names = vars(self).get("feature_names_in_", ())
        warn_of_sentinels(X, names, self._categorical(), allows_missing=True)

    def _new_rows(self, X):
        """Validate new rows; warn of those far beyond the ranges of the fit."""
        check_is_fitted(self)
        X = self._rows(X)
        if self.feature_range is None:
            found = self._answer()
            deviates = isinstance(self, RegressorMixin)
            warn_of_far_rows(X, found.reach, found.dictionary.n_rows, deviates)
        if self._what_mean_effects_miss:
            found = self._answer()
            absent = found.dictionary.newly_absent(X)[found.selected]
            features = np.flatnonzero(found.selected)
            warn_of_newly_absent(absent, features, self._what_mean_effects_miss)
        return X

    def _chain_draws(self):
        """Return the terms in the model of each draw, and the series of R-hat."""
        found = self._answer()
        n_draws = min(len(run.path) for run in found.runs)
        drawn = []
        for run in found.runs:
            present = variables_of(run.columns, *found.posterior.shape)
            drawn.append(present[run.path[:n_draws]])
        included, pairs = np.split(np.array(drawn), [self.n_features_in_], axis=2)
        values = np.array([run.values[:n_draws] for run in found.runs])
        posterior = {"included": included, "n_variables": included.sum(axis=2)}
        dims, labels = {"included": ["feature"]}, feature_labels(self).tolist()
        coords = {"feature": labels}
        if found.pairs is not None and len(found.pairs.pairs):
            posterior["pair_included"], dims["pair_included"] = pairs, ["pair"]
            coords["pair"] = [f"{labels[i]}, {labels[j]}" for i, j in found.pairs.pairs]
        return ChainDraws(posterior, {self._what_chains_report: values}, dims, coords)


# Estimators whose chains draw coefficients.


class Rows(NamedTuple):
    """Rows of positive weight."""

    X: np.ndarray
    # Whether rows are of the second class; with several classes one-hot codes,
    # (n_classes, n_samples); or counts.
    targets: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, X, targets, sample_weight):
        """Return the rows of positive weight."""
        weights = checked_weights(sample_weight, X, some=True)
        some = weights > 0
        return cls(X[some], targets[some], weights[some])


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

    def _problem(self, rows, *functions):
        """Return functions at rows, orthonormal over the rows or their range.

        `functions`: a basis and a number, other than those of the parameters.
        """
        self._check_range()
        dictionary = self._dictionary(rows, *functions)
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
        functions = dictionary.orthogonal(*moments, self._n_observed(rows))
        values, ranks = functions(values), functions.orders
        return Problem(dictionary, functions, values, *rows[1:], ranks)

    def _n_observed(self, rows):
        """Return the number of observations: a weight is a number of copies."""
        return rows.weights.sum()

    def _paired(self, problem, make):
        """Return the problem with functions of given pairs, or of candidate pairs.

        Parameters
        ----------
        problem : Problem
            The problem without pairs.
        make : callable
            Returns a chain for a problem.
        """
        if not self._has_given_pairs:
            return problem

        def probabilities():
            chain = make(problem)
            chain.advance(self.burn_in, keep=False)
            chain.advance(min(N_FIRST, self.n_iter))
            shape = problem.values.shape[:2]
            return Posterior([chain], shape).inclusion()[:, 0]

        return self._with_candidates(problem, probabilities)

    def _with_candidates(self, problem, probabilities):
        """Return the problem with functions of the candidate pairs.

        `probabilities`, a callable, returns those of the variables without pairs.
        """
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

    def _run(self, chains, parts):
        """Advance the chains, in parts that callbacks see; None: in one."""
        run_chains(
            chains,
            burn_in=self.burn_in,
            n_iter=self.n_iter,
            tasks=parts,
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


def check_total(weights):
    """Raise ValueError if the total weight cannot be a number of rows."""
    total = weights.sum()
    if not LEAST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            "sample_weight counts rows, and must sum to a number from "
            f"{LEAST_TOTAL:g} to {LARGEST_TOTAL:g}, got {total:g}: multiply "
            "sample_weight by a constant."
        )
