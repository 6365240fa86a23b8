from __future__ import annotations

import re
import threading
import time
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from render_surfaces import HOSTILE, assert_harmless, pipe, screen, shown

from lousho_cli.render.console import Surface
from lousho_cli.render.live import LiveRun

Event = tuple[str, dict[str, Any]]
RUN: list[Event] = [
    ("run.start", {"model": "demo", "agent": "concierge", "resumed": False}),
    ("step.start", {"step": 1, "model": "demo"}),
    ("text.delta", {"text": "I look "}),
    ("text.delta", {"text": "around."}),
    ("tool.start", {"toolName": "find", "toolCallId": "c1", "args": '{"n":2}'}),
    ("checkpoint.saved", {"seq": 1, "status": "in-progress"}),
    ("tool.done", {"toolName": "find", "toolCallId": "c1", "result": '["x"]', "seconds": 0.2}),
    ("step.done", {"step": 1, "usage": {}}),
    ("step.start", {"step": 2, "model": "demo"}),
    ("text.delta", {"text": "Done."}),
    ("step.done", {"step": 2, "usage": {}}),
    (
        "run.done",
        {
            "finishReason": "stop",
            "steps": 2,
            "usage": {"inputTokens": 1200, "outputTokens": 30, "costUsd": 0.5},
        },
    ),
]


def play(surface: Surface, events: list[Event], *, quiet: bool = False) -> LiveRun:
    with LiveRun(surface, quiet=quiet) as run:
        for kind, data in events:
            run.handle({"type": kind, "data": data})
    return run


def on_screen(text: str) -> list[str]:
    """The lines a terminal shows after carriage returns and erased lines."""
    lines = []
    for line in text.split("\n"):
        line = line.rpartition("\r\x1b[2K")[2]
        assert "\x1b" not in line
        assert "\r" not in line
        lines.append(line)
    return lines


def test_a_terminal_shows_steps_calls_results_text_and_usage() -> None:
    surface = screen(live=True)
    run = play(surface, RUN)
    assert on_screen(shown(surface)) == [
        "concierge · demo",
        "step 1 · demo",
        "I look around.",
        '  → find  {"n": 2}',
        '  ✓ find  0.2s  ["x"]',
        "step 2 · demo",
        "Done.",
        "finished (stop), 2 steps, 1,200 tokens in, 30 out, $0.5000",
        "",
    ]
    assert run.reply_shown


def test_a_pipe_gets_plain_lines_without_the_reply() -> None:
    surface = pipe()
    run = play(surface, RUN)
    assert shown(surface).split("\n") == [
        "running concierge with demo",
        "step 1: asking demo",
        "model says: I look around.",
        'calling find {"n": 2}',
        'result of find after 0.2s: ["x"]',
        "step 2: asking demo",
        "finished (stop), 2 steps, 1,200 tokens in, 30 out, $0.5000",
        "",
    ]
    assert not run.reply_shown


def test_quiet_prints_nothing() -> None:
    for surface in (pipe(), screen(live=True)):
        assert not play(surface, RUN, quiet=True).reply_shown
        assert shown(surface) == ""


def test_the_reply_is_not_shown_when_only_an_earlier_step_had_text() -> None:
    assert not play(screen(), [*RUN[:9], RUN[-1]]).reply_shown


def test_events_may_be_objects() -> None:
    surface = pipe()
    with LiveRun(surface) as run:
        run.handle(SimpleNamespace(type="run.start", data={"agent": "a", "model": "m", "resumed": True}))
    assert shown(surface) == "resuming a with m\n"


def test_unknown_events_are_passed_over() -> None:
    for surface in (pipe(), screen()):
        play(surface, [("something.new", {"x": 1})])
        assert shown(surface) == ""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("timeout", "✗ pay  timed out: late"),
        ("rejected", "⊘ pay  rejected, did not run: late"),
        ("cancelled", "■ pay  cancelled: late"),
    ],
)
def test_errors_are_shown_as_what_they_are(kind: str, words: str) -> None:
    surface = screen()
    play(surface, [("tool.error", {"toolName": "pay", "toolCallId": "c", "kind": kind, "error": "late"})])
    assert words in shown(surface)


