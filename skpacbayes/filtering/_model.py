"""A user's model as the filter calls it: what its functions ask for, and checks."""

import functools
import inspect
import math
from numbers import Integral
from types import MethodType

import numpy as np

FLOAT64 = np.dtype(np.float64)

# Arguments by position, and those that a function may ask for by name.
FUNCTIONS = {
    "initial": ("z", ("u",)),
    "transition": ("x, z, t", ("y_prev", "u")),
    "log_likelihood": ("x, y, t", ("x_prev", "y_prev", "u")),
    "log_transition": ("x, x_next, t", ("y_prev", "u")),
    "observation": ("x, z, t", ("x_prev", "y_prev", "u")),
    "initial_proposal": ("y", ("u",)),
    "proposal": ("x, y, t", ("y_prev", "u")),
    "log_lookahead": ("x, y, t", ("y_prev", "u")),
}

N_NOISE = {"n_noise": "move a particle", "n_noise_observation": "make a row"}
# Kinds of arrays that NumPy would convert to numbers, and what they are.
NO_NUMBERS = {
    "b": "truth values",
    "c": "complex numbers",
    "S": "text",
    "U": "text",
    "M": "dates",
    "m": "spans of time",
}


def asked_for(model, has_inputs):
    """Names that each function of a model asks for besides its first arguments.

    Parameters
    ----------
    model : object
        A state-space model.
    has_inputs : bool
        Whether there are inputs, `u`.

    Returns
    -------
    asks : dict of str to tuple of str
        One entry for each function that the model has.
    """
    if not hasattr(model, "n_noise") and not hasattr(type(model), "n_noise"):
        raise ValueError(
            f"{type(model).__name__} has no n_noise: give it an integer, the number of "
            f"standard normals that {N_NOISE['n_noise']}."
        )
    for name, use in N_NOISE.items():
        number = getattr(model, name, 0)  # LocalLevel has none before any row
        counts = isinstance(number, Integral) and not isinstance(number, bool)
        if not counts or number < 0:
            raise ValueError(
                f"{type(model).__name__}.{name}={number!r} should be an integer, the "
                f"number of standard normals that {use}."
            )
    asks = {
        name: _names_asked(model, name, has_inputs)
        for name in FUNCTIONS
        if getattr(model, name, None) is not None
    }
    if has_inputs and not any("u" in names for names in asks.values()):
        raise ValueError(
            f"inputs were given, but no function of {type(model).__name__} has an "
            "argument `u`."
        )
    return asks


def _names_asked(model, name, has_inputs):
    first, allowed = FUNCTIONS[name]
    label = f"{type(model).__name__}.{name}"
    n_first = len(first.split(", "))
    function = getattr(model, name)
    try:
        if type(function) is MethodType:
            parameters = _parameters_of_method(function.__func__)
        else:
            parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # compiled, without a signature
        return ()
    kinds = [parameter.kind for parameter in parameters]
    positional = [
        parameter
        for parameter, kind in zip(parameters, kinds, strict=True)
        if kind in (inspect.Parameter.POSITIONAL_ONLY, POSITIONAL)
    ]
    if len(positional) < n_first and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise TypeError(
            f"{label} takes {len(positional)} positional arguments; it is called as "
            f"{name}({first})."
        )
    names, called_with = [each.name for each in positional[:n_first]], first.split(", ")
    if names != called_with and sorted(names) == sorted(called_with):
        raise TypeError(
            f"{label} takes ({', '.join(names)}), but is called with the arguments in "
            f"another order, as {name}({first})."
        )
    asks = []
    for parameter in parameters:
        if parameter in positional[:n_first] or parameter.kind not in BY_NAME:
            continue
        needed = parameter.default is inspect.Parameter.empty
        if parameter.name == "u" and "u" in allowed and not has_inputs:
            if needed:
                raise ValueError(f"{label} has an argument `u`: pass inputs=.")
        elif parameter.name in allowed:
            asks.append(parameter.name)
        elif needed:
            raise TypeError(
                f"{label} has an argument {parameter.name!r}; besides ({first}) it may "
                f"have: {', '.join(allowed)}."
            )
    return tuple(asks)


@functools.lru_cache(maxsize=256)
def _parameters_of_method(function):
    """Return the parameters but `self`, once for the many models of a sampler."""
    method = MethodType(function, object())
    return list(inspect.signature(method).parameters.values())


OVERWRITING = ("initial", "transition")  # they are given arrays of their own
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
BY_NAME = (POSITIONAL, inspect.Parameter.KEYWORD_ONLY)


