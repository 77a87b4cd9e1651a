"""Functions of a variable, or of two: a basis, orthonormal over the rows."""

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.linalg import eigh
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.preprocessing import SplineTransformer

NAMED = ("legendre", "cosine", "fourier", "spline")
AUTOMATIC = ("legendre", "cosine", "spline")  # bases that "auto" compares
CONTINUED = AUTOMATIC  # bases whose functions continue as lines beyond the ranges
SLOPE_POINTS = 200  # of a quadrature that is exact for polynomials
# A function is dropped if the share of its variance not explained by the functions
# before it is below this: the rest would be rounding.
NEGLIGIBLE = 1e-10
NEGLIGIBLE_PRODUCT = 1e-8  # of products of functions of two variables
BLOCK = 2**20  # largest number of values sorted at a time
WIDEST = 0.25  # largest share of a range by which each end is widened
FURTHEST = 0.5  # shares of its range that a function continues beyond it
FAR = 10.0  # largest distance of a range's ends from the quartiles, in IQR


@cache
def slope_quadrature():
    """Return points and weights; computing them takes longer than a short chain."""
    return leggauss(SLOPE_POINTS)


class Dictionary:
    """The first functions of a basis, for each of several variables.

    Each variable is mapped to [-1, 1] by its range. Polynomials grow fast outside:
    beyond an end, a function continues with the slope of its least-squares line over
    the range, as far as half of the range, and is constant from there on. Fourier
    functions, transformers and `bounded` functions are constant from the end on.

    If a variable has missing values in the rows `X`, its first function is the
    indicator that it is missing. The functions of a categorical variable are the
    indicators of its most frequent categories, and one indicator of all others.

    Parameters
    ----------
    basis : str or transformer
        One of `NAMED`, or a transformer of one column.
    max_order : int
        Number of functions of a variable.
    low, high : ndarray of shape (n_features,)
        The ranges.
    X : ndarray of shape (n_samples, n_features), default=None
        Rows to which a transformer is fitted, one clone for each variable; NaN is a
        missing value.
    categorical : sequence of int, default=()
        Categorical variables.
    bounded : bool, default=False
        Whether functions must stay between their largest and smallest values.

    Attributes
    ----------
    max_order : int
        Number of functions of each variable, including the indicator of missing values.
    missing : ndarray of bool of shape (n_features,)
        Whether each variable has an indicator of missing values.
    pooled : dict
        For categorical variables with more categories than functions: the number of
        categories, and the share of the non-missing rows in the pooled categories.
    ends : ndarray of shape (2, n_features)
        Ends of the known range of each variable: the given range, or that of `X`.
    """

    def __init__(
        self, basis, max_order, low, high, X=None, categorical=(), *, bounded=False
    ):
        self.basis, self.max_order = basis, max_order
        self.low, self.high = low, high
        self.missing = np.zeros(len(low), dtype=bool)
        self._categories, self.pooled = {}, {}
        self.n_rows = 0 if X is None else len(X)  # of which the ends are known
        self.ends = np.array([low, high], dtype=np.float64)
        if X is not None:
            self.missing = np.isnan(X).any(axis=0)
            self._categories = {j: most_frequent(X[:, j]) for j in categorical}
            self.ends[0] = np.fmin(low, np.fmin.reduce(X, axis=0))
            self.ends[1] = np.fmax(high, np.fmax.reduce(X, axis=0))
        if basis == "spline":
            self._knots, self._smooth = smoothest_splines(max_order)
        elif not isinstance(basis, str):
            points = self.mapped(X, range(len(low)))
            points = [t[~np.isnan(t)] if np.isnan(t).any() else t for t in points]
            points = [t if len(t) else np.zeros(1) for t in points]
            self._fitted = [clone(basis).fit(t[:, None].copy()) for t in points]
            found = zip(self._fitted, points, strict=True)
            widths = [len(transformed(f, t[:1])) for f, t in found]
            self.max_order = min(max_order, max(widths))
        self._width = self.max_order  # without the indicator of missing values
        self._slopes = np.zeros(self._width)  # beyond the ranges
        if isinstance(basis, str) and basis in CONTINUED and not bounded:
            points, weights = slope_quadrature()
            functions = self._of_present(points[None], [0])[0]
            self._slopes = functions @ (weights * points) / (weights @ points**2)
        for j, found in self._categories.items():
            known = X[~np.isnan(X[:, j]), j]
            if len(found) > self._width + 1:
                share = 1 - np.isin(known, found[: self._width]).mean()
                self.pooled[j] = len(found), float(share)
        self.max_order += bool(self.missing.any())

    @property
    def width(self):
        """Number of functions of a variable that is not missing.

        This is also the largest number of categories with an effect each.
        """
        return self._width

    def reach(self, present):
        """Return the limits beyond which rows are far; infinite for other variables.

        A row is far if it is beyond an end by more than the length of the range. Limits
        are finite for variables that are `present` and not categorical.
        """
        low, high = self.ends
        with np.errstate(over="ignore"):
            reach = np.array([2 * low - high, 2 * high - low])
        absent = ~present
        absent[list(self._categories)] = True
        reach[:, absent | ~(low < high)] = [[-np.inf], [np.inf]]
        return reach

    def mapped(self, X, features, most=1):
        """Return the variables as rows, mapped so that their ranges become [-1, 1].

        Values are clipped to [-most, most]. They are 0 if a range is empty; a missing
        value stays NaN.
        """
        features = list(features)
        low, high = self.low[features, None], self.high[features, None]
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            t = (X.T[features] - middle) / half
        t = np.where(half > 0, t, 0.0).clip(-most, most)
        t[np.isnan(X.T[features])] = np.nan
        return t

    def __call__(self, X, features=None):
        """Evaluate the functions at the rows of X.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        features : sequence of int, default=None
            Variables; None for all.

        Returns
        -------
        values : ndarray of shape (n_chosen_features, max_order, n_samples)
            The values. NaN where a variable without indicator is missing.
        """
        features = range(X.shape[1]) if features is None else features
        absent = self._absent(X, features)
        t = np.where(absent, 0.0, self.mapped(X, features, 1 + 2 * FURTHEST))
        inside = t.clip(-1, 1)
        values = self._of_present(inside, features)
        if self._slopes.any() and (beyond := t - inside).any():
            values += beyond[:, None] * self._slopes[:, None]
        for row, feature in enumerate(features):
            if feature in self._categories:
                values[row] = 0.0
                found = self._categories[feature][: self._width]
                values[row, : len(found)] = X[:, feature] == found[:, None]
        chosen = self.missing[list(features)]
        values = np.where(
            absent[:, None], np.where(chosen, 0.0, np.nan)[:, None, None], values
        )
        if self.max_order == self._width:
            return values
        result = np.zeros((len(t), self.max_order, len(X)))
        result[~chosen, : self._width] = values[~chosen]
        result[chosen, 0], result[chosen, 1:] = absent[chosen], values[chosen]
        return result

    def _absent(self, X, features):
        """Return the mask (n_chosen, n_samples) of missing or unknown values."""
        absent = np.isnan(X.T[list(features)])
        for row, feature in enumerate(features):
            if feature in self._categories:
                absent[row] |= ~np.isin(X[:, feature], self._categories[feature])
        return absent

    def newly_absent(self, X):
        """Return the mask (n_features, n_samples) of values without a level.

        They are missing or unknown, and the variable was never missing.
        """
        return self._absent(X, range(X.shape[1])) & ~self.missing[:, None]

    def check_missing(self, X):
        """Raise ValueError if variables without an indicator are missing."""
        new = self.newly_absent(X).any(axis=1)
        if new.any():
            raise ValueError(
                f"feature {np.flatnonzero(new)[0]} has missing values or new "
                "categories, but had no missing values in the first rows of the "
                "stream: begin the stream with rows that have some."
            )

    def _of_present(self, t, features):
        """Return functions of non-missing values, (n_chosen, width, n_samples)."""
        if isinstance(self.basis, str):
            return getattr(self, f"_{self.basis}")(t)
        values = np.zeros((len(t), self._width, t.shape[1]))
        for row, feature in enumerate(features):
            found = transformed(self._fitted[feature], t[row])[: self._width]
            values[row, : len(found)] = found
        return values

    def along(self, n_points=401):
        """Evaluate the functions on a grid of [-1, 1], for each variable or for all."""
        t = np.linspace(-1, 1, n_points)
        alike = not (self.missing.any() or self._categories)
        if alike and isinstance(self.basis, str):
            return getattr(self, f"_{self.basis}")(t[None])
        return self(self.grid(n_points))

    def orthogonal(self, means, moments, weight, *, bounded=False):
        """Return the functions centred and orthogonal over rows, given their moments.

        Their standard deviations are 1, 1 / 2, 1 / 3, ...; if they are `bounded`, their
        largest absolute values are 1. See :class:`Orthonormal`.
        """
        functions = Orthonormal(means, moments, self.along(), weight)
        return functions.rescaled(self) if bounded else functions.damped()

    def grid(self, n_points):
        """Return a grid of the ranges, or all categories; the last row is NaN."""
        rows = self.low + np.linspace(0, 1, n_points)[:, None] * (self.high - self.low)
        for feature, categories in self._categories.items():
            rows[:, feature] = np.resize(categories, n_points)
        rows[-1, self.missing] = np.nan
        return rows

    def _legendre(self, t):
        values = np.empty((len(t), self._width, t.shape[1]))
        before, now = np.ones_like(t), t
        for k in range(1, self._width + 1):
            values[:, k - 1] = now
            before, now = now, ((2 * k + 1) * t * now - k * before) / (k + 1)
        return values

    def _cosine(self, t):
        k = np.arange(1, self._width + 1)[:, None]
        return np.cos(k * (np.pi / 2) * (t[:, None] + 1))

    def _fourier(self, t):
        k = np.arange(1, self._width + 1)[:, None]
        angle = (k + 1) // 2 * np.pi * t[:, None]
        return np.where(k % 2 == 1, np.sin(angle), np.cos(angle))

    def _spline(self, t):
        if not t.size:  # of no variable, which SplineTransformer refuses
            return np.zeros((len(t), self._width, t.shape[1]))
        splines = self._knots.transform(t.reshape(-1, 1)) @ self._smooth
        return np.moveaxis(splines.reshape(*t.shape, self._width), 2, 1)


