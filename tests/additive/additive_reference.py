"""Exact posteriors of small additive models, by enumeration, in NumPy's words."""

import itertools
import math

import numpy as np
from scipy.special import gammaln, logsumexp

from skpacbayes.additive._basis import Dictionary, Orthonormal, weighted_moments
from skpacbayes.additive._chain import Chain, Prior, WeightedRows

N_BATCHES = 40  # of a chain, whose means give the error of its mean


def z_score(series, expected):
    """How far the mean of a chain is from what it should be."""
    batches = np.asarray(series, dtype=float)
    batches = batches[: len(batches) // N_BATCHES * N_BATCHES]
    means = batches.reshape(N_BATCHES, -1).mean(axis=1)
    return (means.mean() - expected) / (means.std(ddof=1) / math.sqrt(N_BATCHES))


def small_problem(
    n=40, p=3, max_order=2, noise=0.5, seed=0, correlation=0.0, damped=True
):
    """Values of the functions, rows of G, and targets in units of the noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    X[:, 1:] = (1 - correlation) * X[:, 1:] + correlation * X[:, :-1]
    y = 0.5 * np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + noise * rng.normal(size=n)
    y = (y - y.mean()) / noise
    known = Dictionary("legendre", max_order, X.min(axis=0), X.max(axis=0))
    values = known(X)
    functions = Orthonormal(*weighted_moments(values, np.ones(n)))
    if damped:
        functions.damped()
    values = functions(values)
    return values, WeightedRows(values, np.ones(n), functions.orders), y


def make_chain(problem, prior, seed=0, kind=Chain):
    _, gram, y = problem
    return kind(gram.reader(), gram.against(y), prior, np.random.default_rng(seed))


def every_model(p, max_order):
    return list(itertools.product(range(max_order + 1), repeat=p))


def columns_of(model, max_order):
    return [j * max_order + a for j, order in enumerate(model) for a in range(order)]


def log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def log_weight(problem, model, beta, variance, freedom=0.0):
    """Log of prior times marginal likelihood of y, noise of variance 1.

    By the density of y: N(0, I + variance A A'), which shares no algebra with the
    kernel. With `freedom` the noise variance, by which both are multiplied, is
    integrated out: Student's t.
    """
    values, _, y = problem
    p, max_order, n = values.shape
    design = values.reshape(-1, n)[columns_of(model, max_order)]
    covariance = np.eye(n) + variance * design.T @ design
    size, total = np.count_nonzero(model), sum(model)
    log_prior = total * np.log(beta) - log_binomial(p, size)
    half_log = np.linalg.slogdet(covariance)[1] / 2
    square = y @ np.linalg.solve(covariance, y)
    term = freedom * np.log(square) if freedom else square
    return log_prior - half_log - term / 2


def exact_posterior(problem, beta, variance):
    """Probability of each model."""
    p, max_order, _ = problem[0].shape
    models = every_model(p, max_order)
    logs = np.array([log_weight(problem, m, beta, variance) for m in models])
    return dict(zip(models, np.exp(logs - logsumexp(logs)), strict=True))


def visited(chain, p, max_order):
    """Share of the recorded moves at each model."""
    shares = dict.fromkeys(every_model(p, max_order), 0.0)
    path, columns, *_ = chain.recorded()
    for count, model in zip(np.bincount(path), columns, strict=True):
        orders = np.bincount(model[model >= 0] // max_order, minlength=p)
        shares[tuple(orders)] += count / len(path)
    return shares


def total_variation(shares, exact):
    return sum(abs(shares[model] - exact[model]) for model in exact) / 2


def run(chain, n_steps):
    chain.expect(n_steps)
    chain.advance(n_steps)
    return chain


def usual_prior(problem, beta=0.5, variance=2.0, most=None):
    p = len(problem[0])
    return Prior.of(problem[1].ranks, beta, most or p, variance=variance)
