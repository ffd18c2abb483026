"""One small folder per kind in format 1, and what was seen of it when it was written.

``python -m tests.releases.frozen_folders`` writes them anew, where the format grows before a
version goes out; from then on they stay as they are.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import tallytree as tt
from tests.fuzz.small import KINDS_MADE

FORMAT_1 = Path(__file__).parent.parent / "fixtures" / "format-1"
SEEN = FORMAT_1 / "seen.json"
QUESTIONS: dict[str, dict[str, Any]] = {
    "group-sizes": {"region": "total/GA", "at_least": 2},
    "values": {"region": "total/GA", "at_least": 2},
    "table": {"region": "total/GA", "where": ["miles=1-2"], "by": ["sex"]},
    "histogram": {"ranges": ["2:8"]},
    "degrees": {"largest": 2},
    "map": {"ranges": ["0:2,0:1"]},
    "stream": {"ranges": ["2:4"]},
}


def seen(folder: Path, kind: str) -> dict[str, Any]:
    """The statement of a folder, and its answer to one question, as JSON has them."""
    release = tt.load(folder)
    facts = tt.ask(release, **QUESTIONS[kind]).facts
    found = {"statement": release.manifest["privacy"]["statement"], "answer": facts}
    result: dict[str, Any] = json.loads(json.dumps(found))
    return result


def write() -> None:
    """Write every folder, and what is seen of it."""
    for kind, make in KINDS_MADE.items():
        shutil.rmtree(FORMAT_1 / kind, ignore_errors=True)
        make(insecure_seed=1).save(FORMAT_1 / kind)
    found = {kind: seen(FORMAT_1 / kind, kind) for kind in KINDS_MADE}
    SEEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