def most_frequent(values):
    """Return the categories by decreasing frequency, ties by increasing value."""
    categories, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return categories[np.argsort(-counts, kind="stable")]


def transformed(transformer, t):
    """Return values of a transformer at points `t`, one row for each function."""
    values = transformer.transform(t[:, None].copy())
    values = values.toarray() if issparse(values) else np.asarray(values)
    values = values.astype(np.float64, copy=False)
    if values.ndim != 2 or len(values) != len(t) or not np.isfinite(values).all():
        raise ValueError(
            f"basis={transformer!r} must transform a column of numbers in [-1, 1] to "
            "finite numbers, with the same number of rows."
        )
    return values.T


def smoothest_splines(count):
    """Return B-splines on [-1, 1], and combinations of them from smooth to rough.

    Returns a transformer to `count` B-splines, and the matrix of shape (count, count)
    whose columns combine them: the first is the smoothest function of unit variance
    (a line, if the splines are cubic), the next the smoothest orthogonal to it.
    """
    degree = min(3, count)
    transformer = SplineTransformer(
        n_knots=count + 2 - degree,
        degree=degree,
        include_bias=False,
        extrapolation="constant",
    )
    grid = np.linspace(-1, 1, 200 * (count + 1))[:, None]
    values = transformer.fit(np.array([[-1.0], [1.0]])).transform(grid)
    bends = np.diff(values, n=min(2, degree), axis=0)
    variance = np.cov(values.T, ddof=0).reshape(count, count)
    _, combinations = eigh(bends.T @ bends, variance)
    return transformer, combinations


