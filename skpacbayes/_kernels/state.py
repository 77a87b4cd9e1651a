"""State of a kernel: named arrays in one piece of memory."""

import math

import numpy as np

LINE = 8  # numbers that a cache line of the processor holds


class KernelState:
    """Arrays of float64 that a kernel changes in place, allocated together.

    Each array begins at a multiple of 64 bytes, also in a copy and after pickling:
    vectors of the processor are read faster from there.

    Parameters
    ----------
    *shapes : tuple of int
        Shape of each array.

    Attributes
    ----------
    arrays : tuple of ndarray
        The arrays, in the order in which a kernel takes them.
    """

    def __init__(self, *shapes):
        self._lay_out(shapes)
        self._memory[:] = 0.0

    def _lay_out(self, shapes):
        sizes = [math.prod(shape) for shape in shapes]
        starts = np.cumsum([0, *(-(-size // LINE) * LINE for size in sizes)])
        room = np.empty(starts[-1] + LINE - 1)
        first = -(room.ctypes.data // 8) % LINE
        self._shapes = [tuple(map(int, shape)) for shape in shapes]
        self._memory = room[first : first + starts[-1]]
        self.arrays = tuple(
            self._memory[start : start + size].reshape(shape)
            for start, size, shape in zip(starts, sizes, shapes, strict=False)
        )

    def __getstate__(self):
        return {"shapes": self._shapes, "memory": self._memory}

    def __setstate__(self, state):
        self._lay_out([tuple(shape) for shape in state["shapes"]])
        self._memory[:] = state["memory"]

    def copy(self):
        """Return a copy that shares nothing."""
        new = object.__new__(type(self))
        new._lay_out(self._shapes)
        new._memory[:] = self._memory
        return new

    def __deepcopy__(self, memo):
        return self.copy()
