"""The same numbers without the kernel: what they are, and how it is known that the kernel is right.

ChaCha20 is taken from ``cryptography``; every float operation is one of NumPy's, rounded to float32 as in the kernel.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

_BLOCKS, _WORDS = 16, 16  # ChaCha20 blocks of a tile, words of a block
_TILE = _BLOCKS * _WORDS

# The Cephes library's polynomials: ln(1 + x) / x³ behind the terms of first and second order, sine and cosine.
LOGARITHM = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
LN_2 = np.float32(0.6931471805599453)
RADIANS = np.float32(2 * np.pi * 2.0**-32)
ROOT_HALF = np.uint32(0x3F3504F3)  # the bits of √½ as float32

Floats = NDArray[np.float32]
Words = NDArray[np.uint32]


def add_portably(out: Floats, std: Floats, key: bytes, nonces: Words) -> None:
    """Addition of std_i times normals of the stream of ``key``, ``nonces[i]`` to row i of ``out`` (k, d), in place."""
    for row, scale, nonce in zip(out, std, nonces, strict=True):
        if scale != 0:
            row += scale * standard_normals(key, nonce, len(row))


def standard_normals(key: bytes, nonce: Words, count: int) -> Floats:
    """(count,) normals of one stream.

    Sixteen blocks of the key stream make a tile: word 0 of every block, then word 1 of every block, and so on. The
    first half of these words gives radii, the second angles, and the normals are all R cos φ, then all R sin φ.
    """
    tiles = -(-count // _TILE)
    counter_and_nonce = bytes(4) + nonce.astype("<u4").tobytes()
    stream = Cipher(algorithms.ChaCha20(key, counter_and_nonce), mode=None).encryptor()
    words = np.frombuffer(stream.update(bytes(4 * tiles * _TILE)), dtype="<u4").astype(np.uint32)
    halves = words.reshape(tiles, _BLOCKS, _WORDS).transpose(0, 2, 1).reshape(tiles, 2, _TILE // 2)
    radius = radii(halves[:, 0])
    cosine, sine = cosine_and_sine(halves[:, 1])
    return np.stack([radius * cosine, radius * sine], axis=1).reshape(-1)[:count]


def radii(words: Words) -> Floats:
    """√(−2 ln u) with u = (w + ½) / 2³¹ of the highest 31 bits w of each word.

    The spacing of u is finest near 0, where it matters: normals reach out to 6.7 standard deviations.
    """
    u = ((words >> np.uint32(1)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-31)
    return np.asarray(np.sqrt(np.float32(-2.0) * logarithm(u)))


def logarithm(u: Floats) -> Floats:
    """The natural logarithm of 0 < u ≤ 1, as ln 2 times an exponent and a polynomial on [√½, √2)."""
    bits = u.view(np.uint32)
    exponent = (bits - ROOT_HALF).view(np.int32) >> np.int32(23)
    x = (bits - (exponent.view(np.uint32) << np.uint32(23))).view(np.float32) - np.float32(1)
    z = x * x
    of_mantissa = x - np.float32(0.5) * z + x * z * _polynomial(LOGARITHM, x)
    return np.asarray(of_mantissa + exponent.astype(np.float32) * LN_2)


def cosine_and_sine(words: Words) -> tuple[Floats, Floats]:
    """Cosine and sine of 2π w / 2³²: quarter turns by sign and swap, the rest, within ±π/4, by polynomials."""
    quarter = (words + np.uint32(2**29)) >> np.uint32(30)
    t = (words - (quarter << np.uint32(30))).view(np.int32).astype(np.float32) * RADIANS
    z = t * t
    sine = _polynomial(SINE, z) * z * t + t
    cosine = _polynomial(COSINE, z) * z * z - np.float32(0.5) * z + np.float32(1)
    odd = quarter % 2 == 1
    of_cosine, of_sine = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    return np.where((quarter + 1) & 2, -of_cosine, of_cosine), np.where(quarter & 2, -of_sine, of_sine)


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    # Horner's rule, highest power first.
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + np.float32(coefficient)
    return value