class Orthonormal:
    """Functions of a dictionary, centred and orthonormalised in order.

    The k-th is a combination of the first k of the dictionary, so that models of order
    1, 2, ... span the same functions. A function that is a combination of those before
    it is dropped, and the others move up.

    Parameters
    ----------
    means : ndarray of shape (n_features, max_order)
        Means of the functions over the rows.
    moments : ndarray of shape (n_features, max_order, max_order)
        Means of their products.
    grid : ndarray of shape (1 or n_features, max_order, n_points), default=None
        The functions on a grid of [-1, 1]. Functions after the first that exceed the
        root of `weight` somewhere are dropped, too. Their values at the rows cannot be
        so large, so that they explode between rows.
    weight : float, default=inf
        Weight of the rows.

    Attributes
    ----------
    transform : ndarray of shape (n_features, max_order, max_order)
        Column k of a variable's matrix holds the coefficients of function k.
    orders : ndarray of shape (n_features,)
        Number of functions of each variable that were not dropped.
    deviations : ndarray of shape (n_features, max_order)
        Standard deviations of the functions over the rows; 0 for those dropped.
    """

    def __init__(self, means, moments, grid=None, weight=np.inf):
        self.means = means
        covariance = moments - means[:, :, None] * means[:, None, :]
        self.transform = np.zeros_like(covariance)
        self.orders = np.zeros(len(means), dtype=np.int64)
        features = np.arange(len(means))
        # Rounding of the mean, of relative size 1e-16.
        own = np.einsum("jkk->jk", covariance)
        rounding = 1e-14 * np.einsum("jkk->jk", moments)
        for k in range(means.shape[1]):
            direction = np.zeros_like(means)
            direction[:, k] = 1.0
            for _ in range(2):  # the second pass removes rounding errors
                shares = np.einsum(
                    "ja,jab,jbi->ji", direction, covariance, self.transform
                )
                direction -= np.einsum("jai,ji->ja", self.transform, shares)
            rest = np.einsum("ja,jab,jb->j", direction, covariance, direction)
            new = rest > np.maximum(NEGLIGIBLE * own[:, k], rounding[:, k])
            if grid is not None:
                new &= (self.orders == 0) | (
                    largest_along(grid, means, direction)
                    <= np.sqrt(weight * rest.clip(0))
                )
            scale = np.sqrt(rest[new])[:, None]
            self.transform[features[new], :, self.orders[new]] = direction[new] / scale
            self.orders += new
        self.deviations = (np.arange(means.shape[1]) < self.orders[:, None]) * 1.0

    def __call__(self, values, features=slice(None)):
        """Evaluate the orthonormal functions, given values of the dictionary.

        They are 0, their mean, where the values are NaN.
        """
        transform = self.transform[features].transpose(0, 2, 1)
        centered = values - self.means[features, :, None]
        centered[np.isnan(centered)] = 0.0
        return transform @ centered

    def damped(self):
        """Divide the k-th function of each variable by k.

        Coefficients of equal variances then give smooth effects.
        """
        numbers = np.arange(1, self.means.shape[1] + 1)
        self.transform /= numbers
        self.deviations /= numbers
        return self

    def rescaled(self, dictionary, n_points=1001):
        """Divide each function by its largest absolute value on [-1, 1]."""
        grid = dictionary.grid(n_points)
        largest = np.zeros(self.means.shape)
        for feature in range(len(largest)):
            values = self(dictionary(grid, [feature]), [feature])
            largest[feature] = abs(values[0]).max(axis=1)
        largest = np.where(largest > 0, largest, 1.0)
        self.transform /= largest[:, None, :]
        self.deviations /= largest
        return self


