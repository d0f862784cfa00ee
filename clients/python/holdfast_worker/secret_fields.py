"""Finds the values of a payload that its schema marks as secret: as the workers and the runner do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urljoin

import re2

KEYWORD = "x-holdfast-secret"
Schema = dict[str, Any]

# Keywords with a schema, or a list of schemas, for the same value.
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not")
# Where schemas without an `$id` of their own are. Nothing is read from there.
_BASE = "https://schema.invalid/"
_MAX_REMEMBERED = 1_000


def secret_values(schema: object, payload: object) -> list[str]:
    """The texts and numbers in the values that the schema marks as secret, the longest first."""
    if not isinstance(schema, dict) or f'"{KEYWORD}": true' not in json.dumps(schema):
        return []
    found: set[str] = set()
    _collect(payload, _Value(_References(schema), [schema]), found)
    return sorted(found, key=lambda text: (-len(text), text))


def _collect(value: object, schemas: _Value, found: set[str]) -> None:
    if any(schema.get(KEYWORD) is True for schema in schemas.all):
        _collect_texts(value, found)
    elif not schemas.all:
        return
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, schemas.of_item(index), found)
    elif isinstance(value, dict):
        for name, child in value.items():
            _collect(child, schemas.of_property(name), found)


def _collect_texts(value: object, found: set[str]) -> None:
    if isinstance(value, str):
        found.add(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # As JavaScript writes it: `1e-7`, not `1e-07`.
        found.add(re.sub(r"e([+-])0", r"e\1", json.dumps(value)))
    elif isinstance(value, (list, dict)):
        for child in value.values() if isinstance(value, dict) else value:
            _collect_texts(child, found)


def _schemas_in(value: object) -> list[Schema]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, dict)]


class _Value:
    """All schemas that say something about one value, and those of its items and properties, which are remembered."""

    def __init__(self, references: _References, schemas: Iterable[Schema]) -> None:
        self._references = references
        self.all = self._closure(schemas)
        prefixes = (each.get("prefixItems") for each in self.all)
        self._prefix = max((len(each) for each in prefixes if isinstance(each, list)), default=0)
        self._items: dict[int, _Value] = {}
        self._properties: dict[str, _Value] = {}

    def _closure(self, schemas: Iterable[Schema]) -> list[Schema]:
        """
        Alternatives count, too, whatever the value is: one that violates the schema must not show its secrets.
        """
        found: dict[int, Schema] = {}
        rest = [*schemas]
        while rest:
            schema = rest.pop()
            if id(schema) in found:
                continue
            found[id(schema)] = schema
            for keyword in _SAME_VALUE:
                rest += _schemas_in(schema.get(keyword))
            dependent = schema.get("dependentSchemas")
            if isinstance(dependent, dict):
                rest += [each for value in dependent.values() for each in _schemas_in(value)]
            rest += self._references.of(schema)
        return [*found.values()]

    def of_item(self, index: int) -> _Value:
        at = min(index, self._prefix)
        if at not in self._items:
            schemas = [each for schema in self.all for each in _of_item(schema, at)]
            self._items[at] = _Value(self._references, schemas)
        return self._items[at]

    def of_property(self, name: str) -> _Value:
        known = self._properties.get(name)
        if known is None:
            schemas = [each for schema in self.all for each in _of_property(schema, name)]
            known = _Value(self._references, schemas)
            if len(self._properties) < _MAX_REMEMBERED:
                self._properties[name] = known
        return known


def _of_item(schema: Schema, index: int) -> list[Schema]:
    prefix = schema.get("prefixItems")
    own = _schemas_in(prefix[index]) if isinstance(prefix, list) and index < len(prefix) else []
    others = ("items", "contains", "unevaluatedItems")
    return own + [each for keyword in others for each in _schemas_in(schema.get(keyword))]


def _of_property(schema: Schema, name: str) -> list[Schema]:
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    found = _schemas_in(properties.get(name)) if isinstance(properties, dict) else []
    if isinstance(patterns, dict):
        for pattern, each in patterns.items():
            found += _schemas_in(each) if _matches(pattern, name) else []
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        found += _schemas_in(schema.get(keyword))
    return found


def _matches(pattern: str, name: str) -> bool:
    """
    In a time that grows with the length of the name only, which a sender chooses. A pattern that cannot be compiled,
    and a name that is no text, match: rather too much is masked.
    """
    compiled = _compiled(pattern)
    try:
        return compiled is None or compiled.search(name) is not None
    except (re2.error, UnicodeError):
        return True


@lru_cache(maxsize=_MAX_REMEMBERED)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeError):
        return None


class _References:
    """What `$ref` and `$dynamicRef` lead to: by JSON Pointer, by anchor, or by the `$id` of a schema inside of the root."""

    def __init__(self, root: Schema) -> None:
        self._bases: dict[int, str] = {}
        self._by_uri: dict[str, object] = {_BASE: root}
        self._by_dynamic_anchor: dict[str, list[Schema]] = {}
        rest: list[tuple[object, str]] = [(root, _BASE)]
        while rest:
            node, base = rest.pop()
            if isinstance(node, dict):
                base = self._add(node, base, is_root=node is root)
                rest += [(each, base) for each in node.values()]
            elif isinstance(node, list):
                rest += [(each, base) for each in node]

    def _add(self, node: Schema, base: str, *, is_root: bool) -> str:
        own = node.get("$id")
        if isinstance(own, str):
            base = _without_fragment(_absolute(own, base))
        if isinstance(own, str) or is_root:
            self._by_uri[base] = node
        self._bases[id(node)] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self._by_uri[f"{base}#{node[keyword]}"] = node
        if isinstance(node.get("$dynamicAnchor"), str):
            self._by_dynamic_anchor.setdefault(node["$dynamicAnchor"], []).append(node)
        return base

    def of(self, schema: Schema) -> list[Schema]:
        references = [schema.get("$ref"), schema.get("$dynamicRef")]
        found = [self._find(schema, each) for each in references if isinstance(each, str)]
        dynamic = references[1]
        anchored: list[object] = []
        if isinstance(dynamic, str):
            # Which one it is depends on the way of the check: all count.
            anchored = [*self._by_dynamic_anchor.get(dynamic.rpartition("#")[2], [])]
        return [each for each in (*found, *anchored) if isinstance(each, dict)]

    def _find(self, schema: Schema, reference: str) -> object:
        uri = _absolute(reference, self._bases.get(id(schema), _BASE))
        document, _, fragment = uri.partition("#")
        if fragment == "":
            return self._by_uri.get(document)
        if fragment.startswith("/"):
            return _follow(self._by_uri.get(document), fragment[1:])
        return self._by_uri.get(f"{document}#{unquote(fragment)}")


def _absolute(reference: str, base: str) -> str:
    if reference.startswith("#"):
        return _without_fragment(base) + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return base


def _without_fragment(uri: str) -> str:
    return uri.partition("#")[0]


def _follow(start: object, pointer: str) -> object:
    """What a JSON Pointer, without its first slash, leads to."""
    found = start
    for token in pointer.split("/"):
        name = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
