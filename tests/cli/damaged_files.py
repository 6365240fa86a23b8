"""Ways to damage the files of a session, each as a disk, a crash or a hand would."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from bot_workspace import BotWorkspace

OLD = 1_000_000_000
"""A time long ago, in seconds."""

Damage = Callable[[BotWorkspace, str], None]


def lines(workspace: BotWorkspace, session: str) -> list[bytes]:
    return workspace.journal(session).read_bytes().splitlines(keepends=True)


def write_lines(workspace: BotWorkspace, session: str, new: list[bytes]) -> None:
    workspace.journal(session).write_bytes(b"".join(new))


def history(workspace: BotWorkspace, session: str) -> Path:
    return workspace.agent / "checkpoint-history" / f"{session}.json"


def approvals(workspace: BotWorkspace) -> Path:
    return workspace.agent / "approvals"


def flip_a_bit(workspace: BotWorkspace, session: str) -> None:
    """In the middle of save 4."""
    found = lines(workspace, session)
    found[4] = found[4][:40] + bytes([found[4][40] ^ 1]) + found[4][41:]
    write_lines(workspace, session, found)


def zero_a_block(workspace: BotWorkspace, session: str) -> None:
    """From the middle of save 3 into save 4."""
    data, start = workspace.journal(session).read_bytes(), len(b"".join(lines(workspace, session)[:3])) + 30
    end = start + len(lines(workspace, session)[3])
    workspace.journal(session).write_bytes(data[:start] + bytes(end - start) + data[end:])


def insert_zeros(workspace: BotWorkspace, session: str) -> None:
    found = lines(workspace, session)
    write_lines(workspace, session, [*found[:3], bytes(512), *found[3:]])


def remove_a_record(workspace: BotWorkspace, session: str) -> None:
    found = lines(workspace, session)
    write_lines(workspace, session, [*found[:3], *found[4:]])


def swap_records(workspace: BotWorkspace, session: str) -> None:
    found = lines(workspace, session)
    found[3], found[4] = found[4], found[3]
    write_lines(workspace, session, found)


def break_the_first_line(workspace: BotWorkspace, session: str) -> None:
    workspace.damage(session)


def lose_a_line_break(workspace: BotWorkspace, session: str) -> None:
    found = lines(workspace, session)
    found[3] = found[3][:-1] + b"\0"
    write_lines(workspace, session, found)


def tear_the_end(workspace: BotWorkspace, session: str) -> None:
    found = lines(workspace, session)
    write_lines(workspace, session, [*found, found[-1][:25]])


def cut_to_nothing(workspace: BotWorkspace, session: str) -> None:
    workspace.journal(session).write_bytes(b"")


def make_newer(workspace: BotWorkspace, session: str) -> None:
    found = lines(workspace, session)
    write_lines(workspace, session, [found[0].replace(b'"version":1', b'"version":2'), *found[1:]])


def rename(workspace: BotWorkspace, session: str) -> None:
    """The journal bears the name of another session, `taken`."""
    workspace.journal(session).rename(workspace.journal("taken"))


def link(workspace: BotWorkspace, session: str) -> None:
    real = workspace.root / "elsewhere.jsonl"
    workspace.journal(session).rename(real)
    workspace.journal(session).symlink_to(real)


def make_a_pipe(workspace: BotWorkspace, session: str) -> None:
    workspace.journal(session).unlink()
    os.mkfifo(workspace.journal(session), 0o600)


def make_a_folder(workspace: BotWorkspace, session: str) -> None:
    workspace.journal(session).unlink()
    workspace.journal(session).mkdir(0o700)


def break_history(workspace: BotWorkspace, session: str) -> None:
    history(workspace, session).write_text("{")


def lose_history(workspace: BotWorkspace, session: str) -> None:
    history(workspace, session).unlink()


def lose_journal(workspace: BotWorkspace, session: str) -> None:
    workspace.journal(session).unlink()


def _edit_history(workspace: BotWorkspace, session: str, **changes: object) -> None:
    content = json.loads(history(workspace, session).read_text())
    history(workspace, session).write_text(json.dumps({**content, **changes}))


def put_history_behind(workspace: BotWorkspace, session: str) -> None:
    entries = json.loads(history(workspace, session).read_text())["entries"]
    _edit_history(workspace, session, entries=entries[:-1])


def let_history_lie(workspace: BotWorkspace, session: str) -> None:
    entries = json.loads(history(workspace, session).read_text())["entries"]
    _edit_history(workspace, session, entries=[*entries[:-1], {**entries[-1], "step": 77}])


def give_history_to_another(workspace: BotWorkspace, session: str) -> None:
    _edit_history(workspace, session, sessionId="another")


def make_history_newer(workspace: BotWorkspace, session: str) -> None:
    _edit_history(workspace, session, version=2)


def drop_the_last_save(workspace: BotWorkspace, session: str) -> None:
    write_lines(workspace, session, lines(workspace, session)[:-1])


def leave_a_temporary_file(workspace: BotWorkspace, session: str) -> None:
    left = workspace.journal(session).with_name(".0123456789abcdef.tmp")
    _private(left, "half")
    os.utime(left, (OLD, OLD))


def open_to_others(workspace: BotWorkspace, session: str) -> None:
    workspace.journal(session).chmod(0o644)


def open_a_folder(workspace: BotWorkspace, session: str) -> None:
    workspace.journal(session).parent.chmod(0o755)


def leave_a_request(workspace: BotWorkspace, session: str) -> None:
    pending = {"id": "ap_old", "sessionId": session, "toolName": "pay", "toolCallId": "c", "args": {}}
    _private(approvals(workspace) / "ap_old.json", json.dumps({"version": 1, "pending": pending}))


def leave_a_decision(workspace: BotWorkspace, session: str) -> None:
    decision = {"version": 1, "id": "ap_older", "approved": True, "by": "ann", "at": "2026-01-01T00:00:00Z"}
    _private(approvals(workspace) / "ap_older~decision.json", json.dumps(decision))


def _private(path: Path, text: str) -> None:
    path.parent.mkdir(0o700, exist_ok=True)
    path.touch(0o600)
    path.write_text(text)


UNREPAIRED: Mapping[str, tuple[Damage, str]] = {
    "newer version": (make_newer, "newer-version"),
    "another session's name": (rename, "wrong-session"),
    "cut to 0 bytes": (cut_to_nothing, "journal-emptied"),
    "a link": (link, "not-a-file"),
    "a folder": (make_a_folder, "not-a-file"),
}
"""What is an error and a human has to mend: how it comes about, and its code."""

REPAIRED: Mapping[str, tuple[Damage, int]] = {
    "bit flip": (flip_a_bit, 3),
    "zero block": (zero_a_block, 2),
    "zeros between saves": (insert_zeros, 0),
    "removed record": (remove_a_record, 2),
    "swapped records": (swap_records, 0),
    "first line": (break_the_first_line, 0),
    "lost line break": (lose_a_line_break, 0),
}
"""Damage of a journal, and up to which save it can be kept; 0 where all of it can."""

HARMLESS: Mapping[str, tuple[Damage, str, str]] = {
    "torn end": (tear_the_end, "torn-end", "notice"),
    "history damaged": (break_history, "history-damaged", "notice"),
    "history missing": (lose_history, "history-missing", "notice"),
    "history behind": (put_history_behind, "history-behind", "notice"),
    "history says otherwise": (let_history_lie, "history-damaged", "notice"),
    "history of another": (give_history_to_another, "history-wrong-session", "notice"),
    "history newer": (make_history_newer, "history-newer", "notice"),
    "history ahead": (drop_the_last_save, "history-ahead", "warning"),
    "journal gone": (lose_journal, "history-without-journal", "warning"),
    "temporary file": (leave_a_temporary_file, "temporary-file", "notice"),
    "request without session": (leave_a_request, "request-orphan", "notice"),
    "decision without request": (leave_a_decision, "decision-orphan", "notice"),
}
"""What is no error: how it comes about, its code and its severity."""
