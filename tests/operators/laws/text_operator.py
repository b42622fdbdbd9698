"""Operators whose messages are written and read as strings of "0" and "1"."""

from __future__ import annotations

import math
import struct

import numpy as np

from operators import CorruptMessage, Key, Operator

TINY = 2.0**-126


class Reader:
    """Takes fields off a string of "0" and "1"."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, n: int) -> str:
        if self.at + n > len(self.text):
            raise CorruptMessage("the message is too short")
        self.at += n
        return self.text[self.at - n : self.at]

    def unsigned(self, n: int) -> int:
        return int(self.take(n) or "0", 2)

    def float32(self) -> float:
        value = struct.unpack(">f", self.unsigned(32).to_bytes(4, "big"))[0]
        if not math.isfinite(value):
            raise CorruptMessage("a value is not finite")
        return value

    def unary(self, most: int) -> int:
        n = 0
        while self.take(1) == "1":
            n += 1
            if n > most:
                raise CorruptMessage("a unary field is too long")
        return n

    def finish(self) -> None:
        if self.at != len(self.text):
            raise CorruptMessage("bits are left over")


def float32(value: float) -> str:
    return f"{int.from_bytes(struct.pack('>f', np.float32(value)), 'big'):032b}"


def unsigned(value: int, width: int) -> str:
    return f"{value:0{width}b}" if width else ""


class TextOperator(Operator):
    """An operator whose message is written and read as text."""

    def write(self, x: np.ndarray, key: Key) -> str:
        raise NotImplementedError

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        raise NotImplementedError

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        text = self.write(x, key)
        return np.packbits(np.frombuffer(text.encode(), np.uint8) - ord("0")), len(text)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        reader = Reader((np.unpackbits(payload)[:bits] + np.uint8(ord("0"))).tobytes().decode())
        value = np.asarray(self.read(reader, d, key), np.float64)
        reader.finish()
        if np.abs(value).max() > np.finfo(np.float32).max:
            raise CorruptMessage("a value is beyond binary32")
        return value.astype(np.float32)

    @classmethod
    def examples(cls) -> tuple[Operator, ...]:
        return (cls(),)
