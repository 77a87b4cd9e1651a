"""Bounds of the parameters, and the scale of smoothing."""

import numpy as np
from scipy.special import expit

from .._base import warn_user
from .._validation import as_numbers

KINDS = (None, "log", "logit")
BEYOND = 0.05  # share of draws outside of the table's range from which we warn
END = 0.02  # share of the range of a parameter that counts as its end
FEW_VALUES = 20  # largest number of values of a parameter that is called discrete
FEWEST_AT_END = 5  # least number of parameters there for an abrupt end


class Support:
    """Bounds of each parameter, and its transform to the scale of smoothing.

    A parameter with the transform None is smoothed on its own scale: adjusted draws
    beyond a bound are reflected at it, and kernels are truncated there. Parameters with
    "log" or "logit" are smoothed on the whole line.

    Parameters
    ----------
    kinds : list of {None, "log", "logit"}
        One for each parameter.
    low, high : ndarray of shape (n_parameters,)
        The bounds; infinite if there is none.
    """

    def __init__(self, kinds, low, high):
        self.kinds, self.low, self.high = kinds, low, high

    @classmethod
    def from_parameters(cls, transform, bounds, n_parameters):
        """Validate the parameters of the same names, and return the support."""
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
        low, high = as_bounds(bounds, n_parameters)
        for kind, a, b in zip(kinds, low, high, strict=True):
            if kind == "logit" and not np.isfinite([a, b]).all():
                raise ValueError(
                    f"bounds must be finite for 'logit'; got ({a}, {b}) with transform "
                    f"{kind!r}."
                )
            if kind == "log" and not (np.isfinite(a) and b == np.inf):
                raise ValueError(
                    f"bounds for 'log' must be (low, inf) with a finite low; got "
                    f"({a}, {b})."
                )
        return cls(kinds, low, high)

    def limits(self):
        """Return lower and upper bounds on the scale of smoothing."""
        as_it_is = np.array([kind is None for kind in self.kinds])
        low = np.where(as_it_is, self.low, -np.inf)
        return low, np.where(as_it_is, self.high, np.inf)

    def unknown_range(self, table):
        """Return the range of a table's parameters; infinite at known bounds."""
        low, high = self.limits()
        as_it_is = np.array([kind is None for kind in self.kinds])
        least = np.where(as_it_is & np.isinf(low), table.least, -np.inf)
        return least, np.where(as_it_is & np.isinf(high), table.most, np.inf)

    def edges(self):
        """Yield (column, (low, high)) of parameters with bounds, not transformed."""
        low, high = self.limits()
        columns = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        return [(int(column), (low[column], high[column])) for column in columns]

    def folded(self, draws):
        """Reflect draws that are beyond an edge at it."""
        folded = draws
        for column, (low, high) in self.edges():
            values = draws[:, column]
            outside = (values < low) | (values > high)
            if not outside.any():
                continue
            if folded is draws:
                folded = draws.copy()
            values = values[outside]
            if np.isfinite([low, high]).all():
                place = np.mod(values - low, 2 * (high - low))
                values = low + np.minimum(place, 2 * (high - low) - place)
            elif np.isfinite(low):
                values = low + np.abs(values - low)
            else:
                values = high - np.abs(high - values)
            folded[outside, column] = np.clip(values, low, high)
        return folded

    def inside(self, y):
        """Return whether rows of y are within the bounds, strictly if transformed."""
        return self._within(y).all(axis=1)

    def check(self, y):
        """Raise ValueError unless parameters are within the bounds."""
        outside = ~self._within(y)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            strictly = "" if self.kinds[column] is None else "strictly "
            raise ValueError(
                f"y must be {strictly}within bounds: y[{row}, {column}] is "
                f"{y[row, column]}, the bounds are ({self.low[column]}, "
                f"{self.high[column]})."
            )

    def _within(self, y):
        strictly = (y > self.low) & (y < self.high)
        at_bound = (y == self.low) | (y == self.high)
        return strictly | (at_bound & np.array([kind is None for kind in self.kinds]))

    def forward(self, y):
        """Map parameters to the scale of smoothing."""
        mapped = np.array(y, dtype=np.float64, order="C")
        for column, kind in enumerate(self.kinds):
            if kind is not None:
                low, high = self.low[column], self.high[column]
                mapped[:, column] = np.log(y[:, column] - low)
                if kind == "logit":
                    mapped[:, column] -= np.log(high - y[:, column])
        return mapped

    def backward(self, mapped):
        """Map the scale of smoothing to parameters."""
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

    def log_jacobian(self, mapped, some):
        """Return the log Jacobian log |d mapped / d y| of some parameters, by rows."""
        total = np.zeros(len(mapped))
        for column in np.flatnonzero(some):
            kind = self.kinds[column]
            u = mapped[:, column]
            if kind == "log":
                total -= u
            elif kind == "logit":
                total += np.logaddexp(0, u) + np.logaddexp(0, -u)
                total -= np.log(self.high[column] - self.low[column])
        return total


