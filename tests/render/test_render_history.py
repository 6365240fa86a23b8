from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from render_surfaces import HOSTILE, assert_harmless, pipe, screen, shown

from lousho_cli.render.history import show_history, what_happened
from lousho_cli.render.sessions import show_sessions

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
APPROVAL = "ap_0123456789abcdef0123456789"


def save(seq: int, event: str, **more: Any) -> dict[str, Any]:
    base = {"seq": seq, "step": 1, "status": "in-progress", "savedAt": "2026-03-01T11:00:00Z", "messages": 2}
    return {**base, "event": event, **more}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"event": "input"}, "new input"),
        ({"event": "turn", "tools": ["a", "b"]}, "model asked for a, b"),
        ({"event": "turn"}, "model answered"),
        ({"event": "result", "tools": ["a"]}, "result of a"),
        ({"event": "result", "tools": ["a", "b"]}, "2 results: a, b"),
        ({"event": "pause", "tools": ["a"], "approvalId": "ap_1"}, "waits for approval of a ap_1"),
        ({"event": "decision", "tools": ["a"], "note": "rejected by ana"}, "decision on a: rejected by ana"),
        ({"event": "start", "tools": ["a"]}, "starts a"),
        ({"event": "abort"}, "aborted"),
        ({"event": "finish", "finishReason": "max-steps"}, "finished (max-steps)"),
        ({"event": "queue"}, "input queued"),
        ({"event": "fork", "note": "from trip@3"}, "forked: from trip@3"),
        ({"event": "drift", "note": "instructions"}, "agent changed: instructions"),
        ({"event": "delete"}, "session deleted, history kept"),
        ({"event": "save"}, "saved"),
        ({"event": "new\x1bkind"}, "new\\x1bkind"),
        ({}, "saved"),
    ],
)
def test_each_event_is_told_in_words(entry: dict[str, Any], words: str) -> None:
    assert what_happened(entry) == words


def test_plain_history_is_one_line_of_fields_for_each_save() -> None:
    surface = pipe()
    show_history(surface, "s", [save(2, "finish", status="finished"), save(1, "input", note="a\tb\nc")])
    assert shown(surface) == (
        "2\t1\tfinished\t2026-03-01T11:00:00Z\t2\tfinished\n"
        "1\t1\tin-progress\t2026-03-01T11:00:00Z\t2\tnew input: a\\tb\\nc\n"
    )


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_ids_are_whole_at_every_width(width: int) -> None:
    surface = screen(width)
    session = "日本語👩\u200d👩\u200d👧-" + "s" * 100
    entry = save(12345, "pause", status="awaiting-approval", tools=["book_table"], approvalId=APPROVAL)
    show_history(surface, session, [entry], NOW)
    text = shown(surface)
    assert session in text
    for whole in (APPROVAL, "12345", "awaiting-approval", "1h ago"):
        assert whole in text


def test_columns_stand_under_their_titles() -> None:
    surface = screen(100)
    show_history(surface, "s", [save(10, "input"), save(9, "turn", tools=["a"])], NOW)
    _, titles, first, second = shown(surface).rstrip("\n").split("\n")
    assert titles.index("what") == first.index("new input") == second.index("model asked")


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_session_ids_and_parents_are_whole_at_every_width(width: int) -> None:
    surface = screen(width)
    long = "x" * 150
    sessions: list[dict[str, Any]] = [
        {"sessionId": long, "agent": "a", "status": "finished", "step": 3, "savedAt": "2026-03-01T11:00:00Z"},
        {"sessionId": "trip.fork-1", "agent": "a", "parent": {"sessionId": "trip", "seq": 3}},
    ]
    show_sessions(surface, sessions, NOW)
    assert long in shown(surface)
    assert "trip@3" in shown(surface)


def test_no_sessions_is_said_on_a_terminal_and_is_no_line_in_a_pipe() -> None:
    piped, drawn = pipe(), screen()
    show_sessions(piped, [])
    show_sessions(drawn, [])
    assert (shown(piped), shown(drawn)) == ("", "no sessions yet\n")


def test_hostile_text_is_harmless_in_lists() -> None:
    entry = save(
        1, "pause", status=HOSTILE, savedAt=HOSTILE, tools=[HOSTILE], approvalId=HOSTILE, note=HOSTILE
    )
    session = {"sessionId": HOSTILE, "agent": HOSTILE, "status": HOSTILE, "savedAt": HOSTILE}
    for surface in (pipe(), screen(600), screen(40)):
        show_history(surface, HOSTILE, [entry], NOW)
        show_sessions(surface, [{**session, "parent": {"sessionId": HOSTILE, "seq": 1}}], NOW)
        assert_harmless(shown(surface))
        assert "\\x1b[31m" in shown(surface)
