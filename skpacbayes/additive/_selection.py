"""Selection of variables and pairs: by probability, or by projection; their effects."""

from itertools import combinations, islice
from numbers import Integral

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, xlogy
from sklearn.base import ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_scalar
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_share
from .._arviz import feature_labels
from .._chains import R_HAT_LIMIT
from .._compat import StrOptions
from .._extras import extra_module
from .._validation import refuse_hidden
from ._basis import FURTHEST
from ._chain import NO_PAIRS
from ._missing_effects import Structure, structure_left
from ._posterior import SELECTED
from ._residuals import are_smaller

NEGLIGIBLE = 0.05  # least inclusion probability of a variable in a projection
# Of a projection: number of candidates fitted at each step, the best by score tests.
N_REFITTED = 3
N_POINTS, N_POINTS_OF_PAIR = 200, 40  # of grids of effects, along each variable
STEPS = np.array([0.25, 0.5, 0.75, 1.0])  # from an end, as shares of a range
RIDGE = 1e-6  # relative to the number of rows: functions may be linearly dependent
N_NEWTON = 50
MOST_PAIRED = 20  # largest number of variables whose pairs are candidates
DETECT = "detect"  # value of `interactions`: pairs only if residuals ask for them
# Rows of tables in which the regressors detect interactions: with the functions of
# pairs, a fit takes ten times as much time and memory.
MOST_DETECTED = 20_000
NO_STRUCTURE = Structure()


def has_one_sum(estimator):
    """Check that an estimator has a single score, without pairs."""
    found = vars(estimator).get("_computed")
    if found is not None and found.classes:
        raise AttributeError("projected_support needs at most two classes.")
    if found is None:
        paired = getattr(estimator, "_has_given_pairs", False)
    else:
        paired = found.pairs is not None
    if paired:
        raise AttributeError(
            "projected_support needs interactions=None: it projects predictions on "
            "sums of effects of single variables."
        )
    return True


