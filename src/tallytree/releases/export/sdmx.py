"""SDMX-CSV 2.0 with its structure as SDMX-ML 3.0: code lists, concepts, data structure and
dataflow.

The formats are those of https://sdmx.org (SDMX 3.0). Identifiers there are letters, digits, ``_``,
``@``, ``$`` and ``-``: a region's is its path in these, its own name and path stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from tallytree.releases.export.files import write_rows
from tallytree.releases.export.sheet import Codes, Sheet
from tallytree.releases.reliability import CARE, RELIABLE, UNRELIABLE

AGENCY, VERSION = "TALLYTREE", "1.0.0"
OBSERVED, STATUS = "OBS_VALUE", "OBS_STATUS"
# Of SDMX's own code list of observation status: normal value, and low reliability.
STATUS_CODES = {RELIABLE: "A", CARE: "A", UNRELIABLE: "U", None: "A"}
_STATUS = Codes(["A", "U"], ["Normal value", "Low reliability"])
_SPACES = {
    "message": "http://www.sdmx.org/resources/sdmxml/schemas/v3_0/message",
    "structure": "http://www.sdmx.org/resources/sdmxml/schemas/v3_0/structure",
    "common": "http://www.sdmx.org/resources/sdmxml/schemas/v3_0/common",
}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_ROWS_AT_ONCE = 10_000


def write_sdmx(sheet: Sheet, folder: Path) -> None:
    """``data.csv`` and ``structure.xml``."""
    identifiers = {key: identifiers_of(sheet.codes[key]) for key in sheet.names("key")}
    write_rows(folder / "data.csv", _head(sheet), _rows(sheet, identifiers))
    tree = ElementTree.ElementTree(structure(sheet, identifiers))
    for short, space in _SPACES.items():
        ElementTree.register_namespace(short[:3], space)
    ElementTree.indent(tree)
    tree.write(folder / "structure.xml", encoding="utf-8", xml_declaration=True)


def identifiers_of(codes: Codes) -> list[str]:
    """SDMX identifiers of codes: what is not allowed becomes ``_``, and those that then clash are
    numbered.

    Examples
    --------
    >>> identifiers_of(Codes(["US/01", "US/0 1", "US/0_1"], ["", "", ""]))
    ['US_01', 'US_0_1-1', 'US_0_1-2']
    """
    plain = [re.sub(r"[^A-Za-z0-9_@$-]", "_", str(value)) for value in codes.values]
    clashing = {name for name, times in _tally(plain).items() if times > 1}
    taken = set(plain)
    found = []
    for place, name in enumerate(plain):
        if name in clashing:
            number = place
            while f"{name}-{number}" in taken:
                number += len(plain)
            name = f"{name}-{number}"
            taken.add(name)
        found.append(name)
    return found


def _tally(names: Sequence[str]) -> dict[str, int]:
    times: dict[str, int] = {}
    for name in names:
        times[name] = times.get(name, 0) + 1
    return times


def _dataflow(sheet: Sheet) -> str:
    """The identifier of a table; its structure and its concepts are named after it."""
    return "RELEASE" if sheet.name == "counts" else _component(sheet.name)


def _component(name: str) -> str:
    """The identifier of a column."""
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def _attributes(sheet: Sheet) -> list[str]:
    """Columns that go along as attributes of an observation; labels of keys stand in the code
    lists.
    """
    return [*sheet.names("value")[1:], *sheet.names("error")]


def _head(sheet: Sheet) -> list[str]:
    flags = [STATUS, "RELIABILITY"] if sheet.names("flag") else []
    keys = [_component(key) for key in sheet.names("key")]
    return [
        "STRUCTURE",
        "STRUCTURE_ID",
        "ACTION",
        *keys,
        OBSERVED,
        *map(_component, _attributes(sheet)),
        *flags,
    ]


def _rows(sheet: Sheet, identifiers: dict[str, list[str]]) -> Iterator[list[object]]:
    fixed = ["dataflow", f"{AGENCY}:{_dataflow(sheet)}({VERSION})", "I"]
    keys = [[identifiers[key][place] for place in sheet.places(key)] for key in sheet.names("key")]
    plain = sheet.table.select(
        [*sheet.names("value")[:1], *_attributes(sheet), *sheet.names("flag")]
    )
    has_flags, done = bool(sheet.names("flag")), 0
    for batch in plain.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for place, row in enumerate(
            zip(*(column.to_pylist() for column in batch.columns)), start=done
        ):
            own = [*row[:-1], STATUS_CODES[row[-1]], row[-1]] if has_flags else list(row)
            yield [
                *fixed,
                *(key[place] for key in keys),
                *("" if value is None else value for value in own),
            ]
        done += batch.num_rows


def structure(sheet: Sheet, identifiers: dict[str, list[str]]) -> Element:
    """The structure message."""
    keys, has_flags = sheet.names("key"), bool(sheet.names("flag"))
    flow_id = _dataflow(sheet)
    root = Element(_tag("message", "Structure"))
    header = SubElement(root, _tag("message", "Header"))
    SubElement(header, _tag("message", "ID")).text = flow_id
    SubElement(header, _tag("message", "Test")).text = "false"
    SubElement(header, _tag("message", "Prepared")).text = datetime.now(UTC).isoformat(
        timespec="seconds"
    )
    SubElement(header, _tag("message", "Sender"), id=AGENCY)
    structures = SubElement(root, _tag("message", "Structures"))
    lists = SubElement(structures, _tag("structure", "Codelists"))
    for key in keys:
        _codelist(
            lists, f"CL_{_component(key)}", sheet.title_of(key), sheet.codes[key], identifiers[key]
        )
    if has_flags:
        _codelist(lists, f"CL_{STATUS}", "Observation status", _STATUS, list(_STATUS.values))
    titles = {_component(key): sheet.title_of(key) for key in keys}
    titles |= {OBSERVED: sheet.title_of(sheet.names("value")[0])}
    titles |= {_component(name): sheet.title_of(name) for name in _attributes(sheet)}
    if has_flags:
        titles |= {
            STATUS: "Observation status",
            "RELIABILITY": sheet.title_of(sheet.names("flag")[0]),
        }
    schemes = SubElement(structures, _tag("structure", "ConceptSchemes"))
    scheme = _maintained(schemes, "ConceptScheme", f"CS_{flow_id}", "Concepts of the release")
    for name, title in titles.items():
        _named(SubElement(scheme, _tag("structure", "Concept"), id=name), title)
    flows = SubElement(structures, _tag("structure", "Dataflows"))
    flow = _maintained(flows, "Dataflow", flow_id, sheet.title, "\n".join(sheet.about))
    SubElement(flow, _tag("structure", "Structure")).text = _urn(
        "datastructure.DataStructure", f"{flow_id}_STRUCTURE"
    )
    _data_structure(structures, sheet, titles)
    return root


def _data_structure(structures: Element, sheet: Sheet, titles: dict[str, str]) -> None:
    made = SubElement(structures, _tag("structure", "DataStructures"))
    flow_id = _dataflow(sheet)
    definition = _maintained(made, "DataStructure", f"{flow_id}_STRUCTURE", sheet.title)
    components = SubElement(definition, _tag("structure", "DataStructureComponents"))
    dimensions = SubElement(
        components, _tag("structure", "DimensionList"), id="DimensionDescriptor"
    )
    keys = [_component(key) for key in sheet.names("key")]
    for position, name in enumerate(keys, start=1):
        dimension = SubElement(
            dimensions, _tag("structure", "Dimension"), id=name, position=str(position)
        )
        _represented(dimension, flow_id, name, listed=True)
    attributes = SubElement(
        components, _tag("structure", "AttributeList"), id="AttributeDescriptor"
    )
    for name in titles:
        if name not in (*keys, OBSERVED):
            attribute = SubElement(
                attributes, _tag("structure", "Attribute"), id=name, usage="optional"
            )
            _represented(attribute, flow_id, name, listed=name == STATUS)
            relation = SubElement(attribute, _tag("structure", "AttributeRelationship"))
            SubElement(relation, _tag("structure", "Observation"))
    measures = SubElement(components, _tag("structure", "MeasureList"), id="MeasureDescriptor")
    measure = SubElement(measures, _tag("structure", "Measure"), id=OBSERVED, usage="mandatory")
    _represented(measure, flow_id, OBSERVED, listed=False)


def _codelist(lists: Element, name: str, title: str, codes: Codes, identifiers: list[str]) -> None:
    made = _maintained(lists, "Codelist", name, title)
    parents = [-1] * len(identifiers) if codes.parent is None else codes.parent.tolist()
    for identifier, value, label, parent in zip(identifiers, codes.values, codes.labels, parents):
        code = SubElement(made, _tag("structure", "Code"), id=identifier)
        _named(code, label, "" if str(value) == label else str(value))
        if parent >= 0:
            SubElement(code, _tag("structure", "Parent")).text = identifiers[parent]


def _maintained(above: Element, kind: str, name: str, title: str, description: str = "") -> Element:
    made = SubElement(above, _tag("structure", kind), id=name, agencyID=AGENCY, version=VERSION)
    _named(made, title, description)
    return made


def _named(element: Element, title: str, description: str = "") -> None:
    SubElement(element, _tag("common", "Name"), {_LANGUAGE: "en"}).text = title
    if description:
        SubElement(element, _tag("common", "Description"), {_LANGUAGE: "en"}).text = description


def _represented(component: Element, flow: str, name: str, *, listed: bool) -> None:
    """Which concept a component is, and the code list it takes its values from."""
    identity = SubElement(component, _tag("structure", "ConceptIdentity"))
    identity.text = f"{_urn('conceptscheme.Concept', f'CS_{flow}')}.{name}"
    if listed:
        representation = SubElement(component, _tag("structure", "LocalRepresentation"))
        SubElement(representation, _tag("structure", "Enumeration")).text = _urn(
            "codelist.Codelist", f"CL_{name}"
        )


def _urn(kind: str, name: str) -> str:
    return f"urn:sdmx:org.sdmx.infomodel.{kind}={AGENCY}:{name}({VERSION})"


def _tag(space: str, name: str) -> str:
    return f"{{{_SPACES[space]}}}{name}"