def test_an_approval_shows_its_id_whole_and_a_changed_agent_is_a_warning() -> None:
    ident = "ap_" + "7" * 60
    approval = {"id": ident, "toolName": "pay", "args": {"eur": 5}, "kind": "interrupted"}
    events: list[Event] = [
        ("agent.drift", {"changes": ["instructions", "tool pay"]}),
        ("approval.requested", {"approval": approval}),
    ]
    for surface in (pipe(), screen(40)):
        play(surface, events)
        assert ident in shown(surface)
        assert "may already have happened" in shown(surface)
        assert shown(surface).count("the agent changed") == 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_of_calls_fit_the_width_on_a_terminal_and_are_whole_in_a_pipe(width: int) -> None:
    args = '{"note": "' + "日本語" * 200 + '"}'
    events: list[Event] = [
        ("tool.start", {"toolName": "f", "toolCallId": "c", "args": args}),
        ("tool.done", {"toolName": "f", "toolCallId": "c", "result": args, "seconds": 1}),
        ("tool.error", {"toolName": "f", "toolCallId": "c", "kind": "timeout", "error": args}),
    ]
    surface, piped = screen(width), pipe()
    play(surface, events)
    play(piped, events)
    from rich.cells import cell_len

    assert max(map(cell_len, shown(surface).split("\n"))) <= width
    assert shown(surface).count("…") == 3
    assert shown(piped).count("日本語" * 200) == 3


def test_the_live_line_counts_and_is_gone_at_the_end() -> None:
    surface = screen(live=True)
    run = LiveRun(surface)
    run.handle({"type": "step.start", "data": {"step": 1, "model": "demo"}})
    time.sleep(1.3)
    run.close()
    run.close()
    text = shown(surface)
    assert re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] waiting for demo  1s", text)
    assert on_screen(text) == ["step 1 · demo", ""]
    assert not [thread for thread in threading.enumerate() if thread.name == "status"]


def test_the_cursor_is_never_hidden_and_an_exception_leaves_a_clean_line() -> None:
    surface = screen(live=True)

    def interrupted() -> None:
        with LiveRun(surface) as run:
            run.handle({"type": "step.start", "data": {"step": 1, "model": "demo"}})
            run.handle({"type": "text.delta", "data": {"text": "half a li"}})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "?25l" not in shown(surface)
    assert on_screen(shown(surface)) == ["step 1 · demo", "half a li", ""]


def test_thinking_after_text_leaves_the_text() -> None:
    surface = screen(live=True)
    thinking: list[Event] = [("text.delta", {"text": "so far"}), ("reasoning.delta", {"text": "hm"})]
    play(surface, [*RUN[:2], *thinking, *thinking])
    assert on_screen(shown(surface))[2:] == ["so far", "so far", ""]


def test_no_live_line_where_the_cursor_may_not_move() -> None:
    surface = screen(live=False)
    play(surface, RUN)
    assert "waiting" not in shown(surface)
    assert "\x1b" not in shown(surface)


def test_running_calls_of_a_batch_are_named_until_each_is_done() -> None:
    surface = screen(live=True)
    with LiveRun(surface) as run:
        for ident in ("a", "b"):
            run.handle({"type": "tool.start", "data": {"toolName": ident, "toolCallId": ident, "args": "{}"}})
        both = shown(surface)
        run.handle({"type": "tool.done", "data": {"toolName": "a", "toolCallId": "a", "result": "1"}})
    assert "running a, b" in both
    assert "running b" in shown(surface)[len(both) :]


