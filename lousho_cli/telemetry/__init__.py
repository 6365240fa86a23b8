"""Runs as OpenTelemetry spans, by the conventions for generative AI.

`current_tracing()` costs a look into `sys.modules` where no tracer provider is set. Only the API of
OpenTelemetry is used: where spans go is the application's to say, or `sending_spans`'s.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..execution.tracing import Tracing

CONTENT_VARIABLE = "LOUSHO_OTEL_CONTENT"


def current_tracing(content: bool | None = None) -> Tracing | None:
    """What makes spans of runs; None where no tracer provider is set, so that nobody would see them.

    Args:
        content: whether spans hold what was said: messages, arguments, results; None for what the environment
            variable `LOUSHO_OTEL_CONTENT` says.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        # Whoever has set a provider has imported it.
        return None
    if isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    from .._version import __version__
    from .spans import tracing

    if content is None:
        content = os.environ.get(CONTENT_VARIABLE, "").lower() in ("1", "true", "yes", "on")
    return tracing(trace.get_tracer("lousho", __version__), content)
