"""Every deliberate error of lousho.

    SDKError                            code, hint, docs
    ├── ConfigurationError              the caller, a file or a flag is wrong
    │   └── NothingToDoError            no input, and no unfinished run either
    ├── SessionAwaitingApprovalError    new input may not slip past a pending decision
    ├── SessionBusyError                another runner holds the session
    ├── NotFoundError                   no such session, save, approval or agent
    ├── AgentChangedError               the agent is not the one the session was started with
    ├── StorageError                    the disk, a permission, damaged or newer data
    ├── ProviderError                   the model could not be asked
    ├── CassetteError                   recorded answers are damaged, or there is none for a request
    └── PropagatingToolError            raised by a tool to end the run

The message says what is wrong, `hint` what to do about it. `code` is stable and meant for programs.
"""

from __future__ import annotations

DOCS = "docs/errors.md"


class SDKError(Exception):
    """Base of every deliberate error.

    Attributes:
        code: stable identifier, `LOUSHO_<AREA>_<NAME>`.
        hint: what to do next, one sentence, possibly empty.
        docs: where the code is explained.
    """

    default_code = "LOUSHO_CONFIG_INVALID"

    def __init__(self, message: str, *, code: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.hint = hint

    @property
    def message(self) -> str:
        return str(self)

    @property
    def docs(self) -> str:
        return f"{DOCS}#{self.code.lower()}"


class ConfigurationError(SDKError):
    """Something given to lousho is wrong: an argument, a file, a missing part."""


class NothingToDoError(ConfigurationError):
    """The input is empty and the session has no unfinished run."""


class SessionAwaitingApprovalError(SDKError):
    """The session waits for a human. Decide the approval first; nothing was run."""

    default_code = "LOUSHO_SESSION_AWAITING_APPROVAL"

    def __init__(self, session_id: str, approval_id: str) -> None:
        super().__init__(
            f"session {session_id!r} is awaiting approval {approval_id}",
            hint=f"decide it first: lousho approve {approval_id} (or add --reject)",
        )
        self.session_id = session_id
        self.approval_id = approval_id


class SessionBusyError(SDKError):
    """Another runner holds the session, or took it over from this one."""

    default_code = "LOUSHO_SESSION_BUSY"


class NotFoundError(SDKError):
    """There is no such session, save, approval or agent."""

    default_code = "LOUSHO_SESSION_NOT_FOUND"


class AgentChangedError(SDKError):
    """The agent differs from the one the session was started with; nothing was changed or run."""

    default_code = "LOUSHO_AGENT_DRIFT"


class StorageError(SDKError):
    """Stored data could not be written or read. The last good checkpoint is untouched."""

    default_code = "LOUSHO_STORAGE_FAILED"


class ProviderError(SDKError):
    """The model could not be asked, or its answer could not be used.

    Attributes:
        status: the HTTP status it was answered with, or None.
        retryable: whether asking again may help.
        retry_after: seconds the provider wants to be left alone, or None.
        usage: what the request cost all the same, as `Usage` or a mapping like it; None if nothing is known.
        attempts: how many times the model was asked before this was raised.
    """

    default_code = "LOUSHO_PROVIDER_REQUEST_FAILED"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str = "",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        usage: object | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage = usage
        self.attempts = 1


class CassetteError(SDKError):
    """A cassette cannot be used, or holds no answer to a request. The model itself was not asked."""

    default_code = "LOUSHO_CASSETTE_INVALID"


class PropagatingToolError(SDKError):
    """Raise this in a tool to end the run instead of telling the model.

    The call keeps no result: resuming the session runs it again.
    """

    default_code = "LOUSHO_TOOL_EXECUTION_FAILED"
