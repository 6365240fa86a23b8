"""What a user says and what a tool returned, as the library's parts."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_ai.messages import AudioUrl, BinaryContent, DocumentUrl, ImageUrl, UserContent

from ...errors import ProviderError

EMPTY_MESSAGE = "(empty message)"
EMPTY_RESULT = "(empty result)"
_ADDRESSES = ("https://", "http://")


def user_content(content: Any) -> str | list[UserContent]:
    """A user message's content: text, or parts in the common chat shape.

        {"type": "text", "text": ...}
        {"type": "image_url", "image_url": {"url": an address or a data URI, "detail": ...}}
        {"type": "input_audio", "input_audio": {"data": base64, "format": "wav"}}
        {"type": "file", "file": {"file_data": a data URI} or {"url": an address}}

    A part of another kind is sent as its JSON. Blank text is left out; a placeholder says if nothing is left.

    Raises:
        ProviderError: a part's data cannot be read.
    """
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        parts = [part for each in content if (part := _part(each)) is not None]
        return parts or EMPTY_MESSAGE
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content)
    return text if text.strip() else EMPTY_MESSAGE


def result_text(content: Any) -> str:
    """A tool's result as the model reads it: a text as it is, any other value as JSON."""
    if not isinstance(content, str):
        return json.dumps(content, ensure_ascii=False)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    text = value if isinstance(value, str) else content
    return text if text.strip() else EMPTY_RESULT


def _part(part: Any) -> UserContent | None:
    if not isinstance(part, Mapping):
        return str(part) if str(part).strip() else None
    kind = part.get("type")
    if kind == "text" or (kind is None and "text" in part):
        text = str(part.get("text") or "")
        return text if text.strip() else None
    inner = part.get(kind) if isinstance(kind, str) else None
    fields: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    if kind == "image_url":
        return _image(inner if isinstance(inner, str) else str(fields.get("url") or ""), fields)
    if kind == "input_audio" and isinstance(fields.get("data"), str):
        return BinaryContent(_decoded(fields["data"]), media_type=f"audio/{fields.get('format') or 'wav'}")
    if kind == "file":
        return _file(fields)
    return json.dumps(part, ensure_ascii=False)


def _image(url: str, fields: Mapping[str, Any]) -> UserContent:
    detail = {"detail": fields["detail"]} if fields.get("detail") else None
    if url.startswith(_ADDRESSES):
        return ImageUrl(url, vendor_metadata=detail)
    data, media_type = _data_uri(url)
    return BinaryContent(data, media_type=media_type, vendor_metadata=detail)


def _file(fields: Mapping[str, Any]) -> UserContent:
    url = str(fields.get("url") or fields.get("file_data") or "")
    name = str(fields.get("filename") or "")
    if not url.startswith(_ADDRESSES):
        data, media_type = _data_uri(url)
        return BinaryContent(data, media_type=media_type)
    media_type = mimetypes.guess_type(name or url)[0] or "application/octet-stream"
    if media_type.startswith("image/"):
        return ImageUrl(url)
    if media_type.startswith("audio/"):
        return AudioUrl(url, media_type=media_type)
    return DocumentUrl(url, media_type=media_type)


def _data_uri(uri: str) -> tuple[bytes, str]:
    head, comma, data = uri.partition(",")
    if not head.startswith("data:") or not comma:
        raise ProviderError(
            "a message's image or file is neither a web address nor a data URI",
            hint="write data:image/png;base64,... or https://...",
        )
    fields = head.removeprefix("data:").split(";")
    if "base64" not in fields[1:]:
        raise ProviderError("a message's data URI is not base64", hint="write data:image/png;base64,...")
    return _decoded(data), fields[0] or "application/octet-stream"


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ProviderError("a message's image or file is no valid base64") from None
