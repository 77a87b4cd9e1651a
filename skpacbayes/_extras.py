"""Imports of optional packages."""

from importlib import import_module


def extra_module(module, extra, what):
    """Import an optional package.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : str
        The extra of this package that installs it.
    what : str
        What needs the package, for the error message.

    Returns
    -------
    module : module
        The module.

    Raises
    ------
    ImportError
        If the package is not installed; the message says what to install. If it is
        installed but its own import fails, the error is that of the package.

    Examples
    --------
    >>> extra_module("arviz_", "arviz", "to_arviz")
    Traceback (most recent call last):
    ...
    ImportError: to_arviz needs arviz_: pip install "skpacbayes[arviz]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != name:
            raise  # it is installed, but cannot import what it needs
        raise ImportError(
            f'{what} needs {name}: pip install "skpacbayes[{extra}]"'
        ) from error


def style_of(artist, given, **usual):
    """Return keyword arguments of an artist: the usual ones, replaced by those given.

    Parameters
    ----------
    artist : str
        Class of the artist in matplotlib, which knows short names, such as "lw".
    given : dict or None
        From the user.
    **usual : object
        What the display uses otherwise.
    """
    module, _, name = artist.partition(".")
    known = getattr(import_module(f"matplotlib.{module}"), name)
    normalize = import_module("matplotlib.cbook").normalize_kwargs
    if "color" in (given or {}):
        usual.pop("c", None)  # of a scatter, which refuses both
    return normalize(usual, known) | normalize(given, known)