def largest_along(grid, means, direction):
    """Return the largest absolute value on a grid of combined, centred functions."""
    along = (direction[:, None] @ grid)[:, 0] - (direction * means).sum(axis=1)[:, None]
    return abs(along).max(axis=1)


class Pairs:
    """The first products of the functions of two variables, for each of several pairs.

    The projections on functions of one of the two variables are subtracted, and the
    products are orthogonalised in order, over the rows. The product of the a-th
    function of one variable and the b-th of the other has standard deviation 1 / (a b).
    The first products are those of the smallest a + b. At new rows a function is
    clipped to the range of its values at the rows: if variables are correlated,
    products of polynomials explode far from all rows.

    Parameters
    ----------
    pairs : ndarray of int of shape (n_pairs, 2)
        The pairs.
    dictionary : Dictionary
        Functions of one variable.
    functions : Orthonormal
        Orthogonal functions of one variable, the k-th of standard deviation 1 / k.
    values : ndarray of shape (n_features, max_order, n_samples)
        Their values at the rows.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.

    Attributes
    ----------
    orders : ndarray of shape (n_pairs,)
        Number of functions of each pair.
    deviations : ndarray of shape (n_pairs, max_order)
        Standard deviations of the functions over the rows; 0 for those dropped.
    """

    def __init__(self, pairs, dictionary, functions, values, weights):
        self.pairs, self.dictionary, self.functions = pairs, dictionary, functions
        count, width = len(pairs), dictionary.max_order
        self.orders = np.zeros(count, dtype=np.int64)
        self.products = np.zeros((count, width, 2), dtype=np.int64)
        self.means = np.zeros((count, 3 * width))
        self.transform = np.zeros((count, width, 3 * width))
        self.limits = np.zeros((2, count, width))
        self.deviations = np.zeros((count, width))
        scales = np.sqrt(weights / weights.sum())
        for number, (first, second) in enumerate(pairs):
            orders = functions.orders[first], functions.orders[second]
            self.products[number] = smallest_products(*orders, width)
            parts = self._parts(number, values[first], values[second])
            self.means[number] = parts @ scales**2
            centered = (parts - self.means[number][:, None]) * scales
            self._orthogonalize(number, centered @ centered.T)
            found = self.transform[number] @ (parts - self.means[number][:, None])
            self.limits[:, number] = found.min(axis=1), found.max(axis=1)

    def _orthogonalize(self, number, covariance):
        """Compute the functions of a pair, as combinations of its parts."""
        width = len(self.transform[number])
        basis = np.zeros((0, 3 * width))
        own = np.diag(covariance)
        for part in range(3 * width):
            direction = np.zeros(3 * width)
            direction[part] = 1.0
            for _ in range(2):  # the second pass removes rounding errors
                direction = direction - (basis @ (covariance @ direction)) @ basis
            rest = direction @ covariance @ direction
            if not rest > NEGLIGIBLE_PRODUCT * own[part]:
                continue
            if part >= 2 * width:
                a, b = self.products[number, part - 2 * width]
                place = self.orders[number]
                scale = (a + 1) * (b + 1) * np.sqrt(rest)
                self.transform[number, place] = direction / scale
                self.deviations[number, place] = 1.0 / ((a + 1) * (b + 1))
                self.orders[number] += 1
            basis = np.vstack([basis, direction / np.sqrt(rest)])

    def _parts(self, number, first, second):
        """Return functions of both variables, and their products."""
        a, b = self.products[number].T
        products = np.where((a >= 0)[:, None], first[a] * second[b], 0.0)
        return np.concatenate([first, second, products])

    def __call__(self, X, numbers):
        """Evaluate the functions of some pairs, of shape (n_chosen, width, n_samples).

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        numbers : sequence of int
            Numbers of the pairs.
        """
        used = np.unique(self.pairs[numbers])
        values = self.functions(self.dictionary(X, used), used)
        return self.of_values(values, numbers, used)

    def of_values(self, values, numbers=None, used=None):
        """Evaluate the functions, given those of the variables `used`."""
        numbers = range(len(self.pairs)) if numbers is None else numbers
        result = np.zeros((len(numbers), self.transform.shape[1], values.shape[2]))
        for row, number in enumerate(numbers):
            pair = self.pairs[number]
            places = pair if used is None else np.searchsorted(used, pair)
            parts = self._parts(number, *values[places])
            parts -= self.means[number][:, None]
            low, high = self.limits[:, number, :, None]
            result[row] = (self.transform[number] @ parts).clip(low, high)
        return result


