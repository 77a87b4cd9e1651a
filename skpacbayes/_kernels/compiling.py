"""Compile the same machine code in less time.

Most of the time of a first fit is Numba's front end, which is Python and does the same
work many times. Within `without_repetition` it does that work once. All patches are
undone at the end. Versions of Numba are not patched if no test has compared their
machine code.
"""

import contextlib
import copy

# Oldest and newest version with which the tests found the same machine code, as with
# all versions between.
OLDEST_NUMBA, NEWEST_NUMBA = (0, 61), (0, 68)


def is_known(version):
    """Whether the tests have compared the machine code with this version of Numba."""
    return OLDEST_NUMBA <= tuple(version[:2]) <= NEWEST_NUMBA


@contextlib.contextmanager
def without_repetition():
    """Replace parts of Numba's front end; enter while holding the compiler's lock.

    Nested use, when a callee is compiled, does nothing.
    """
    from numba import version_info

    if not is_known(version_info):  # whose private modules may be elsewhere
        yield
        return
    from numba.core import inline_closurecall, ir, postproc, ssa, typed_passes
    from numba.core.base import BaseContext
    from numba.core.cpu import CPUContext
    from numba.core.types import functions
    from numba.core.typing import Context, templates

    replaced = [
        (inline_closurecall, "copy", lambda module: _SHARED_BLOCKS),
        (postproc.PostProcessor, "run", _without_lifetimes),
        (functions.BaseFunction, "get_call_type", _remembering),
        (inline_closurecall.InlineClosureCallPass, "run", _if_there_are_closures),
        (typed_passes.NopythonRewrites, "run_pass", _if_there_is_a_match),
        (ssa, "_run_block_rewrite", _where_the_variable_is),
        (templates._OverloadFunctionTemplate, "_get_impl", _finding_once),
        (BaseContext, "get_abi_sizeof", _measuring_once),
        (CPUContext, "load_additional_registries", _loading_once),
        (Context, "load_additional_registries", _loading_once),
        (ir.Stmt, "list_vars", _listing("__dict__")),
        (ir.Expr, "list_vars", _listing("_kws")),
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
    """Compute lifetimes of variables when `del` is inserted, not after each pass.

    Only generators and the object mode need them earlier; kernels use neither.
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
    """Resolve a call of a Numba function once for each signature.

    The implementation depends on the options of the caller, which are part of the key.
    """
    from numba.core.targetconfig import ConfigStack

    known, described = {}, {}

    def options():
        """Return the options of the function that is being compiled, as a string."""
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


_OF_LISTS = "make_function", "build_list"
_OF_OTHERS = "reduce", "stencil"


def _are_there_closures(function):
    """Return whether a function has closures, lists, or calls `reduce` or `stencil`."""
    import functools as standard

    import numba
    from numba.core import ir
    from numba.stencils.stencil import StencilFunc

    for block in function.blocks.values():
        for assignment in block.find_insts(ir.Assign):
            value = assignment.value
            if isinstance(value, ir.Expr):
                found = value.op in _OF_LISTS
                found |= value.op == "getattr" and value.attr in _OF_OTHERS
            elif isinstance(value, (ir.Global, ir.FreeVar)):
                found = value.value is standard.reduce or value.value is numba.stencil
                found |= isinstance(value.value, StencilFunc)
            else:
                found = False
            if found:
                return True
    return False


def _if_there_are_closures(run):
    """Do not prepare the inlining of closures where there are none."""

    def run_if_needed(self):
        if _are_there_closures(self.func_ir):
            run(self)

    return run_if_needed


def _if_there_is_a_match(run_pass):
    """Prepare the rewriting of expressions of arrays where there is one."""
    from numba.core.rewrites import rewrite_registry

    def run_if_needed(self, state):
        function = state.func_ir
        rewrites = [kind(state) for kind in rewrite_registry.rewrites[_AFTER]]
        if _are_there_closures(function) or any(
            rewrite.match(function, block, state.typemap, state.calltypes)
            for rewrite in rewrites
            for block in function.blocks.values()
        ):
            return run_pass(self, state)
        return True

    return run_if_needed


_AFTER = "after-inference"


def _where_the_variable_is(rewrite):
    """Rewrite the statements that mention a variable, and look at no others."""
    from numba.core import ir

    known = {}

    def names_in(statement):
        if id(statement) not in known:
            names = {variable.name for variable in statement.list_vars()}
            known[id(statement)] = statement, names  # held, so that its id stays
        return known[id(statement)][1]

    def rewrite_some(blocks, states, handler):
        name, new_blocks = states["varname"], {}
        for label, block in blocks.items():
            new_blocks[label] = new = ir.Block(scope=block.scope, loc=block.loc)
            states["label"], states["block"] = label, block
            new.body = body = list(block.body)
            for position, statement in enumerate(body):
                if name in names_in(statement):
                    is_assignment = isinstance(statement, ir.Assign)
                    treat = handler.on_assign if is_assignment else handler.on_other
                    body[position] = treat(states, statement)
        return new_blocks

    return rewrite_some


def _listing(where):
    """List the variables of a statement, or of an expression, with fewer calls."""

    def replace(list_vars):
        from numba.core import ir

        def listed(self):
            found = []
            for value in getattr(self, where).values():
                kind = type(value)
                if kind is ir.Var:
                    found.append(value)
                elif kind not in _WITHOUT_VARIABLES:
                    found += self._rec_list_vars(value)
            return found

        return listed

    return replace


_WITHOUT_VARIABLES = {str, int, bool, type(None)}


def _finding_once(get_impl):
    """Find the implementation of an overload once for each signature.

    Where there is none, there is none for other options of the caller either.
    """
    from numba.core.targetconfig import ConfigStack

    known, missing = {}, set()

    def find(self, args, kws):
        flags = ConfigStack.top_or_none()
        of = type(self), id(self.context), tuple(args), tuple(kws.items())
        if of in missing:
            return None, None
        if (of, id(flags)) not in known:
            found = get_impl(self, args, kws)
            if found[0] is None:
                missing.add(of)
                return found
            known[of, id(flags)] = found, flags  # held, so that its id stays
        return known[of, id(flags)][0]

    return find


def _measuring_once(get_abi_sizeof):
    """Ask LLVM for the size of a type once."""
    known = {}

    def measure(self, ty):
        key = id(self), str(ty)
        if key not in known:
            known[key] = get_abi_sizeof(self, ty)
        return known[key]

    return measure


def _loading_once(load):
    """Load Numba's registries once, not before each search in them."""
    loaded = set()

    def load_once(self):
        if self not in loaded:
            loaded.add(self)
            load(self)

    return load_once
