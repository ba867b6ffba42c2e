"""Known answers of the cipher that random words come from: those of RFC 8439."""

import numpy as np

from discreet.curator.kernels import chacha20
from discreet.curator.known_answers import once_for_classes, require
from discreet.curator.lattice.entropy import chacha20_words

_KEY = bytes(range(32))
_VECTORS = (
    # section 2.3.2, and appendix A.1, test vector 4: key, counter, nonce, key stream
    (_KEY, 1, (0x09000000, 0x4A000000, 0),
     "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
     "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"),
    (b"\x00\xff" + bytes(30), 2, (0, 0, 0),
     "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
     "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096"),
)  # fmt: skip


@once_for_classes
def check_cipher() -> None:
    """Raise ``StaleKernels`` unless the cipher gives the published blocks, and goes on from each to the next."""
    for key, counter, nonce, stream in _VECTORS:
        found = chacha20_words(key, 8, first=counter, nonce=nonce)
        require(found.tobytes().hex() == stream, "the cipher fails its known answers")
    parts = np.frombuffer(_KEY + bytes(16), dtype=np.uint32)
    plain = np.empty((3, chacha20.WORDS), dtype=np.uint64)
    for group, out in enumerate(plain):
        chacha20.sixteen_blocks(parts, group * chacha20.LANES, out)
    require((chacha20_words(_KEY, plain.size) == plain.ravel()).all(), "the cipher fails its known answers")