def with_pairs(pairs, dictionary, functions, values, weights):
    """Return functions of pairs; values and numbers of functions of all terms.

    The terms are the variables, and then the pairs. See :class:`Pairs`.
    """
    found = Pairs(pairs, dictionary, functions, values, weights)
    values = np.concatenate([values, found.of_values(values)])
    return found, values, np.concatenate([functions.orders, found.orders])


def smallest_products(first, second, count):
    """Return the indices (count, 2) of the first products of functions.

    They are sorted by a + b, then by |a - b|, and padded with -1.
    """
    every = [(a, b) for a in range(first) for b in range(second)]
    every.sort(key=lambda pair: (sum(pair), abs(pair[0] - pair[1]), pair))
    every = every[:count] + [(-1, -1)] * (count - len(every))
    return np.array(every, dtype=np.int64).reshape(count, 2)


def weighted_moments(values, weights):
    """Return means of functions and of their products over weighted rows.

    Parameters
    ----------
    values : ndarray of shape (n_features, max_order, n_samples)
        Values of the functions.
    weights : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    means : ndarray of shape (n_features, max_order)
        Means.
    moments : ndarray of shape (n_features, max_order, max_order)
        Means of products.
    """
    total = weights.sum()
    means = values @ weights / total
    moments = np.empty((*means.shape, means.shape[1]))
    step = max(1, 2**22 // max(1, values[0].size))  # variables at a time: 32 MB
    for start, stop in pairwise([*range(0, len(values), step), len(values)]):
        part = values[start:stop]
        moments[start:stop] = (part * weights) @ part.transpose(0, 2, 1) / total
    return means, moments


def whole_range(X):
    """Return the range of the rows; [0, 0] for a variable that is always missing."""
    X = np.where(np.isnan(X).all(axis=0), 0.0, X)
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def usual_range(X, weights):
    """Return the range of the rows, cut `FAR` interquartile ranges from the quartiles.

    Otherwise a few far rows could leave most rows in a small part of the range, where
    functions of low order are nearly linear. If the quartiles are equal, nothing is
    cut. Missing values are ignored; a variable that is always missing has the range [0,
    0].
    """
    absent = np.isnan(X)
    X = np.where(absent.all(axis=0), 0.0, X)
    low, high = whole_range(X)
    present = ~absent | absent.all(axis=0)
    quartiles = np.empty((2, len(low)))
    step = max(1, BLOCK // len(X))
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        own = np.where(present[:, part], weights[:, None], 0.0)
        quartiles[:, part] = weighted_quantiles(X[:, part], own, [0.25, 0.75])
    with np.errstate(over="ignore"):
        width = quartiles[1] - quartiles[0]
        reach = np.where(width > 0, FAR * width, np.inf)
        first, last = quartiles[0] - reach, quartiles[1] + reach
    return np.maximum(low, first), np.minimum(high, last)


def widened(low, high, weight):
    """Widen ranges at both ends, for new rows beyond those of the fit.

    Each end is moved by the mean distance between neighbouring rows, which makes the
    expected range of a uniform variable the true one, and at most by a quarter of the
    range.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        The ranges.
    weight : float
        Weight of the rows.
    """
    share = min(1 / weight, WIDEST)
    step = 2 * share * (high / 2 - low / 2)  # high - low may exceed the largest number
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return np.maximum(low - step, -largest), np.minimum(high + step, largest)


def weighted_quantiles(X, weights, shares):
    """Return quantiles of columns: the smallest values with a share of the weight.

    Parameters
    ----------
    X, weights : ndarray of shape (n_samples, n_features)
        The values and their weights; where the weight is 0 a value may be NaN.
    shares : sequence of float
        The shares.

    Returns
    -------
    quantiles : ndarray of shape (n_shares, n_features)
        The quantiles.
    """
    order = np.argsort(X, axis=0, kind="stable")
    found = np.take_along_axis(weights, order, axis=0).cumsum(axis=0)
    found /= found[-1]
    places = np.array([(found < share).sum(axis=0) for share in shares])
    return np.take_along_axis(X, np.take_along_axis(order, places, axis=0), axis=0)
