"""sentencepiece: texts in pieces, here words, each with a number."""

from __future__ import annotations

import zlib
from typing import Any

SIZE = 8000
"""Pieces of a model of which nothing is known."""


class SentencePieceProcessor:
    """Words and their numbers, of which those that were met can be told again."""

    def __init__(self, model_file: Any = None, *args: Any, **kwargs: Any) -> None:
        self.size = SIZE
        self.known = {0: "<unk>", 1: "<s>", 2: "</s>", 3: "<pad>"}

    def load(self, *args: Any, **kwargs: Any) -> bool:
        """Nothing is known of the model's pieces."""
        return True

    def get_piece_size(self) -> int:
        """How many there are."""
        return self.size

    __len__ = vocab_size = piece_size = get_piece_size

    def unk_id(self) -> int:
        """Of what is unknown."""
        return 0

    def bos_id(self) -> int:
        """Before a sentence."""
        return 1

    def eos_id(self) -> int:
        """After a sentence."""
        return 2

    def pad_id(self) -> int:
        """Beside a sentence."""
        return 3

    def piece_to_id(self, piece: Any) -> Any:
        """A piece's number."""
        if isinstance(piece, list):
            return [self.piece_to_id(one) for one in piece]
        special = {word: number for number, word in self.known.items() if number < 4}
        number = special.get(piece, zlib.crc32(piece.encode()) % (self.size - 4) + 4)
        self.known[number] = piece
        return number

    def id_to_piece(self, number: Any) -> Any:
        """A number's piece."""
        if isinstance(number, list):
            return [self.id_to_piece(one) for one in number]
        return self.known.get(int(number), "\u2581word")

    def encode(self, text: Any, out_type: Any = int, *, add_bos: bool = False, add_eos: bool = False) -> Any:
        """The pieces of a text, or their numbers."""
        if isinstance(text, (list, tuple)):
            return [self.encode(one, out_type, add_bos=add_bos, add_eos=add_eos) for one in text]
        pieces = ["\u2581" + word for word in text.split()]
        pieces = [*(["<s>"] if add_bos else []), *pieces, *(["</s>"] if add_eos else [])]
        numbers = self.piece_to_id(pieces)
        return pieces if out_type is str else numbers

    def encode_as_pieces(self, text: str, *args: Any) -> Any:
        """The pieces."""
        return self.encode(text, str)

    def encode_as_ids(self, text: str, *args: Any) -> Any:
        """Their numbers."""
        return self.encode(text)

    def decode(self, pieces: Any, *args: Any) -> Any:
        """The text."""
        if pieces and isinstance(pieces[0], (list, tuple)):
            return [self.decode(one) for one in pieces]
        words = [one if isinstance(one, str) else self.id_to_piece(one) for one in pieces]
        return "".join(words).replace("\u2581", " ").strip()

    decode_pieces = decode_ids = decode
    Load, LoadFromFile, GetPieceSize, PieceToId, IdToPiece = (
        load,
        load,
        get_piece_size,
        piece_to_id,
        id_to_piece,
    )
    Encode, EncodeAsIds, EncodeAsPieces, Decode, DecodeIds = (
        encode,
        encode_as_ids,
        encode_as_pieces,
        decode,
        decode,
    )
    DecodePieces = decode


class SentencePieceTrainer:
    """Learns no pieces: words are taken for them."""

    @staticmethod
    def train(*args: Any, **kwargs: Any) -> None:
        """Nothing is learned."""

    Train = train
