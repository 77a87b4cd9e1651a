"""What the benchmark of hidden Markov models is run on, and its peers."""

import gzip
import logging
import warnings
from pathlib import Path

import numpy as np
from hmmlearn.hmm import GMMHMM, GaussianHMM
from hmmlearn.vhmm import VariationalGaussianHMM
from matplotlib.cbook import get_sample_data
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

ELEC2 = Path(__file__).parents[2] / "shared" / "data" / "elec2.csv.gz"
MAX_ITER = 300  # of EM; its tolerance is what stops it
N_STARTS = 5
N_BATCHES = 12  # of successive rows, for standard errors
PEERS = {
    "GaussianHMM": (GaussianHMM, {}),
    "GMMHMM": (GMMHMM, {"n_mix": 3}),
    "VariationalGaussianHMM": (VariationalGaussianHMM, {}),
}

logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # says that EM did not converge


def error_of_mean(values):
    """Return the standard error of a mean over rows in order, by means of batches."""
    means = [batch.mean() for batch in np.array_split(values, N_BATCHES)]
    return np.std(means, ddof=1) / np.sqrt(N_BATCHES)


def best_of_starts(name, X, n_states, covariance_type="diag", lengths=None):
    """Return the fit of a peer with the highest likelihood, of five starts.

    None if all have failed: fits with NaN in them, where a state empties.
    """
    model, options = PEERS[name]
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divisions by zero where a state empties
        for seed in range(N_STARTS):
            fit = model(
                n_states,
                covariance_type=covariance_type,
                n_iter=MAX_ITER,
                random_state=seed,
                **options,
            )
            try:
                fit.fit(X, lengths)
            except ValueError:  # it stops at its own NaN
                continue
            score = log_density_of_peer(fit, X, lengths)
            if np.isfinite(score):
                fits.append((score, seed, fit))
    return max(fits)[-1] if fits else None


def log_density_of_peer(fit, X, lengths=None):
    """Log density of the sequences under the fit, -inf where the fit has failed."""
    try:
        return fit.score(X, lengths)
    except ValueError:  # a fit with NaN in it
        return -np.inf


def accuracy(states, found, n_states):
    """Share of right states after the best assignment, and that assignment.

    Returns
    -------
    share : float
    label_of : ndarray of shape (n_states,)
        The label that stands for each state.
    """
    counts = confusion_matrix(states, found, labels=range(n_states))
    rows, label_of = linear_sum_assignment(-counts)
    return counts[rows, label_of].sum() / len(states), label_of


def error_of_transitions(truth, found, label_of):
    """Largest absolute error of a transition probability."""
    return np.abs(found[np.ix_(label_of, label_of)] - truth).max()


def electricity():
    """Four-hourly means of the logarithm of price, and of demand; None if absent.

    944 days of New South Wales, six rows a day. Half-hourly prices that repeat would
    put a sixth of the changes at zero, where a density means nothing.
    """
    if not ELEC2.exists():
        return None
    with gzip.open(ELEC2, "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, usecols=(1, 2))
    price, demand = table.T
    rows = np.column_stack([np.log(price.clip(0.005)), demand])
    return rows.reshape(-1, 8, 2).mean(axis=1)


def monthly_returns():
    """Log returns in percent of the S&P 500, IBM and Microsoft, 1990 to 2022."""
    with get_sample_data("Stocks.csv") as file:
        table = np.genfromtxt(
            file, delimiter=",", names=True, dtype=None, encoding="utf-8", skip_header=1
        )
    first_of_month = np.char.endswith(table["Date"], "-01")
    prices = np.column_stack([table[name] for name in ("GSPC", "IBM", "MSFT")])
    complete = first_of_month & np.isfinite(prices).all(axis=1)
    return 100 * np.diff(np.log(prices[complete]), axis=0)
