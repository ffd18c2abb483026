import json

import numpy as np
import pytest

from tallytree.degree_sequences.publish import degrees
from tallytree.errors import RequestError
from tallytree.kinds.verbs import load, verify, verify_privacy
from tallytree.ranges.publish import histogram
from tallytree.streams.publish import stream
from tests.forging import forge

RELEASES = {
    "histogram": lambda: histogram([5, 6, 7], epsilon=1, mechanism="hierarchical", branching=2),
    "matrix": lambda: histogram(
        [5, 6, 7], rho=1, definition="zcdp", mechanism=np.eye(3) + 0.25, contributions=2
    ),
    "degrees": lambda: degrees([5, 6, 7], epsilon=1, contributions=3),
    "stream": lambda: stream(counts=[5, 6, 7], epsilon=1, contributions=3),
    "stream, approximate": lambda: stream(counts=[5, 6, 7], horizon=365, epsilon=1, delta="1e-6"),
}


@pytest.mark.parametrize("name", RELEASES)
def test_every_kind_loads_verifies_and_states_its_loss(tmp_path, name):
    made = RELEASES[name]()
    folder = made.save(tmp_path / "out")
    assert type(load(folder)) is type(made)
    verify(folder).raise_if_failed()
    verify_privacy(folder).raise_if_failed()
    manifest = json.loads((folder / "manifest.json").read_text())
    privacy = manifest["privacy"]
    privacy["composition"] = json.loads(
        json.dumps(privacy["composition"]).replace('"l1": ', '"l1": 1')
    )
    forge(folder, manifest)
    assert not verify_privacy(folder)


def test_unknown_kinds_are_refused(tmp_path):
    folder = degrees([1], epsilon=1).save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    forge(folder, manifest | {"kind": "painting"})
    for action in (load, verify):
        with pytest.raises(RequestError, match="does not know"):
            action(folder)
