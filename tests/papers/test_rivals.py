import copy
from fractions import Fraction

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes.checks import check_steps
from tallytree.errors import RequestError

RIVALS = ["dawa", "privtree", "ahp"]
CHOOSING = ["dawa", "privtree"]
STEPS = np.repeat([0, 900, 0, 300, 0], [256, 128, 128, 256, 256])


def towns(seed, side=64):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(0.3, 0.03, (4000, 2)), rng.normal(0.7, 0.08, (4000, 2))])
    cells = np.clip((points * side).astype(int), 0, side - 1)
    return np.bincount(cells[:, 0] * side + cells[:, 1], minlength=side * side).reshape(side, side)


@pytest.mark.parametrize("mechanism", RIVALS)
@pytest.mark.parametrize("loss", [{"epsilon": "0.5"}, {"rho": "0.1", "definition": "zcdp"}])
def test_rivals_are_saved_loaded_and_verified(mechanism, loss, tmp_path):
    counts = towns(1)
    made = tt.spatial(counts=counts, mechanism=mechanism, insecure_seed=2, **loss)
    assert made.verify(), made.verify()
    made.save(tmp_path / "map")
    assert tt.verify(tmp_path / "map")
    loaded = tt.load(tmp_path / "map")
    part = loaded.range([(0, 32), (0, 32)])
    assert part.estimate == made.range([(0, 32), (0, 32)]).estimate
    assert abs(part.estimate - counts[:32, :32].sum()) < 6 * part.std_error + 50
    assert sum(Fraction(step["share"]) for step in made.manifest["privacy"]["steps"]) == 1


@pytest.mark.parametrize("mechanism", CHOOSING)
def test_noise_of_choices_is_checked(mechanism):
    manifest = copy.deepcopy(
        tt.spatial(counts=towns(1, 16), mechanism=mechanism, epsilon=1, insecure_seed=2).manifest
    )
    assert check_steps(manifest).passed
    for step in manifest["privacy"]["steps"]:
        if "scale" in step and "noise" not in step:
            step["scale"] = str(Fraction(step["scale"]) * Fraction(9, 10))
    assert not check_steps(manifest).passed


@pytest.mark.parametrize("mechanism", CHOOSING)
def test_a_stated_epsilon_and_delta_are_refused_before_anything_is_paid(mechanism):
    with pytest.raises(RequestError, match="Gaussian noise alone"):
        tt.spatial(counts=STEPS, mechanism=mechanism, epsilon=1, delta=1e-6)


def test_dawa_merges_even_bins_and_none_across_steps():
    made = tt.spatial(counts=STEPS, mechanism="dawa", epsilon="0.1", insecure_seed=1)
    parts = (
        made.estimates.tree.low[made.estimates.leaves, 0],
        made.estimates.tree.high[made.estimates.leaves, 0],
    )
    assert len(parts[0]) < len(STEPS) / 3
    assert all(len(set(STEPS[a:b].tolist())) == 1 for a, b in zip(*parts))


def test_many_parts_are_counted_on_levels_too():
    rough = np.random.default_rng(1).integers(0, 100_000, size=1024)
    steps = tt.spatial(counts=rough, mechanism="dawa", epsilon=1, insecure_seed=1).manifest[
        "privacy"
    ]["steps"]
    assert [step["query"] for step in steps] == ["parts", "depth 4", "depth 8", "part, depth 10"]
    assert [step["share"] for step in steps] == ["1/4"] * 4


def test_the_deeper_privtree_splits_the_more_points_there_are():
    boxes = [
        tt.spatial(
            counts=many * towns(1), mechanism="privtree", epsilon=1, insecure_seed=1
        ).estimates.leaves.sum()
        for many in (1, 30)
    ]
    assert 50 < boxes[0] < boxes[1] / 2 < 64 * 64 / 2
