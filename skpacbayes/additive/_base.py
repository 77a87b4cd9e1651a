"""Base class of the sparse additive estimators: parameters, effects, draws."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_count
from .._arviz import ArviZMixin, ChainDraws, feature_labels
from .._base import MissingValuesEstimator
from .._compat import HasMethods, Interval, StrOptions
from .._sentinels import warn_of_sentinels
from .._validation import as_numbers, refuse_hidden, validate_data
from ._basis import AUTOMATIC, FURTHEST, NAMED, Dictionary, usual_range, whole_range
from ._chain import MOST_VARIABLES
from ._doubts import warn_of_far_rows
from ._posterior import variables_of
from ._selection import _Selection

POSITIVE = Interval(Real, 0, None, closed="neither")
SCALE = Interval(Real, 1e-150, 1e150, closed="both")  # squares, inverses: above 0
STEPS = np.array([0.25, 0.5, 0.75, 1.0])  # from an end, as shares of a range
BLOCK = 2**20  # largest number of values of functions in memory, in predictions


class _SparseAdditiveGibbs(ArviZMixin, _Selection, MissingValuesEstimator):
    """An additive model; its `_answer()` is a `Fitted`."""

    _what_chains_report = "log_weight"  # of the model of each draw

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

    def partial_effects(self, X, feature):
        """Return the effect of one variable, with its standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; only the variable's column is used.
        feature : int or str, or pair of these
            Column or name of the variable. For a pair in `pairs_`, the effect is the
            interaction: the joint effect minus the two single effects.

        Returns
        -------
        effect : ndarray of shape (n_samples,)
            Posterior mean of the effect, centred over the rows of `fit`. For a
            classifier of more than two classes, the effects on the scores, of shape
            (n_samples, n_classes).
        std : ndarray of the same shape
            Posterior standard deviation, including the uncertainty of the selection.
        """
        check_is_fitted(self)
        return self._effect(self._rows(X), self._term(feature))

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
        first = self._drawn(rng)
        draws = np.empty((n_samples, *first.shape))  # too many raise MemoryError here
        draws[0] = first
        for i in range(1, n_samples):
            draws[i] = self._drawn(rng)
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

    def _dictionary(self, rows, whole=False, bounded=False):
        """Return functions of the variables, on the range of rows unless it is given.

        The range is the usual one, or the `whole` one.
        """
        if self.feature_range is None:
            low, high = self._range(rows, whole)
        else:
            low, high = (
                np.broadcast_to(np.asarray(end, dtype=float), rows.X.shape[1]).copy()
                for end in self.feature_range
            )
        categorical = self._categorical()

        def of(basis):
            return Dictionary(
                *(basis, self.max_order, low, high, rows.X, categorical),
                bounded=bounded,
            )

        if isinstance(self.basis, str) and self.basis == "auto":
            return self._best([of(basis) for basis in AUTOMATIC], rows)
        return of(self.basis)

    def _range(self, rows, whole):
        """Return the range of variables over rows, the usual or the `whole` one."""
        return whole_range(rows.X) if whole else usual_range(rows.X, rows.weights)

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

    def _column(self, feature, asked="feature"):
        """Return the column of a variable, given by column or name."""
        if isinstance(feature, str):
            names = list(getattr(self, "feature_names_in_", []))
            if feature not in names:
                known = f"one of {names}" if names else "known: features had no names"
                raise ValueError(f"{asked} {feature!r} is not {known}.")
            return names.index(feature)
        check_scalar(feature, asked, Integral)
        if not 0 <= feature < self.n_features_in_:
            raise ValueError(
                f"{asked} must be from 0 to {self.n_features_in_ - 1}, got {feature}."
            )
        return int(feature)

    def _term(self, feature):
        """Return the term of a variable, or of a pair (tuple, list or array)."""
        if not (isinstance(feature, (tuple, list, np.ndarray)) and len(feature) == 2):
            return self._column(feature)
        pair = sorted(self._column(each) for each in feature)
        found = self._answer().pairs
        pairs = [] if found is None else found.pairs.tolist()
        if pair not in pairs:
            raise ValueError(
                f"feature {tuple(feature)!r} is not one of the {len(pairs)} pairs in "
                "`pairs_`, the candidates for an interaction."
            )
        return self.n_features_in_ + pairs.index(pair)

    def _effect(self, X, term):
        """Return the effect of a variable or pair at rows, and its deviation."""
        parts = [self._effect_in(part, X, term) for part in self._answer().scores]
        effects, deviations = zip(*parts, strict=True)
        return side_by_side(effects), side_by_side(deviations)

    def _effect_in(self, found, X, term):
        """Return effect and deviation in one of the scores."""
        values = found.values(X, [term])
        effect = found.posterior.mean()[term] @ values[0]
        variance = found.posterior.variance(values, np.array([term]))
        return effect, np.sqrt(variance)

    def _grid(self, feature, n_points):
        """Return increasing values of a variable, or its categories, for a plot."""
        values = self._answer().dictionary.grid(n_points)[:, feature]
        return np.unique(values[~np.isnan(values)])

    def _decision(self, X):
        """Return intercept plus effects of each score, at validated rows."""
        parts = self._answer().scores
        return side_by_side([self._sum_of_effects(X, part) for part in parts])

    def _sum_of_effects(self, X, found):
        """Return intercept plus effects of one of the scores."""
        features = np.flatnonzero(found.coefficients.any(axis=1))
        result = np.full(len(X), float(found.intercept))
        for rows in self._blocks(X, features):
            values = found.values(X[rows], features)
            result[rows] += np.tensordot(found.coefficients[features], values, 2)
        return result

    def _variance(self, X):
        """Return the posterior variance of the sum of effects, at validated rows."""
        found = self._answer()
        features = np.unique(found.posterior.visited // found.posterior.shape[1])
        result = np.zeros(len(X))
        for rows in self._blocks(X, features):
            values = found.values(X[rows], features)
            result[rows] = found.posterior.variance(values, features)
        return result

    def _beyond(self, X):
        """Return how far an effect may lead from its line beyond a range, at rows.

        Lines go through an effect at an end of its range and at one of four other
        points. The result is what the steepest one adds, and the distance between the
        effect and the line furthest from it. Both are summed over selected variables,
        but not over pairs.
        """
        found = self._answer()
        dictionary = found.dictionary
        features = np.flatnonzero(np.isfinite(found.reach[0]))
        low, high = dictionary.ends[:, features]
        # Differences of halves, as a range may be longer than the largest number.
        half, X = dictionary.high / 2 - dictionary.low / 2, X[:, features] / 2
        with np.errstate(over="ignore"):
            beyond = [low / 2 - X, X - high / 2] / half[features]
        beyond = np.nan_to_num(beyond).clip(0)  # NaN is a missing value
        result = np.zeros(len(X))
        if not beyond.any():
            return result
        points = np.concatenate([[-FURTHEST, 0.0], STEPS, [1.0 + FURTHEST]])
        with np.errstate(over="ignore"):
            rows = (1 - points[:, None]) * dictionary.low
            rows += points[:, None] * dictionary.high
        values = found.values(rows, features)
        effects = np.einsum("fk,fkr->rf", found.coefficients[features], values)
        for side, (outside, end, *others, _) in zip(
            beyond, (effects, effects[::-1]), strict=True
        ):
            slopes = (end - others) / STEPS[:, None]
            effect = (outside - end) * (side / FURTHEST).clip(max=1.0)
            with np.errstate(over="ignore"):
                lines = [side * slopes.min(axis=0), side * slopes.max(axis=0)]
                apart = np.abs(np.subtract(lines, effect)).max(axis=0)
                result += (np.abs(lines).max(axis=0) + apart).sum(axis=1)
        return result

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
        return X

    def _blocks(self, X, features, n_others=0):
        """Yield slices of rows whose values of functions fit into `BLOCK`.

        `n_others`: number of other values per row in memory.
        """
        n_values = len(features) * int(self.max_order)  # may be a narrow integer
        step = max(1, BLOCK // max(1, n_values, n_others // 4))
        return [slice(start, start + step) for start in range(0, len(X), step)]

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
        dims, labels = {"included": ["feature"]}, feature_labels(self)
        coords = {"feature": labels}
        if found.pairs is not None and len(found.pairs.pairs):
            posterior["pair_included"], dims["pair_included"] = pairs, ["pair"]
            coords["pair"] = [f"{labels[i]}, {labels[j]}" for i, j in found.pairs.pairs]
        return ChainDraws(posterior, {self._what_chains_report: values}, dims, coords)

    def _drawn(self, rng):
        """Draw coefficients."""
        return self._answer().posterior.draw(rng)

    def _chosen(self, posterior, rng):
        """Return the coefficients for predictions."""
        if self.prediction == "mean":
            return posterior.mean()
        if self.prediction == "map":
            return posterior.most_probable()
        return posterior.draw(rng)


def side_by_side(scores):
    """Return a column for each of several scores, or the only one."""
    return scores[0] if len(scores) == 1 else np.column_stack(scores)
