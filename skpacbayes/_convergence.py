"""Whether Markov chains agree: R-hat, the potential scale reduction."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

LEAST_DRAWS = 4  # of a chain, for two halves with a variance each
_ROUNDING = 1e-8  # a spread below this share of the values' size is none


def split_r_hat(series):
    """Compare the halves of chains: R-hat [1]_, with every chain cut in two.

    Parameters
    ----------
    series : ndarray of shape (..., n_chains, n_draws)
        One value of each draw of each chain.

    Returns
    -------
    r_hat : ndarray of shape (...)
        Square root of the pooled variance of the halves, over their mean variance.
        Near 1 where all halves have the same law; 1 where nothing varies but by
        rounding; infinite where the halves differ and none of them varies, or where
        there are too few draws to tell, less than four.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and
       D. B. Rubin, "Bayesian Data Analysis", third edition, 2013 (section 11.4).
    """
    if series.shape[-1] < LEAST_DRAWS:
        return np.full(series.shape[:-2], np.inf)
    half = series.shape[-1] // 2
    halves = np.concatenate([series[..., :half], series[..., -half:]], axis=-2)
    means = halves.mean(axis=-1)
    # About a value of theirs, so that what is constant has no variance at all.
    within = (halves - halves[..., :1]).var(axis=-1, ddof=1).mean(axis=-1)
    between = (means - means[..., :1]).var(axis=-1, ddof=1)
    pooled = (half - 1) / half * within + between
    least = _ROUNDING**2 * (halves**2).mean(axis=(-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pooled > least, np.sqrt(pooled / within), 1.0)


def rank_normalised(series):
    """Turn values into normal scores of their ranks, as heavy tails ask for [1]_.

    Parameters
    ----------
    series : ndarray of shape (n_chains, n_draws)
        One value of each draw of each chain.

    Returns
    -------
    scores : ndarray of shape (n_chains, n_draws)
        Quantiles of the standard normal law at (rank - 3/8) / (n_values + 1/4); equal
        values have the mean of their ranks.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner,
       "Rank-normalization, folding, and localization: an improved R-hat", Bayesian
       Analysis 16, 2021.
    """
    ranks = rankdata(series).reshape(series.shape)
    return ndtri((ranks - 0.375) / (series.size + 0.25))
