"""The form of the Differential Privacy Deployments Registry: what a record must say, and how it is
written as YAML.

The registry's schema is ``schemas/deployments-schema.yaml`` of opendp/deployments-registry-data.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

# What the registry requires and no manifest knows, and the flag that says it.
REQUIRED = {
    ("basic", "name"): "--name",
    ("basic", "data_curators"): "--curator",
    ("basic", "intended_use"): "--intended-use",
    ("basic", "data_product_region"): "--region",
    ("basic", "publication_date"): "--published",
}
RECORD = ("url_slug", "status", "tier", "deployment")
# Characters that YAML does not take as they are, or takes for the end of a line.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def record_of(deployment: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The registry's record of a deployment: a draft, with the tier that it fills."""
    slug = slug_of(deployment["basic"].get("name", ""))
    told_all = deployment["dp_variant"].get("data_domain") and deployment["implementation"].get(
        "justification"
    )
    tier = 3 if told_all else 2
    return {
        **({"url_slug": slug} if slug else {}),
        "status": "Draft",
        "tier": tier,
        "deployment": dict(deployment),
    }


def slug_of(name: str) -> str:
    """A name in the letters of an address: small Latin letters, digits and underscores.

    Examples
    --------
    >>> slug_of("Homes of Québec, 2026")
    'homes_of_quebec_2026'
    """
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name)
        if not unicodedata.combining(letter)
    )
    return re.sub("[^a-z0-9]+", "_", plain.lower()).strip("_")


def missing_flags(record: Mapping[str, Any]) -> list[str]:
    """Flags for what the registry requires and the record does not say."""
    deployment = record["deployment"]
    flags = [
        flag for (part, field), flag in REQUIRED.items() if field not in deployment.get(part, {})
    ]
    if "administrative" in deployment and "registry_authors" not in deployment["administrative"]:
        flags.append("--authors")
    if "url_slug" not in record and "--name" not in flags:
        flags.append("--name with a Latin letter or a digit")
    return flags


def number_above(value: Fraction) -> int | float:
    """The number that a registry takes, never below the value: a stated loss is not rounded down.

    Examples
    --------
    >>> number_above(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    if value.denominator == 1:
        return int(value)
    near = float(value)
    # What was written as 0.1 stays 0.1, though its double is not exactly that.
    return near if Fraction(str(near)) >= value else math.nextafter(near, math.inf)


def record_yaml(record: Mapping[str, Any]) -> str:
    """A record as YAML, every text in double quotes, so that any reader of YAML takes it for the
    same text.
    """
    return "\n".join(_lines(record, "")) + "\n"


def _lines(facts: Mapping[str, Any], margin: str) -> list[str]:
    lines = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            lines += [f"{margin}{name}:", *_lines(value, f"{margin}  ")]
        elif isinstance(value, list):
            lines += [f"{margin}{name}:", *(f"{margin}  - {_scalar(entry)}" for entry in value)]
        else:
            lines.append(f"{margin}{name}: {_scalar(value)}")
    return lines


def _scalar(value: str | int | float) -> str:
    if isinstance(value, str):
        return _UNSAFE.sub(
            lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False)
        )
    text = json.dumps(value)
    # YAML 1.1 takes 1e-09 for a text.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
