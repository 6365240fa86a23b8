from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
from render_surfaces import HOSTILE, assert_harmless, pipe, screen, shown

from lousho_cli.render.approvals import show_approval_panel, show_approvals
from lousho_cli.render.console import Surface

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def approval(**more: Any) -> dict[str, Any]:
    base = {
        "id": "ap_0123456789abcdef",
        "sessionId": "chat-42",
        "agent": "concierge",
        "toolName": "book_table",
        "toolCallId": "call_1",
        "args": {"party_size": 2},
        "kind": "needs-approval",
        "createdAt": "2026-03-01T11:00:00Z",
    }
    return {**base, **more}


def panel(surface: Surface, request: dict[str, Any], **more: str) -> str:
    show_approval_panel(surface, request, now=NOW, **more)
    return shown(surface)


def json_in(text: str) -> Any:
    """The JSON value that a panel shows."""
    start = min(text.index(char) for char in "{[" if char in text)
    return json.JSONDecoder(strict=False).raw_decode(text[start:])[0]


def test_the_plain_inbox_has_every_argument() -> None:
    surface = pipe()
    show_approvals(surface, [approval(args={"note": "n" * 300})])
    fields = shown(surface).rstrip("\n").split("\t")
    assert fields[:5] == ["ap_0123456789abcdef", "chat-42", "concierge", "book_table", "2026-03-01T11:00:00Z"]
    assert fields[5:] == [json.dumps({"note": "n" * 300}), "needs-approval"]


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_inbox_shortens_arguments_but_no_id(width: int) -> None:
    surface = screen(width)
    show_approvals(surface, [approval(args={"note": "n" * 300})], NOW)
    text = shown(surface)
    assert "ap_0123456789abcdef" in text
    assert "chat-42" in text
    assert "1h ago" in text
    assert "n" * 300 not in text
    assert "…" in text


def test_the_inbox_tells_a_doubtful_call_apart() -> None:
    drawn, piped = screen(), pipe()
    for surface in (drawn, piped):
        show_approvals(surface, [approval(kind="interrupted")], NOW)
    assert "may have run!" in shown(drawn)
    assert shown(piped).endswith("\tinterrupted\n")


def test_an_empty_inbox() -> None:
    drawn, piped = screen(), pipe()
    show_approvals(drawn, [])
    show_approvals(piped, [])
    assert (shown(drawn), shown(piped)) == ("nothing waits for a decision\n", "")


@pytest.mark.parametrize("surface_width", [None, 20, 40, 120])
def test_the_panel_shows_exactly_what_will_run(surface_width: int | None) -> None:
    args = {
        "name": HOSTILE,
        "lines": "a\nb\tc",
        "deep": [{"x": [1, 2.5, None, True]}] * 9,
        "long": "n " * 200,
    }
    surface = pipe() if surface_width is None else screen(surface_width)
    text = panel(surface, approval(args=args))
    assert json_in(text) == args
    assert_harmless(text)


@pytest.mark.parametrize("args", [{}, None, [], "text", 0])
def test_any_arguments_have_a_panel(args: object) -> None:
    assert json.dumps(args) in panel(screen(), approval(args=args))


def test_the_panel_gives_the_commands_whole() -> None:
    for surface in (pipe(), screen(30)):
        text = panel(surface, approval(), agent="my agent", workspace="/tmp/a b")
        command = "lousho approve ap_0123456789abcdef --agent 'my agent' --workspace '/tmp/a b'"
        assert f"{command}\n" in text
        assert f'{command} --reject --note "..."\n' in text
        assert shlex.split(command)[4:] == ["my agent", "--workspace", "/tmp/a b"]
    assert "--agent" not in panel(screen(), approval())


def test_a_call_that_may_have_happened_is_announced() -> None:
    for surface in (pipe(), screen()):
        text = panel(surface, approval(kind="interrupted"))
        assert "MAY ALREADY HAVE HAPPENED" in text
        assert "--result JSON" in text
    assert "HAPPENED" not in panel(screen(), approval())


def test_the_panel_says_who_asks_and_until_when() -> None:
    text = panel(screen(), approval(expiresAt="2026-03-01T15:00:00Z"))
    for words in (
        "session  chat-42",
        "agent    concierge",
        "call     call_1",
        "asked    1h ago",
        "expires  in 3h",
    ):
        assert words in text


def test_hostile_names_are_harmless() -> None:
    request = dict.fromkeys(approval(), HOSTILE) | {"expiresAt": HOSTILE}
    for surface in (pipe(), screen(300), screen(40)):
        show_approvals(surface, [request], NOW)
        show_approval_panel(surface, request, agent=HOSTILE, workspace=HOSTILE, now=NOW)
        assert_harmless(shown(surface))
