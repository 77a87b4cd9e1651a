"""Markov chains: one protocol, one loop, R-hat, and the one warning.

A chain has `advance(n_iter, keep)`, which makes that many iterations and keeps their
draws or none of them, and `n_kept`, the number of draws that it has kept.
"""

import os
from multiprocessing import parent_process

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from ._base import warn_user

R_HAT_LIMIT = 1.1  # above it chains are said to disagree
# Blocks of a run, after each of which callbacks are called: ten, and in long runs more,
# of so many iterations, up to a hundred.
N_BLOCKS, MOST_BLOCKS, LONG_BLOCK = 10, 100, 200
LEAST_DRAWS = 4  # of a chain, for two halves with a variance each
_ROUNDING = 1e-8  # a spread below this share of the values' size is rounding


def run_chains(chains, *, burn_in, n_iter, tasks, n_jobs, after_block=None):
    """Advance chains by `burn_in` iterations that are dropped and `n_iter` that count.

    Parameters
    ----------
    chains : list
        Objects with `advance(n_iter, keep)` and `n_kept`.
    burn_in, n_iter : int
        Iterations of each chain that are dropped, and then kept.
    tasks : callable
        Given the number of blocks, yields the number of each; it may stop early.
        Chains that have then kept nothing make one iteration that is kept.
    n_jobs : int or None
        Threads.
    after_block : callable, default=None
        Called after each block that lies within the burn-in. It may change the chains.
    """
    iterations = np.arange(burn_in + n_iter)
    n_blocks = min(max(N_BLOCKS, len(iterations) // LONG_BLOCK), MOST_BLOCKS)
    blocks = np.array_split(iterations, max(1, min(n_blocks, len(iterations))))

    def advance(chain, block):
        dropped = int((block < burn_in).sum())
        if dropped:
            chain.advance(dropped, keep=False)
        if dropped < len(block):
            chain.advance(len(block) - dropped, keep=True)

    for number in tasks(len(blocks)):
        in_threads(n_jobs, [(advance, chain, blocks[number]) for chain in chains])
        if after_block is not None and (blocks[number] < burn_in).all():
            after_block()
    for chain in chains:
        if not chain.n_kept:
            chain.advance(1, keep=True)


def in_threads(n_jobs, calls):
    """Return the results of calls made in threads, in order.

    The threads share the memory of this process, whatever backend of joblib is active:
    a call may change its arguments. In a worker process of joblib there are no more
    threads than its share of the processor.

    Parameters
    ----------
    n_jobs : int or None
        Threads; None for the number that joblib's configuration says, or one.
    calls : list of tuples
        A function and its arguments.
    """
    calls = [(function, arguments) for function, *arguments in calls]
    if len(calls) == 1:
        return [calls[0][0](*calls[0][1])]
    parallel = Parallel(require="sharedmem", n_jobs=_within_share(n_jobs))
    return parallel(delayed(function)(*arguments) for function, arguments in calls)


def _within_share(n_jobs):
    """At most the threads that joblib allows the libraries in a worker process."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    if parent_process() is None or not share.isdigit() or n_jobs is None:
        return n_jobs
    return min(n_jobs, int(share)) if n_jobs > 0 else int(share)


# Whether chains agree.


def r_hat(series):
    """Compare the halves of chains: the rank-normalised split R-hat [1]_.

    Parameters
    ----------
    series : ndarray of shape (..., n_chains, n_draws)
        One value of each draw of each chain.

    Returns
    -------
    r_hat : ndarray of shape (...)
        The larger of the R-hats of normal scores, of the values and of their distances
        from the median. Near 1 where all halves have the same distribution; 1 where
        nothing varies but by rounding; infinite where the halves differ and none of
        them varies, or where a chain has fewer than four draws.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner,
       "Rank-normalization, folding, and localization: an improved R-hat", Bayesian
       Analysis 16, 2021.
    """
    series = np.asarray(series, dtype=float)
    if series.shape[-1] < LEAST_DRAWS:
        return np.full(series.shape[:-2], np.inf)
    half = series.shape[-1] // 2
    halves = np.concatenate([series[..., :half], series[..., -half:]], axis=-2)
    size = np.abs(halves).max(axis=(-2, -1), keepdims=True)
    spread = np.ptp(halves, axis=(-2, -1), keepdims=True)
    folded = np.abs(halves - np.median(halves, axis=(-2, -1), keepdims=True))
    larger = np.maximum(_r_hat(_scores(halves)), _r_hat(_scores(folded)))
    constant = (spread <= _ROUNDING * size)[..., 0, 0]
    return np.where(constant, 1.0, larger)


def _scores(values):
    """Return normal scores of the ranks among all chains' values."""
    together = values.reshape(*values.shape[:-2], -1)
    ranks = rankdata(together, axis=-1)
    return ndtri((ranks - 0.375) / (together.shape[-1] + 0.25)).reshape(values.shape)


def _r_hat(halves):
    """Square root of the pooled variance of the halves over their mean variance."""
    n_draws = halves.shape[-1]
    within = halves.var(axis=-1, ddof=1).mean(axis=-1)
    between = halves.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n_draws - 1) / n_draws + between / within)
    return np.where(between + within > 0, ratio, 1.0)


def warn_unmixed(r_hat, advice, *, of="the draws", detail=""):
    """Warn if chains disagree: the one warning of the package about it.

    Parameters
    ----------
    r_hat : float
        Largest R-hat.
    advice : str
        What to raise, for instance "increase n_iter or burn_in".
    of : str, default="the draws"
        What the R-hat is of.
    detail : str, default=""
        A sentence on what the answer is then.
    """
    if r_hat > R_HAT_LIMIT:
        digits = 2 if r_hat > R_HAT_LIMIT + 0.005 else 6  # 1.10 is not more than 1.1
        warn_user(
            f"The chains disagree: R-hat of {of} is {r_hat:.{digits}f}, more than "
            f"{R_HAT_LIMIT}. {detail}{' ' if detail else ''}"
            f"{advice[:1].upper()}{advice[1:]}.",
            ConvergenceWarning,
        )
