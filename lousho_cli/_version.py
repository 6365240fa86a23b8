"""The version, in the one place that states it: the build reads it here, and so does `lousho --version`."""

from __future__ import annotations

__version__ = "0.1.0"
