"""Simulated additive models, and the rivals that are given the same functions."""

import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.datasets import fetch_california_housing
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes.additive._basis import Dictionary

DATA = Path(__file__).parents[2] / "shared" / "data" / "sklearn_data_home"
RELEVANT = 4


def smooth(X):
    """Return four smooth effects."""
    linear = X[:, 2] + np.exp(-X[:, 3]) - np.e / 2
    return -np.sin(2 * X[:, 0]) + X[:, 1] ** 3 + linear


def rough(X):
    """Return four effects: a jump, a bend, a wave and a line."""
    jump = np.sign(X[:, 0] - 0.2)
    return jump + 2 * abs(X[:, 1]) + np.sin(6 * X[:, 2]) + X[:, 3]


def variables(n, p, correlation, rng):
    """Uniform variables on [-1, 1]; neighbours are correlated through normal ones."""
    Z = rng.standard_normal((n, p))
    for j in range(1, p):
        Z[:, j] = correlation * Z[:, j - 1] + np.sqrt(1 - correlation**2) * Z[:, j]
    return 2 * norm.cdf(Z) - 1


def additive_data(function, n, p, correlation, noise, seed):
    """Rows, targets, and 2,000 more rows with what is to be found there."""
    rng = np.random.default_rng(seed)
    X, new = variables(n, p, correlation, rng), variables(2000, p, correlation, rng)
    return X, function(X) + noise * rng.standard_normal(n), new, function(new)


class Expansion(TransformerMixin, BaseEstimator):
    """The functions of all variables, as columns, those of a variable together."""

    def __init__(self, basis="legendre", max_order=8):
        self.basis, self.max_order = basis, max_order

    def fit(self, X, y=None):
        """Find the ranges."""
        low, high = X.min(axis=0), X.max(axis=0)
        self.dictionary_ = Dictionary(self.basis, self.max_order, low, high, X)
        return self

    def transform(self, X):
        """Evaluate the functions."""
        return self.dictionary_(X).reshape(-1, len(X)).T


class Quiet(RegressorMixin, BaseEstimator):
    """A rival that need not say that it has not converged."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        """Fit without warnings of convergence."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.fitted_ = self.estimator.fit(X, y)
        return self

    def predict(self, X):
        """Predict."""
        return self.estimator.predict(X)


def lasso(basis="legendre", max_order=8):
    """LassoCV on the functions."""
    return Quiet(
        make_pipeline(Expansion(basis, max_order), StandardScaler(), LassoCV(cv=5))
    )


class GroupLassoCV(RegressorMixin, BaseEstimator):
    """skglm's group lasso on the functions, its penalty chosen by 5 folds."""

    def fit(self, X, y):
        """Search over twenty penalties from the largest that matters."""
        from skglm import GroupLasso  # the other benchmarks do without it

        columns = make_pipeline(Expansion(), StandardScaler())
        design = columns.fit_transform(X)
        rest = (design.T @ (y - y.mean())).reshape(-1, 8)
        largest = np.sqrt((rest**2).sum(axis=1)).max() / len(y)
        grid = {"alpha": largest * np.geomspace(0.01, 1, 20)}
        search = GridSearchCV(
            GroupLasso(groups=8, tol=1e-3),
            grid,
            cv=KFold(5, shuffle=True),
            scoring="neg_mean_squared_error",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._columns, self._search = columns, search.fit(design, y)
        return self

    def predict(self, X):
        """Predict."""
        return self._search.predict(self._columns.transform(X))


class GreedyBIC(RegressorMixin, BaseEstimator):
    """Forward steps, each of which adds functions to a variable, by the BIC.

    The variable may be new, at a cost of 2 log(n_features) beyond its functions'
    log(n_samples), or in already. Written apart from the package's own start.
    """

    def fit(self, X, y):
        """Take the best step while the criterion falls."""
        n, p = X.shape
        self._columns = Expansion().fit(X)
        values = self._columns.transform(X).reshape(n, p, 8)
        self._orders, best = {}, n * np.log(((y - y.mean()) ** 2).sum())
        while True:
            design = self._design(values)
            basis, _ = np.linalg.qr(design)
            rest = y - basis @ (basis.T @ y)
            steps = []
            for j in range(p):
                known = self._orders.get(j, 0)
                if known == 8:
                    continue
                block = values[:, j, known:] - basis @ (basis.T @ values[:, j, known:])
                gains = np.cumsum((np.linalg.qr(block)[0].T @ rest) ** 2)
                price = (design.shape[1] + np.arange(8 - known)) * np.log(n)
                count = len(self._orders) + (known == 0)
                price = price + 2 * count * np.log(p)
                criterion = n * np.log(rest @ rest - gains) + price
                steps.append((criterion.min(), j, known + 1 + criterion.argmin()))
            step = min(steps)
            if step[0] >= best:
                break
            best, j, self._orders[j] = step
        self._coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
        self.selected_ = sorted(self._orders)
        return self

    def _design(self, values):
        blocks = [values[:, j, :k] for j, k in sorted(self._orders.items())]
        return np.hstack([np.ones((len(values), 1)), *blocks])

    def predict(self, X):
        """Predict."""
        values = self._columns.transform(X).reshape(len(X), X.shape[1], 8)
        return self._design(values) @ self._coefficients


def boosting():
    """Gradient boosting without interactions."""
    return HistGradientBoostingRegressor(
        interaction_cst="no_interactions", early_stopping=False, random_state=0
    )


def selected(model, p):
    """Variables that a fitted model uses, or None where all may be used."""
    if hasattr(model, "selected_"):
        return set(model.selected_)
    if hasattr(model, "inclusion_probabilities_"):
        return set(model.get_support(indices=True).tolist())
    if isinstance(model, Quiet):
        coefficients = model.estimator[-1].coef_
    elif isinstance(model, GroupLassoCV):
        coefficients = model._search.best_estimator_.coef_
    else:
        return None
    blocks = abs(coefficients).reshape(p, -1).max(axis=1)
    return set(np.flatnonzero(blocks > 0).tolist())


def california():
    """California housing, or None where it is absent."""
    if not (DATA / "cal_housing_py3.pkz").exists():
        print("../shared/data is absent: California housing is left out.")
        return None
    return fetch_california_housing(
        data_home=DATA, download_if_missing=False, return_X_y=True
    )
