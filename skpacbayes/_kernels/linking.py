"""Optimise a kernel and those that it calls together, and only once.

Numba optimises each function by itself and emits machine code for it. That code is
unused where the function is part of a kernel: Numba then links it into the
kernel and optimises the whole. Within `optimised_once` the first step is skipped: a
function is optimised, and emitted, if Python calls it. What the kernels return stays
the same to the last bit, because LLVM does not change the order of operations on
floats.
"""

import contextlib
import functools

from .compiling import is_known


@contextlib.contextmanager
def optimised_once():
    """Emit only what Python calls; enter while holding the compiler's lock."""
    from numba import version_info

    if not is_known(version_info):  # whose private classes may be others
        yield
        return
    from numba.core import codegen
    from numba.core.codegen import JITCPUCodegen
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys

    rtsys.initialize(cpu_target.target_context)  # emitted: other programs call it

    replaced = [
        (JITCPUCodegen, "_library_class", lambda plain: _linked_library()),
        (JITCPUCodegen, "set_env", _for_emitted),
        (JITCPUCodegen, "_function_pass_manager", _simplifying),
        (codegen, "create_pass_builder", _without_unrolling),  # Numba 0.62 or newer
    ]
    with contextlib.ExitStack() as restore:
        for owner, name, replace in replaced:
            original = getattr(owner, name, None)
            if original is None:
                continue
            if name in vars(owner):
                restore.callback(setattr, owner, name, vars(owner)[name])
            else:  # inherited
                restore.callback(delattr, owner, name)
            setattr(owner, name, replace(original))
        yield


def keep_apart(compiled):
    """Let kernels call a compiled function, where LLVM would inline it.

    Inlined into its only caller, a long function takes twice as long to optimise.
    """
    for overload in list(compiled.overloads.values()):  # other threads may add some
        overload.library.apart = overload.fndesc.llvm_func_name


def _simplifying(function_pass_manager):
    """Simplify a function before it is linked; the kernel is optimised as a whole."""
    return functools.partialmethod(function_pass_manager, opt=1)


def _without_unrolling(create_pass_builder):
    """Vectorise loops without unrolling them, which halves the machine code.

    Partial sums written one by one are vectorised, too, which Numba leaves out.
    """
    from llvmlite import binding

    @functools.wraps(create_pass_builder)
    def create(machine, opt=2, loop_vectorize=False, slp_vectorize=False):
        tuning = binding.create_pipeline_tuning_options(int(opt))
        tuning.loop_vectorization = bool(loop_vectorize)
        tuning.slp_vectorization = True
        tuning.loop_unrolling = tuning.loop_interleaving = False
        return binding.create_pass_builder(machine, tuning)

    return create


def _for_emitted(set_env):
    """Skip the environment of a function without machine code, as it has no address."""

    def set_env_of_emitted(self, name, environment):
        if self._engine.is_symbol_defined(name):
            set_env(self, name, environment)

    return set_env_of_emitted


@functools.cache
def _linked_library():
    """Return the class of code that is optimised when Python asks for it."""
    from llvmlite.binding import Linkage
    from numba.core.codegen import JITCodeLibrary
    from numba.core.environment import lookup_environment

    class LinkedLibrary(JITCodeLibrary):
        _emitted = False
        apart = None  # name of the function, if callers call it rather than inline it

        def _optimize_final_module(self):
            """Wait for `_emit`."""

        def _finalize_final_module(self):
            if getattr(self, "_compiled_object", None) is None:
                self._finalized = True
            else:  # read from the cache, optimised and emitted
                super()._finalize_final_module()
                self._emitted = True

        def get_pointer_to_function(self, name):
            self._ensure_finalized()
            if not self._emitted and any(
                function.name == name for function in self.get_defined_functions()
            ):
                self._emit()
            return super().get_pointer_to_function(name)

        def _emit(self):
            module = self._final_module
            callees = self._linking_libraries
            apart = {getattr(library, "apart", None) for library in callees}
            for function in self.get_defined_functions():
                if function.linkage == Linkage.linkonce_odr:  # of a callee
                    function.linkage = Linkage.internal  # can be discarded
                if function.name in apart:
                    function.add_function_attribute("noinline")
            super()._optimize_final_module()
            module.verify()
            super()._finalize_final_module()
            self._emitted = True
            for variable in module.global_variables:
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self.codegen.set_env(variable.name, environment)

    return LinkedLibrary
