"""Loops of the mixtures over a tile of rows.

The innermost loops run over components or over rows and carry no reduction, so that
the compiler vectorises them; the exponentials, logarithms and matrix products in
between are NumPy's.
"""

from . import kernel


@kernel
def quadratic_features(X, origin, first, second, features):
    """Write the columns (1, z, z_first * z_second), where z = x - origin.

    X : (n_rows, n_features); origin : (n_features,); first, second : (n_products,)
    indices of features; features : (1 + n_features + n_products, n_rows),
    overwritten.
    """
    n_rows, n_features = X.shape
    for i in range(n_rows):
        features[0, i] = 1.0
    for j in range(n_features):
        for i in range(n_rows):
            features[1 + j, i] = X[i, j] - origin[j]
    for product in range(first.shape[0]):
        row = 1 + n_features + product
        j, m = 1 + first[product], 1 + second[product]
        for i in range(n_rows):
            features[row, i] = features[j, i] * features[m, i]


@kernel
def diagonal_log_joint(X, constants, means, precisions, log_joint):
    """Write constants_k - 1/2 sum_j precisions_jk (x_ij - means_jk)^2.

    X : (n_rows, n_features); constants : (n_components,); means, precisions :
    (n_features, n_components); log_joint : (n_rows, n_components), overwritten.
    """
    n_features, n_components = means.shape
    for i in range(X.shape[0]):
        for k in range(n_components):
            log_joint[i, k] = constants[k]
        for j in range(n_features):
            x = X[i, j]
            for k in range(n_components):
                gap = x - means[j, k]
                log_joint[i, k] -= 0.5 * precisions[j, k] * gap * gap


@kernel
def add_diagonal_moments(X, responsibilities, origins, sums, squares):
    """Add the weighted first and second moments of X about each origin.

    X : (n_rows, n_features); responsibilities : (n_rows, n_components); origins,
    sums, squares : (n_features, n_components), the last two updated in place.
    """
    n_features, n_components = origins.shape
    for i in range(X.shape[0]):
        for j in range(n_features):
            x = X[i, j]
            for k in range(n_components):
                gap = x - origins[j, k]
                moment = responsibilities[i, k] * gap
                sums[j, k] += moment
                squares[j, k] += moment * gap


@kernel
def subtract_row_maximum(log_joint, highest):
    """Subtract from each row of `log_joint` its maximum, kept in `highest`."""
    n_rows, n_components = log_joint.shape
    for i in range(n_rows):
        maximum = log_joint[i, 0]
        for k in range(1, n_components):
            if log_joint[i, k] > maximum:
                maximum = log_joint[i, k]
        highest[i] = maximum
        for k in range(n_components):
            log_joint[i, k] -= maximum


@kernel
def normalise_rows(shares, weight, totals):
    """Scale each row of `shares` so that it sums to its weight.

    shares : (n_rows, n_components), in place; weight : (n_rows,); totals : (n_rows,),
    the sums before, overwritten.
    """
    n_rows, n_components = shares.shape
    for i in range(n_rows):
        total = 0.0
        for k in range(n_components):
            total += shares[i, k]
        totals[i] = total
        scale = weight[i] / total
        for k in range(n_components):
            shares[i, k] *= scale
