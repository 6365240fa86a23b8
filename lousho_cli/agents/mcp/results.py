"""What a server answered to a call, as the JSON value that is recorded (R3.19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


def result_value(result: CallToolResult) -> Any:
    """The value of a result that is no error.

    Structured content is the value, as texts beside it say the same again. Where there is other content
    beside it the value is `{"structured", "content"}`. Without structured content, one block is the value
    itself, several are a list of values, none is null. A text is a text, also where it looks like JSON. An
    image, a sound, a link or a resource is an object with its `type` and its fields as the protocol names
    them, bytes in base64.
    """
    blocks = [_block(each) for each in result.content]
    if result.structured_content is not None:
        if all(isinstance(each, str) for each in blocks):
            return result.structured_content
        return {"structured": result.structured_content, "content": blocks}
    if len(blocks) == 1:
        return blocks[0]
    return blocks or None


def error_text(result: CallToolResult) -> str:
    """What a result that is an error says."""
    texts = [each.text for each in result.content if each.type == "text" and each.text]
    return "\n".join(texts) or "the tool failed and did not say why"


def _block(block: ContentBlock) -> Any:
    if block.type == "text":
        return block.text
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)
