"""Exact samplers: they consume uniform 64-bit words and return integers. No exp, no log, no float.

Every sampler has the shape ``sampler(out, start, ..., words, cursor) -> next``: it fills ``out`` from
index ``start``, reads ``words`` from ``cursor[0]`` on, and stops where fewer than ``RESERVE`` words
are left, so that the caller can bring fresh ones. ``cursor[1]`` is set where a sample would have
needed more than the reserve, or a comparison more than 128 bits (probability below 2^-120): the
caller then refuses. Both depend on the random words alone, never on data.

A uniform number in [0, 1) is compared lazily: its first 64 bits, and only on a tie 64 more.

**ChaCha20** (RFC 8439), sixteen blocks at a time. A block is 16 words of 32 bits: four constants, eight words of key, a
counter, three words of nonce; ten double rounds of additions, exclusive ors and rotations; and the first state added to
the last. Sixteen consecutive blocks differ in their counter only, so they are computed side by side: word k of all
sixteen is one vector. At the end a transposition brings the words of each block together, as the RFC orders them.

The schedule of a double round is written once, for plain Python (vectors are numpy's) and for the compiler (vectors
are the processor's). No step branches on a value, or reads memory at a place that depends on one.
"""

import numpy as np
from llvmlite import ir
from numba import int64, njit, types, uint32
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from discreet.curator.kernels.kernel import inner

