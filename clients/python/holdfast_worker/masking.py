"""Replaces secrets in what an attempt reports, in the forms in which programs repeat them: as the runner does."""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Iterable, Iterator

MASK = "********"
MIN_MASKED_CHARS = 6
# More are not masked: a line would take too long.
MAX_PATTERNS = 5_000
MAX_VALUE_CHARS = 65_536

# A piece of a value is this many characters of base64 in a row. More pieces take too much memory.
PIECE_CHARS = 6
MAX_PIECES = 2**20

# Escapes in escapes, such as JSON in JSON in a URL, are resolved this deep.
MAX_DEPTH = 3

# Escapes of shells, URLs, JSON, JavaScript, Python and C, XML and HTML.
_ESCAPES = re.compile(
    r"""'\\''|'"'"'|(?:%[0-9A-Fa-f]{2})+|(?:\\x[0-9A-Fa-f]{2})+|(?:\\[0-3][0-7]{2})+|(?:\\u[0-9A-Fa-f]{4})+"""
    r"""|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|\\[abfnrtv]|\\[^A-Za-z0-9]"""
    r"""|&#[0-9]{1,7};|&#[xX][0-9A-Fa-f]{1,6};|&[A-Za-z]{2,6}[1-4]{0,2};"""
)
_CONTROLS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{%d,}" % PIECE_CHARS)
_STANDARD = str.maketrans("-_", "+/")


class Masker:
    """
    Masks values of six characters or more: as they are, in base64, whole or in pieces, and escaped, also in each other.
    Of a value with several lines, also each line. `is_complete` is false if there are too many, or they are too
    long: something of them is not masked.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._patterns: dict[str, None] = {}
        self._pieces: set[str] = set()
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
        return (
            self._add(whole)
            and all(self._add(_forms(value)) for value in whole)
            # These contain those of its lines.
            and all(self._add_pieces(value) for value in whole)
            and all(self._add(_forms(line)) for value in short for line in _lines(value))
            and len(short) == len(values)
        )

    def _add(self, values: Iterable[str]) -> bool:
        for value in values:
            if _length(value) < MIN_MASKED_CHARS or value in self._patterns:
                continue
            if len(self._patterns) >= MAX_PATTERNS:
                return False
            self._patterns[value] = None
        return True

    def _add_pieces(self, value: str) -> bool:
        for form in _base64(value):
            for start in range(len(form) - PIECE_CHARS + 1):
                if len(self._pieces) >= MAX_PIECES:
                    return False
                self._pieces.add(form[start : start + PIECE_CHARS])
        return True

    def text(self, text: str) -> str:
        """The text with its secrets replaced; those that overlap are one."""
        masked: list[str] = []
        end = 0
        for start, stop in self._found(text):
            masked += (text[end:start], MASK)
            end = stop
        return "".join(masked) + text[end:]

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        all_found = sorted(
            (starts[start], starts[stop]) if starts else (start, stop)
            for view, starts in _views(text)
            for start, stop in self._in_view(view)
        )
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

    def _in_view(self, view: str) -> Iterator[tuple[int, int]]:
        for pattern in self._patterns:
            yield from _positions(pattern, view)
        for run in _BASE64.finditer(view) if self._pieces else ():
            digits = run[0].translate(_STANDARD)
            for at in range(len(digits) - PIECE_CHARS + 1):
                if digits[at : at + PIECE_CHARS] in self._pieces:
                    yield run.start() + at, run.start() + at + PIECE_CHARS


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


def _forms(value: str) -> Iterator[str]:
    """
    What is searched for a value in each view of a text: the value, also with its own escapes resolved, since those are
    resolved with the escapes around it; and as a form sends it.
    """
    for view, _ in _views(value):
        yield view
        yield view.replace(" ", "+")


def _base64(value: str) -> Iterator[str]:
    """
    The parts of the base64 of any text around a value that only the value determines, for the three positions that it
    can have in a group of three bytes.
    """
    data = _well_formed(value).encode()
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        yield encoded[math.ceil(offset * 8 / 6) : (offset + len(data)) * 8 // 6]


# A text with its escapes resolved. The list says for each character, and for the end, where it is in the original.
_View = tuple[str, list[int] | None]


def _views(text: str) -> Iterator[_View]:
    """A text as it is, and with its escapes resolved once, twice and so on, as long as that changes it."""
    view: _View | None = (text, None)
    for _ in range(MAX_DEPTH + 1):
        yield view
        view = _resolved(view)
        if view is None:
            return


def _resolved(view: _View) -> _View | None:
    text, starts = view
    parts: list[str] = []
    positions: list[int] = []
    end = 0
    for found in _ESCAPES.finditer(text):
        parts.append(text[end : found.start()])
        positions.extend(range(end, found.start()))
        at = found.start()
        for character, length in _meaning(found[0]):
            parts.append(character)
            is_kept = len(character) == length
            positions.extend(range(at, at + length) if is_kept else [at] * len(character))
            at += length
        end = at
    if end == 0:
        return None
    resolved = "".join(parts) + text[end:]
    positions.extend(range(end, len(text) + 1))
    if resolved == text:
        return None
    return resolved, [starts[each] for each in positions] if starts else positions


def _meaning(escape: str) -> list[tuple[str, int]]:
    """The characters of an escape, each with its length there. One that means nothing stays as it is."""
    kind = escape[:2]
    if escape[0] == "'":
        return [("'", len(escape))]
    if escape[0] == "%":
        return _of_bytes(bytes.fromhex(escape.replace("%", "")), escape, 3)
    if escape[0] == "&":
        return [(_entity(escape), len(escape))]
    if kind == "\\x":
        return _of_bytes(bytes.fromhex(escape.replace("\\x", "")), None, 4)
    if escape[1].isdigit():
        return _of_bytes(bytes(int(each, 8) for each in escape[1:].split("\\")), None, 4)
    if kind == "\\u" and escape[2] != "{":
        units = bytes.fromhex(escape.replace("\\u", ""))
        text = units.decode("utf-16-be", "surrogatepass")
        return [(each, 12 if each > "\uffff" else 6) for each in text]
    if len(escape) > 2:
        return [(_of_code(escape[2:].strip("{}"), 16, escape), len(escape))]
    return [(_CONTROLS.get(escape[1], escape[1]), len(escape))]


def _entity(escape: str) -> str:
    if escape[1] == "#":
        is_hex = escape[2] in "xX"
        return _of_code(escape[3 if is_hex else 2 : -1], 16 if is_hex else 10, escape)
    character = html.unescape(escape)
    return character if len(character) == 1 and character <= "\xff" else escape


def _of_code(digits: str, base: int, escape: str) -> str:
    code = int(digits, base)
    return chr(code) if code <= 0x10FFFF else escape


def _of_bytes(data: bytes, escape: str | None, width: int) -> list[tuple[str, int]]:
    """The characters of bytes, each escaped by `width` characters; bytes that are not UTF-8 are kept, or Latin-1."""
    found = []
    at = 0
    while at < len(data):
        first = data[at]
        length = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        try:
            found.append((data[at : at + length].decode(), length * width))
            at += length
        except UnicodeDecodeError:
            found.append((escape[at * width : (at + 1) * width] if escape else chr(first), width))
            at += 1
    return found
