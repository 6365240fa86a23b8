"""lousho: a durable engine for AI agents.

The names below are the public interface. They are imported when they are first used, so that a program that
needs only some of them starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .agents.create import AgentSession, DurableAgent, create_agent
    from .agents.tool import tool
    from .errors import (
        ConfigurationError,
        PropagatingToolError,
        ProviderError,
        SDKError,
        SessionAwaitingApprovalError,
        SessionBusyError,
        StorageError,
    )
    from .execution.agent import Agent, RunContext
    from .execution.budget import Budget
    from .execution.cancel import Cancel
    from .execution.conversation import Message, ToolCall
    from .execution.events import Event
    from .execution.executor import (
        AgentExecutor,
        get_checkpoint_history,
        resume_after_approval,
        resume_after_approval_sync,
    )
    from .execution.hooks import Hooks, ToolUse
    from .execution.patience import RetryPolicy
    from .execution.protocols import (
        ApprovalStore,
        CallDelta,
        CheckpointStore,
        ModelRequest,
        ModelSettings,
        Provider,
        ReasoningDelta,
        StoredApproval,
        TextDelta,
        ToolSchema,
    )
    from .execution.records import (
        ApprovalDecision,
        Checkpoint,
        ExecutionResult,
        ForkPatch,
        ForkResult,
        HistoryEntry,
        ModelResponse,
        PendingApproval,
        Usage,
    )
    from .execution.tools import Tool, ToolContext, ToolRegistry
    from .execution.trajectory import compare_trajectories
    from .execution.unset import UNSET
    from .stores.file import FileStore
    from .stores.kv import KVStore
    from .stores.memory import MemoryStore
    from .stores.sqlite import SqliteStore

_HOMES = {
    "agents.create": ["AgentSession", "DurableAgent", "create_agent"],
    "agents.tool": ["tool"],
    "errors": [
        "ConfigurationError", "PropagatingToolError", "ProviderError", "SDKError",
        "SessionAwaitingApprovalError", "SessionBusyError", "StorageError",
    ],
    "execution.agent": ["Agent", "RunContext"],
    "execution.budget": ["Budget"],
    "execution.cancel": ["Cancel"],
    "execution.events": ["Event"],
    "execution.executor": [
        "AgentExecutor", "get_checkpoint_history", "resume_after_approval", "resume_after_approval_sync",
    ],
    "execution.hooks": ["Hooks", "ToolUse"],
    "execution.patience": ["RetryPolicy"],
    "execution.protocols": [
        "ApprovalStore", "CallDelta", "CheckpointStore", "ModelRequest", "ModelSettings", "Provider",
        "ReasoningDelta", "StoredApproval", "TextDelta", "ToolSchema",
    ],
    "execution.conversation": ["Message", "ToolCall"],
    "execution.records": [
        "ApprovalDecision", "Checkpoint", "ExecutionResult", "ForkPatch", "ForkResult", "HistoryEntry",
        "ModelResponse", "PendingApproval", "Usage",
    ],
    "execution.tools": ["Tool", "ToolContext", "ToolRegistry"],
    "execution.trajectory": ["compare_trajectories"],
    "execution.unset": ["UNSET"],
    "stores.file": ["FileStore"],
    "stores.kv": ["KVStore"],
    "stores.memory": ["MemoryStore"],
    "stores.sqlite": ["SqliteStore"],
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "UNSET", "Agent", "AgentExecutor", "AgentSession", "ApprovalDecision", "ApprovalStore", "Budget",
    "CallDelta", "Cancel", "Checkpoint", "CheckpointStore", "ConfigurationError", "DurableAgent", "Event",
    "ExecutionResult", "FileStore", "ForkPatch", "ForkResult", "HistoryEntry", "Hooks", "KVStore",
    "MemoryStore", "Message", "ModelRequest", "ModelResponse", "ModelSettings", "PendingApproval",
    "PropagatingToolError", "Provider", "ProviderError", "ReasoningDelta", "RetryPolicy", "RunContext",
    "SDKError", "SessionAwaitingApprovalError", "SessionBusyError", "SqliteStore", "StorageError",
    "StoredApproval", "TextDelta", "Tool", "ToolCall", "ToolContext", "ToolRegistry", "ToolSchema",
    "ToolUse", "Usage", "__version__", "compare_trajectories", "create_agent", "get_checkpoint_history",
    "resume_after_approval", "resume_after_approval_sync", "tool",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
