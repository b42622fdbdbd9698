"""Operators that do not keep their word, each in one way."""

from dataclasses import dataclass

from bounds.claims import Unbiased
from operators import Operator, RandomisedSparseDithering, ScaledSign, Size

HONEST = RandomisedSparseDithering(omega=1.0)


@dataclass(frozen=True)
class Honest(Operator):
    """As good as the operator within."""

    name = "honest"
    randomness = "private"

    def claim(self, d):
        return HONEST.claim(d)

    def bits(self, d):
        return HONEST.bits(d)

    @classmethod
    def examples(cls):
        return (cls(),)

    def _encode(self, x, key):
        return HONEST._encode(x, key)

    def _decode(self, payload, bits, d, key):
        return HONEST._decode(payload, bits, d, key)


class Halved(Honest):
    """Decodes to half of what it should: its squared error is even smaller than claimed."""

    name = "halved"

    def _decode(self, payload, bits, d, key):
        return super()._decode(payload, bits, d, key) / 2


class Boasting(Honest):
    """Claims half of its omega."""

    name = "boasting"

    def claim(self, d):
        return Unbiased(HONEST.claim(d).omega / 2)


class Short(Honest):
    """Understates its messages by half."""

    name = "short"

    def bits(self, d):
        size = HONEST.bits(d)
        return Size(worst_case=size.worst_case and size.worst_case / 16, expected_upper=size.expected_upper / 2)


class ShortSigns(Honest):
    """Of exactly known length, understated by 8 bits."""

    name = "short_signs"
    projects = True

    def claim(self, d):
        return ScaledSign().claim(d)

    def bits(self, d):
        return Size.fixed(ScaledSign().bits(d).exact - 8)

    def _encode(self, x, key):
        return ScaledSign()._encode(x, key)

    def _decode(self, payload, bits, d, key):
        return ScaledSign()._decode(payload, bits, d, key)


class HalvedSigns(ShortSigns):
    """Half of the projection that it promises to be."""

    name = "halved_signs"

    def bits(self, d):
        return ScaledSign().bits(d)

    def _decode(self, payload, bits, d, key):
        return super()._decode(payload, bits, d, key) / 2
