import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tallytree.degree_sequences.estimate import estimate_sorted_counts, publishable_degrees
from tallytree.degree_sequences.evaluate import true_degrees
from tallytree.degree_sequences.kernels import is_graphical
from tallytree.degree_sequences.measure import (
    ConfidentialSizes,
    confidential_sizes,
    measure_sorted_counts,
)
from tallytree.degree_sequences.publish import degrees
from tallytree.degree_sequences.release import PublicSizes
from tallytree.errors import InputError, RequestError, StorageError
from tallytree.ingest.read import read
from tallytree.kinds.verbs import evaluate, load, re_estimate, verify
from tallytree.model.unit import Unit
from tallytree.options.degrees import DegreesOptions
from tallytree.privacy.noise import DiscreteLaplace
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import Sensitivity
from tests.forging import forge

COUNTS = np.random.default_rng(2).zipf(1.7, 500).clip(max=200)


def test_the_papers_example():
    """hay2010 Example 4, second and third sequence."""
    np.testing.assert_array_equal(
        estimate_sorted_counts(np.array([9, 14, 10]), "isotonic"), [9, 12, 12]
    )
    np.testing.assert_array_equal(
        estimate_sorted_counts(np.array([14, 9, 10, 15]), "isotonic"), [11, 11, 11, 15]
    )


def test_three_estimators():
    noisy = np.array([3, -2, 5, 4])
    assert publishable_degrees(noisy, "noisy", graphical=False).tolist() == [3, -2, 5, 4]
    assert publishable_degrees(noisy, "sorted", graphical=False).tolist() == [0, 3, 4, 5]
    assert publishable_degrees(noisy, "isotonic", graphical=False).tolist() == [0, 0, 4, 4]
    assert publishable_degrees(np.array([-5, -4, 1]), "isotonic", graphical=False).tolist() == [
        0,
        0,
        1,
    ]


@pytest.mark.parametrize("method", ["isotonic", "sorted"])
@pytest.mark.parametrize("graphical", [False, True])
def test_degrees_are_sorted_whole_and_not_negative(method, graphical):
    released = degrees(COUNTS, epsilon=0.1, mechanism=method, graphical=graphical, insecure_seed=1)
    assert released.degrees.dtype == np.int64
    assert np.all(np.diff(released.degrees) >= 0)
    assert released.degrees[0] >= 0
    assert released.is_graphical() or not graphical
    assert released.verify()
    assert released.table()["count"].to_numpy().sum() == len(COUNTS)


def test_the_isotonic_fit_is_much_closer_than_the_noisy_counts():
    truth, errors = np.sort(COUNTS), []
    for seed in range(10):
        errors.append(
            [
                np.square(
                    degrees(COUNTS, epsilon=0.1, mechanism=method, insecure_seed=seed).degrees
                    - truth
                ).sum()
                for method in ("noisy", "sorted", "isotonic")
            ]
        )
    noisy, in_order, isotonic = np.mean(errors, axis=0)
    assert isotonic < noisy / 10
    assert isotonic < in_order


def test_sources_agree():
    rows = pa.table(
        {"source": np.repeat(np.arange(4), [2, 1, 10, 2]), "target": np.arange(100, 115)}
    )
    by_column = degrees(rows, column="source", epsilon=1000, public="groups")
    by_counts = degrees([2, 1, 10, 2], epsilon=1000)
    by_read = degrees(read(rows, group="source", public="groups"), epsilon=1000)
    by_edges = degrees(
        rows, edges=("source", "target"), directed=True, epsilon=1000, public="nodes"
    )
    for released in (by_column, by_counts, by_read):
        assert released.degrees.tolist() == [1, 2, 2, 10]
        assert released.private
    assert by_edges.degrees[-4:].tolist() == [1, 2, 2, 10]


def test_an_undirected_edge_costs_twice():
    rows = pa.table({"a": [1, 2, 3], "b": [2, 3, 1]})
    undirected = degrees(
        rows, edges=("a", "b"), epsilon=0.5, graphical=True, insecure_seed=1, public="nodes"
    )
    assert undirected.manifest["privacy"]["scale"] == "4"
    assert undirected.manifest["privacy"]["unit"]["words"] == "one edge"
    assert is_graphical(undirected.degrees)
    assert (
        degrees(
            rows, edges=("a", "b"), directed=True, epsilon=0.5, insecure_seed=1, public="nodes"
        ).manifest["privacy"]["scale"]
        == "2"
    )
    assert (
        degrees([1], rho=0.5, definition="zcdp", contributions=3).manifest["privacy"]["sigma2"]
        == "9"
    )


@pytest.mark.parametrize("noisy", [True, False])
def test_saved_degrees_load_and_verify(tmp_path, noisy):
    released = degrees(COUNTS, epsilon=0.5, graphical=True, insecure_seed=3)
    released.save(tmp_path / "out", noisy=noisy)
    loaded = load(tmp_path / "out")
    assert verify(tmp_path / "out")
    np.testing.assert_array_equal(loaded.degrees, released.degrees)
    assert loaded.noise == released.noise
    assert loaded.manifest == released.manifest
    assert (loaded.noisy is not None) == noisy
    with pytest.raises(StorageError):
        released.save(tmp_path / "out")