class _Selection(SelectorMixin):
    """Selects variables by their inclusion probabilities, or by a projection."""

    def get_support(self, indices=False, *, threshold=SELECTED):
        """Select variables by their inclusion probabilities.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return columns rather than a mask.
        threshold : float, default=0.5
            Least inclusion probability of a selected variable.

        Returns
        -------
        support : ndarray
            Mask of shape (n_features,), or the columns selected.
        """
        check_share("threshold", threshold, ends=True)
        mask = self.inclusion_probabilities_ >= threshold
        return np.flatnonzero(mask) if indices else mask

    def transform(self, X):
        """Select the columns of the selected variables.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        selected : array of shape (n_samples, n_selected_features)
            The columns with `get_support()`.
        """
        refuse_hidden(X, type(self).__name__)
        return super().transform(X)

    def inverse_transform(self, X):
        """Insert columns of zeros for the variables that are not selected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_selected_features)
            Columns of the selected variables.

        Returns
        -------
        rows : array of shape (n_samples, n_features)
            The columns, and zeros.
        """
        refuse_hidden(X, type(self).__name__)
        return super().inverse_transform(X)

    @available_if(has_one_sum)
    def projected_support(self, X, *, explained=0.98, indices=False):
        """Select a small set of variables that predicts as the posterior does.

        If many correlated variables each have a small effect, all of them can have high
        inclusion probabilities, and the posterior, which uses all of them, predicts
        best. This method summarises the posterior: it adds variables one at a time, and
        projects the predictions on additive functions of these variables, until they
        explain enough [1]_. The predictions of the estimator do not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which predictions are compared, for instance those of `fit`.
        explained : float, default=0.98
            Share of the divergence between a constant and the predictions that the
            variables have to explain. It is the Kullback-Leibler divergence for
            probabilities, and the variance for means, ranks and log means.
        indices : bool, default=False
            Whether to return columns, the most important first, rather than a mask.

        Returns
        -------
        support : ndarray
            Mask of shape (n_features,), or the columns selected.

        References
        ----------
        .. [1] C. Goutis and C. P. Robert (1998). Model choice in generalised linear
           models: a Bayesian approach via Kullback-Leibler projections. Biometrika 85.
        """
        check_is_fitted(self)
        check_share("explained", explained, ends=True)
        X, found = self._rows(X), self._answer()
        inclusion = found.posterior.inclusion()
        some = np.flatnonzero(inclusion[:, 0] >= NEGLIGIBLE)
        orders = (inclusion[some] >= 0.5 * inclusion[some, :1]).sum(axis=1)
        values = found.values(X, some)
        targets, logistic = self._projected(X)
        chosen, _ = projected_support(
            values, orders, targets, logistic=logistic, explained=explained
        )
        if indices:
            return some[chosen]
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[some[chosen]] = True
        return mask

    def _projected(self, X):
        """Return predictions at validated rows, and whether they are probabilities."""
        return self._decision(X), False

    def inclusion_frame(self):
        """Return the inclusion probabilities as a table, largest first.

        Returns
        -------
        table : pandas.DataFrame
            A row for each variable, by its name or its column: `probability`, its Monte
            Carlo `error`, and the `expected_order`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        terms, names = slice(None, self.n_features_in_), feature_labels(self)
        return frame_of_terms(self, "inclusion_frame", terms, index=names)

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
        X, term = self._rows(X), self._term(feature)
        return self._answer().effect(X, term)

    def _effects_along(self, features, target):
        """Return effects on grids, for :class:`PartialEffectsDisplay`.

        Parameters
        ----------
        features : list of int or str, or of pairs of these, or None
            Variables and pairs; None: those selected, or the most probable variable.
        target : label or None
            Class whose score is meant, if there are more than two.

        Returns
        -------
        effects : list of tuple
            For each variable or pair: its columns and a grid of each; the effect, its
            standard deviation, and the inclusion probability.
        """
        if features is None:
            features = self._selected_terms()
        terms = [self._term(feature) for feature in features]
        found = self._score_of(target)
        if not terms:
            raise ValueError("features must name at least one variable, got [].")
        probabilities = found.posterior.inclusion()[terms, 0].tolist()
        n_features, effects = self.n_features_in_, []
        for term, probability in zip(terms, probabilities, strict=True):
            columns = (term,)
            if term >= n_features:
                columns = tuple(found.pairs.pairs[term - n_features].tolist())
            n_points = N_POINTS if len(columns) == 1 else N_POINTS_OF_PAIR
            grids = [self._grid(column, n_points) for column in columns]
            meshes = np.meshgrid(*grids)
            table = np.zeros((meshes[0].size, n_features))
            table[:, columns] = np.column_stack([mesh.ravel() for mesh in meshes])
            parts = found.effect(table, term)
            effect, std = (part.reshape(meshes[0].shape) for part in parts)
            effects.append((columns, grids, effect, std, probability))
        return effects

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

    def _unknown(self, X):
        """Return the standard deviation of effects that are not known, at rows.

        These are the effects of variables, or pairs of them, with a value that has no
        level, as it is missing or a new category. They vary as over the rows of the
        fit.
        """
        found = self._answer()
        result, absent = np.zeros(len(X)), found.dictionary.newly_absent(X)
        if not absent.any():
            return result
        deviations = found.functions.deviations
        if found.pairs is not None:
            deviations = np.concatenate([deviations, found.pairs.deviations])
            absent = np.concatenate([absent, absent[found.pairs.pairs].any(axis=1)])
        means = np.square(found.coefficients * deviations).sum(axis=1)
        for term in np.flatnonzero(absent.any(axis=1)):
            values, terms = np.diag(deviations[term])[None], np.array([term])
            variance = found.posterior.variance(values, terms).sum()
            result[absent[term]] += means[term] + variance
        return np.sqrt(result)

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

    def _grid(self, feature, n_points):
        """Return increasing values of a variable, or its categories, for a plot."""
        values = self._answer().dictionary.grid(n_points)[:, feature]
        return np.unique(values[~np.isnan(values)])

    def _selected_terms(self):
        """Return the selected variables, then pairs, or the most probable variable."""
        probabilities = self._answer().posterior.inclusion()[:, 0]
        terms = self.get_support(indices=True).tolist()
        if not terms:
            return [int(self.inclusion_probabilities_.argmax())]
        likely = probabilities[self.n_features_in_ :] >= SELECTED
        if likely.any():
            terms += [tuple(pair) for pair in self.pairs_[likely].tolist()]
        return terms

    def _score_of(self, target):
        """Return the results for one score: that of a class, if there are several."""
        found = self._answer()
        if not found.classes:
            if target is not None:
                raise ValueError(
                    f"target={target!r} needs a classifier of more than two classes."
                )
            return found
        known = self.classes_.tolist()
        if target not in known:
            raise ValueError(
                f"target must be one of the classes {known}, got {target!r}."
            )
        return found.classes[known.index(target)]

    def _get_support_mask(self):
        return self.get_support()

    @property
    def inclusion_probabilities_(self):
        """Probability that each variable is in the model."""
        return self._of_variables(self._answer().posterior.inclusion()[:, 0])

    @property
    def feature_importances_(self):
        """Probability that each variable is in the model."""
        return self.inclusion_probabilities_

    @property
    def inclusion_errors_(self):
        """Monte Carlo standard errors of the inclusion probabilities."""
        return self._of_variables(self._answer().errors)

    @property
    def expected_orders_(self):
        """Posterior mean of the order of each variable."""
        return self._of_variables(self._answer().posterior.inclusion().sum(axis=1))

    def _of_variables(self, terms):
        """Return a copy of an array over terms, for the variables alone."""
        return terms[: self.n_features_in_].copy()


class PartsOfFit:
    """Parts of a run that callbacks see, and one more for detected interactions.

    Parameters
    ----------
    parts : callable
        Yields a number of parts; may stop early.
    detects : bool
        Whether interactions may be detected after the run.
    """

    def __init__(self, parts, detects):
        self._parts, self._detects = parts, detects
        self._all = iter(())

    def __call__(self, count):
        """Return an iterator of the parts of the run."""
        self._all = self._parts(count + self._detects)
        return islice(self._all, count)

    def has_another(self):
        """Begin the part for interactions, unless a callback stopped the run."""
        return next(self._all, None) is not None

    def end(self):
        """End the last part."""
        for _ in self._all:
            pass


class _Interactions:
    """The parameter `interactions`, and the attributes of the pairs."""

    _parameter_constraints: dict = {
        "interactions": [None, StrOptions({"auto", DETECT}), "array-like"],
    }

    def interaction_frame(self):
        """Return the probabilities of interactions as a table, largest first.

        Returns
        -------
        table : pandas.DataFrame
            A row for each pair of `pairs_`: the `first` and the `second` variable, by
            name or column, the `probability` of the pair, its Monte Carlo `error`, and
            the `expected_order`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        first, second = feature_labels(self)[self.pairs_].T
        terms = slice(self.n_features_in_, None)
        table = frame_of_terms(
            self, "interaction_frame", terms, first=first, second=second
        )
        return table.reset_index(drop=True)

    @property
    def pairs_(self):
        """Pairs of variables that may interact."""
        found = self._answer().pairs
        return NO_PAIRS.copy() if found is None else found.pairs.copy()

    @property
    def pair_probabilities_(self):
        """Probability that each pair is in the model."""
        return self._answer().posterior.inclusion()[self.n_features_in_ :, 0]

    @property
    def _detects(self):
        """Whether a fit without interactions decides whether there are any."""
        return isinstance(self.interactions, str) and self.interactions == DETECT

    @property
    def _has_given_pairs(self):
        """Whether there are interactions, whatever the rows."""
        return not (self.interactions is None or self._detects)

    def _structure_left(self, rows, predict, *, unmixed=False):
        """Return what the effects leave in the residuals of the rows of the fit.

        Nothing where effects are few or lines by a limit, or, unless `unmixed`, where
        chains disagree.
        """
        found = self._answer()
        few = not (found.full or found.n_variables_needed)
        free = few and self._first_order > 1 and rows[0].shape[1] > 1
        if not (free and (unmixed or found.r_hat <= R_HAT_LIMIT)):
            return NO_STRUCTURE
        classes = isinstance(self, ClassifierMixin)
        return structure_left(*rows, predict, found, self._categorical(), classes)

    def _predicts_better(self, losses, before):
        """Return whether chains agree, and losses of rows left out are smaller."""
        mixed = self._computed.r_hat <= R_HAT_LIMIT
        return mixed and are_smaller(losses, before)

    def _ranking(self, left):
        """Return how probable variables are, the pair that was found first."""
        ranking = self.inclusion_probabilities_.copy()
        if left.pair is not None:  # its variables may have no own effects
            ranking[list(left.pair)] = np.inf
        return ranking

    def _candidates(self, orders, probabilities):
        """Return the given pairs, or those of the most probable variables.

        Parameters
        ----------
        orders : ndarray of shape (n_features,)
            Number of functions of each variable.
        probabilities : callable
            Returns inclusion probabilities without interactions.
        """
        if not isinstance(self.interactions, str):
            return given_pairs(self.interactions, self._column)
        usable = np.flatnonzero(orders)
        if len(usable) > MOST_PAIRED:
            best = np.argsort(-probabilities()[usable], kind="stable")
            usable = usable[best[:MOST_PAIRED]]
        return every_pair(usable)


