"""Tasks for simulation-based inference, written from their published definitions.

Five of those of J.-M. Lueckmann, J. Boelts, D. S. Greenberg, P. J. Gonçalves and
J. H. Macke, "Benchmarking simulation-based inference", AISTATS 2021, and two more.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp


@dataclass(frozen=True)
class Task:
    """A prior, a simulator, the prior's support, and the posterior where it is known.

    `prior(n, rng)` and `simulator(theta, rng)` are those of `simulate`; `bounds` is
    (n_parameters, 2) or None; `exact(x, n, rng)` draws from the posterior given x.
    """

    prior: callable
    simulator: callable
    bounds: np.ndarray | None = None
    exact: callable = None


def uniform(low, high, width):
    bounds = np.tile([low, high], (width, 1)).astype(float)
    return lambda n, rng: rng.uniform(low, high, size=(n, width)), bounds


# Two moons: a crescent, mirrored.


def two_moons(theta, rng):
    angle = rng.uniform(-np.pi / 2, np.pi / 2, size=len(theta))
    radius = rng.normal(0.1, 0.01, size=len(theta))
    crescent = np.column_stack([radius * np.cos(angle) + 0.25, radius * np.sin(angle)])
    return crescent + moon_center(theta)


def moon_center(theta):
    a, b = theta.T
    return np.column_stack([-np.abs(a + b), b - a]) / np.sqrt(2)


def two_moons_exact(x, n, rng):
    """Draw the crescent and solve for theta, both signs of the absolute value."""
    draws = np.empty((0, 2))
    while len(draws) < n:
        noise = two_moons(np.zeros((4 * n, 2)), rng)
        center = x - noise
        sums = -center[:, 0] * np.sqrt(2) * rng.choice([-1, 1], size=4 * n)
        gaps = center[:, 1] * np.sqrt(2)
        theta = np.column_stack([sums - gaps, sums + gaps]) / 2
        kept = (center[:, 0] <= 0) & (np.abs(theta) <= 1).all(axis=1)
        draws = np.concatenate([draws, theta[kept]])
    return draws[:n]


# SLCP: a simple likelihood, a complex posterior. Four points in the plane.


def slcp(theta, rng):
    mean, (s1, s2) = theta[:, :2], np.square(theta[:, 2:4]).T
    rho = np.tanh(theta[:, 4])
    z = rng.normal(size=(len(theta), 4, 2))
    first = mean[:, None, 0] + s1[:, None] * z[..., 0]
    second = rho[:, None] * z[..., 0] + np.sqrt(1 - rho**2)[:, None] * z[..., 1]
    second = mean[:, None, 1] + s2[:, None] * second
    return np.stack([first, second], axis=-1).reshape(len(theta), 8)


def slcp_log_density(theta, x):
    points = x.reshape(4, 2)
    s1, s2 = np.square(theta[:, 2:4]).T + 1e-300
    rho = np.tanh(theta[:, 4])
    rest = 1 - rho**2
    a = (points[:, 0] - theta[:, :1]) / s1[:, None]
    b = (points[:, 1] - theta[:, 1:2]) / s2[:, None]
    squares = (a * a - 2 * rho[:, None] * a * b + b * b) / rest[:, None]
    log_density = -0.5 * squares.sum(axis=1)
    log_density -= 4 * (np.log(s1) + np.log(s2) + 0.5 * np.log(rest))
    return np.where((np.abs(theta) <= 3).all(axis=1), log_density, -np.inf)


def slcp_exact(x, n, rng, n_chains=2000, steps=400):
    """Walk from points of the prior that were kept by their likelihood."""
    start = rng.uniform(-3, 3, size=(1_000_000, 5))
    log_weights = slcp_log_density(start, x)
    weights = np.exp(log_weights - logsumexp(log_weights))
    theta = start[rng.choice(len(start), n_chains, p=weights)]
    current = slcp_log_density(theta, x)
    for step in range(steps):
        partner = theta[rng.permutation(n_chains)] - theta[rng.permutation(n_chains)]
        scale = 1.0 if step % 10 == 0 else rng.choice([0.1, 0.3, 0.6])
        new = theta + scale * partner + rng.normal(0, 0.01, size=theta.shape)
        flips = rng.random((n_chains, 2)) < 0.5
        new[:, 2:4] *= np.where(flips, -1, 1)
        proposed = slcp_log_density(new, x)
        accept = np.log(rng.random(n_chains)) < proposed - current
        theta = np.where(accept[:, None], new, theta)
        current = np.where(accept, proposed, current)
    return theta[rng.choice(n_chains, n, replace=n > n_chains)]


# Gaussian linear, ten dimensions.


def gaussian_prior(n, rng):
    return rng.normal(0, np.sqrt(0.1), size=(n, 10))


def gaussian_linear(theta, rng):
    return theta + rng.normal(0, np.sqrt(0.1), size=theta.shape)


def gaussian_linear_exact(x, n, rng):
    return x / 2 + rng.normal(0, np.sqrt(0.05), size=(n, 10))


# Gaussian mixture: one wide and one narrow component about the same mean.


def gaussian_mixture(theta, rng):
    scale = np.where(rng.random(len(theta)) < 0.5, 1.0, 0.1)
    return theta + scale[:, None] * rng.normal(size=theta.shape)


def gaussian_mixture_exact(x, n, rng):
    draws = np.empty((0, 2))
    while len(draws) < n:
        theta = gaussian_mixture(np.tile(x, (2 * n, 1)), rng)
        draws = np.concatenate([draws, theta[(np.abs(theta) <= 10).all(axis=1)]])
    return draws[:n]


# SIR: infected among 1,000 tested, on ten days.

DAYS = np.linspace(0, 160, 11)[1:]
POPULATION = 1_000_000.0


def sir_prior(n, rng):
    return np.exp(rng.normal(np.log([0.4, 0.125]), [0.5, 0.2], size=(n, 2)))


def sir_shares(theta, steps=4):
    """Shares of infected on the ten days, by Runge-Kutta."""
    infection, recovery = theta.T
    state = np.array([np.full(len(theta), POPULATION - 1), np.ones(len(theta))])

    def slope(state):
        new = infection * state[0] * state[1] / POPULATION
        return np.array([-new, new - recovery * state[1]])

    h, shares = 1.0 / steps, []
    for step in range(int(DAYS[-1]) * steps):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if (step + 1) % (16 * steps) == 0:
            shares.append(state[1] / POPULATION)
    return np.clip(np.column_stack(shares), 0, 1)


def sir(theta, rng):
    return rng.binomial(1000, sir_shares(theta)).astype(float)


def sir_exact(x, n, rng):
    """Draw from a fine grid of the prior's range."""
    logs = [
        np.linspace(np.log(0.4) - 2.0, np.log(0.4) + 2.0, 400),
        np.linspace(np.log(0.125) - 1.0, np.log(0.125) + 1.0, 200),
    ]
    grid = np.stack(np.meshgrid(*logs), axis=-1).reshape(-1, 2)
    shares = np.clip(sir_shares(np.exp(grid)), 1e-12, 1 - 1e-12)
    log_density = (x * np.log(shares) + (1000 - x) * np.log1p(-shares)).sum(axis=1)
    log_density -= 0.5 * np.square((grid - np.log([0.4, 0.125])) / [0.5, 0.2]).sum(
        axis=1
    )
    weights = np.exp(log_density - logsumexp(log_density))
    cells = [axis[1] - axis[0] for axis in logs]
    drawn = grid[rng.choice(len(grid), n, p=weights)]
    return np.exp(drawn + rng.uniform(-0.5, 0.5, size=(n, 2)) * cells)


