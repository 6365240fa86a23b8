"""Reads the fenced code blocks of a Markdown document."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_CI_COMMENT = re.compile(r"<!--\s*ci:\s*([a-z-]+)\s*-->\s*")
_INFO = re.compile(r"(?P<language>[a-z]+)(?: exit=(?P<code>\d+))?")


class DocError(AssertionError):
    """A document says what is not so."""


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    Attributes:
        document: the document's name, for messages.
        line: the line of the opening fence, from 1.
        language: the first word after the fence.
        exit_code: the exit code the block announces with `exit=N`, or None.
        ci: the name in a comment `<!-- ci: NAME -->` directly before the block, or None.
        text: what is between the fences.
    """

    document: str
    line: int
    language: str
    exit_code: int | None
    ci: str | None
    text: str

    def error(self, message: str) -> DocError:
        return DocError(f"{self.document}:{self.line}: {message}")


def read_blocks(document: str, markdown: str) -> list[Block]:
    """The blocks of a document, in order.

    Raises:
        DocError: a block names no language, or its opening line cannot be read.
    """
    tokens = MarkdownIt("commonmark").parse(markdown)
    befores = [None, *tokens]
    return [
        _block(document, token, before)
        for token, before in zip(tokens, befores, strict=False)
        if token.type == "fence"
    ]


def _block(document: str, token: Token, before: Token | None) -> Block:
    line = token.map[0] + 1 if token.map else 0
    info = _INFO.fullmatch(token.info.strip())
    if info is None:
        raise DocError(
            f"{document}:{line}: the opening line is ```{token.info}; wanted a language, then at most exit=N"
        )
    comment = _CI_COMMENT.fullmatch(before.content) if before and before.type == "html_block" else None
    return Block(
        document=document,
        line=line,
        language=info["language"],
        exit_code=int(info["code"]) if info["code"] else None,
        ci=comment[1] if comment else None,
        text=token.content,
    )