def as_bounds(bounds, n_parameters):
    """Return the lower and the upper bounds, one for each parameter."""
    limits = as_numbers("bounds", bounds, ensure_all_finite=False)
    if limits.shape == (2,):
        limits = np.tile(limits, (n_parameters, 1))
    if limits.shape != (n_parameters, 2):
        raise ValueError(
            f"bounds must have the shape (2,) or ({n_parameters}, 2), got "
            f"{limits.shape}."
        )
    low, high = limits.T.copy()
    if not (low < high).all():
        column = int(np.flatnonzero(~(low < high))[0])
        raise ValueError(
            f"bounds must increase, got ({low[column]}, {high[column]}) for parameter "
            f"{column}."
        )
    return low, high


def shares_beyond(posterior, least, most):
    """Return the shares (2, n_parameters) of draws below and above a range."""
    both = np.stack([posterior.draws < least, posterior.draws > most])
    return posterior.weights @ both


def warn_beyond(shares, far_shares, table):
    """Warn if draws are beyond an end of the prior that `bounds` do not give.

    shares, far_shares : (n_observations, 2, n_parameters), from `shares_beyond`, for
    the range of the parameters and for one three times as wide.
    """
    if not (shares.size and shares.max() > BEYOND):
        return
    if far_shares.max() > BEYOND:
        row, side, column = np.unravel_index(far_shares.argmax(), far_shares.shape)
        n_rows = np.count_nonzero((far_shares > BEYOND).any(axis=(1, 2)))
        warn_user(
            f"{far_shares[row, side, column]:.0%} of the draws for observation {row} "
            f"have a parameter {column} outside of its simulated range by more than "
            f"that range: no simulation has such summaries, and the posteriors of "
            f"{n_rows} of {len(shares)} observations are extrapolated. Simulate "
            "parameters with such summaries."
        )
        return
    shares = shares * abrupt_ends(table)
    if shares.max() > BEYOND:
        row, side, column = np.unravel_index(shares.argmax(), shares.shape)
        n_rows = np.count_nonzero((shares > BEYOND).any(axis=(1, 2)))
        end = (table.least, table.most)[side][column]
        found = (
            f"{shares[row, side, column]:.0%} of the draws for observation {row} lie "
            f"{('below', 'above')[side]} {end:.6g}, "
        )
        values = np.unique(table.parameters[: table.n_rows, column])
        if len(values) <= FEW_VALUES:
            warn_user(
                f"{found}the {('smallest', 'largest')[side]} of the {len(values)} "
                f"values of parameter {column}: posteriors are densities, smooth "
                "between values and beyond them. Their means are not affected; for the "
                "probabilities of the values, fit a classifier to the summaries."
            )
            return
        warn_user(
            f"{found}where parameter {column} of the simulations ends abruptly "
            f"({n_rows} of {len(shares)} observations have more than {BEYOND:.0%} "
            "beyond such an end). If the prior ends there, set `bounds`; otherwise "
            "simulate parameters beyond it."
        )


def abrupt_ends(table):
    """Return whether parameters end abruptly, at both ends (2, n_parameters).

    A share END of uniform draws is that near to an end, but hardly any of normal draws.
    """
    draws = table.parameters[: table.n_rows]
    margin = END * (table.most - table.least)
    near = np.stack([draws - table.least <= margin, table.most - draws <= margin])
    return near.sum(axis=1) >= max(FEWEST_AT_END, 0.3 * END * table.n_rows)
