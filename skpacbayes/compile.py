"""Compile the kernels of estimators before they are needed.

``python -m skpacbayes.compile`` fills Numba's cache while an image is built or before
the jobs of a cluster start, so that no first fit waits for the compiler. Names of
estimators as arguments limit it to these, and ``--options`` adds the kernels of options
other than the defaults.
"""

import argparse
import contextlib
import inspect
import os
import time
import warnings

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

import skpacbayes

from ._compat import StrOptions

# Few iterations suffice to compile the kernels.
_FEW = {
    "n_iter": 8,
    "burn_in": 4,
    "n_particles": 32,
    "n_validation": 20,
    "n_init": 2,
    "n_draws": 4,
    "n_moves": 1,
    "n_repeats": 2,
    "refresh": 16,  # so that some rows of a stream come between two
}
_ANSWERS = (
    "predict",
    "predict_proba",
    "predict_quantiles",
    "decision_function",
    "score_samples",
    "transform",
    "decode",
    "filter",
    "smooth",
    "forecast",
    "sample",
)


def estimators():
    """Return the public estimators.

    Returns
    -------
    estimators : dict of str to type
        Their classes, by name.

    Examples
    --------
    >>> from skpacbayes.compile import estimators
    >>> "PACOClusterer" in estimators()
    True
    """
    public = {name: getattr(skpacbayes, name) for name in skpacbayes.__all__}
    return {
        name: value
        for name, value in public.items()
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    }


def compile_kernels(names=None, *, options=False):
    """Compile the kernels of `fit`, `partial_fit` and other methods of estimators.

    Each estimator learns a few rows, by each of its methods.

    Parameters
    ----------
    names : iterable of str, default=None
        Names of estimators; None for all of them.
    options : bool, default=False
        Whether to compile for every value of every string option, too.

    Returns
    -------
    seconds : dict of str to float
        Time in seconds for each estimator.

    Raises
    ------
    ValueError
        If there is no estimator of that name.

    Examples
    --------
    >>> from skpacbayes.compile import compile_kernels
    >>> list(compile_kernels(["SSMCKMeansInit"]))
    ['SSMCKMeansInit']
    """
    known = estimators()
    names = list(known) if names is None else list(names)
    for name in names:
        if name not in known:
            raise ValueError(
                f"There is no estimator {name!r}. There are {', '.join(known)}."
            )
    seconds = {}
    for name in names:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # due to few rows and iterations
            few, *others = _settings(known[name], options)
            for n_classes in _numbers_of_classes(known[name](**few)):
                _run(known[name], few, n_classes)
                for parameters in others:
                    # Options that exclude each other share their kernels.
                    with contextlib.suppress(ValueError, NotImplementedError):
                        _run(known[name], parameters, n_classes)
        seconds[name] = time.perf_counter() - start
    return seconds


def _settings(estimator, options):
    """Yield the parameters to compile for."""
    known = inspect.signature(estimator).parameters
    few = {key: value for key, value in _FEW.items() if key in known}
    for ranges in known.keys() & {"priors", "parameters"}:  # of a particle filter
        model = skpacbayes.filtering.models.LocalLevel(0.0, 1.0, 1.0, 1.0)
        few["estimator"] = skpacbayes.ClusteredParticleFilter(model, n_particles=32)
        few[ranges] = {"model__transition_variance": stats.gamma(2)}
    settings = [few]
    for name, constraints in (
        estimator._parameter_constraints.items() if options else ()
    ):
        for constraint in constraints:
            if isinstance(constraint, StrOptions):
                values = constraint.options - {known[name].default}
                settings += [{**few, name: value} for value in sorted(values)]
    return settings


def _numbers_of_classes(estimator):
    """Return the numbers of classes with different kernels."""
    tags = get_tags(estimator).classifier_tags
    return (2,) if tags is None or not tags.multi_class else (2, 3)


def _run(estimator, parameters, n_classes):
    """Learn a few rows, and call all methods."""
    rng = np.random.default_rng(0)
    y = 1.0 + np.arange(40) % n_classes
    X = rng.poisson(9.0 * y[:, None] - 6.0, size=(40, 2)).astype(float)
    for method in ("fit", "partial_fit"):
        model = estimator(**parameters)
        if not hasattr(model, method):  # of an estimator, or with these options
            continue
        learn = getattr(model, method)
        takes_classes = "classes" in inspect.signature(learn).parameters
        classes = {"classes": np.unique(y)} if takes_classes else {}
        learn(X, y, **classes)
        if method == "partial_fit":
            learn(X[:1], y[:1])
        _ask(model, X)


def _ask(model, X):
    """Call all methods of a fitted model."""
    for name in _ANSWERS:
        with contextlib.suppress(AttributeError, ValueError, NotImplementedError):
            answer = getattr(model, name)
            takes = inspect.signature(answer).parameters
            some = {"quantiles": [0.5], "return_std": True}
            some = {key: value for key, value in some.items() if key in takes}
            for rows in (X, X[:1]) if "X" in takes else ():
                answer(rows, **some)
                if "return_std" in takes:
                    answer(rows)
            if all(takes[key].default is not takes[key].empty for key in takes):
                answer()


def main(arguments=None):
    """Compile, and print the seconds that each estimator took."""
    parser = argparse.ArgumentParser(
        "python -m skpacbayes.compile", description=__doc__
    )
    parser.add_argument(
        "names", nargs="*", metavar="estimator", help="all of them if none is named"
    )
    parser.add_argument(
        "--options", action="store_true", help="compile for all string options, too"
    )
    given = parser.parse_args(arguments)
    names = given.names or list(estimators())
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in names:
        try:
            seconds = compile_kernels([name], options=given.options)[name]
        except ValueError as error:
            parser.error(str(error))
        print(f"{seconds:6.1f} s  {name}", flush=True)


if __name__ == "__main__":
    main()
