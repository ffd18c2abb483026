"""The semidefinite programme of the matrix mechanism (Li et al. 2010; qardaji2013 §4.1), by
Clarabel.

With G = WᵀW the least total variance over strategies whose columns have L2 norm 1 is the optimum
of: minimise trace(G X⁻¹) for X ⪰ 0 with diagonal at most 1, X being AᵀA. With G = LLᵀ, trace(G X⁻¹)
≤ trace(Z) where [[X, L], [Lᵀ, Z]] ⪰ 0. For Gaussian noise that is the optimum itself. For Laplace
noise columns have L1 norm 1, which is not a convex condition on X; their L2 norm is then at most 1,
so the optimum is a lower bound.

All ranges look the same from right to left, so X may be taken to do so too: in the basis of sums
and differences of mirrored bins it has two blocks, each half as large.
"""

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]


def least_relative_error(gram: Matrix, n_queries: int) -> float:
    """The optimum over the number of queries, for a Gram matrix that is the same when mirrored."""
    import clarabel
    from scipy import sparse

    n = len(gram)
    assert n % 2 == 0
    np.testing.assert_allclose(gram, gram[::-1, ::-1])
    half = n // 2
    upper, lower = np.eye(n)[:half], np.eye(n)[::-1][:half]
    blocks = [(upper + sign * lower) / np.sqrt(2) for sign in (1, -1)]
    roots = [np.linalg.cholesky(basis @ gram @ basis.T) for basis in blocks]
    # Variables: per block the packed lower triangles of X and of Z.
    packed = [
        (i, j) for j in range(half) for i in range(j + 1)
    ]  # column by column, upper triangle, as Clarabel wants it
    n_packed = len(packed)
    of = {pair: k for k, pair in enumerate(packed)}
    cost = np.zeros(4 * n_packed)
    for block in range(2):
        for i in range(half):
            cost[(2 * block + 1) * n_packed + of[i, i]] = 1.0
    rows, columns, values, right = [], [], [], []
    for i in range(half):  # the diagonal of X: half of that of each block
        for block in range(2):
            rows.append(i)
            columns.append(2 * block * n_packed + of[i, i])
            values.append(0.5)
        right.append(1.0)
    cones = [clarabel.NonnegativeConeT(half)]
    for block, root in enumerate(roots):
        for j in range(n):
            for i in range(j + 1):
                row, weight = len(right), 1.0 if i == j else np.sqrt(2)
                if i < half <= j:
                    right.append(weight * root[i, j - half])
                    continue
                part, a, b = (0, i, j) if j < half else (1, i - half, j - half)
                rows.append(row)
                columns.append((2 * block + part) * n_packed + of[a, b])
                values.append(-weight)
                right.append(0.0)
        cones.append(clarabel.PSDTriangleConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    matrix = sparse.csc_matrix((values, (rows, columns)), shape=(len(right), len(cost)))
    nothing = sparse.csc_matrix((len(cost), len(cost)))
    found = clarabel.DefaultSolver(nothing, cost, matrix, np.array(right), cones, settings).solve()
    assert str(found.status) == "Solved", found.status
    return float(found.obj_val) / n_queries
