"""Online estimators whose answers depend on the order of the rows."""

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)

DEPEND_ON_ORDER = [
    OnlineVIClassifier(random_state=0),
    OnlineVIClassifier(forgetting="auto", random_state=0),
    OnlineVIClassifier(loss="hinge", random_state=0),
    OnlineVIMLPClassifier(random_state=0),
    OnlineVIMLPRegressor(random_state=0),
    OnlineVIRegressor(random_state=0, forgetting="auto"),
    OnlineVIRegressor(random_state=0, forgetting=0.01),
    OnlineVIRegressor(random_state=0, covariance="diagonal"),
    OnlineVIRegressor(random_state=0, loss="quantile"),
    OnlineVIRegressor(random_state=0, loss="poisson"),
    OnlineVIRegressor(n_fourier=8, random_state=0),
    EWARegressor(),
]
