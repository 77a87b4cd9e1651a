"""The benchmark of hidden Markov models against all peers, with other random numbers.

Families are drawn anew, and seeds of ours and spreadings of counts are others: what was
chosen with the first run in view is confirmed, or not.

    python benchmarks/bench_hmm_peers_again.py [--quick]
"""

import warnings

from bench_hmm_peers import N_SEEDS, compare

if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare("hmm_peers_again", first_seed=N_SEEDS)
