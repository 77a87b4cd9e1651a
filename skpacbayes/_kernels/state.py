"""State of a kernel: named arrays in one piece of memory."""

import math

import numpy as np

LINE = 8  # float64 numbers in a cache line


def named(array, *index):
    """Return a property of a state: the entries of `array` at `index` of its last axes.

    Its value is a view, or a number if `index` leaves no axis; setting it writes to the
    array.
    """
    index = (..., *index)

    def read(self):
        return getattr(self, array)[index][()]

    def write(self, value):
        getattr(self, array)[index] = value

    return property(read, write)


class KernelState:
    """Arrays of float64 that a kernel changes in place, allocated together.

    Each array starts at a multiple of 64 bytes, also in a copy and after pickling, for
    fast vectorised access.

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
        """Allocate the arrays in one block."""
        self._shapes = [tuple(map(int, shape)) for shape in shapes]
        self._places, start = [], 0
        for shape in self._shapes:
            size = math.prod(shape)
            self._places.append((start, start + size, shape))
            start += -(-size // LINE) * LINE
        self._allocate(start)

    def _allocate(self, size):
        room = np.empty(size + LINE - 1)
        first = -(room.__array_interface__["data"][0] // 8) % LINE
        self._memory = memory = room[first : first + size]
        self.arrays = tuple(
            memory[start:stop].reshape(shape) for start, stop, shape in self._places
        )
        self._name_arrays()

    def _name_arrays(self):
        """Set named attributes; for subclasses."""

    _work = None  # neither copied nor pickled

    def work_for(self, n_rows):
        """Return scratch for learning rows; that of one row is kept for the next one.

        Its content does not matter.
        """
        if n_rows > 1:
            return np.empty(self._shape_of_work(n_rows))
        if self._work is None:
            self._work = np.empty(self._shape_of_work(1))
        return self._work

    def __getstate__(self):
        return {"shapes": self._shapes, "memory": self._memory}

    def __setstate__(self, state):
        self._lay_out([tuple(shape) for shape in state["shapes"]])
        self._memory[:] = state["memory"]

    def copy(self):
        """Return a deep copy."""
        new = object.__new__(type(self))
        new._shapes, new._places = self._shapes, self._places
        new._allocate(len(self._memory))
        new._memory[:] = self._memory
        return new

    def __deepcopy__(self, memo):
        return self.copy()