class CalledModel:
    """A model whose functions get what they ask for, and whose answers are checked.

    Parameters
    ----------
    model : object
        A state-space model.
    asks : dict
        What `asked_for` found.
    guided : bool, default=False
        Whether its proposal, if it has one, moves the particles.
    """

    def __init__(self, model, asks, guided=False):
        self.model = model
        self.asks = asks
        self.name = type(model).__name__
        self.guided = guided

    @property
    def n_noise(self):
        """Number of standard normals that move a particle."""
        return self.model.n_noise

    def wants(self, argument):
        """Whether any function asks for an argument."""
        return any(argument in names for names in self.asks.values())

    def has_constants(self):
        """Whether the model says that noise never comes into a part of the state."""
        known = getattr(self.model, "_has_constants", None)
        return known is not None and known()

    def guides(self):
        """Whether a row moves the particles that it weighs."""
        return self.guided and "proposal" in self.asks

    def initial(self, noise, given):
        """States at row 0, (n_particles, n_states)."""
        particles = self._call("initial", given, noise)
        plain = np.ndim(particles) == 2 and np.shape(particles)[1] > 0
        n_states = np.shape(particles)[1] if plain else "n_states"
        return self._states(particles, (len(noise), n_states), "initial", 0, given)

    def transition(self, particles, noise, time, given):
        """States at a row from those at the row before, which may be overwritten."""
        shape = particles.shape
        moved = self._call("transition", given, particles, noise, time)
        return self._states(moved, shape, "transition", time, given)

    def log_likelihood(self, particles, row, time, given):
        """Log density of a row at each particle, (n_particles,); unchecked values."""
        found = self._call("log_likelihood", given, particles, row, time)
        return self._checked(found, (len(particles),), "log_likelihood")

    def log_transition(self, particles, following, time, given):
        """Log density of each move, (n_particles,), up to a constant."""
        found = self._call("log_transition", given, particles, following, time)
        return self._checked(found, (len(particles),), "log_transition")

    def noise_of_rows(self, n_particles, n_features, generator):
        """Draw the noise of the rows at each particle, (n_particles, n_noise)."""
        n_noise = getattr(self.model, "n_noise_observation", n_features)
        return generator.standard_normal((n_particles, n_noise))

    def observation(self, particles, noise, n_features, time, given):
        """Rows at each particle by given noise, (n_particles, n_features)."""
        rows = self._call("observation", given, particles, noise, time)
        shape = (len(particles), n_features)
        return self._states(rows, shape, "observation", time, given)

    def guide(self, particles, noise, row, time, given):
        """Shift and scale the noise by the model's proposal for a row.

        Returns
        -------
        noise : ndarray of shape (n_particles, n_noise)
            Noise drawn from the proposal.
        log_ratios : ndarray of shape (n_particles,) or None
            Log density of the noise under the standard normal less that under the
            proposal; None where the model has no proposal.
        """
        name = "proposal" if particles is not None else "initial_proposal"
        if name not in self.asks:
            return noise, None
        arguments = (row,) if particles is None else (particles, row, time)
        found = self._call(name, given, *arguments)
        try:
            location, scale = found
            drawn, widths = _moved_noise(noise, location, scale)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.name}.{name} should return the location and the scale of the "
                f"noise, which broadcast to shape {noise.shape}, or a scale of shape "
                f"(1 or {noise.shape[0]}, {noise.shape[1]}, {noise.shape[1]}): {error}"
            ) from error
        if not (
            widths.min(initial=np.inf) > 0
            and math.isfinite(np.add.reduce(widths, axis=None))
            and math.isfinite(np.add.reduce(drawn, axis=None))
        ):
            raise ValueError(
                f"{self.name}.{name} is not a density at row {time}: its location must "
                "be finite, and its scale positive standard deviations, or lower "
                f"triangular with a positive diagonal; the smallest is {widths.min()}."
                + self._advice_on_gaps(name, given)
            )
        ratios = np.einsum("ij,ij->i", noise, noise)
        ratios -= np.einsum("ij,ij->i", drawn, drawn)
        ratios *= 0.5
        ratios += np.log(widths).sum(axis=1)
        return drawn, ratios

    def log_lookahead(self, particles, row, time, given):
        """Log of a guess of the density of the next row at each particle."""
        found = self._call("log_lookahead", given, particles, row, time)
        found = self._checked(found, (len(particles),), "log_lookahead")
        if not np.isfinite(found).all():
            raise ValueError(
                f"{self.name}.log_lookahead is not finite at row {time}."
                + self._advice_on_gaps("log_lookahead", given)
            )
        return found

    def _call(self, name, given, *arguments):
        """Call a function of the model; with copies of arrays that it may change."""
        function = getattr(self.model, name)
        names = self.asks[name]
        if name not in OVERWRITING:
            arguments = map(_copied, arguments)
        arguments = tuple(arguments)
        try:
            if not names:
                return function(*arguments)
            return function(*arguments, **{key: _copied(given[key]) for key in names})
        except Exception as error:
            error.add_note(self._described(name, arguments, given))
            raise

    def _described(self, name, arguments, given):
        """Say how a function was called."""
        first = FUNCTIONS[name][0]
        values = dict(zip(first.split(", "), arguments, strict=True))
        values |= {key: given[key] for key in self.asks[name]}
        parts = [
            f"{key}={value!r}"
            if np.ndim(value) == 0
            else f"{key} of shape {np.shape(value)}"
            for key, value in values.items()
        ]
        called = ", ".join([first, *(f"{key}={key}" for key in self.asks[name])])
        return f"{self.name}.{name} was called as {name}({called}): {', '.join(parts)}."

    def _states(self, values, shape, name, time, given):
        values = self._checked(values, shape, name)
        if not math.isfinite(np.add.reduce(values, axis=None)):
            self.refuse_non_finite(values, name, time, given)
        return values

    def _checked(self, values, shape, name):
        """Return what a function returned, as a float64 array of the shape it owes."""
        if not (
            type(values) is np.ndarray
            and values.dtype is FLOAT64
            and values.flags.c_contiguous
        ):
            try:
                values = np.ascontiguousarray(_numbers(values))
            except (ValueError, TypeError) as error:
                raise ValueError(f"{self.name}.{name} returned {error}.") from error
        if values.shape != shape:
            expected = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
            raise ValueError(
                f"{self.name}.{name} returned an array of shape {values.shape}, "
                f"expected {expected}."
            )
        return values

    def refuse_non_finite(self, values, name, time, given):
        """Raise if a function returned NaN or, where it must not, infinity."""
        is_log = name in ("log_likelihood", "log_transition")
        bad = np.isnan(values) if is_log else ~np.isfinite(values)
        bad |= values == math.inf
        count = np.count_nonzero(bad.any(axis=1) if bad.ndim == 2 else bad)
        if count:
            raise ValueError(
                f"{self.name}.{name} returned NaN or infinity for {count} of "
                f"{len(values)} particles at row {time} (shape {values.shape})."
                + self._advice_on_gaps(name, given)
            )

    def _advice_on_gaps(self, name, given):
        """Say that the row before has missing values, if a function asks for it."""
        before = given["y_prev"] if "y_prev" in self.asks[name] else None
        if before is None or not np.isnan(before).any():
            return ""
        return (
            " Its argument y_prev has NaN, as the row before has missing values: "
            f"replace them in {name}, for instance by their mean given the state."
        )


