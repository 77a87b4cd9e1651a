"""The methods of online variational inference, step by step, from the formulas.

Plain NumPy and SciPy, no closed form where a numerical solution will do: expectations
under the posterior by their definitions, implicit steps by `brentq`.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


def loss_of(loss, y, a):
    return {
        "squared_error": lambda: (y - a) ** 2,
        "absolute_error": lambda: abs(y - a),
        "hinge": lambda: max(0.0, 1 - y * a),
        "log_loss": lambda: np.logaddexp(0, -y * a),
    }[loss]()


def slopes(loss, y, a, v):
    """Derivatives in a and v of E loss(y, f), f ~ N(a, v)."""
    sd = math.sqrt(v)
    if loss == "squared_error":
        return -2 * (y - a), 1.0
    if loss == "log_loss":
        p = expit(-y * (a + sd * NODES))
        return -y * (NODE_WEIGHTS @ p), 0.5 * NODE_WEIGHTS @ (p * (1 - p))
    if loss == "hinge":
        if v == 0:
            return -y * float(y * a < 1), 0.0
        u = (1 - y * a) / sd
        return -y * norm.cdf(u), norm.pdf(u) / (2 * sd)
    if v == 0:
        return -np.sign(y - a), 0.0
    u = (y - a) / sd
    return -(2 * norm.cdf(u) - 1), norm.pdf(u) / sd


def standardised(X, weights, clip):
    """Each row in units of the weighted moments of the rows up to it."""
    Z = np.zeros_like(X)
    for t in range(len(X)):
        if weights[t] > 0:
            mean = np.average(X[: t + 1], axis=0, weights=weights[: t + 1])
            var = np.average((X[: t + 1] - mean) ** 2, axis=0, weights=weights[: t + 1])
            constant = np.ptp(X[: t + 1][weights[: t + 1] > 0], axis=0) == 0
            scale = np.where(constant, np.inf, np.sqrt(var))
            Z[t] = np.clip((X[t] - mean) / scale, -clip, clip)
    return Z


def kept_shares(X, weights):
    """Share of the evidence on each feature that its unit, where it grows, leaves.

    A unit is the variance of a feature when last it had grown by the root of five.
    """
    shares, unit = np.ones_like(X), np.zeros(X.shape[1])
    for t in range(len(X)):
        if weights[t] > 0:
            mean = np.average(X[: t + 1], axis=0, weights=weights[: t + 1])
            var = np.average((X[: t + 1] - mean) ** 2, axis=0, weights=weights[: t + 1])
            var[np.ptp(X[: t + 1][weights[: t + 1] > 0], axis=0) == 0] = 0.0
            for j in np.flatnonzero(var > math.sqrt(5) * unit):
                shares[t, j] = unit[j] / var[j] if unit[j] > 0 else 1.0
                unit[j] = var[j]
    return shares


class Reference:
    """One linear model on rows Z; labels are -1 and 1.

    Keeps the posterior as mean m, precisions P (full: a matrix) for NGVI, and mean and
    standard deviation sigma for the others.
    """

    def __init__(
        self,
        method,
        loss,
        n_parameters,
        *,
        full=False,
        inverse_temperature="auto",
        learning_rate="auto",
        prior_scale=1.0,
        forgetting=0.0,
        intercept=False,
        mean_bound=math.inf,
        scale_bound=math.inf,
    ):
        self.method, self.loss, self.s = method, loss, prior_scale
        self.rho, self.eta = forgetting, learning_rate
        self.bounds = mean_bound, scale_bound
        regression = loss in ("squared_error", "absolute_error")
        natural = method.startswith("ngvi")
        self.flat = intercept and regression and natural
        self.estimate = inverse_temperature == "auto" and regression and natural
        self.beta = 1.0 if inverse_temperature == "auto" else inverse_temperature
        self.m = np.zeros(n_parameters)
        self.prior = np.full(n_parameters, prior_scale**-2)
        self.full = full
        self.sigma = np.full(n_parameters, min(prior_scale, scale_bound))
        self.P = np.diag(self.prior) if full else self.sigma**-2.0
        if self.flat:
            self.prior[0] = 0.0
        self.G = np.zeros((2, n_parameters))
        self.t = self.squares = self.residuals = self.count = self.loss_sum = 0.0

    def learn(self, z, y, w=1.0, kept=1.0):
        """Predict, suffer and learn a row; return the prediction.

        kept : share of the evidence on each feature that counts on.
        """
        a = self.m @ z
        if w == 0:
            return a
        if self.method == "ngvi" and not self.full:
            prior = self.prior[-np.size(kept) :]
            self.P[-np.size(kept) :] = prior + kept * (self.P[-np.size(kept) :] - prior)
        self.t += 1
        if self.method == "ngvi" and self.loss == "log_loss":  # of the probability
            a /= math.sqrt(1 + math.pi / 8 * (z**2 @ self.variance()))
        self.loss_sum += w * loss_of(self.loss, y, a)
        if self.flat and self.t == 1:
            self.first(z, y, w)
        elif self.method == "ngvi":
            self.implicit(z, y, w)
        elif self.method == "ngvi_explicit":
            self.explicit(z, y, w)
        else:
            self.descend(z, y, w)
        return a

    def first(self, z, y, w):
        """Posterior after one row under a flat prior of the intercept."""
        unit = w if self.estimate else 2 * self.beta * w
        self.m[0] = y
        if self.full:  # y - z'theta has precision `unit`
            self.P[0, 0] = 0.0
            self.P += unit * np.outer(z, z)
        else:
            self.P[0] = unit

    def scales(self):
        """Unit of y and inverse temperature in it."""
        if not self.estimate:
            return 1.0, self.beta
        if self.loss == "squared_error":
            return 1.0, 0.5
        return self.residuals / self.count, 1.0

    def observe(self, r, v, w):
        squared = self.loss == "squared_error"
        scaled = r**2 / (1 + w * v) if squared else abs(r)
        self.residuals = (1 - self.rho) * self.residuals + w * scaled
        self.count = (1 - self.rho) * self.count + w

    def implicit(self, z, y, w):
        if self.rho > 0 and self.full:
            start = int(self.flat)
            n = len(z) - start
            # all return while the evidence falls to exp(-8): several a row, if need be
            n_back = min(1 + int(-n * math.log1p(-self.rho) / 8), n)
            P = (1 - self.rho) * self.P
            for k in range(n_back):
                j = start + (int(self.t) * n_back + k) % n
                P[j, j] += self.rho * n / n_back * self.prior[j]
            target = (1 - self.rho) * self.P @ self.m
            self.m, self.P = np.linalg.solve(P, target), P
        elif self.rho > 0:
            Q = (1 - self.rho) * self.P + self.rho * self.prior
            self.m, self.P = (1 - self.rho) * self.P * self.m / Q, Q
        Vz = np.linalg.solve(self.P, z) if self.full else z / self.P
        v, a = z @ Vz, self.m @ z
        self.observe(y - a, v, w)
        if v == 0:
            return
        unit, beta = self.scales()
        a, y = a / unit, y / unit

        def excess(score):
            return score - a + beta * w * v * slopes(self.loss, y, score, v)[0]

        reach = beta * w * v * 2 * (1 + abs(y - a))
        score = brentq(excess, a - reach, a + reach, xtol=1e-15, rtol=1e-15)
        da = slopes(self.loss, y, score, v)[0]
        dv = slopes(self.loss, y, a, v)[1]
        self.m = self.m - unit * beta * w * da * Vz
        curve = 2 * beta * w * dv
        self.P = self.P + curve * (np.outer(z, z) if self.full else z**2)
        self.project()

    def explicit(self, z, y, w):
        """Equation (8), by its closed form in natural parameters."""
        v, a = z**2 @ (1 / self.P), self.m @ z
        self.observe(y - a, v, w)
        unit, beta = self.scales()
        da, dv = slopes(self.loss, y / unit, a / unit, v)
        g_m, g_var = unit * w * da * z, w * dv * z**2
        P = (1 - self.rho) * self.P + self.rho * self.prior + 2 * beta * g_var
        self.m = self.m - (beta * g_m + self.rho * self.prior * self.m) / P
        self.P = P
        self.project()

    def descend(self, z, y, w):
        v = 0.0 if self.method == "oga" else z**2 @ self.sigma**2
        da, dv = slopes(self.loss, y, self.m @ z, v)
        g_m, g_s = w * da * z, w * 2 * dv * self.sigma * z**2
        if self.method == "oga":
            g_s = np.zeros_like(g_s)
        self.squares += g_m @ g_m + g_s @ g_s
        eta, s = self.eta, self.s
        if eta == "invsqrt":
            eta = self.t**-0.5
        elif eta == "auto":
            eta = s / math.sqrt(self.squares) if self.squares else 0.0
        if self.method == "sva":
            if self.eta == "auto":
                eta /= s**2
            self.G += [g_m, g_s]
            x = eta * s * self.G[1] / 2
            self.m = -eta * s**2 * self.G[0]
            self.sigma = s * (np.sqrt(1 + x**2) - x)
        elif self.method == "svb":
            steps = eta * np.ones_like(z)
            if not isinstance(self.eta, str):
                steps = eta * self.sigma**2
            x = steps * g_s / 2
            self.m = self.m - steps * g_m
            self.sigma = np.sqrt(self.sigma**2 + x**2) - x
        else:
            self.m = self.m - eta * g_m
            self.sigma = np.maximum(0, self.sigma - eta * g_s)
        self.project()

    def project(self):
        mean_bound, scale_bound = self.bounds
        if not self.full:
            self.m = np.clip(self.m, -mean_bound, mean_bound)
        if self.method.startswith("ngvi"):
            if not self.full:
                self.P = np.maximum(self.P, scale_bound**-2.0)
        else:
            self.sigma = np.clip(self.sigma, 0, scale_bound)

    def variance(self):
        if self.full:
            return np.diag(np.linalg.inv(self.P))
        return 1 / self.P if self.method.startswith("ngvi") else self.sigma**2


def relu_moments(mu, var):
    """Mean and mean square of relu(N(mu, var))."""
    if var == 0:
        return max(mu, 0.0), max(mu, 0.0) ** 2
    sd = math.sqrt(var)
    u = mu / sd
    first = mu * norm.cdf(u) + sd * norm.pdf(u)
    return first, (mu**2 + var) * norm.cdf(u) + mu * sd * norm.pdf(u)


def network_moments(z, hidden, output, certain=False):
    """Mean and variance of the network's output; (mean, variance) of each weight."""
    W, S = hidden
    w, s = output
    if certain:
        S, s = 0 * S, 0 * s
    units = [relu_moments(W[k] @ z, S[k] @ z**2) for k in range(len(W))]
    first, second = np.array(units).T
    mean = w[:-1] @ first + w[-1]
    variance = (w[:-1] ** 2 + s[:-1]) @ second - (w[:-1] * first) @ (w[:-1] * first)
    return mean, variance + s[-1]
