"""What the note of a work folder holds: whether one can be gone by, before anybody does."""

from __future__ import annotations

from typing import Any

# What every note says, what one of a release that is measured says too, and what some say.
_ALWAYS: dict[str, tuple[type, ...]] = {
    "state": (str,),
    "request": (str,),
    "kind": (str,),
    "dataset": (str, type(None)),
    "key": (str,),
    "receipt": (dict, type(None)),
    "overwrite": (bool,),
    "versions": (dict,),
    "machine": (str,),
    "noisy": (bool,),
    "intervals": (int,),
}
_MEASURED: dict[str, tuple[type, ...]] = {"answers": (str,), "read": (str,)}
_SOMETIMES: dict[str, tuple[type, ...]] = {
    "ledger": (str, type(None)),
    "manifest": (str, type(None)),
    "sealed": (bool,),
    "n_steps": (int,),
    "left": (int,),
    "run": (str,),
}
_OF_RECEIPT: dict[str, tuple[type, ...]] = {"dataset": (str,), "position": (int,), "key": (str,)}


def is_note(facts: dict[str, Any]) -> bool:
    """Whether facts are those of a run: all that is needed to go on, each of its type."""
    needed = _ALWAYS | (_MEASURED if facts.get("state") == "measured" else {})
    may = {name: kinds for name, kinds in _SOMETIMES.items() if name in facts}
    if not _holds(facts, needed | may) or facts["state"] not in ("paying", "paid", "measured"):
        return False
    receipt = facts["receipt"]
    if facts["dataset"] is None or facts["state"] == "paying":
        return receipt is None
    return isinstance(receipt, dict) and _holds(receipt, _OF_RECEIPT)


def _holds(facts: dict[str, Any], kinds: dict[str, tuple[type, ...]]) -> bool:
    return all(name in facts and type(facts[name]) in of for name, of in kinds.items())
