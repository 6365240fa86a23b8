"""A store over any key-value store: Redis, a cloud's table, a dictionary."""

from __future__ import annotations

from .kv_access import KV, Access
from .kv_approvals import KVApprovals
from .kv_checkpoints import KVCheckpoints
from .kv_keys import Keys

__all__ = ["KV", "KVStore"]


class KVStore:
    """Checkpoints and approvals in a key-value store, as JSON texts (see `kv_keys` for the keys).

    Saves are as durable as the store's `put`. One runner at a time holds a session: with `put_if` over all
    processes and machines, by a lease of 30 seconds that is renewed every 10; without it within one process
    only. The same goes for who decides an approval first.

    Args:
        kv: an object with async `get(key)`, `put(key, value, *, ttl=None)`, `delete(key)`, and optionally
            `put_if(key, value, expected)`, an atomic compare-and-set (see `KV`).
        prefix: what every key begins with. Stores of one `kv` need prefixes none of which begins another.
        ttl: seconds after which a value may be dropped, passed to every `put`; None keeps everything. A
            `put_if` that takes no `ttl` is followed by a `put` that sets it, which a runner that loses its
            lease between the two may carry out once too often.
        history_limit: how many saves of a session are kept; 0 keeps none.
    """

    def __init__(self, kv: KV, prefix: str = "", ttl: float | None = None, history_limit: int = 50) -> None:
        access, keys = Access(kv, ttl), Keys(prefix)
        self.approvals = KVApprovals(access, keys)
        self.checkpoints = KVCheckpoints(access, keys, history_limit, self.approvals.announce)
