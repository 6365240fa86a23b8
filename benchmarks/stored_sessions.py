"""Sessions of any length, written as a run leaves them but without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lousho_cli.execution.state import Record, RunStart, State, apply
from lousho_cli.stores.folder import AgentFolder, agent_folder
from lousho_cli.stores.history_file import history_bytes
from lousho_cli.stores.journal import Header, record_line
from lousho_cli.stores.trail import Trail, save_of

AGENT = "assistant"
_TEXT = "The model says what it will do next, and why. " * 11
_RESULT = json.dumps("a result of a tool " * 26)


def instant(seq: int) -> str:
    seconds, micros = divmod(seq, 1_000_000)
    return f"2026-01-01T00:00:{seconds:02}.{micros:06}Z"


def records(turns: int, *, finished: bool = True) -> Iterator[Record]:
    """One run: each turn says 500 bytes and calls one tool, which returns 500 bytes."""
    first = Record("input", "in-progress", 0, seq=1, at=instant(1), fence=1, agent=AGENT)
    first.add, first.run, first.system = (
        [{"role": "user", "content": "go"}],
        RunStart(0, 1, 10**6),
        "Be brief.",
    )
    yield first
    for n in range(1, turns + 1):
        turn = Record("turn", "in-progress", n, seq=2 * n, at=instant(2 * n), fence=1)
        arguments = json.dumps({"n": n})
        turn.add = [
            {
                "role": "assistant",
                "content": _TEXT,
                "toolCalls": [
                    {
                        "id": f"call_{n}",
                        "type": "function",
                        "function": {"name": "echo", "arguments": arguments},
                    }
                ],
            }
        ]
        turn.usage = {"inputTokens": n, "outputTokens": n, "totalTokens": 2 * n, "modelCalls": n}
        yield turn
        result = Record("result", "in-progress", n, seq=2 * n + 1, at=instant(2 * n + 1), fence=1)
        result.results = {
            f"call_{n}": {"role": "tool", "content": _RESULT, "toolCallId": f"call_{n}", "toolName": "echo"}
        }
        yield result
    if finished:
        last = Record("finish", "finished", turns + 1, seq=2 * turns + 2, at=instant(2 * turns + 2), fence=1)
        last.add, last.finish_reason = [{"role": "assistant", "content": "done"}], "stop"
        yield last


def write_session(workspace: Path, session_id: str, turns: int, *, finished: bool = True) -> AgentFolder:
    """A session of that many turns in the `.lousho` folder `workspace`, with its history file."""
    folder = agent_folder(workspace, AGENT)
    for path in (folder.checkpoints, folder.history(session_id).parent):
        path.mkdir(parents=True, exist_ok=True)
    (folder.path / "agent.toml").touch()
    lines = [Header(session_id, AGENT, instant(0)).line()]
    end = len(lines[0])
    state, trail = State(session_id, agent=AGENT), Trail(50)
    for record in records(turns, finished=finished):
        lines.append(record_line(record))
        end += len(lines[-1])
        state = apply(state, record)
        trail.add(save_of(record, state, end), state)
    folder.journal(session_id).write_bytes(b"".join(lines))
    entries = (json.dumps(save.to_json()) for save in trail.saves())
    folder.history(session_id).write_bytes(history_bytes(session_id, 50, None, trail.last_step, entries))
    return folder
