"""What happens to files, by chance but from a seed: damage of their bytes, and content that lies.

Damage is what disks, editors and copies do. Forged content is whole in form, its checksums included: what
somebody writes who wants to do harm, or another program that gets it wrong.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Mutation = Callable[[Random, bytes], bytes]


def _span(rng: Random, data: bytes, longest: int = 64) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randint(1, longest))


def flip_bits(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def cut_the_head(rng: Random, data: bytes) -> bytes:
    return data[rng.randrange(1, len(data) + 1) :]


def zero_a_block(rng: Random, data: bytes) -> bytes:
    start, end = _span(rng, data, 512)
    return data[:start] + bytes(end - start) + data[end:]


def insert_garbage(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    length = rng.choice((1, 7, 512, 5000))
    garbage = rng.choice((bytes(length), b"\n" * length, b" " * length, rng.randbytes(length), b"[" * length))
    return data[:start] + garbage + data[start:]


def remove_a_part(rng: Random, data: bytes) -> bytes:
    start, end = _span(rng, data, 300)
    return data[:start] + data[end:]


def repeat_a_part(rng: Random, data: bytes) -> bytes:
    start, end = _span(rng, data, 300)
    return data[:end] + data[start:end] + data[end:]


def move_a_part(rng: Random, data: bytes) -> bytes:
    start, end = _span(rng, data, 300)
    rest = data[:start] + data[end:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + data[start:end] + rest[place:]


def duplicate_a_line(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"".join(lines)


def swap_lines(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def remove_a_line(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def another_encoding(rng: Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7"))
    return text.encode(encoding, "replace")


def other_line_ends(rng: Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"")))


DAMAGE: Sequence[Mutation] = (
    flip_bits, truncate, cut_the_head, zero_a_block, insert_garbage, remove_a_part, repeat_a_part,
    move_a_part, duplicate_a_line, swap_lines, remove_a_line, another_encoding, other_line_ends,
)  # fmt: skip

ODD_TEXTS = (
    "", ".", "..", "../../x", "/etc/passwd", "a\0b", "a\nb", "\ud800", "\x1b[2J", "x" * 201, "con", "é" * 300,
    "trip", "pause", "9" * 5000, "NaN", "2026-13-45T99:99:99Z",
)  # fmt: skip
ODD_NUMBERS = (
    -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**400), 1.5, 1e308,
    float("inf"), float("nan"), 1e-320,
)  # fmt: skip
DEPTHS = (40, 200, 400, 900, 1000, 5000, 100_000)


def odd_value(rng: Random, old: Any = None) -> Any:
    """A value that nobody expects."""
    choices: list[Callable[[], Any]] = [
        lambda: rng.choice(ODD_TEXTS),
        lambda: rng.choice(ODD_NUMBERS),
        lambda: rng.choice((None, True, False, [], {}, [None], {"": None}, [[]], {"id": 7}, {"role": "x"})),
        lambda: [old],
        lambda: {"seq": old, "id": old},
        lambda: [old] * 50,
        lambda: _Deep(rng.choice(DEPTHS), rng.random() < 0.5),
    ]
    return rng.choice(choices)()


class _Deep:
    """A value nested so deeply that only its text can be made."""

    def __init__(self, depth: int, is_list: bool) -> None:
        opening, closing = ("[", "]") if is_list else ('{"a":', "}")
        self.text = opening * depth + ("" if is_list else "1") + closing * depth


def forged(rng: Random, data: Any) -> Any:
    """A JSON value with one or a few odd places."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = _changed(rng, data)
    return data


def _changed(rng: Random, data: Any) -> Any:
    places = [place for place in _places(data) if place]
    if not places:
        return odd_value(rng, data)
    *path, last = rng.choice(places)
    holder = data
    for key in path:
        holder = holder[key]
    way = rng.randrange(5)
    if way == 0:
        del holder[last]
    elif way == 1 and isinstance(holder, dict):
        holder[rng.choice((*ODD_TEXTS, *(place[-1] for place in places)))] = holder[last]
    else:
        holder[last] = odd_value(rng, holder[last])
    return data


def _places(data: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [()]
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        found += [(key, *place) for place in _places(value)]
    return found


def to_json(data: Any, **options: Any) -> str:
    """JSON, NaN and endless nesting included. A number of 400 digits is one."""
    held: list[str] = []

    def hold(value: Any) -> str:
        held.append(value.text)
        return f"~deep {len(held) - 1}~"

    text = json.dumps(data, default=hold, **options)
    for number, deep in enumerate(held):
        text = text.replace(f'"~deep {number}~"', deep)
    return text


def seal(text: str) -> bytes:
    """A journal's line with a checksum that holds."""
    body = text.encode("utf-8", "surrogatepass").replace(b'{"seq": ', b'{"seq":', 1)
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def forge_journal(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    record = json.loads(lines[place])
    del record["crc"]
    record = forged(rng, record)
    lines[place] = seal(to_json(record, ensure_ascii=rng.random() < 0.5, separators=(",", ":")))
    return b"".join(lines)


def forge_history(rng: Random, data: bytes) -> bytes:
    content = json.loads(data)
    del content["crc"]
    text = to_json(forged(rng, content)).encode()
    return b'%s, "crc": "%08x"}\n' % (text[:-1], zlib.crc32(text[:-1]))


def forge_json(rng: Random, data: bytes) -> bytes:
    return to_json(forged(rng, json.loads(data))).encode()


ODD_TOML = (
    '""', '"\\u0000"', "-1", "0", "9" * 5000, "1e400", "nan", "inf", "true", "[]", "{}", "[" * 3000, "[[[]]]",
    "'../..'", "1979-05-27", '"""', '"x" = 1', "{ a = 1, a = 2 }", '"script:/dev/zero"', '"script:."',
    '"script:turns.json/x"',
)  # fmt: skip


ODD_TABLES = ("[[a]]", "[a.b.c]", "[cases]", "a")


def forge_toml(rng: Random, data: bytes) -> bytes:
    lines = data.decode().splitlines()
    place = rng.randrange(len(lines))
    key, _, value = lines[place].partition(" = ")
    new = f"{key} = {rng.choice((*ODD_TOML, value))}" if value else rng.choice(ODD_TABLES)
    lines[rng.randrange(len(lines))] = new
    return "\n".join(lines).encode()
