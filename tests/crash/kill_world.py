"""A workspace whose agent has every kind of call, and what a user does in it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from lousho_cli import FileStore, StoredApproval
from lousho_cli.errors import NotFoundError
from lousho_cli.stores.backend_file import FileBackend
from lousho_cli.stores.folder import agent_folder

Data = dict[str, Any]
AGENT = "bot"
TOOLS = '''
"""Each effect is a line in a file."""

import os
import time

from lousho_cli import ToolContext, tool


def note(ctx: ToolContext, name: str) -> str:
    fd = os.open(os.environ["LOUSHO_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"ran {name} {ctx.tool_call_id}\\n".encode())
    os.close(fd)
    time.sleep(float(os.environ.get("LOUSHO_TOOL_SECONDS", "0")))
    return f"{name} done"


'''
BODY = """
@tool(%s)
def %s(ctx: ToolContext) -> str:
    "does %s"
    return note(ctx, "%s")


"""
KINDS = {
    "plain": "", "pay": 'on_interrupt="ask"', "once": 'on_interrupt="fail"', "gated": "needs_approval=True"
}  # fmt: skip
INPUTS = ("go", "more")


def calls(*names: str) -> Data:
    """A turn that calls these tools; a digit makes the id of a later call of the same tool another one."""
    return {"tool_calls": [{"name": name.rstrip("23"), "id": f"c_{name}", "args": {}} for name in names]}


SCRIPT: list[Any] = [
    calls("plain", "pay", "once", "gated", "plain2"),
    {"tool_calls": [{"name": "delegate_cook", "id": "c_cook", "args": {"input": "soup"}}]},
    "first",
    calls("pay2", "plain3", "gated2"),
    "second",
]
COOK: list[Any] = [{"tool_calls": [{"name": "stir", "id": "c_stir", "args": {}}]}, "soup"]


def make_workspace(home: Path, settings: str = "") -> Path:
    """A folder with a workspace."""
    agent = home / ".lousho" / "agents" / AGENT
    _make_agent(agent, SCRIPT, KINDS, settings)
    _make_agent(agent / "subagents" / "cook", COOK, {"stir": ""}, 'description = "cooks"\n')
    (home / ".lousho" / "config.toml").write_text(f'default_agent = "{AGENT}"\n')
    return home


def _make_agent(folder: Path, script: list[Any], tools: dict[str, str], settings: str) -> None:
    (folder / "tools").mkdir(parents=True)
    (folder / "agent.toml").write_text('model = "script:script.json"\n' + settings)
    (folder / "instructions.md").write_text("Do the work.\n")
    (folder / "script.json").write_text(json.dumps(script))
    code = "".join(BODY % (options, name, name, name) for name, options in tools.items())
    (folder / "tools" / "tools.py").write_text(TOOLS + code)


def backend(home: Path) -> FileBackend:
    return FileBackend(agent_folder(home / ".lousho", AGENT), 50)


def load(home: Path, session: str) -> Data | None:
    """The checkpoint as JSON."""
    found = asyncio.run(FileStore(home / ".lousho", AGENT).checkpoints.load(session))
    return None if found is None else found.model_dump(mode="json", by_alias=True, exclude_none=True)


def approval(home: Path, approval_id: str) -> StoredApproval | None:
    try:
        return asyncio.run(FileStore(home / ".lousho", AGENT).approvals.get(approval_id))
    except NotFoundError:
        return None


def next_words(home: Path, session: str, given: int = len(INPUTS)) -> tuple[str, ...] | None:
    """What a user who looks at the session does next; None when it has answered everything.

    Args:
        given: how many inputs there are.
    """
    found = load(home, session)
    if found is None:
        return ("run", session, INPUTS[0])
    if found["status"] == "in-progress":
        return ("resume", session)
    if found["status"] == "awaiting-approval":
        waiting = found["engine"]["approval"]["id"]
        stored = approval(home, waiting)
        if stored is not None and stored.decision is not None:
            return ("resume", session)
        return ("approve", waiting)
    said = [message["content"] for message in found["messages"] if message["role"] == "user"]
    return ("run", session, INPUTS[len(said)]) if len(said) < given else None
