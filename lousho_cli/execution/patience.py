"""How long to go on asking a model that fails: attempts, waits, and what is worth another attempt."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..errors import ConfigurationError, ProviderError

RATE_LIMITED = 429
_RETRYABLE = frozenset((408, 409, RATE_LIMITED))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to ask again after a failure that may pass.

    Attributes:
        attempts: requests for one turn to one model, the first included; 1 never asks again.
        base_seconds: the longest wait before the second attempt; it doubles with each further one.
        max_seconds: the longest wait there is, also where the provider asks for a longer one.

    Raises:
        ConfigurationError: a value is impossible.
    """

    attempts: int = 4
    base_seconds: float = 0.5
    max_seconds: float = 30.0

    def __post_init__(self) -> None:
        attempts: object = self.attempts
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ConfigurationError(f"retries: attempts is {attempts!r}", hint="use a whole number from 1")
        for name in ("base_seconds", "max_seconds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ConfigurationError(f"retries: {name} is {value!r}", hint="use seconds from 0")

    @classmethod
    def of(cls, value: RetryPolicy | Mapping[str, Any] | None) -> RetryPolicy:
        """The policy that `value` is; the default one for None.

        Raises:
            ConfigurationError: a key is unknown or a value impossible.
        """
        if isinstance(value, RetryPolicy):
            return value
        given = dict(value or {})
        names = [field.name for field in fields(cls)]
        unknown = sorted(given.keys() - set(names))
        if unknown:
            raise ConfigurationError(
                f"retries: unknown key {unknown[0]!r}", hint=f"known keys: {', '.join(names)}"
            )
        return cls(**given)

    def wait(self, failures: int, error: ProviderError) -> float:
        """Seconds to wait after this many failures in a row.

        At random up to the back-off, so that many clients of one provider do not come back together; but
        not less than the provider asked for, within the limit.
        """
        longest = min(self.max_seconds, self.base_seconds * 2.0 ** min(failures - 1, 60))
        wait = random.uniform(0.0, longest)
        if error.retry_after is None:
            return wait
        return min(self.max_seconds, max(wait, error.retry_after))


def is_retryable_status(status: int | None) -> bool:
    """Whether a request that was answered with this HTTP status may succeed when it is sent again."""
    return status is not None and (status in _RETRYABLE or status >= 500)


def is_dropped(error: BaseException) -> bool:
    """Whether an exception says that the connection failed, not that the request was wrong."""
    return isinstance(error, ConnectionError | TimeoutError)


def give_up(error: ProviderError, attempts: int) -> None:
    """Say in the error that no further attempt is made, and why the last one failed."""
    if error.status == RATE_LIMITED and error.code == ProviderError.default_code:
        error.code = "LOUSHO_PROVIDER_RATE_LIMITED"
    error.attempts = attempts