class Gone(StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("terminal", [True, False])
def test_a_stream_that_is_gone_does_not_end_the_run(terminal: bool) -> None:
    run = play(Surface(Gone(), terminal=terminal, live=terminal), RUN)
    assert not run.reply_shown


def test_hostile_text_is_harmless() -> None:
    approval = dict.fromkeys(("id", "toolName", "args", "kind"), HOSTILE)
    names = {"toolName": HOSTILE, "toolCallId": HOSTILE}
    events: list[Event] = [
        ("run.start", {"model": HOSTILE, "agent": HOSTILE}),
        ("step.start", {"step": 1, "model": HOSTILE}),
        ("text.delta", {"text": HOSTILE}),
        ("tool.start", {**names, "args": HOSTILE}),
        ("tool.done", {**names, "result": HOSTILE, "seconds": 1}),
        ("tool.error", {**names, "kind": HOSTILE, "error": HOSTILE}),
        ("approval.requested", {"approval": approval}),
        ("agent.drift", {"changes": [HOSTILE]}),
        ("run.done", {"finishReason": HOSTILE}),
    ]
    for surface in (pipe(), screen(400)):
        play(surface, events)
        assert_harmless(shown(surface))


def retry(text: str, *, wait: float = 1.5, **more: Any) -> Event:
    error = {"code": "LOUSHO_PROVIDER_REQUEST_FAILED", "message": text, "status": 503}
    return ("model.retry", {"step": 1, "model": "demo", "error": error, "wait": wait, **more})


def rows_of(text: str, width: int) -> list[str]:
    """The rows that a terminal of this width shows, as far as our codes go."""
    rows, row, column = [""], 0, 0
    for code, char in re.findall(r"(\x1b\[\d*[A-Z])|([\s\S])", text):
        if code == "\x1b[2K":
            rows[row] = ""
        elif code:
            assert code == "\x1b[1A"
            row -= 1
        elif char == "\r":
            column = 0
        elif char == "\n" or column == width:
            row, column = row + 1, 0
            rows += [""] * (row == len(rows))
        if not code and char not in "\r\n":
            rows[row] = rows[row][:column] + char
            column += 1
    return rows


CUT: list[Event] = [
    ("step.start", {"step": 1, "model": "demo"}),
    ("text.delta", {"text": "a line that is long enough to wrap around the edge of it\nand "}),
    ("reasoning.delta", {"text": "hm"}),
    ("text.delta", {"text": "more"}),
    retry("overloaded", discard=True),
    ("text.delta", {"text": "Whole."}),
    ("checkpoint.saved", {"seq": 2, "status": "finished", "step": 1}),
    ("run.done", {"finishReason": "stop", "steps": 1, "usage": {}}),
]


@pytest.mark.parametrize("width", [20, 28, 30, 80])
def test_what_a_cut_turn_has_shown_is_taken_off_the_screen(width: int) -> None:
    surface = screen(width, live=True)
    run = play(surface, CUT)
    shown_rows = "".join(rows_of(shown(surface), width))
    assert shown_rows == (
        "step 1 · demo! demo failed (503): overloaded; asking again in 1.5sWhole.finished (stop), 1 step"
    )
    assert run.reply_shown


def test_where_the_cursor_may_not_move_a_cut_turn_is_called_void() -> None:
    surface = screen(live=False)
    play(surface, CUT)
    assert "overloaded; asking again in 1.5s, what it wrote is void\nWhole.\n" in shown(surface)


def test_a_cut_turn_too_long_for_the_screen_stays_and_is_called_void() -> None:
    surface = screen(live=True)
    play(surface, [CUT[0], ("text.delta", {"text": "line\n" * 200}), *CUT[4:]])
    assert "what it wrote is void" in shown(surface)


def test_a_pipe_never_shows_a_cut_turn() -> None:
    surface = pipe()
    play(surface, [*CUT[:-3], ("text.delta", {"text": "Whole."}), RUN[4]])
    assert shown(surface) == (
        "step 1: asking demo\nwarning: demo failed (503): overloaded; asking again in 1.5s\n"
        'model says: Whole.\ncalling find {"n": 2}\n'
    )


def test_a_turn_that_is_whole_is_never_taken_back() -> None:
    surface = screen(live=True)
    play(surface, [*CUT[:1], CUT[5], CUT[6], ("step.start", {"step": 2, "model": "demo"}), CUT[4]])
    assert rows_of(shown(surface), 80)[1] == "Whole."


def test_the_next_model_is_named() -> None:
    surface = pipe()
    play(surface, [retry("gone", wait=0, next="spare")])
    assert shown(surface) == "warning: demo failed (503): gone; asking spare\n"


def test_a_call_that_is_being_written_is_named() -> None:
    surface = screen(live=True)
    play(surface, [*RUN[:2], ("call.delta", {"index": 0, "name": "find", "arguments": ""})])
    assert "demo is writing a call of find" in shown(surface)


@pytest.mark.parametrize("make", [pipe, screen])
def test_turns_of_sub_agents_that_write_at_once_are_shown_one_by_one(make: Any) -> None:
    surface = make()
    with LiveRun(surface) as run:
        for text in ("one ", "two"):
            for name in ("a", "b"):
                run.handle(
                    SimpleNamespace(type="text.delta", data={"text": f"{name} says {text}"}, path=(name,))
                )
        run.handle(SimpleNamespace(type="model.retry", data=retry("x", discard=True)[1], path=("b",)))
        run.handle(SimpleNamespace(type="checkpoint.saved", data={"step": 1}, path=("a",)))
        run.handle({"type": "tool.start", "data": RUN[4][1]})
    assert "a says one a says two" in shown(surface)
    assert "b says" not in shown(surface)
