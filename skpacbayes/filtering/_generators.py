"""Random generators of filters: SFC64, the fastest for normals, kept as states."""

import numpy as np
from numpy.random.bit_generator import ISeedSequence


def seeded(seed):
    """Return a new generator."""
    return np.random.Generator(np.random.SFC64(seed))


def continued(state):
    """Return a generator with the state of another."""
    bits = np.random.SFC64(NO_SEED)
    bits.state = state
    return np.random.Generator(bits)


class _NoSeed(ISeedSequence):
    """A seed of zeros, for a generator whose state is set at once."""

    def generate_state(self, n_words, dtype=np.uint32):
        return np.zeros(n_words, dtype)


NO_SEED = _NoSeed()
