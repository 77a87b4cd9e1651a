"""Priors of a model's parameters, transformed to the whole real line."""

from contextlib import contextmanager

import numpy as np

from .._base import warn_user

TINY = np.finfo(float).tiny
N_TRIES = 100  # largest number of redraws of a value without a finite log density
# A posterior rises up to an end of the prior if its quantile of level .1 is nearer to
# the end than this share of its median: .15 for an exponential distribution, .2 for a
# uniform one, .32 for a gamma distribution of shape 2, whose density vanishes there.
RISING = 0.25
NEAR = 0.1  # largest prior probability of the half of the draws that is next to the end
STEPS = "inverted_cdf"  # the quantiles that allow weights
NATURAL = (-1.0, 0.0, 1.0)  # ends of variances, shares and correlations
NO_PARAMETERS = (
    "it has none: derive it from sklearn.base.BaseEstimator, and give it an __init__ "
    "that has its parameters as arguments and stores them"
)


class Priors:
    """Independent priors, whose parameters are mapped to the whole real line.

    A parameter with two bounds is mapped by its logit, one with a single bound by the
    logarithm of its distance from the bound.

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
        """Return the parameters at a position on the line, by name."""
        return {
            name: float(from_line(u, *support)[0])
            for name, u, support in zip(
                self.names, position, self._supports, strict=True
            )
        }

    def slopes(self, position):
        """Return derivatives of the parameters by their positions, (n_parameters,)."""
        return np.array(
            [
                np.exp(from_line(u, *support)[1])
                for u, support in zip(position, self._supports, strict=True)
            ]
        )

    def draw(self, count, generator):
        """Return positions (count, n_parameters) of draws with finite log densities.

        Values that round to a bound of their prior are drawn again.

        Raises
        ------
        ValueError
            If `N_TRIES` redraws leave a value without a finite log density.
        """
        columns = [
            self._column(place, count, generator) for place in range(len(self.names))
        ]
        return np.column_stack(columns)

    def _column(self, place, count, generator):
        """Return positions of draws of one parameter."""
        prior, support = self._priors[place], self._supports[place]
        positions, bad = np.empty(count), np.arange(count)
        for _ in range(1 + N_TRIES):
            values = prior.rvs(size=len(bad), random_state=generator)
            with np.errstate(divide="ignore", invalid="ignore"):  # at a bound
                positions[bad] = to_line(values, *support)
            bad = bad[~np.isfinite(self._log_density(place, positions[bad]))]
            if not len(bad):
                self._refuse_subnormal(place, positions)
                return positions
        raise ValueError(
            f"The prior of {self.names[place]!r} gave no finite log density at "
            f"{len(bad)} of {count} draws, in {N_TRIES} tries each: they lie on its "
            f"bounds {float(support[0]):g} and {float(support[1]):g}, or its logpdf "
            "is wrong. Give a prior with less mass next to its bounds."
        )

    def _refuse_subnormal(self, place, positions):
        """Raise ValueError if most values are too small to be exact."""
        sizes = abs(from_line(positions, *self._supports[place])[0])
        typical = float(np.median(sizes))
        if 0.0 < typical < TINY:
            raise ValueError(
                f"The prior of {self.names[place]!r} has draws of about {typical:g}; "
                f"below {TINY:.3g} numbers lose their digits: multiply rows and "
                "priors by a constant."
            )

    def _log_density(self, place, positions):
        """Return the log density on the line of one parameter; -inf at the bounds."""
        low, high = self._supports[place]
        with np.errstate(divide="ignore", invalid="ignore"):
            values, log_slopes = from_line(positions, low, high)
            density = self._priors[place].logpdf(values) + log_slopes
        inside = (low < values) & (values < high) & np.isfinite(density)
        return np.where(inside, density, -np.inf)

    def log_density(self, positions):
        """Return the log density on the line (n_positions,) at rows of positions."""
        total = np.zeros(len(positions))
        for place, column in enumerate(positions.T):
            total += self._log_density(place, column)
        return total

    def warn_of_ends(self, draws, weights=None):
        """Warn if a posterior rises up to an end of the range of its prior.

        Ends that a parameter has by its nature are left out: 0, and -1 or 1.

        Parameters
        ----------
        draws : dict of str to array-like
            Draws of each parameter.
        weights : ndarray or None, default=None
            Weights of the draws; None if they are equal.
        """
        for name, prior in zip(self.names, self._priors, strict=True):
            values = np.ravel(draws[name])
            for end in map(float, prior.support()):
                if not np.isfinite(end) or end in NATURAL:
                    continue
                nearest, median = np.quantile(
                    abs(values - end), [0.1, 0.5], weights=weights, method=STEPS
                )
                low, high = sorted([end, end + np.copysign(median, values[0] - end)])
                share = prior.cdf(high) - prior.cdf(low)
                if nearest < RISING * median and share < NEAR:
                    warn_user(
                        f"The posterior of {name!r} rises up to an end of its prior: "
                        f"half of the draws are between {low:.4g} and {high:.4g}, "
                        f"where the prior has a probability of {share:.2g}. Likely "
                        f"values may be beyond {end:g}: use a wider prior."
                    )


@contextmanager
def naming(values):
    """Add the values of the parameters to errors of a filter."""
    try:
        yield
    except ValueError as error:
        drawn = ", ".join(f"{name}={value:g}" for name, value in values.items())
        raise ValueError(
            f"The filter cannot run at {drawn}, which the distributions allow: {error}"
        ) from error


def check_priors(estimator, priors, argument="priors"):
    """Raise ValueError unless priors are continuous densities of parameters."""
    if not priors:
        raise ValueError(f"{argument} is empty: there is no parameter to learn.")
    known = [key for key in estimator.get_params() if key.startswith("model__")]
    for name, prior in priors.items():
        if name not in known:
            there = f"there are {known}" if known else NO_PARAMETERS
            if estimator.model is None:
                there = "model=None: give the estimator a model, such as LocalLevel()"
            raise ValueError(
                f"{argument} has {name!r}, which is not a parameter of the estimator's "
                f"model; {there}."
            )
        if not all(hasattr(prior, f) for f in ("logpdf", "rvs", "support")):
            got = repr(prior)
            if hasattr(prior, "pmf") and not hasattr(prior, "pdf"):
                own = getattr(prior, "dist", prior)
                name_of = getattr(own, "name", type(own).__name__)
                got = f"{name_of}, which is discrete: fit once with each value"
            raise ValueError(
                f"{argument}[{name!r}] should be a continuous distribution such as "
                f"scipy.stats.norm(0, 1), got {got}."
            )
        try:
            support = prior.support()
        except TypeError as error:
            raise ValueError(
                f"{argument}[{name!r}] should be a distribution with its parameters, "
                f"such as scipy.stats.gamma(2), got {type(prior).__name__} without: "
                f"{error}"
            ) from error
        if np.size(support) != 2 or np.isnan(support).any():
            low, high = (np.asarray(end).tolist() for end in support)
            raise ValueError(
                f"{argument}[{name!r}] should be a distribution of one number, with a "
                f"positive scale, such as scipy.stats.norm(0, 1); its support is from "
                f"{low} to {high}. If the parameter is known, give it to the model."
            )


def to_line(values, low, high):
    """Return positions on the line of values between bounds, possibly infinite."""
    if np.isfinite(low) and np.isfinite(high):
        return np.log(values - low) - np.log(high - values)
    if np.isfinite(low):
        return np.log(values - low)
    return -np.log(high - values) if np.isfinite(high) else np.asarray(values)


def from_line(u, low, high):
    """Return the value at a position on the line, and the log derivative."""
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
