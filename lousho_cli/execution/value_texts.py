"""Texts of values: valid Unicode, what an exception says, and what stands for a value with no JSON form."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def clean_text(text: str) -> str:
    """`text` as a plain `str` of valid Unicode.

    Two halves of a surrogate pair become the character they spell, a lone one becomes U+FFFD.
    """
    text = str.__str__(text)
    if is_clean(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_clean(text: str) -> bool:
    """Whether `text` holds no surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def message_of(exception: BaseException) -> str:
    """What the exception says; its class name if that is nothing, or if saying it fails."""
    try:
        text = clean_text(str(exception))
    except Exception:
        text = ""
    return text if text.strip() else class_name(exception)


def text_form(value: object) -> str:
    """The repr of any object, without memory addresses."""
    try:
        return clean_text(_ADDRESS.sub("", repr(value)))
    except Exception:
        return f"<{class_name(value)}: no text form>"


def class_name(value: object) -> str:
    """The name of the value's class, whatever its metaclass says."""
    return clean_text(type.__dict__["__name__"].__get__(type(value)))
