"""Columns that are correlated within groups, but independent for the family.

Components without covariances cut a group along its longest axis. As for counts that
are overdispersed, components are merged into groups, here with full covariances, and
BIC compares these with the components.
"""

from warnings import warn

import numpy as np

from .._base import user_stack_level
from ._diagonal_families import InverseGammaFamily
from ._gaussian_families import LOG_2_PI
from ._moves import shares_and_losses
from ._normal_columns import LogNormal, Normal
from ._overdispersion import (
    DECISIVE,
    LOOKED_AT,
    Groups,
    OtherColumns,
    parts_and_others,
)
from ._search import scaled_part

MOST_COLUMNS = 50


class CorrelatedGroups(Groups):
    """Groups with full covariances, of components without.

    Parameters
    ----------
    X, weight : real numbers, and weights of the rows
    shares : ndarray of shape (n_rows, n_components)
        Responsibilities times weights.
    others : OtherColumns, default=None
        What is known of the other columns.
    """

    def __init__(self, X, weight, shares, others=None):
        self.X = (X - X.mean(axis=0)) / X.std(axis=0)
        self.weight, self.shares, self.others = weight, list(shares.T), others
        self.describe()

    def described(self, share, *, component=False):
        """Log densities of the rows in a group, its parameters, and its place.

        Correlations of few rows are shrunk.
        """
        d, total = self.X.shape[1], max(share.sum(), 1e-300)
        mean = share @ self.X / total
        gaps = self.X - mean
        variances = share @ gaps**2 / total + 1e-9
        if component:
            squares = gaps**2 @ (1 / variances)
            log_determinant, size = np.log(variances).sum(), 2 * d
        else:
            covariance = (gaps * share[:, None]).T @ gaps
            covariance += (d + 2) * np.diag(variances)
            factor = np.linalg.cholesky(covariance / (total + d + 2))
            squares = (np.linalg.solve(factor, gaps.T) ** 2).sum(axis=0)
            log_determinant = 2 * np.log(np.diag(factor)).sum()
            size = d + d * (d + 1) // 2
        log_densities = -0.5 * (d * LOG_2_PI + log_determinant + squares)
        return self.with_others(share, log_densities, size, mean)


def warn_of_correlations(fit, X, weight):
    """Warn if fewer components with full covariances are better than those found."""
    K, family = len(fit.state.concentration), fit.mixture.family
    columns, others = parts_and_others(
        family, X.shape[1], lambda part: isinstance(part, (Normal, InverseGammaFamily))
    )
    if K < 2 or not 2 <= len(columns) <= MOST_COLUMNS or getattr(family, "pooled", 0):
        return
    rows, w = scaled_part(X, weight, 1, 0, most=LOOKED_AT)
    numbers = rows[:, columns]
    if np.isnan(numbers).any() or (numbers == numbers[0]).all(axis=0).any():
        return
    of_logs, _ = parts_and_others(
        family, X.shape[1], lambda part: isinstance(part, LogNormal)
    )
    of_logs = np.isin(columns, of_logs)
    numbers[:, of_logs] = np.log(numbers[:, of_logs])
    shares, _ = shares_and_losses(fit.mixture, fit.state, rows, w)
    if others is not None:
        others = OtherColumns(others, rows, fit.mixture.inverse_temperature)
    best, gain = CorrelatedGroups(numbers, w, shares, others).best_merge()
    if gain > DECISIVE:
        warn(
            "Columns are correlated within groups, but the family takes them as "
            f"independent given the component: {best} component{'s' * (best > 1)} with "
            "covariances between columns would explain the rows better than the "
            f"{K} that n_components='auto' chose, by {gain:.3g} nats (BIC). Use "
            "TemperedVBGaussianMixture with covariance_type='full' (of logarithms, for "
            "lognormal columns), or decorrelate the columns by "
            "sklearn.decomposition.PCA.",
            UserWarning,
            stacklevel=user_stack_level(),
        )