def test_verification_notices_changes(tmp_path):
    released = degrees(COUNTS, epsilon=0.5, graphical=True, insecure_seed=3)
    forged = type(released)(
        np.append(released.degrees[:-1], 499), released.noise, released.manifest, released.noisy
    )
    folder = forged.save(tmp_path / "forged")
    failed = [check.name for check in verify(folder).checks if not check.passed]
    assert failed == ["some graph has these degrees", "degrees follow from the noisy answers"]
    manifest = json.loads((folder / "manifest.json").read_text())
    forge(folder, manifest | {"kind": "histogram"})
    assert not verify(folder)
    del manifest["privacy"]["sensitivity"]
    forge(folder, manifest)
    assert not verify(folder)


def test_questions():
    released = degrees([1, 2, 2, 7], epsilon=1000)
    assert (
        released.of_degree(2),
        released.at_least(2),
        released.kth_largest(1),
        released.total(),
    ) == (2, 3, 7, 12)
    assert repr(released) == "DegreeSequence(4 nodes, isotonic, epsilon = 1000)"
    with pytest.raises(RequestError, match="between 1 and"):
        released.kth_largest(5)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: degrees(COUNTS), RequestError, "epsilon is missing"),
        (lambda: degrees(COUNTS, epsilon=0), RequestError, "greater than 0"),
        (
            lambda: degrees(COUNTS, epsilon=1, mechanism="mean"),
            RequestError,
            "mechanism .mean. is not known. Choose one of",
        ),
        (
            lambda: degrees(COUNTS, epsilon=1, mechanism="noisy", graphical=True),
            RequestError,
            "needs mechanism",
        ),
        (lambda: degrees(COUNTS, epsilon=1, contributions=0), RequestError, "at least 1"),
        (
            lambda: degrees(COUNTS, epsilon=1, column="a", edges=("a", "b"), public="nodes"),
            RequestError,
            "not both",
        ),
        (
            lambda: degrees(COUNTS, epsilon=1, edges="ab", public="nodes"),
            RequestError,
            "edges takes a list",
        ),
        (lambda: degrees([1.5, 2], epsilon=1), InputError, "whole numbers"),
        (lambda: degrees([[1, 2]], epsilon=1), InputError, "one dimension"),
        (lambda: degrees([], epsilon=1), InputError, "at least one"),
    ],
)
def test_bad_requests_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


GRAPH = pa.table({"a": [1, 1, 2, 3, 7], "b": [2, 3, 3, 4, 8]})


@pytest.mark.parametrize(
    ("source", "options", "number", "sorted_counts"),
    [
        (GRAPH, {"edges": ("a", "b")}, ("nodes", 2, 4), ("edge degrees", 2, 2)),
        (GRAPH, {"edges": ("a", "b"), "directed": True}, ("nodes", 2, 4), ("sizes", 1, 1)),
        (GRAPH, {"column": "a"}, ("group totals", 1, 1), ("sizes", 1, 1)),
    ],
)
def test_the_number_of_nodes_may_be_confidential(source, options, number, sorted_counts, tmp_path):
    made = degrees(source, epsilon=1, public="none", insecure_seed=4, **options)
    privacy = made.manifest["privacy"]
    shown = [
        (q["query"], *q["sensitivity"].values(), q["epsilon"]) for q in privacy["side_queries"]
    ]
    assert shown == [(*number, "1/20"), (*sorted_counts, "19/20")]
    assert made.manifest["public"]["groups"] is None
    assert privacy["fixed"] == []
    made.save(tmp_path / "out")
    assert verify(tmp_path / "out")
    assert load(tmp_path / "out").noise == made.noise
    assert np.array_equal(re_estimate(tmp_path / "out").degrees, made.degrees)
    n_true = len(true_degrees(source, DegreesOptions(epsilon=1, public="none", **options)))
    assert evaluate(made, source, **options).classes[0].queries == max(len(made.degrees), n_true)


def test_as_many_counts_are_measured_as_the_noisy_number_says():
    counts = confidential_sizes([5, 1, 3], 1).counts
    public = PublicSizes(Unit(), None, None, "")
    private = ConfidentialSizes(counts, "sizes", Sensitivity(1, 1), public, Sensitivity(1, 1))
    hardly_any, some = DiscreteLaplace(Fraction(1, 50)), DiscreteLaplace(Fraction(2))
    lengths = set()
    for seed in range(40):
        noisy = measure_sorted_counts(private, hardly_any, KeyStream.from_insecure_seed(seed), some)
        lengths.add(len(noisy))
        # The largest counts, filled up with zeros from below; a number below 0 is none.
        assert noisy[::-1].tolist() == ([5, 3, 1] + [0] * len(noisy))[: len(noisy)]
    assert {0, 2, 3, 5} < lengths


def test_counts_read_with_confidential_totals_are_private_too():
    rows = pa.table({"house": [1, 1, 2]})
    made = degrees(read(rows, group="house", public="regions"), epsilon=1, insecure_seed=1)
    assert made.manifest["privacy"]["side_queries"][0]["query"] == "group totals"
