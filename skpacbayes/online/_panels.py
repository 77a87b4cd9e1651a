"""How full covariances lie in memory: in panels of columns, row after row."""

import math

import numpy as np

from .._kernels.online_full import PANEL


def aligned_zeros(shape):
    """Zeros that begin at a multiple of 64 bytes, as a vector of the processor does.

    A copy may begin elsewhere: it holds the same numbers, and is read more slowly.
    """
    size = math.prod(shape)
    room = np.zeros(size + 7)
    start = -(room.ctypes.data // 8) % 8
    return room[start : start + size].reshape(shape)


def in_panels(variances):
    """Panels of the diagonal covariances with these variances, (..., width)."""
    width = variances.shape[-1]
    n_panels = -(-width // PANEL)
    panels = aligned_zeros((*variances.shape[:-1], n_panels, width * PANEL))
    rows = np.arange(width)
    panels[..., rows // PANEL, rows * PANEL + rows % PANEL] = variances
    return panels


def whole(panels):
    """Return the matrix whose panels these are, (width, width)."""
    width = panels.shape[1] // PANEL
    rows = panels.reshape(len(panels), width, PANEL).swapaxes(0, 1)
    return rows.reshape(width, -1)[:, :width]
