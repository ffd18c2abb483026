"""Numbers that steer the adaptive mechanism: one file per idea, each number with its reason and the
figure that bears it.

None of them touches privacy: they decide what is asked next, from answers already paid for, and how
answers are combined. Figures are earth mover's distances; "cells" are (data set, level, ε). The
golden accuracy tests notice when one of them moves; how much is measured with ``python -m
benchmarks.accuracy.ablation``.

Kernels freeze these numbers when they are compiled, and a compiled kernel is kept as long as its
own file is unchanged: who changes a number here that a kernel imports, empties the kernels'
``__pycache__`` (the tests do so themselves).
"""
