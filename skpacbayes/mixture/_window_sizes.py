"""Numbers of rows of the blocks and of the window of a stream."""

from .._base import warn_user
from ._stream import AUTO_WINDOW

LARGEST_BLOCK = 10_000
FEW = 0.4  # least share of a default block in a window, with which few streams fail
WAITING = 4  # default blocks: the longest window as long as a component is empty


def window_sizes(mixture, n_features):
    """Return the sizes for the parameters of an estimator.

    Returns
    -------
    block_size : int or None
        Rows of a block; None for one block that grows.
    window : int
        Rows of the window.
    longest : int
        Rows of the window as long as a component is empty; 0 for `window`.
    """
    block_size, window, longest = mixture.block_size, mixture.window, 0
    auto = mixture.n_components == "auto"
    K = mixture.max_components if auto else mixture.n_components
    rows = default_block(mixture, K, n_features)
    if block_size == "auto":
        block_size = max(500, rows)
    if window == "auto":
        window = 0 if block_size is None else max(AUTO_WINDOW * block_size, rows)
        if not auto and window and rows > block_size:
            longest = min(LARGEST_BLOCK, WAITING * rows)
    return block_size, window, longest


def default_block(mixture, n_components, n_features):
    """Return the number of rows that components need in a block."""
    return min(LARGEST_BLOCK, mixture._rows_of_a_block(n_components, n_features))


def warn_of_short_window(mixture, block_size, window, n_features):
    """Warn if the rows of a window that was given are few for the components."""
    K = 2 if mixture.n_components == "auto" else mixture.n_components
    if mixture.window == "auto" or block_size is None or K == 1:
        return
    needed = int(FEW * default_block(mixture, K, n_features))
    kept = block_size + window
    if kept < needed:
        warn_user(
            f"window={window} and block_size={block_size} keep {kept} "
            f"rows, fewer than the {needed} that {K} components with {n_features} "
            "columns need: groups may be merged. Increase window or block_size, or "
            "leave window='auto'.",
        )
