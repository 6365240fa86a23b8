"""JSON values as people read them, still exactly the same JSON."""

from __future__ import annotations

import json
from typing import Any

from .text import escape, escape_json, escape_line


def json_line(value: Any) -> str:
    """A value as JSON on one line."""
    return escape_json(json.dumps(value, ensure_ascii=False))


def json_pretty(value: Any, width: int, indent: int = 0) -> str:
    """A value as JSON, whole, broken into lines only where it does not fit `width` columns.

    `indent` is what the lines after the first are indented by already.
    """
    line = json_line(value)
    if len(line) <= width - indent or not isinstance(value, (dict, list)) or not value or indent > width // 2:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json_line(key)}: {json_pretty(value[key], width, indent + 2)}" for key in value]
    else:
        parts = [json_pretty(item, width, indent + 2) for item in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{opening}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * indent}{closing}"


def raw_line(text: str) -> str:
    """JSON text, as a model or a file holds it, on one line. What is no JSON is shown as it is."""
    try:
        return json_line(json.loads(text))
    except (ValueError, RecursionError):
        return escape_line(text)


def raw_block(text: str, width: int) -> str:
    """JSON text for a terminal of `width` columns; a JSON string as its text."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            return escape(value)
        return json_pretty(value, width)
    except (ValueError, RecursionError):
        return escape(text)