# Bernoulli GLM: ten parameters of a filter, sufficient statistics.

STIMULUS = np.random.default_rng(42).normal(size=100)
DESIGN = np.column_stack(
    [np.ones(100)] + [np.r_[np.zeros(lag), STIMULUS[: 100 - lag]] for lag in range(9)]
)
_F = np.eye(9) + sum(
    np.diag(np.full(9 - lag, weight), -lag) for lag, weight in ((1, -2.0), (2, 1.0))
)
_F += np.diag(np.sqrt(np.arange(9) / 9))
FACTOR = np.linalg.cholesky(np.linalg.inv(_F.T @ _F))


def glm_prior(n, rng):
    return np.column_stack(
        [rng.normal(0, np.sqrt(2), size=n), rng.normal(size=(n, 9)) @ FACTOR.T]
    )


def glm(theta, rng):
    spikes = rng.random((len(theta), 100)) < expit(theta @ DESIGN.T)
    return spikes @ DESIGN


TWO_MOONS = uniform(-1, 1, 2)
SLCP = uniform(-3, 3, 5)
MIXTURE = uniform(-10, 10, 2)
TASKS = {
    "two moons": Task(TWO_MOONS[0], two_moons, TWO_MOONS[1], two_moons_exact),
    "SIR": Task(sir_prior, sir, np.array([[0, np.inf]] * 2), sir_exact),
    "Gaussian linear": Task(
        gaussian_prior, gaussian_linear, None, gaussian_linear_exact
    ),
    "SLCP": Task(SLCP[0], slcp, SLCP[1], slcp_exact),
    "Gaussian mixture": Task(
        MIXTURE[0], gaussian_mixture, MIXTURE[1], gaussian_mixture_exact
    ),
    "Bernoulli GLM": Task(glm_prior, glm),
}
