"""Compile the same machine code in less time.

Most of the time of a first fit is Numba's front end, which is Python and does the same
work many times over. Within `without_repetition` it does that work once. Everything is
put back at the end. Versions of Numba with which no test has compared the machine code
are left as they are.
"""

import contextlib
import copy

# Oldest and newest version with which the tests found the same machine code; they did
# with all between.
OLDEST_NUMBA, NEWEST_NUMBA = (0, 61), (0, 68)


def is_known(version):
    """Whether the tests have compared the machine code with this version of Numba."""
    return OLDEST_NUMBA <= tuple(version[:2]) <= NEWEST_NUMBA


@contextlib.contextmanager
def without_repetition():
    """Replace parts of Numba's front end; to be entered under the compiler's lock.

    Entered again by the compilation of a callee, it does nothing.
    """
    from numba import version_info

    if not is_known(version_info):  # whose private modules may be elsewhere
        yield
        return
    from numba.core import inline_closurecall, postproc
    from numba.core.types import functions

    replaced = [
        (inline_closurecall, "copy", lambda module: _SHARED_BLOCKS),
        (postproc.PostProcessor, "run", _without_lifetimes),
        (functions.BaseFunction, "get_call_type", _remembering),
    ]
    originals = [vars(owner).get(name) for owner, name, _ in replaced]
    if originals[0] is not copy or None in originals:  # a callee, or a patched Numba
        yield
        return
    try:
        for (owner, name, replace), original in zip(replaced, originals, strict=True):
            setattr(owner, name, replace(original))
        yield
    finally:
        for (owner, name, _), original in zip(replaced, originals, strict=True):
            setattr(owner, name, original)


class _SharedBlocks:
    """The module `copy`, for Numba's copies of the blocks of a `part`.

    Numba makes those blocks for one call, copies them twice, changes one copy, and
    throws the others away. The blocks themselves can be changed.
    """

    copy = staticmethod(copy.copy)

    @staticmethod
    def deepcopy(value, memo=None):
        return value


_SHARED_BLOCKS = _SharedBlocks()


def _without_lifetimes(run):
    """Find out how long variables live when `del` is written, not after each pass.

    Only generators and the object mode, which kernels do without, ask before.
    """
    from numba.core import transforms
    from numba.core.postproc import VariableLifetime

    def run_when_asked(self, emit_dels=False, *args, **kwargs):
        function = self.func_ir
        if emit_dels or function.is_generator:
            return run(self, emit_dels, *args, **kwargs)
        function.blocks = transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = VariableLifetime(function.blocks)
        function.generator_info = None

    return run_when_asked


def _remembering(get_call_type):
    """Resolve a call of one of Numba's functions once for each types of arguments.

    The implementation depends on the options of the caller, which are part of the key.
    """
    from numba.core.targetconfig import ConfigStack

    known, described = {}, {}

    def options():
        """Options of the function that is being compiled, in words."""
        flags = ConfigStack.top_or_none()
        if id(flags) not in described:
            described[id(flags)] = repr(flags), flags  # held, so that its id stays
        return described[id(flags)][0]

    def get_known_call_type(self, context, args, kws):
        try:
            key = (id(self), id(context), tuple(args), tuple(kws.items()), options())
            hit = known.get(key)
        except (TypeError, AttributeError):  # cannot be looked up
            return get_call_type(self, context, args, kws)
        if hit is None:
            signature = get_call_type(self, context, args, kws)
            if signature is None:
                return None
            hit = known[key] = signature, self
        return hit[0]

    return get_known_call_type