def frame_of_terms(estimator, method, terms, index=None, **labels):
    """Return a table of some terms for a method, the most probable first."""
    pandas = extra_module("pandas", "demo", f"{type(estimator).__name__}.{method}")
    found = estimator._answer()
    inclusion = found.posterior.inclusion()[terms]
    columns = {
        **labels,
        "probability": inclusion[:, 0],
        "error": found.errors[terms],
        "expected_order": inclusion.sum(axis=1),
    }
    table = pandas.DataFrame(columns, index=index)
    return table.sort_values("probability", ascending=False, kind="stable")


def every_pair(features):
    """Return all pairs of some variables, of shape (n_pairs, 2)."""
    pairs = list(combinations(sorted(map(int, features)), 2))
    return np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)


def given_pairs(given, column):
    """Return distinct pairs of variables, as columns.

    Parameters
    ----------
    given : array-like of shape (n_pairs, 2)
        The pairs, by column or name.
    column : callable
        Returns the column of a variable.
    """
    pairs = set()
    for pair in given:
        columns = []
        if not isinstance(pair, (str, bytes)) and np.ndim(pair) and len(pair) == 2:
            columns = sorted({column(each) for each in pair})
        if len(columns) != 2:
            raise ValueError(
                f"interactions must be pairs of two different variables, got {pair!r}."
            )
        pairs.add(tuple(columns))
    return np.array(sorted(pairs), dtype=np.int64).reshape(len(pairs), 2)


