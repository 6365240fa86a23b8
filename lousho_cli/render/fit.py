"""Fitting text into the columns of a terminal, by the width it is drawn with."""

from __future__ import annotations


def shorten(text: str, width: int, ellipsis: str) -> str:
    """`text` if it is at most `width` columns wide, else its beginning with an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    if len(text) <= 10 * width and cell_len(text) <= width:
        return text
    text = text[: 10 * width]
    return set_cell_size(text, max(0, width - cell_len(ellipsis))).rstrip() + ellipsis


def shorten_pair(old: str, new: str, width: int, ellipsis: str) -> tuple[str, str]:
    """Two texts shortened so that the first place where they differ stays in view."""
    common = 0
    for a, b in zip(old, new, strict=False):
        if a != b:
            break
        common += 1
    skip = common - width // 3
    if skip > 0 and max(len(old), len(new)) > width:
        old, new = ellipsis + old[skip:], ellipsis + new[skip:]
    return shorten(old, width, ellipsis), shorten(new, width, ellipsis)
