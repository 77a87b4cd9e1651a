"""Numbers of rows of the blocks and of the window of a stream."""

from typing import NamedTuple

from .._base import warn_user
from ._stream import AUTO_WINDOW

LARGEST_BLOCK = 10_000
FEW = 0.4  # least share of a default block in a window, with which few streams fail
WAITING = 4  # default blocks: the longest window as long as a component is empty


class WindowSizes(NamedTuple):
    """Numbers of rows.

    block_size : of a block; None for one block that grows
    window : of the window
    longest : of the window as long as a component is empty
    """

    block_size: int | None
    window: int
    longest: int = 0


def window_sizes(mixture, n_features):
    """Return the sizes for the parameters of an estimator."""
    block_size, window, longest = mixture.block_size, mixture.window, 0
    auto = mixture.n_components == "auto"
    K = mixture.max_components if auto else mixture.n_components
    rows = default_block(mixture, K, n_features)
    if block_size == "auto":
        block_size = max(500, rows)
    if window == "auto":
        window = 0 if block_size is None else max(AUTO_WINDOW * block_size, rows)
        if not auto and window and window > AUTO_WINDOW * block_size:
            longest = min(LARGEST_BLOCK, WAITING * rows)
    return WindowSizes(block_size, window, longest)


def default_block(mixture, n_components, n_features):
    """Return the number of rows that components need in a block."""
    return min(LARGEST_BLOCK, mixture._rows_of_a_block(n_components, n_features))


def warn_of_short_window(mixture, sizes, n_features):
    """Warn if the rows of a window that was given are few for the components."""
    K = 2 if mixture.n_components == "auto" else mixture.n_components
    if mixture.window == "auto" or sizes.block_size is None or K == 1:
        return
    needed = int(FEW * default_block(mixture, K, n_features))
    kept = sizes.block_size + sizes.window
    if kept < needed:
        warn_user(
            f"window={sizes.window} and block_size={sizes.block_size} keep {kept} "
            f"rows, fewer than the {needed} that {K} components with {n_features} "
            "columns need: groups may be merged. Increase window or block_size, or "
            "leave window='auto'.",
        )
