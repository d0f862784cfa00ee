"""Replaces secrets in what an attempt reports, in the forms in which programs repeat them: as the runner does."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

MASK = "********"
MIN_MASKED_CHARS = 6
# More are not masked: a line would take too long.
MAX_PATTERNS = 5_000
MAX_LINE_FORMS, MAX_ALL_LINE_FORMS = 1_000, 5_000
MAX_VALUE_CHARS = 65_536

_XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


class Masker:
    """
    Masks values of six characters or more, of a value with several lines also each line, and the first of these in
    all forms. `is_complete` is false if there are too many, or one is too long: something of them is not masked.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._patterns: dict[str, None] = {}
        self._line_forms = 0
        self.is_complete = self._add_all([*secrets])

    def _add_all(self, values: list[str]) -> bool:
        """Adds first all values, then their forms and lines, so that none takes what another needs."""
        short = [value for value in values if _length(value) <= MAX_VALUE_CHARS]
        whole = [
            each
            for value in short
            for each in (value, value.strip())
            if _length(each) >= MIN_MASKED_CHARS
        ]
        lines = [
            [line for line in _lines(value) if _length(line) >= MIN_MASKED_CHARS] for value in short
        ]
        is_complete = (
            self._add(whole)
            and all(self._add(_forms(value)) for value in whole)
            and all(self._add(each) for each in lines)
        )
        for each in lines:
            self._add_line_forms(each)
        return is_complete and len(short) == len(values)

    def _add(self, values: Iterable[str]) -> bool:
        for value in values:
            if _length(value) < MIN_MASKED_CHARS or value in self._patterns:
                continue
            if len(self._patterns) - self._line_forms >= MAX_PATTERNS:
                return False
            self._patterns[value] = None
        return True

    def _add_line_forms(self, lines: list[str]) -> None:
        most = min(self._line_forms + MAX_LINE_FORMS, MAX_ALL_LINE_FORMS)
        for line in lines:
            for form in _forms(line):
                if self._line_forms >= most:
                    return
                if _length(form) >= MIN_MASKED_CHARS and form not in self._patterns:
                    self._patterns[form] = None
                    self._line_forms += 1

    def text(self, text: str) -> str:
        """The text with its secrets replaced; those that overlap are one."""
        masked: list[str] = []
        end = 0
        for start, stop in self._found(text):
            masked += (text[end:start], MASK)
            end = stop
        return "".join(masked) + text[end:]

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        all_found = sorted(each for pattern in self._patterns for each in _positions(pattern, text))
        merged: tuple[int, int] | None = None
        for start, stop in all_found:
            if merged and start <= merged[1]:
                merged = (merged[0], max(merged[1], stop))
                continue
            if merged:
                yield merged
            merged = (start, stop)
        if merged:
            yield merged


def _positions(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(pattern)
    while start != -1:
        yield start, start + len(pattern)
        start = text.find(pattern, start + 1)


def _length(text: str) -> int:
    """In UTF-16, as Holdfast counts."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def _lines(value: str) -> list[str]:
    return [line.strip() for line in re.split(r"\r\n|\r|\n", value)]


def _well_formed(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _forms(value: str) -> list[str]:
    return [value, *_base64(value), *_url(value), *_json(value), *_xml(value), *_shell(value)]


def _base64(value: str) -> list[str]:
    """
    The parts of the base64 of any text around a value that only the value determines, for the three positions that it
    can have in a group of three bytes.
    """
    data = _well_formed(value).encode()
    forms = []
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        part = encoded[math.ceil(offset * 8 / 6) : (offset + len(data)) * 8 // 6]
        forms += [part, part.replace("+", "-").replace("/", "_")]
    return forms


def _url(value: str) -> list[str]:
    """In URLs: strict, as a path, as a form; with digits of either case."""
    text = _well_formed(value)
    forms = [
        form
        for each in (quote(text, safe=""), quote(text, safe="!~*'()"))
        for form in (each, each.replace("%2F", "/"), each.replace("%20", "+"))
    ]
    return [*forms, *(re.sub("%..", lambda code: code[0].lower(), form) for form in forms)]


def _json(value: str) -> list[str]:
    """In JSON, as JavaScript, Python and PHP write it."""
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    ascii_only = "".join(each if each < "\x7f" else _escaped(each) for each in plain)
    return [plain, ascii_only, plain.replace("/", "\\/")]


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _xml(value: str) -> list[str]:
    """In XML and HTML: quotes may be escaped or not, and in several ways."""
    basic = re.sub("[&<>]", lambda found: _XML[found[0]], value)
    quoted = re.sub('[&<>"]', lambda found: _XML[found[0]], value)
    return [basic, quoted, *(quoted.replace("'", each) for each in ("&apos;", "&#39;", "&#x27;"))]


def _shell(value: str) -> list[str]:
    """In commands: in single quotes, in double quotes, with backslashes."""
    return [
        value.replace("'", "'\\''"),
        value.replace("'", "'\"'\"'"),
        re.sub(r'[\\"$`]', r"\\\g<0>", value),
        re.sub(r"[^A-Za-z0-9_@%+=:,./\n-]", r"\\\g<0>", value),
    ]
