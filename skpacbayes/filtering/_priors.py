"""Priors of a model's parameters, and their places on the whole real line."""

import numpy as np


class Priors:
    """Independent priors, whose parameters are mapped to the whole real line.

    A parameter whose prior lies between two numbers is mapped to the line by its logit,
    one with a bound by the logarithm of its distance from it.

    Parameters
    ----------
    priors : dict of str to distribution
        Continuous distributions of `scipy.stats`.
    """

    def __init__(self, priors):
        self.names = list(priors)
        self._priors = list(priors.values())
        self._supports = [prior.support() for prior in self._priors]

    def values(self, position):
        """Parameters at a position on the line, by name."""
        return {
            name: float(from_line(u, *support)[0])
            for name, u, support in zip(
                self.names, position, self._supports, strict=True
            )
        }

    def draw(self, count, generator):
        """Positions of draws, (count, n_parameters)."""
        columns = [
            to_line(prior.rvs(size=count, random_state=generator), *support)
            for prior, support in zip(self._priors, self._supports, strict=True)
        ]
        return np.column_stack(columns)

    def log_density(self, positions):
        """Log density on the line, (n_positions,), at each row of positions."""
        total = np.zeros(len(positions))
        for u, (low, high), prior in zip(
            positions.T, self._supports, self._priors, strict=True
        ):
            values, log_slopes = from_line(u, low, high)
            total += prior.logpdf(values) + log_slopes
        return np.where(np.isfinite(total), total, -np.inf)


def check_priors(estimator, priors):
    """Refuse priors of what is no parameter of the model, and what is no density."""
    if not priors:
        raise ValueError("priors is empty: there is no parameter to learn.")
    known = [key for key in estimator.get_params() if key.startswith("model__")]
    for name, prior in priors.items():
        if name not in known:
            there = f"there are {known}" if known else "the model has none"
            raise ValueError(
                f"priors has {name!r}, which is no parameter of the estimator's model; "
                f"{there}."
            )
        if not all(hasattr(prior, f) for f in ("logpdf", "rvs", "support")):
            raise ValueError(
                f"The prior of {name!r} should be a continuous distribution such "
                f"as scipy.stats.norm(0, 1), got {prior!r}."
            )
        try:
            prior.support()
        except TypeError as error:
            raise ValueError(
                f"The prior of {name!r} should be a distribution with its parameters, "
                f"such as scipy.stats.gamma(2), got {type(prior).__name__} without: "
                f"{error}"
            ) from error


def to_line(values, low, high):
    """Positions of values between two bounds, which may be infinite."""
    if np.isfinite(low) and np.isfinite(high):
        return np.log(values - low) - np.log(high - values)
    if np.isfinite(low):
        return np.log(values - low)
    return -np.log(high - values) if np.isfinite(high) else np.asarray(values)


def from_line(u, low, high):
    """Value at a position of the line, and the log derivative of the map."""
    if np.isfinite(low) and np.isfinite(high):
        share = 1.0 / (1.0 + np.exp(-np.clip(u, -700, 700)))
        log_slope = -np.logaddexp(0.0, -u) - np.logaddexp(0.0, u)
        return low + (high - low) * share, log_slope + np.log(high - low)
    with np.errstate(over="ignore"):
        if np.isfinite(low):
            return low + np.exp(u), u
        if np.isfinite(high):
            return high - np.exp(-u), -u
    return u, np.zeros_like(u)
