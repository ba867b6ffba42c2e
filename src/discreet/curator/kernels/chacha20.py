"""The block function of ChaCha20 (RFC 8439), sixteen blocks at a time.

A block is 16 words of 32 bits: four constants, eight words of key, a counter, three words of nonce; ten double rounds
of additions, exclusive ors and rotations; and the first state added to the last. Sixteen consecutive blocks differ in
their counter only, so they are computed side by side: word k of all sixteen is one vector. At the end a transposition
brings the words of each block together, as the RFC orders them.

The schedule of a double round is written once, for plain Python (vectors are numpy's) and for the compiler (vectors
are the processor's). No step branches on a value, or reads memory at a place that depends on one.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types, uint32
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

LANES = 16
"""Blocks that are computed side by side."""

WORDS = 8 * LANES
"""Words of 64 bits that they fill."""

PARTS = 12
"""Words of a state that are not constants: the key, the counter, the nonce."""

_CONSTANTS = tuple(int(word) for word in np.frombuffer(b"expand 32-byte k", dtype="<u4"))
_ROUNDS = 10
_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def _double_round(x, add, xor, rotate):
    """Replace sixteen vectors by what a round of columns and one of diagonals make of them."""
    for a, b, c, d in _QUARTERS:
        for first, second, third, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[first] = add(x[first], x[second])
            x[third] = rotate(xor(x[third], x[first]), turn)


def sixteen_blocks(parts: NDArray[np.uint32], first: int, out: NDArray[np.uint64]) -> None:
    """Write the blocks of the counters ``first`` to ``first + 15`` to ``out``, of ``WORDS`` words of 64 bits."""
    initial = np.empty((16, LANES), dtype=np.uint32)
    initial[:4] = np.array(_CONSTANTS, dtype=np.uint32)[:, None]
    initial[4:] = parts[:, None]
    initial[12] = (np.arange(LANES, dtype=np.uint64) + np.uint64(first)).astype(np.uint32)
    state = list(initial)
    for _ in range(_ROUNDS):
        _double_round(state, np.add, np.bitwise_xor, lambda v, n: (v << np.uint32(n)) | (v >> np.uint32(32 - n)))
    out[:] = np.ascontiguousarray((np.stack(state) + initial).T).view(np.uint64).reshape(-1)


_WORD = ir.IntType(32)
_VECTOR = ir.VectorType(_WORD, LANES)


def _constant(values):
    return ir.Constant(_VECTOR, list(values))


def _everywhere(builder, word):
    """Return the vector whose lanes all hold ``word``."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    single = builder.insert_element(undefined, word, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(single, undefined, _constant([0] * LANES))


def _rounds(builder, initial):
    """Return the state after all double rounds, a loop of ten."""
    before, loop, after = builder.block, builder.append_basic_block("rounds"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    count = builder.phi(_WORD)
    state = [builder.phi(_VECTOR) for _ in initial]

    def rotate(vector, turn):
        left = builder.shl(vector, _constant([turn] * LANES))
        return builder.or_(left, builder.lshr(vector, _constant([32 - turn] * LANES)))

    x = list(state)
    _double_round(x, builder.add, builder.xor, rotate)
    counted = builder.add(count, ir.Constant(_WORD, 1))
    for phi, start, following in zip([count, *state], [ir.Constant(_WORD, 0), *initial], [counted, *x], strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("<", counted, ir.Constant(_WORD, _ROUNDS)), loop, after)
    builder.position_at_end(after)
    return x


def _transposed(builder, rows):
    """Return the columns of a square of vectors: each of four steps deals two halves like cards."""
    half = LANES // 2
    low = _constant([k // 2 + LANES * (k % 2) for k in range(LANES)])
    high = _constant([half + k // 2 + LANES * (k % 2) for k in range(LANES)])
    for _ in range(4):
        pairs = list(zip(rows[:half], rows[half:], strict=True))
        rows = [builder.shuffle_vector(a, b, cut) for a, b in pairs for cut in (low, high)]
    return rows


@intrinsic
def _compiled_blocks(typingctx, parts, first, out):
    def codegen(context, builder, signature, args):
        parts, out = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2))
        words = [builder.load(builder.gep(parts, [ir.Constant(_WORD, k)])) for k in range(PARTS)]
        words[8] = args[1]
        initial = [_constant([word] * LANES) for word in _CONSTANTS] + [_everywhere(builder, word) for word in words]
        initial[12] = builder.add(initial[12], _constant(range(LANES)))
        final = [builder.add(a, b) for a, b in zip(_rounds(builder, initial), initial, strict=True)]
        for lane, block in enumerate(_transposed(builder, final)):
            place = builder.gep(out, [ir.Constant(_WORD, 8 * lane)])
            builder.store(block, builder.bitcast(place, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(parts, types.uint32, out), codegen


@overload(sixteen_blocks)
def _sixteen_blocks(parts, first, out):
    return lambda parts, first, out: _compiled_blocks(parts, first, out)


@njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
def key_stream(parts, forget, out):
    """Write the key stream to ``out``, whose size is a multiple of ``WORDS``; where ``forget``, overwrite ``parts``.

    ``parts`` are the 12 words that RFC 8439 puts behind the constants: eight of key, the first counter, three of nonce.
    """
    first = parts[8]
    for start in range(0, out.size, WORDS):
        sixteen_blocks(parts, uint32(first + start // 8), out[start : start + WORDS])
    if forget:
        for k in range(parts.size):
            parts[k] = uint32(0)
