"""Compiled kernels: functions of arrays, independent of the rest of the package.

Numba is imported at the first call of a kernel.
"""

import contextlib
import functools
import gc
import hashlib
import warnings
from pathlib import Path

from .compiling import without_repetition
from .linking import keep_apart, optimised_once


class Kernel:
    """A function of arrays that Numba compiles at its first call.

    Parameters
    ----------
    function : callable
        Loops over arrays.

    Attributes
    ----------
    py_func : callable
        The function, not compiled.
    options : dict
        Options of Numba's compiler. References to arrays are not counted: the caller
        holds the arrays. Numba refuses to compile a function that allocates one, or
        that returns one it made.
    shared : bool
        Whether a fit calls the function from Python and from other kernels.
    """

    shared = False

    options = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "_nrt": False,
    }

    def __new__(cls, function):
        """Make an instance of a new subclass, whose `__call__` can be replaced."""
        return super().__new__(type(function.__name__, (cls,), {}))

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.py_func = function

    def __call__(self, *arguments):
        return self.dispatcher(*arguments)

    @functools.cached_property
    def dispatcher(self):
        """The compiled function: GIL released, cached on disk where possible."""
        from numba import njit

        try:
            compiled = njit(cache=True, **self.options)(self.py_func)
        except RuntimeError:
            compiled = njit(**self.options)(self.py_func)
            _warn_once(
                "for no folder",
                "Numba finds no folder for its cache: kernels are compiled again in "
                "each process, which takes seconds. Set NUMBA_CACHE_DIR to a writable "
                "folder; install the package if it is imported from a wheel.",
            )
        if compiled is not self.py_func:  # False with NUMBA_DISABLE_JIT
            compiled.compile = _compile_faster(_for_types(compiled.compile))
            if self.shared:
                compiled.compile = _compile_apart(compiled, compiled.compile)
            _depend_on_all_files(compiled._cache)
            _refuse_changed_files(compiled._cache)
            _forgive(compiled._cache)
        type(self).__call__ = staticmethod(compiled)  # later calls go there
        return compiled

    @functools.cached_property
    def callee(self):
        """The function for inlining into other kernels."""
        from numba import njit

        compiled = njit(no_cpython_wrapper=True, **self.options)(self.py_func)
        compiled.compile = _compile_faster(_for_types(compiled.compile))
        return compiled

    @property
    def _numba_type_(self):
        """Numba type of the kernel, when another kernel calls it.

        A function that was called from Python is compiled already; one that will be
        called is compiled for both.
        """
        called = self.shared or "dispatcher" in vars(self)
        called = called and self.dispatcher is not self.py_func
        return (self.dispatcher if called else self.callee)._numba_type_


kernel = Kernel  # the decorator


def allocating(function):
    """Decorate a kernel that allocates arrays, which takes longer to compile."""
    made = Kernel(function)
    made.options = {**Kernel.options, "_nrt": True}
    return made


def shared(function):
    """Decorate a kernel that the same fit calls from Python and from other kernels.

    It is compiled once for both, also if another kernel calls it first. It takes longer
    to compile than a kernel that is called in one of these ways only.
    """
    made = Kernel(function)
    made.shared = True
    return made


def part(function):
    """Decorate a function that is inlined into the kernels that call it.

    Use it for short functions, and for functions that are called once.
    """
    inlined = allocating(function)  # compiled alone; else its caller decides
    inlined.targetoptions = {"inline": "always"}  # what Numba asks the callee for
    return inlined


def _compile_faster(compile_for):
    """Compile in less time.

    The garbage collector is disabled: the compiler makes millions of long-lived
    objects, which the collector would traverse repeatedly.
    """
    from numba.core.compiler_lock import global_compiler_lock

    @functools.wraps(compile_for)
    def wrapper(signature):
        with global_compiler_lock, without_repetition(), optimised_once():
            resting = not gc.isenabled()
            gc.disable()
            try:
                return compile_for(signature)
            finally:
                if not resting:
                    gc.enable()

    return wrapper


def _for_types(compile_for):
    """Compile for the type of a constant argument, not for each of its values."""
    from numba import types

    @functools.wraps(compile_for)
    def wrapper(signature):
        return compile_for(tuple(map(types.unliteral, signature)))

    return wrapper


def _compile_apart(compiled, compile_for):
    """Compile a function that other kernels call, and do not inline."""

    @functools.wraps(compile_for)
    def wrapper(signature):
        entry_point = compile_for(signature)
        keep_apart(compiled)
        return entry_point

    return wrapper


@functools.cache
def _content():
    """Return a digest of all files of kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def _depend_on_all_files(cache):
    """Invalidate the cache of a kernel when any file of kernels changes.

    Numba checks the file of the kernel only, but kernels call those in other files.
    """
    with contextlib.suppress(AttributeError, OSError):  # no cache, or no folder
        file = cache._cache_file
        file._source_stamp = (file._source_stamp, _content())


_DIGEST = 16  # bytes of a digest


def _refuse_changed_files(cache):
    """Save compiled code with its digest, and refuse files without their own.

    Code in which a few bytes changed, as after a failure of a disk, could be loaded,
    and end the process.
    """
    with contextlib.suppress(AttributeError):  # no cache
        file = cache._cache_file
        dump, load_data = file._dump, file._load_data

        def signed(entry):
            content = dump(entry)
            return content + _digest(content)

        def checked(name):
            content = Path(file._data_path(name)).read_bytes()
            if content[-_DIGEST:] != _digest(content[:-_DIGEST]):
                raise ValueError(f"the content of {name} has changed")
            return load_data(name)

        file._dump, file._load_data = signed, checked


def _digest(content):
    """Return a digest of code, and of the sources that it was compiled from."""
    return hashlib.blake2b(content, digest_size=_DIGEST, key=_content()).digest()


_warned = set()


def _forgive(cache):
    """Compile a kernel if its cache on disk cannot be read or written.

    A full disk, or invalid files, then lead to a compilation in each process, with one
    warning for each folder.
    """
    load, save = cache.load_overload, cache.save_overload

    @functools.wraps(load)
    def load_overload(signature, target_context):
        try:
            return load(signature, target_context)
        except Exception as error:  # unpickling garbage raises any of them
            _warn_of_cache(cache, "cannot be read", error)
            with contextlib.suppress(OSError):
                cache.flush()  # an empty index in place of a bad one

    @functools.wraps(save)
    def save_overload(signature, compiled):
        try:
            save(signature, compiled)
        except Exception as error:
            _warn_of_cache(cache, "cannot be written", error)

    cache.load_overload, cache.save_overload = load_overload, save_overload


def _warn_of_cache(cache, fault, error):
    """Warn about a folder of the cache, once per process."""
    folder = cache.cache_path
    _warn_once(
        folder,
        f"Numba's cache in {folder} {fault} ({type(error).__name__}: {error}): "
        "kernels are compiled again in each process. Empty that folder, free space "
        "on its disk, or set NUMBA_CACHE_DIR to another folder.",
    )


def _warn_once(key, message):
    """Warn once per process for each key."""
    if key not in _warned:
        _warned.add(key)
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def cache_folder():
    """Return the folder in which Numba keeps compiled kernels, or None for none."""
    cache = getattr(Kernel(cache_folder).dispatcher, "_cache", None)
    return getattr(cache, "cache_path", None)
