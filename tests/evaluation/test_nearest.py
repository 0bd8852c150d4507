from palimpsest.evaluation.filling import Piece
from palimpsest.evaluation.nearest import Nearest

from tests.remembered import WordEmbedder

PIECES = [Piece("the harbour froze", (0,)), Piece("bread and salt", (1, 2)), Piece("salt", (3,))]


async def test_the_closest_come_first() -> None:
    nearest = await Nearest.of(PIECES, WordEmbedder())
    assert [piece.messages for piece in await nearest.to("salt", None)] == [(3,), (1, 2), (0,)]
    assert [piece.messages for piece in await nearest.to("salt", None, floor=0.9)] == [(3,)]


async def test_what_is_still_seen_does_not_come() -> None:
    nearest = await Nearest.of(PIECES, WordEmbedder())
    assert [piece.messages for piece in await nearest.to("salt", 2)] == [(0,)]
