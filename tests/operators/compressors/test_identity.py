"""Identity sends every number exactly."""

import struct

from bounds.claims import StrictlyContractive
from operators import Identity


def test_payload_and_values_equal_the_oracle(vectors, d, key):
    for x in vectors:
        message = Identity().encode(x, key=key)
        assert bytes(message.payload.tolist()) == b"".join(struct.pack(">f", v) for v in x)
        assert message.bits == Identity().bits(d).exact == 32 * d
        assert Identity().decode(message, d=d).numpy().tobytes() == x.tobytes()


def test_claim_is_no_error(d):
    assert Identity().claim(d) == StrictlyContractive(0.0, tight=True)
