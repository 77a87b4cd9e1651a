"""From parameters with bounds to the whole line, where draws are smoothed, and back."""

import numpy as np
from scipy.special import expit

KINDS = (None, "log", "logit")


class Transform:
    """Maps each parameter by itself: as it is, log(y - low), or the logit of its place.

    Parameters
    ----------
    kinds : list of {None, "log", "logit"}
        One for each parameter.
    low, high : ndarray of shape (n_parameters,)
        The support; infinite where there is no bound.
    """

    def __init__(self, kinds, low, high):
        self.kinds, self.low, self.high = kinds, low, high

    @classmethod
    def from_parameters(cls, transform, bounds, n_parameters):
        """Check and complete the estimator's parameters of the same names."""
        single = transform is None or isinstance(transform, str)
        kinds = [transform] * n_parameters if single else list(transform)
        if len(kinds) != n_parameters or any(kind not in KINDS for kind in kinds):
            raise ValueError(
                f"parameter_transform must be None, 'log' or 'logit', or a list of "
                f"these, one for each of {n_parameters} parameters; got {transform!r}."
            )
        if bounds is None:
            if "logit" in kinds:
                raise ValueError(
                    "parameter_transform='logit' needs bounds, got bounds=None."
                )
            low = np.where(np.array(kinds) == "log", 0.0, -np.inf)
            return cls(kinds, low.astype(float), np.full(n_parameters, np.inf))
        limits = np.asarray(bounds, dtype=np.float64)
        if limits.shape == (2,):
            limits = np.tile(limits, (n_parameters, 1))
        if limits.shape != (n_parameters, 2):
            raise ValueError(
                f"bounds must have the shape (2,) or ({n_parameters}, 2), got "
                f"{limits.shape}."
            )
        low, high = limits.T.copy()
        for kind, a, b in zip(kinds, low, high, strict=True):
            if not a < b or (kind == "logit" and not np.isfinite([a, b]).all()):
                raise ValueError(
                    f"bounds must increase, and be finite for 'logit'; got ({a}, {b}) "
                    f"with transform {kind!r}."
                )
            if kind == "log" and not (np.isfinite(a) and b == np.inf):
                raise ValueError(
                    f"bounds for 'log' must be (low, inf) with a finite low; got "
                    f"({a}, {b})."
                )
            if kind is None and (a, b) != (-np.inf, np.inf):
                raise ValueError(
                    f"bounds need a parameter_transform: got ({a}, {b}) with None; use "
                    "(-inf, inf) there."
                )
        return cls(kinds, low, high)

    def inside(self, y):
        """Whether each row of y is strictly within the bounds."""
        return ((y > self.low) & (y < self.high)).all(axis=1)

    def check(self, y):
        """Refuse parameters that are not strictly within the bounds."""
        outside = ~((y > self.low) & (y < self.high))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise ValueError(
                f"y must be strictly within bounds: y[{row}, {column}] is "
                f"{y[row, column]}, the bounds are ({self.low[column]}, "
                f"{self.high[column]})."
            )

    def forward(self, y):
        """Map parameters to the line."""
        mapped = np.array(y, dtype=np.float64, order="C")
        for column, kind in enumerate(self.kinds):
            if kind is not None:
                low, high = self.low[column], self.high[column]
                mapped[:, column] = np.log(y[:, column] - low)
                if kind == "logit":
                    mapped[:, column] -= np.log(high - y[:, column])
        return mapped

    def backward(self, mapped):
        """Map the line to parameters."""
        y = mapped.copy()
        for column, kind in enumerate(self.kinds):
            low, high = self.low[column], self.high[column]
            if kind == "log":
                with np.errstate(over="ignore"):
                    largest = np.finfo(float).max
                    y[:, column] = np.minimum(low + np.exp(mapped[:, column]), largest)
            elif kind == "logit":
                y[:, column] = low + (high - low) * expit(mapped[:, column])
        return y

    def log_jacobian(self, mapped):
        """Log of d mapped / d y at each row of `mapped`, summed over the parameters."""
        total = np.zeros(len(mapped))
        for column, kind in enumerate(self.kinds):
            u = mapped[:, column]
            if kind == "log":
                total -= u
            elif kind == "logit":
                total += np.logaddexp(0, u) + np.logaddexp(0, -u)
                total -= np.log(self.high[column] - self.low[column])
        return total
