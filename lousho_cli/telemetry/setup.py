"""Sending spans where OpenTelemetry's own environment variables say, for the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

EXPORTERS = "OTEL_TRACES_EXPORTER"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_GROUP = "opentelemetry_traces_exporter"
_PACKAGES = {
    "otlp_proto_http": "opentelemetry-exporter-otlp-proto-http",
    "otlp_proto_grpc": "opentelemetry-exporter-otlp-proto-grpc",
}


@contextmanager
def sending_spans(environ: Mapping[str, str] = os.environ) -> Iterator[str | None]:
    """Send the spans of what is done here, if the environment asks for it and the SDK is installed.

    It asks with `OTEL_TRACES_EXPORTER` or with a collector's address, unless `OTEL_SDK_DISABLED` is true.
    Sampling, the resource, time-outs and headers are read by the SDK and its exporters. What was not sent yet
    is sent at the end.

    Yields:
        What is missing, for the user; None if nothing is.
    """
    names = _wanted(environ)
    if not names or not _is_installed():
        yield None
        return
    missing = [name for name in names if not entry_points(group=_GROUP, name=name)]
    if missing:
        yield (
            f"OpenTelemetry: there is no exporter {missing[0]}, so no spans are sent: install "
            f"{_PACKAGES.get(missing[0], 'the package that has it')}"
        )
        return
    provider = _provider(names)
    try:
        yield None
    finally:
        provider.shutdown()


def _wanted(environ: Mapping[str, str]) -> list[str]:
    """The exporters that the environment asks for, as they are registered."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    names = [name.strip() for name in environ.get(EXPORTERS, "").split(",")]
    if names == [""] and any(environ.get(name) for name in ENDPOINTS):
        names = ["otlp"]
    return [_otlp(environ) if name == "otlp" else name for name in names if name not in ("", "none")]


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.sdk") is not None
    except ImportError:
        return False


def _provider(names: list[str]) -> TracerProvider:
    from opentelemetry import trace
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "lousho"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for name in names:
        exporter = next(iter(entry_points(group=_GROUP, name=name))).load()
        provider.add_span_processor(BatchSpanProcessor(exporter()))
    trace.set_tracer_provider(provider)
    return provider


def _otlp(environ: Mapping[str, str]) -> str:
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), "http/protobuf")
    return "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
