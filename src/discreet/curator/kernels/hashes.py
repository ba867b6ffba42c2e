"""A keyed hash of each row, in which zeros do not count, so that dense and compressed rows agree.

Each value, with its column, is mixed with a secret word (the finalizer of MurmurHash3 around it), the row's are added,
and the sum goes through SipHash-2-4 (Aumasson and Bernstein 2012) under another 128 secret bits: what leaves is a
pseudo-random function of the row.
"""

from numba import njit, uint32, uint64

from discreet.curator.kernels.kernel import kernel


@njit(inline="always")
def _mixed(bits, secret):
    x = bits ^ secret
    x ^= x >> uint64(33)
    x *= uint64(0xFF51AFD7ED558CCD)
    x ^= x >> uint64(33)
    x *= uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> uint64(33)
    return x


@njit(inline="always")
def _rotated(x, by):
    return (x << uint64(by)) | (x >> uint64(64 - by))


@njit(inline="always")
def _round(a, b, c, d):
    a += b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16) ^ c
    a += d
    d = _rotated(d, 21) ^ a
    c += b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@njit(cache=True)
def siphash(word, k0, k1):
    """SipHash-2-4 of the eight bytes of one word."""
    a, b = k0 ^ uint64(0x736F6D6570736575), k1 ^ uint64(0x646F72616E646F6D)
    c, d = k0 ^ uint64(0x6C7967656E657261), k1 ^ uint64(0x7465646279746573)
    for message in (word, uint64(8) << uint64(56)):  # the word, then its length
        d ^= message
        for _ in range(2):
            a, b, c, d = _round(a, b, c, d)
        a ^= message
    c ^= uint64(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@njit(inline="always")
def _value_hash(bits, column, secret):
    """Of a single's bits and its place: nothing for both zeros, and one hash for every NaN."""
    magnitude = bits & uint32(0x7FFFFFFF)
    if magnitude == uint32(0):
        return uint64(0)
    kept = uint32(0x7FC00000) if magnitude > uint32(0x7F800000) else bits
    return _mixed((uint64(column) << uint64(32)) | uint64(kept), secret)


@kernel()
def dense_hashes(block, secrets, out):
    """The hash of each row of a block of singles' bits."""
    for i in range(block.shape[0]):
        total = uint64(0)
        for j in range(block.shape[1]):
            total += _value_hash(block[i, j], j, secrets[0])
        out[i] = siphash(total, secrets[1], secrets[2])


@kernel()
def sparse_hashes(indptr, indices, data, secrets, out):
    """The same for compressed rows: absent entries are zeros."""
    for i in range(indptr.size - 1):
        total = uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += _value_hash(data[k], indices[k], secrets[0])
        out[i] = siphash(total, secrets[1], secrets[2])
