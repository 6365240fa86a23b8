from __future__ import annotations

import gc

from lousho_cli.stores.garbage import paused


def test_collecting_goes_on_when_the_last_of_several_readers_is_done() -> None:
    assert gc.isenabled()
    first, second = paused(), paused()
    with first:
        with second:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_program_that_collects_nothing_still_collects_nothing_afterwards() -> None:
    gc.disable()
    try:
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
