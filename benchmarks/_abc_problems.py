"""Simulators of the benchmark of ABC, most of them with an exact posterior."""

import numpy as np
from scipy.stats import chi2, norm

NOISE = 0.5  # conjugate problem: theta ~ N(0, 1), first summaries N(theta, NOISE^2)
SIZE = 20  # observations behind a summary of the location-scale problem
OCTILES = np.arange(1, 8) / 8


def conjugate_prior(n, generator):
    return generator.normal(size=(n, 1))


def conjugate(n_summaries):
    """One summary that is the parameter and noise; the others are noise."""

    def simulator(theta, generator):
        X = generator.normal(size=(len(theta), n_summaries))
        X[:, :1] = theta + NOISE * X[:, :1]
        return X

    return simulator


def conjugate_density(s, grid):
    shrink = 1 / (1 + NOISE**2)
    return norm.pdf(grid[:, 0], shrink * s[0], np.sqrt(shrink) * NOISE)


def location_scale_prior(n, generator):
    """Mean N(0, 1), log of the deviation N(0, 1/4)."""
    return generator.normal(size=(n, 2)) * [1.0, 0.5]


def location_scale(theta, generator):
    noise = generator.normal(size=(len(theta), SIZE))
    samples = theta[:, :1] + np.exp(theta[:, 1:]) * noise
    return np.column_stack([samples.mean(axis=1), samples.std(axis=1)])


def location_scale_density(s, grid):
    variance = np.exp(2 * grid[:, 1])
    log_density = (
        norm.logpdf(grid[:, 0])
        + norm.logpdf(grid[:, 1], scale=0.5)
        + norm.logpdf(s[0], grid[:, 0], np.sqrt(variance / SIZE))
        + chi2.logpdf(SIZE * s[1] ** 2 / variance, SIZE - 1)
        - np.log(variance)
    )
    density = np.exp(log_density - log_density.max())
    cell = np.ptp(grid[:, 0]) * np.ptp(grid[:, 1]) / len(grid)
    return density / (density.sum() * cell)


def plane():
    axes = np.linspace(-4, 4, 81), np.linspace(-2.2, 2.2, 56)
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


LINE = np.linspace(-4.5, 4.5, 151)[:, None]
PROBLEMS = {  # name: prior, simulator, density, grid, sizes of the table
    "location-scale, m = 2": (
        location_scale_prior,
        location_scale,
        location_scale_density,
        plane(),
        (10_000, 100_000),
    ),
    "conjugate, p = 1, m = 2": (
        conjugate_prior,
        conjugate(2),
        conjugate_density,
        LINE,
        (10_000, 100_000),
    ),
    "conjugate, p = 1, m = 5": (
        conjugate_prior,
        conjugate(5),
        conjugate_density,
        LINE,
        (10_000, 100_000),
    ),
}


def g_and_k_prior(n, generator):
    """Location and scale U(0, 5), g U(-5, 5), k U(0, 1)."""
    return generator.uniform([0, 0, -5, 0], [5, 5, 5, 1], size=(n, 4))


def g_and_k(theta, generator):
    """Octiles of 200 draws."""
    a, b, g, k = theta.T[:, :, None]
    z = generator.normal(size=(len(theta), 200))
    samples = a + b * (1 + 0.8 * np.tanh(g * z / 2)) * (1 + z * z) ** k * z
    return np.quantile(samples, OCTILES, axis=1).T


def two_parameters(n, generator):
    return generator.normal(size=(n, 2))


def noisy(n_summaries):
    def simulator(theta, generator):
        X = generator.normal(size=(len(theta), n_summaries))
        X[:, :2] = theta + NOISE * X[:, :2]
        return X

    return simulator
