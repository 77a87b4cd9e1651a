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
        If the package is not installed; the message says what to install.

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
        raise ImportError(
            f'{what} needs {name}: pip install "skpacbayes[{extra}]"'
        ) from error
