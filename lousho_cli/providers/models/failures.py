"""What went wrong with a request, as an error of ours that says whether asking again may help.

Nothing of it repeats a key, a header or a password, whatever the provider's answer quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from pydantic_ai import exceptions as library

from ...errors import ConfigurationError, ProviderError, SDKError
from ...execution.patience import is_retryable_status
from ...execution.values import message_of
from .missing import missing_key

LONGEST = 600
_HIDDEN = "***"
_CREDENTIALS = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}|(?<=://)[^/\s@]+(?=@)")
_TRANSPORT = ("httpx", "httpx2", "httpcore", "httpcore2", "botocore", "aiohttp", "urllib3", "anyio")
_NO_CREDENTIALS = {
    "NoCredentialsError": ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"),
    "PartialCredentialsError": ("AWS_SECRET_ACCESS_KEY",),
    "DefaultCredentialsError": ("GOOGLE_APPLICATION_CREDENTIALS",),
}
"""What the clients of Amazon and Google raise that look for credentials themselves, and what to set."""


class Failures:
    """Turns what a request raised into errors of ours.

    Args:
        model: the model's name, as the user knows it.
        keys: the environment variables that may hold the provider's key.
        secrets: what no error may show.
    """

    def __init__(self, model: str, keys: tuple[str, ...], secrets: Iterable[str]) -> None:
        self._model = model
        self._provider = model.partition(":")[0]
        self._keys = keys
        found = {each for each in secrets if len(each) >= 4}
        forms = {form for each in found for form in (each, quote(each, safe=""), repr(each)[1:-1])}
        self._secrets = sorted(forms, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"<failures of {self._model}>"

    def clean(self, text: str) -> str:
        """`text` without any secret."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return _CREDENTIALS.sub(_HIDDEN, text)

    def of(self, error: Exception) -> SDKError:
        """The error to raise in its place."""
        if isinstance(error, SDKError):
            return error
        if isinstance(error, library.ModelHTTPError):
            return self._answered(error)
        if isinstance(error, library.ModelRequestTimeout | library.ModelTimeoutError | TimeoutError):
            return self._failed("did not answer in time", error, retryable=True)
        if isinstance(error, library.ModelAPIError):
            return self._unanswered(error)
        if isinstance(error, library.ContentFilterError):
            return self._failed("refused the content", error)
        if isinstance(error, library.UnexpectedModelBehavior):
            return self._failed("sent what is no answer", error, retryable=True)
        if isinstance(error, library.UserError):
            return ConfigurationError(f"{self._model} cannot be asked like this: {self._said(error)}")
        if type(error).__name__ in _NO_CREDENTIALS:
            return missing_key(self._provider, _NO_CREDENTIALS[type(error).__name__])
        if type(error).__name__ == "NoRegionError":
            return ConfigurationError(f"{self._provider} needs a region", hint="set AWS_REGION")
        broken = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _TRANSPORT
        return self._failed("could not be asked", error, retryable=broken)

    def _answered(self, error: library.ModelHTTPError) -> ProviderError:
        """An HTTP status that is no success."""
        status = error.status_code
        retryable = is_retryable_status(status) and error.provider_retry_hint is not False
        code, hint = None, ""
        if isinstance(error, library.ModelContextWindowExceededError):
            code, hint = (
                "LOUSHO_PROVIDER_CONTEXT_EXCEEDED",
                "fork from an earlier step, or use a model that reads more",
            )
        elif isinstance(error, library.ModelNotFoundError):
            code, hint = "LOUSHO_PROVIDER_MODEL_NOT_FOUND", self._other_model(error)
        elif isinstance(error, library.ModelAuthenticationError):
            named = f" ({' or '.join(self._keys)})" if self._keys else ""
            code, hint = "LOUSHO_PROVIDER_KEY_REFUSED", f"check the key{named} and what it may use"
        elif isinstance(error, library.ModelQuotaExceededError):
            retryable = False
            code, hint = "LOUSHO_PROVIDER_RATE_LIMITED", "the account's quota or credit is used up"
        elif status == 429:
            code, hint = "LOUSHO_PROVIDER_RATE_LIMITED", "wait a while, then resume"
        elif retryable:
            hint = "resume to ask it again"
        return ProviderError(
            f"{self._provider} answered {status}: {self._explained(error)}",
            code=code,
            hint=hint,
            status=status,
            retryable=retryable,
            retry_after=error.retry_after,
        )

    def _unanswered(self, error: library.ModelAPIError) -> ProviderError:
        """No status: the connection failed, the answer was cut, or it came broken in an open stream."""
        refused = isinstance(
            error,
            library.ModelRequestRejectedError | library.ModelQuotaExceededError | library.ContentFilterError,
        )
        limited = isinstance(error, library.ModelRateLimitError)
        return ProviderError(
            f"{self._provider} could not be asked: {self._said(error)}",
            code="LOUSHO_PROVIDER_RATE_LIMITED" if limited else None,
            hint="" if refused else "resume to ask it again",
            retryable=not refused,
            retry_after=error.retry_after,
        )

    def _failed(self, what: str, error: Exception, *, retryable: bool = False) -> ProviderError:
        hint = "resume to ask it again" if retryable else ""
        return ProviderError(f"{self._provider} {what}: {self._said(error)}", hint=hint, retryable=retryable)

    def _other_model(self, error: library.ModelHTTPError) -> str:
        likely = error.suggested_model_id
        return (
            f"did you mean {likely}?"
            if likely
            else f"check the name {self._model} and the provider's address"
        )

    def _explained(self, error: library.ModelHTTPError) -> str:
        """What the provider's answer says, without the JSON around it."""
        return self._shortened(_message_in(error.body) or "no explanation")

    def _said(self, error: Exception) -> str:
        return self._shortened(message_of(error))

    def _shortened(self, text: str) -> str:
        text = " ".join(self.clean(text).split())
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _message_in(body: Any) -> str:
    if isinstance(body, str):
        return body
    if not isinstance(body, Mapping):
        return ""
    for key in ("message", "Message", "error", "Error", "detail", "code", "Code"):
        found = _message_in(body.get(key))
        if found:
            return found
    return ""
