"""Chains: R-hat against its definition, the loop in blocks, threads, the warning."""

import warnings

import joblib
import numpy as np
import pytest
from scipy.stats import norm, rankdata
from sklearn.exceptions import ConvergenceWarning

from skpacbayes._chains import (
    LONG_BLOCK,
    MOST_BLOCKS,
    N_BLOCKS,
    R_HAT_LIMIT,
    in_threads,
    r_hat,
    run_chains,
    warn_unmixed,
)


def by_definition(series):
    """Equations 1 to 4 and 14 of Vehtari et al. (2021), one series, plain loops."""
    half = series.shape[1] // 2
    halves = np.array([part for row in series for part in (row[:half], row[-half:])])

    def basic(values):
        within = np.mean([np.var(row, ddof=1) for row in values])
        between = half * np.var([np.mean(row) for row in values], ddof=1)
        return np.sqrt(((half - 1) / half * within + between / half) / within)

    def scores(values):
        ranks = rankdata(values.ravel()).reshape(values.shape)
        return norm.ppf((ranks - 3 / 8) / (values.size + 1 / 4))

    folded = np.abs(halves - np.median(halves))
    return max(basic(scores(halves)), basic(scores(folded)))


@pytest.mark.parametrize("shape", [(1, 4), (2, 5), (4, 100), (3, 501)])
@pytest.mark.parametrize("gap", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("heavy", [False, True])
def test_r_hat_is_that_of_the_paper(shape, gap, heavy):
    rng = np.random.default_rng(0)
    series = rng.standard_cauchy(shape) if heavy else rng.normal(size=shape)
    series += gap * np.arange(shape[0])[:, None]
    assert r_hat(series) == pytest.approx(by_definition(series), rel=1e-8)
    assert r_hat(2.0**30 * series) == r_hat(series)


def test_r_hat_sees_chains_of_different_spread():
    """Same medians: only the folded values tell them apart."""
    rng = np.random.default_rng(1)
    series = rng.normal(size=(2, 1000)) * [[1.0], [9.0]]
    assert r_hat(series) > 1.3


def test_r_hat_of_many_series_is_that_of_each():
    series = np.random.default_rng(0).normal(size=(2, 3, 4, 11))
    together = r_hat(series)
    assert together.shape == (2, 3)
    for index in np.ndindex(2, 3):
        assert together[index] == r_hat(series[index])


def test_limits_of_r_hat():
    for n_draws in range(4, 100):  # whatever the rounding of the mean of equal values
        constant = np.repeat([[0.1], [0.7], [0.3]], n_draws, axis=1)
        assert r_hat(constant) == r_hat(constant[:2]) == np.inf
    assert r_hat(np.zeros((2, 10))) == 1.0
    assert r_hat(np.full((2, 10), 0.1)) == 1.0
    rounded = np.repeat([[123.4], [123.4 * (1 + 4e-16)]], 10, axis=1)
    assert rounded[0, 0] != rounded[1, 0]
    assert r_hat(rounded) == 1.0
    assert r_hat(np.zeros((2, 3))) == np.inf
    assert r_hat(np.arange(100.0)[None]) > 1.5  # one chain that wanders


class Counts:
    """A chain that counts its iterations."""

    def __init__(self):
        self.dropped, self.n_kept, self.calls = 0, 0, []

    def advance(self, n_iter, keep):
        self.calls.append((n_iter, keep))
        if keep:
            self.n_kept += n_iter
        else:
            assert not self.n_kept
            self.dropped += n_iter


@pytest.mark.parametrize("burn_in", [0, 3, 50])
@pytest.mark.parametrize("n_iter", [1, 7, 200, 9950, 30_000])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_burn_in_is_dropped_and_n_iter_is_kept(burn_in, n_iter, n_jobs):
    chains = [Counts(), Counts()]
    run_chains(chains, burn_in=burn_in, n_iter=n_iter, tasks=range, n_jobs=n_jobs)
    for chain in chains:
        assert (chain.dropped, chain.n_kept) == (burn_in, n_iter)
        few = max(N_BLOCKS, min((burn_in + n_iter) // LONG_BLOCK, MOST_BLOCKS))
        assert len(chain.calls) <= few + 1
        assert n_iter <= 200 or len(chain.calls) >= few > N_BLOCKS


@pytest.mark.parametrize(("burn_in", "n_blocks"), [(0, 0), (9, 0), (10, 1), (59, 5)])
def test_what_is_done_after_a_block_is_done_within_the_burn_in(burn_in, n_blocks):
    """Never once a draw is kept: it could not be one of the same chain."""
    chains, dropped = [Counts(), Counts()], []

    def after_block():
        assert not any(chain.n_kept for chain in chains)
        dropped.append([chain.dropped for chain in chains])

    run_chains(
        chains,
        burn_in=burn_in,
        n_iter=100 - burn_in,
        tasks=range,
        n_jobs=2,
        after_block=after_block,
    )
    assert dropped == [[10 * n, 10 * n] for n in range(1, 1 + n_blocks)]


@pytest.mark.parametrize(("burn_in", "least", "kept"), [(20, 30, 30), (25, 1, 5)])
def test_a_run_ends_after_the_block_that_is_enough(burn_in, least, kept):
    """The question is asked after each block that has kept draws, and no other."""
    chains, asked = [Counts(), Counts()], []

    def enough():
        asked.append(chains[1].n_kept)
        return asked[-1] >= least

    run_chains(
        chains,
        burn_in=burn_in,
        n_iter=100 - burn_in,
        tasks=range,
        n_jobs=2,
        enough=enough,
    )
    assert [chain.n_kept for chain in chains] == [kept, kept]
    assert asked == list(range(kept % 10 or 10, kept + 1, 10))


def test_a_run_that_is_stopped_has_one_draw():
    chain = Counts()
    run_chains([chain], burn_in=50, n_iter=50, tasks=lambda n: range(1), n_jobs=None)
    assert (chain.dropped, chain.n_kept) == (10, 1)


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_threads_share_memory_under_every_backend(backend):
    chains = [Counts() for _ in range(3)]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        run_chains(chains, burn_in=5, n_iter=20, tasks=range, n_jobs=2)
        assert in_threads(2, [(pow, 2, k) for k in range(5)]) == [1, 2, 4, 8, 16]
    assert [chain.n_kept for chain in chains] == [20, 20, 20]


def test_threads_in_a_worker_process_are_its_share(monkeypatch):
    from skpacbayes import _chains

    assert _chains._within_share(8) == 8
    monkeypatch.setattr(_chains, "parent_process", lambda: object())
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert [_chains._within_share(n) for n in (None, 1, 2, 8, -1)] == [None, 1, 2, 3, 3]


def test_the_one_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unmixed(R_HAT_LIMIT, 2, "increase n_iter")
    with pytest.warns(ConvergenceWarning) as caught:
        warn_unmixed(1.234, 2, "increase n_iter", of="the number of clusters")
    (warning,) = caught
    assert str(warning.message) == (
        "The chains disagree: R-hat of the number of clusters is 1.23, more than 1.1. "
        "Increase n_iter."
    )
    assert warning.filename == __file__
    with pytest.warns(ConvergenceWarning, match=r"is 1\.1004\d*, more than 1\.1\. "):
        warn_unmixed(1.1004, 3, "increase n_iter")
    with pytest.warns(ConvergenceWarning, match="^The halves of the chain disagree: "):
        warn_unmixed(1.2, 1, "increase n_iter")
