"""Quadratic forms of (I + TTᵀ)⁻¹ in linear time, where T has two neighbouring hats per level and
bin.

vᵀ(I + TTᵀ)⁻¹v is the maximum of 2vᵀx − xᵀ(I + TTᵀ)x over one number x_h per hat. Going over the
bins from one side, a hat whose bins were all seen is maximised over and forgotten: a small matrix
over the hats still there, two per level, holds all that matters. From the left and from the right
together they give the form at every bin.

Hat h of a level l sits in slot 2l + h mod 2: where it ends, the hat after the next begins and takes
its place.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import serial
from tallytree.model.arrays import FloatArray, IntArray


@serial
def _see(matrix, weights):
    """Add a bin."""
    for row in range(len(weights)):
        for column in range(len(weights)):
            matrix[row, column] += weights[row] * weights[column]


@serial
def _forget(matrix, vectors, slot, own, gained):
    """Maximise over the hat of a slot, whose ``own`` part of I is not yet in the matrix, and empty
    the slot.

    ``gained`` grows by what each of the vectors gains.
    """
    pivot = matrix[slot, slot] + own
    for which in range(len(vectors)):
        gained[which] += vectors[which, slot] ** 2 / pivot
    for row in range(len(matrix)):
        if row != slot:
            factor = matrix[row, slot] / pivot
            for which in range(len(vectors)):
                vectors[which, row] -= factor * vectors[which, slot]
            for column in range(len(matrix)):
                if column != slot:
                    matrix[row, column] -= factor * matrix[slot, column]
    matrix[slot] = 0.0
    matrix[:, slot] = 0.0
    vectors[:, slot] = 0.0


@serial
def _form(matrix, vector):
    """vᵀM⁻¹v of a small positive definite matrix, which is used up together with v."""
    total = 0.0
    for pivot in range(len(vector)):
        total += vector[pivot] ** 2 / matrix[pivot, pivot]
        for row in range(pivot + 1, len(vector)):
            factor = matrix[row, pivot] / matrix[pivot, pivot]
            vector[row] -= factor * vector[pivot]
            for column in range(pivot + 1, len(vector)):
                matrix[row, column] -= factor * matrix[pivot, column]
    return total


@serial
def _sweep(weights, ends, amounts):
    n_bins, n_slots = weights.shape
    matrix, vectors, gained = np.zeros((n_slots, n_slots)), np.zeros((2, n_slots)), np.zeros(2)
    later = np.zeros(
        (n_bins, n_slots, n_slots)
    )  # what the bins to its right tell the hats of a bin
    for place in range(n_bins - 1, 0, -1):
        _see(matrix, weights[place])
        for slot in ends[place]:
            if slot >= 0:
                _forget(matrix, vectors, slot, 1.0, gained)
        later[place - 1] = matrix
    bins, prefixes = np.zeros(n_bins), np.zeros(n_bins + 1)
    matrix, both = np.eye(n_slots), np.empty((n_slots, n_slots))
    for place in range(n_bins):
        for slot in ends[place]:
            if slot >= 0:
                _forget(matrix, vectors, slot, 0.0, gained)
                matrix[slot, slot] = 1.0
        _see(matrix, weights[place])
        seen = weights[place] * amounts[place]
        vectors[0] += seen
        vectors[1] += seen * (n_bins - place)  # as many prefixes hold the bin
        both[:] = matrix + later[place]
        prefixes[place + 1] = gained[0] + _form(both, vectors[0].copy())
        both[:] = matrix + later[place]
        bins[place] = _form(both, seen)
    return bins, prefixes, gained[1] + _form(matrix, vectors[1])


def hat_forms(
    weights: FloatArray, ends: IntArray, amounts: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """vᵀ(I + TTᵀ)⁻¹v for each bin, for each prefix of bins, and for the sum of all prefixes, v
    being T·amounts over those bins.

    Parameters
    ----------
    weights
        T of every bin, in slots.
    ends
        Per bin and level the slot of the hat that ended just before it, and in which another
        begins; −1 where none did.
    amounts
        One number per bin.
    """
    bins, prefixes, whole = _sweep(weights, ends, amounts)
    return bins, prefixes, float(whole)