# Projection.


def projected_support(values, orders, targets, *, logistic, explained):
    """Select variables one at a time until their projection explains enough.

    The projection of a posterior's predictions on some variables is the additive
    function of these with the least divergence from the predictions [1]_.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    orders : ndarray of shape (n_features,)
        Number of functions of each variable; 0 leaves a variable out.
    targets : ndarray of shape (n_samples,)
        The predictions: means, or probabilities where `logistic`.
    logistic : bool
        Whether predictions are probabilities, with the divergence of Bernoulli
        distributions. Otherwise they are means, with the squared distance.
    explained : float
        Share of the divergence of a constant to be explained.

    Returns
    -------
    features : list of int
        The variables, the most important first.
    share : float
        Share of the divergence that they explain.

    References
    ----------
    .. [1] C. Goutis and C. P. Robert (1998). Model choice in generalised linear models:
       a Bayesian approach via Kullback-Leibler projections. Biometrika 85.
    """
    rows = [part[:order] for part, order in zip(values, orders, strict=True)]
    left, chosen = [j for j, order in enumerate(orders) if order], []
    total, scores = project(rows, chosen, targets, logistic)
    divergence = total
    while left and divergence > (1.0 - explained) * total:
        tests = [score_test(rows[j], targets, scores, logistic) for j in left]
        best = [left[k] for k in np.argsort(tests)[: -N_REFITTED - 1 : -1]]
        found = [project(rows, [*chosen, j], targets, logistic) for j in best]
        which = int(np.argmin([divergence for divergence, _ in found]))
        divergence, scores = found[which]
        chosen.append(best[which])
        left.remove(best[which])
    return chosen, 1.0 - divergence / total if total > 0 else 1.0


def project(rows, features, targets, logistic):
    """Return divergence and scores of the projection on some variables."""
    n_samples = len(targets)
    design = np.vstack([np.ones((1, n_samples)), *(rows[j] for j in features)])
    ridge = RIDGE * n_samples * np.eye(len(design))
    ridge[0, 0] = 0.0
    beta = np.zeros(len(design))
    beta[0] = link(targets.mean()) if logistic else targets.mean()
    divergence = mean_divergence(targets, beta @ design, logistic)
    for _ in range(N_NEWTON if logistic else 1):
        residuals, weights = residuals_of(targets, beta @ design, logistic)
        curvature = (design * weights) @ design.T + ridge
        step = cho_solve(cho_factor(curvature), design @ residuals - ridge @ beta)
        before = divergence
        for _ in range(30):
            divergence = mean_divergence(targets, (beta + step) @ design, logistic)
            if divergence <= before:
                break
            step = 0.5 * step
        else:
            divergence = before
            break
        beta = beta + step
        if before - divergence <= 1e-9 * before:
            break
    return divergence, beta @ design


def score_test(rows, targets, scores, logistic):
    """Return the predicted decrease of the divergence by each further variable."""
    residuals, weights = residuals_of(targets, scores, logistic)
    slope = rows @ residuals
    curvature = (rows * weights) @ rows.T + RIDGE * len(targets) * np.eye(len(rows))
    return slope @ np.linalg.solve(curvature, slope)


def residuals_of(targets, scores, logistic):
    """Return slopes and curvatures of the log-likelihood in the scores."""
    if not logistic:
        return targets - scores, np.ones_like(scores)
    fitted = expit(scores)
    return targets - fitted, np.maximum(fitted * (1.0 - fitted), 1e-10)


def mean_divergence(targets, scores, logistic):
    """Return the mean divergence of predictions by scores from the targets."""
    if not logistic:
        return 0.5 * np.mean(np.square(targets - scores))
    entropy = xlogy(targets, targets) + xlogy(1 - targets, 1 - targets)
    cross = np.logaddexp(0.0, scores) - targets * scores
    return max(0.0, float(np.mean(entropy + cross)))


def link(probability):
    """Return the log odds of a probability, clipped away from 0 and 1."""
    probability = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.log(probability / (1 - probability))
