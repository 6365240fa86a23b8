"""Damaged and forged files: a clean error or the truth, nothing changed by looking, no run on damage."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_runs import FORGERS, Hostile
from hostile_sample import make_sample

TARGETS = list(FORGERS)


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Hostile]:
    loop = asyncio.new_event_loop()
    yield Hostile(make_sample(tmp_path / "home"), loop, tmp_path / "copy")
    loop.close()


@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_or_forged_file_is_refused_cleanly_or_read_truly(hostile: Hostile, target: str) -> None:
    for seed in range(36):
        hostile.mutate(target, seed, acting=seed % 12 == 0)
    assert not hostile.faults, "\n".join(hostile.faults)
    assert sum(hostile.counts.values()) == 36


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_hundred_thousand_mutations_hurt_nothing(
    hostile: Hostile, capsys: pytest.CaptureFixture[str]
) -> None:
    total = int(os.environ.get("HOSTILE_MUTATIONS", "100000"))
    first = int(os.environ.get("HOSTILE_SEED", "1000"))
    for number in range(total):
        target = TARGETS[number % len(TARGETS)]
        hostile.mutate(target, first + number, acting=number % 199 == 0)
    by_file: Counter[str] = Counter()
    by_kind: Counter[str] = Counter()
    for (target, kind), count in hostile.counts.items():
        by_file[target] += count
        by_kind[kind] += count
    with capsys.disabled():
        print(f"\n{total} mutations from seed {first}")
        for title, found in (("file", by_file), ("kind", by_kind), ("refused", hostile.refused)):
            print(f"by {title}: " + ", ".join(f"{name} {count}" for name, count in found.most_common()))
    assert not hostile.faults, f"{len(hostile.faults)} faults\n" + "\n".join(hostile.faults[:3000])