# These kernels allocate nothing: without reference counts on their arrays they are four times as fast.
_LEAN = {"cache": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
# What is called often is compiled once and inlined by LLVM; numba's own inlining (once a call) compiles twice as long.
_inlined = inner(forceinline=True)

RESERVE = 512  # words; a Gaussian takes 7.8 on average, and each further word is 17 % less likely
GUIDE_BITS = 11
GAP_GUIDE_BITS = 12  # of Poisson samples, whose tables are longer

_U0 = np.uint64(0)
_NO = np.bool_(False)  # a plain False would be a type of its own, and compiled for
_U1 = np.uint64(1)
_U32 = np.uint64(32)
_SPAN = np.uint64(1 << 32)


@_inlined
def _draw(words, cursor):
    at = cursor[0]
    if at >= words.size:
        cursor[1] = 1
        return _U0
    cursor[0] = at + 1
    return words[at]


@njit(inline="always")
def _below(n, words, cursor):
    """Uniform on 0..n-1 for a small n, by rejection on 32 bits."""
    n = np.uint64(n)
    limit = _SPAN // n * n
    while True:
        v = _draw(words, cursor) >> _U32
        if v < limit:
            return v % n
        if cursor[1] != 0:
            return _U0


@_inlined
def _less(a, a2, a_long, b, b2, b_long, words, cursor):
    """Whether one lazily drawn uniform is below another; returns the extensions that were needed."""
    if a != b:
        return a < b, a2, a_long, b2, b_long
    if not a_long:
        a2 = _draw(words, cursor)
    if not b_long:
        b2 = _draw(words, cursor)
    if a2 == b2:
        cursor[1] = 1
    return a2 < b2, a2, True, b2, True


@njit(inline="always")
def _from_table(guide, high, low, words, cursor):
    """Index of the first threshold (128 bits, cumulative) above a uniform; the table's length if none is.

    ``guide`` says where to start for the uniform's first bits: all thresholds before are at most it.
    """
    v = _draw(words, cursor)
    at = int64(guide[v >> np.uint64(64 - GUIDE_BITS)])
    while at < high.size and high[at] <= v:
        at += 1
    if at > 0 and high[at - 1] == v:  # only then does the second word matter
        v2 = _draw(words, cursor)
        while at > 0 and high[at - 1] == v and v2 < low[at - 1]:
            at -= 1
        if at > 0 and high[at - 1] == v and v2 == low[at - 1]:
            cursor[1] = 1
    return at


@njit(inline="always")
def _accept_normal(k, x, x2, x_long, words, cursor):
    """One trial of probability exp(-x (2k + x) / (2k + 2)) (Karney 2016, algorithm B)."""
    y, y2, y_long = x, x2, x_long
    even = True
    first = True
    while True:
        z = _draw(words, cursor)
        smaller, z2, z_long, y2, y_long = _less(z, _U0, _NO, y, y2, y_long, words, cursor)
        if first:  # y is x still: keep the bits of x that the comparison had to draw
            x2, x_long = y2, y_long
            first = False
        if not smaller:
            break
        digit = _below(2 * k + 2, words, cursor)
        if digit == np.uint64(2 * k + 1):
            break
        if digit == np.uint64(2 * k):
            r = _draw(words, cursor)
            smaller, _, _, x2, x_long = _less(r, _U0, _NO, x, x2, x_long, words, cursor)
            if not smaller:
                break
        y, y2, y_long = z, z2, z_long
        even = not even
        if cursor[1] != 0:
            break
    return even, x2, x_long


@njit(**_LEAN)
def rounded_gaussian(out, start, m, guide, high, low, words, cursor):
    """round(2^m N(0, 1)), exactly, for 1 <= m <= 58.

    Karney's algorithm: k with probability proportional to exp(-k^2/2) (the table), x uniform, accepted
    with probability exp(-x (2k + x) / 2) as k + 1 trials; then k + x is |N(0, 1)|. Rounding to the
    nearest multiple of 2^-m looks at the first m + 1 bits of x only.
    """
    i = start
    while i < out.size:
        if cursor[0] + RESERVE > words.size:
            return i
        while True:
            k = _from_table(guide, high, low, words, cursor)
            if k == high.size:  # beyond the table, probability below 2^-128
                cursor[1] = 1
                return i
            x = _draw(words, cursor)
            x2, x_long, accepted = _U0, _NO, True
            for _ in range(k + 1):
                accepted, x2, x_long = _accept_normal(k, x, x2, x_long, words, cursor)
                if not accepted:
                    break
            if cursor[1] != 0:
                return i
            if accepted:
                break
        fraction = int64(((x >> np.uint64(63 - m)) + _U1) >> _U1)
        magnitude = (int64(k) << int64(m)) + fraction
        negative = (_draw(words, cursor) & _U1) == _U1
        out[i] = -magnitude if negative else magnitude
        i += 1
    return i


@njit(inline="always")
def _accept_exp_fraction(j, m, words, cursor):
    """One trial of probability exp(-j / 2^m), 0 <= j < 2^m (von Neumann's series)."""
    k = 1
    while True:
        if (_draw(words, cursor) >> np.uint64(64 - m)) >= j:
            break
        if k > 1 and _below(k, words, cursor) != _U0:
            break
        k += 1
        if cursor[1] != 0:
            break
    return (k & 1) == 1


@njit(inline="always")
def _accept_exp(d, m, guide, high, low, words, cursor):
    """One trial of probability exp(-d / 2^m), d >= 0: whole units by the table's first threshold 1 - 1/e."""
    for _ in range(d >> int64(m)):  # ends at the first failure, so after 1.6 rounds on average
        if _from_table(guide, high, low, words, cursor) == 0:
            return False
        if cursor[1] != 0:
            return False
    fraction = np.uint64(d & ((int64(1) << int64(m)) - int64(1)))
    return _accept_exp_fraction(fraction, m, words, cursor)


@njit(**_LEAN)
def discrete_laplace(out, start, m, guide, high, low, words, cursor):
    """P(x) proportional to exp(-|x| / 2^m) on the integers, exactly, for 1 <= m <= 57.

    |x| = v 2^m + j with j accepted with probability exp(-j / 2^m) and v geometric (the table); the
    negative zero is rejected.
    """
    i = start
    while i < out.size:
        if cursor[0] + RESERVE > words.size:
            return i
        while True:
            word = _draw(words, cursor)
            j = word >> np.uint64(64 - m)
            negative = (word & _U1) == _U1
            if _accept_exp_fraction(j, m, words, cursor):
                v = _from_table(guide, high, low, words, cursor)
                if v == high.size:
                    cursor[1] = 1
                if not (negative and v == 0 and j == _U0):
                    break
            if cursor[1] != 0:
                return i
        if cursor[1] != 0:
            return i
        magnitude = (int64(v) << int64(m)) + int64(j)
        out[i] = -magnitude if negative else magnitude
        i += 1
    return i


@njit(**_LEAN)
def poisson_sample(chosen, filled, position, n, guide, high, low, words, cursor):
    """Append to ``chosen`` the units of ``position..n-1`` that independent trials pick.

    The table holds P(next success within j + 1 units) for j below its length L: a look-up gives the gap
    to the next chosen unit, or "none among the next L"; the trials have no memory.

    A look-up is that of ``_from_table``, written for speed: the first two steps from the guide on are taken without a
    branch, which would be hard to predict, and are nearly always enough. So ``high`` has two words of ones after its L.
    """
    length = np.uint64(low.size)
    at = cursor[0]
    while position < n and filled < chosen.size:
        if at + 2 > words.size:  # a look-up takes two words at most
            break
        v = words[np.uint64(at)]
        at += 1
        gap = np.uint64(guide[v >> np.uint64(64 - GAP_GUIDE_BITS)])
        gap += np.uint64(high[gap] <= v)
        gap += np.uint64(high[gap] <= v)
        while gap < length and high[gap] <= v:
            gap += _U1
        gap = min(gap, length)  # a word of ones alone passes the end
        if gap > _U0 and high[gap - _U1] == v:  # only then does the second word matter
            v2 = words[np.uint64(at)]
            at += 1
            while gap > _U0 and high[gap - _U1] == v and v2 < low[gap - _U1]:
                gap -= _U1
            if gap > _U0 and high[gap - _U1] == v and v2 == low[gap - _U1]:
                cursor[1] = 1
                break
        position += int64(gap)
        if gap < length:
            if position < n:
                chosen[np.uint64(filled)] = position
                filled += 1
            position += 1
    cursor[0] = at
    return filled, position


@njit(**_LEAN)
def exponential_choice(scores, top, m, guide, high, low, words, cursor):
    """An index with probability proportional to exp(scores / 2^m), by rejection; -1 asks for more words."""
    while True:
        if cursor[0] + RESERVE > words.size or cursor[1] != 0:
            return -1
        i = int64(_below(scores.size, words, cursor))
        if _accept_exp(top - scores[i], m, guide, high, low, words, cursor) and cursor[1] == 0:
            return i


@njit(**_LEAN)
def permute_and_flip_choice(scores, top, order, at, m, guide, high, low, words, cursor):
    """The first index, in a random order, whose coin of probability exp((score - best) / 2^m) falls heads.

    ``order`` is permuted in place from position ``at`` on; returns (index, at), index -1 to continue.
    """
    while at < scores.size:
        if cursor[0] + RESERVE > words.size or cursor[1] != 0:
            return -1, at
        other = at + int64(_below(scores.size - at, words, cursor))
        order[at], order[other] = order[other], order[at]
        if _accept_exp(top - scores[order[at]], m, guide, high, low, words, cursor):
            return order[at], at
        at += 1
    return -1, at


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
