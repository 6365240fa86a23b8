"""A model that says again what the model of a session said, turn by turn."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ProviderError
from ..execution.messages import JsonObject
from ..execution.protocols import ModelRequest
from ..execution.records import ModelResponse


class RecalledModel:
    """A Provider that plays turns in order, whatever it is asked.

    Args:
        model: the id of the model that said them.
        turns: what it said, as messages of a transcript.
    """

    def __init__(self, model: str, turns: Sequence[JsonObject]) -> None:
        self.model = model
        self._turns = iter(turns)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """The next turn.

        Raises:
            ProviderError: there is none left.
        """
        turn = next(self._turns, None)
        if turn is None:
            raise ProviderError("the session has no further turn of its model", hint="see lousho show")
        said = {key: value for key, value in turn.items() if key != "role"}
        return ModelResponse.model_validate({**said, "content": said.get("content") or ""})