def _numbers(values):
    """Return an array of float64; raise where something else would be read as one."""
    if np.ma.is_masked(values):
        raise ValueError("an array with masked values, which are not supported")
    found = np.asarray(values)
    if found.dtype.kind in NO_NUMBERS:
        raise ValueError(NO_NUMBERS[found.dtype.kind])
    try:
        return found.astype(np.float64, copy=False)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{type(values).__name__}, no numbers ({error})") from error


def _copied(value):
    return value.copy() if isinstance(value, np.ndarray) else value


def _moved_noise(noise, location, scale):
    """Return ``location + scale @ noise``, and the diagonal of the scale.

    The diagonal has the shape (1 or n_particles, n_noise).
    """
    n_noise = noise.shape[1]
    location, scale = _numbers(location), _numbers(scale)
    if scale.ndim < 3:
        drawn, widths = scale * noise, scale
        if scale.shape[-1:] != (n_noise,):
            widths = np.broadcast_to(scale, (*scale.shape[:-1], n_noise))
        widths = widths.reshape(-1, n_noise)
    else:
        if scale.shape[1:] != (n_noise, n_noise) or np.triu(scale, 1).any():
            raise ValueError("matrices should be square and lower triangular")
        if len(scale) == 1:
            drawn = noise @ scale[0].T
        else:
            drawn = np.matmul(scale, noise[:, :, None])[:, :, 0]
        widths = np.diagonal(scale, axis1=1, axis2=2)
    drawn += location
    if drawn.shape != noise.shape:
        raise ValueError(f"their shapes are {location.shape} and {scale.shape}")
    return drawn, widths
