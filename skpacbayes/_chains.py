"""Markov chains: protocol, loop, R-hat and the warning of the package.

A chain has `advance(n_iter, keep)`, which makes `n_iter` iterations and keeps all or
none of their draws, and `n_kept`, the number of draws kept.
"""

import os
from multiprocessing import parent_process

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from ._base import warn_user

R_HAT_LIMIT = 1.1  # `warn_unmixed` warns above it
# Blocks of a run, with callbacks after each: ten, and in long runs up to a hundred, of
# this number of iterations.
N_BLOCKS, MOST_BLOCKS, LONG_BLOCK = 10, 100, 200
LEAST_DRAWS = 4  # of a chain, so that both halves have a variance
_ROUNDING = 1e-8  # smaller spreads, relative to the values, are rounding


def run_chains(
    chains, *, burn_in, n_iter, tasks, n_jobs, after_block=None, enough=None
):
    """Advance chains by `burn_in` dropped and at most `n_iter` kept iterations.

    Parameters
    ----------
    chains : list
        Objects with `advance(n_iter, keep)` and `n_kept`.
    burn_in, n_iter : int
        Iterations of each chain that are dropped, and then kept.
    tasks : callable or None
        Maps the number of blocks to their indices; it may stop early. Chains without
        kept draws then make one iteration that is kept. None: nothing looks between
        blocks, and there is one.
    n_jobs : int or None
        Number of threads.
    after_block : callable, default=None
        Called after each block of the burn-in. It may change the chains.
    enough : callable, default=None
        Called after each block with kept iterations. If it returns True, the blocks
        that follow have no iterations.
    """
    iterations = np.arange(burn_in + n_iter)
    n_blocks = min(max(N_BLOCKS, len(iterations) // LONG_BLOCK), MOST_BLOCKS)
    n_blocks = 1 if tasks is None else max(1, min(n_blocks, len(iterations)))
    blocks = np.array_split(iterations, n_blocks)

    def advance(chain, block):
        dropped = int((block < burn_in).sum())
        if dropped:
            chain.advance(dropped, keep=False)
        if dropped < len(block):
            chain.advance(len(block) - dropped, keep=True)

    finished = False
    for number in (tasks or range)(len(blocks)):
        if finished:  # callbacks see the end of each block
            continue
        in_threads(n_jobs, [(advance, chain, blocks[number]) for chain in chains])
        dropped = (blocks[number] < burn_in).all()
        if after_block is not None and dropped:
            after_block()
        if enough is not None and not dropped:
            finished = enough()
    for chain in chains:
        if not chain.n_kept:
            chain.advance(1, keep=True)


def in_threads(n_jobs, calls):
    """Return the results of calls made in threads, in order.

    The threads share the memory of this process, whatever the backend of joblib: a call
    may change its arguments. In a worker process of joblib, the number of threads is
    limited to its share of the processors.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads. None: that of joblib's configuration, or one.
    calls : list of tuples
        Functions with their arguments.
    """
    calls = [(function, arguments) for function, *arguments in calls]
    if len(calls) == 1:
        return [calls[0][0](*calls[0][1])]
    parallel = Parallel(require="sharedmem", n_jobs=_within_share(n_jobs))
    return parallel(delayed(function)(*arguments) for function, arguments in calls)


def _within_share(n_jobs):
    """Return `n_jobs`, limited to the threads of a joblib worker process."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    if parent_process() is None or not share.isdigit() or n_jobs is None:
        return n_jobs
    return min(n_jobs, int(share)) if n_jobs > 0 else int(share)


# Convergence.


def r_hat(series):
    """Return the rank-normalised split R-hat of chains [1]_.

    Parameters
    ----------
    series : ndarray of shape (..., n_chains, n_draws)
        A quantity of each draw of each chain.

    Returns
    -------
    r_hat : ndarray of shape (...)
        The larger of the R-hats of the normal scores of the values and of their
        distances from the median. Near 1 if all halves have the same distribution; 1 if
        all values are equal up to rounding; infinite if the halves differ but are
        constant, or if a chain has fewer than four draws.

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
    """Return the normal scores of the ranks among all chains."""
    together = values.reshape(*values.shape[:-2], -1)
    ranks = rankdata(together, axis=-1)
    return ndtri((ranks - 0.375) / (together.shape[-1] + 0.25)).reshape(values.shape)


def _r_hat(halves):
    """Return the root of the pooled variance over the mean variance of halves."""
    n_draws = halves.shape[-1]
    varies = np.ptp(halves, axis=-1) > 0.0  # the mean of equal values is rounded
    within = np.where(varies, halves.var(axis=-1, ddof=1), 0.0).mean(axis=-1)
    between = halves.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n_draws - 1) / n_draws + between / within)
    return np.where(between + within > 0, ratio, 1.0)


def warn_unmixed(r_hat, n_chains, advice, *, of="the draws", detail=""):
    """Warn if chains, or the halves of a single chain, disagree.

    Parameters
    ----------
    r_hat : float
        Largest R-hat.
    n_chains : int
        Number of chains.
    advice : str
        What to do, for instance "increase n_iter or burn_in".
    of : str, default="the draws"
        The quantities of the R-hat.
    detail : str, default=""
        A sentence on what this means for the result.
    """
    if r_hat > R_HAT_LIMIT:
        digits = 2 if r_hat > R_HAT_LIMIT + 0.005 else 6  # 1.10 is not more than 1.1
        parts = "chains" if n_chains > 1 else "halves of the chain"
        warn_user(
            f"The {parts} disagree: R-hat of {of} is {r_hat:.{digits}f}, more than "
            f"{R_HAT_LIMIT}. {detail}{' ' if detail else ''}"
            f"{advice[:1].upper()}{advice[1:]}.",
            ConvergenceWarning,
        )
