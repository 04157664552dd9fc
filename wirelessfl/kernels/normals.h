/* Standard normal numbers from ChaCha20 streams, as normals/portable.py has them: for noise that is added and for its transforms.
 *
 * ChaCha20 (RFC 8439) needs additions, rotations and exclusive ors only: its blocks are computed side by side in
 * vector registers, and Box-Muller follows while the words are still in the cache. Every float operation rounds by
 * itself (hatch_build.py forbids contraction), so that all processors give the same numbers. */

#include <math.h>

#include "elementary.h"

#define WORDS 16                /* 32-bit words of a block */
#define PAIRS (LANES * WORDS / 2)
#define TILE (2 * PAIRS)        /* normals of LANES blocks */

#define ROTATED(word, by) ((word) << (by) | (word) >> (32 - (by)))
#define QUARTER_ROUND(a, b, c, d)           \
    a += b, d ^= a, d = ROTATED(d, 16);     \
    c += d, b ^= c, b = ROTATED(b, 12);     \
    a += b, d ^= a, d = ROTATED(d, 8);      \
    c += d, b ^= c, b = ROTATED(b, 7);

/* Word w of block `counter` + i of the stream goes to words[w * LANES + i]. */
INLINED void chacha20(uint32_t words[TILE], const uint32_t key[8], uint32_t counter, const uint32_t nonce[3]) {
    for (int i = 0; i < LANES; i++) {
        const uint32_t first[WORDS] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0],      key[1],
                                       key[2],     key[3],     key[4],     key[5],     key[6],      key[7],
                                       counter + (uint32_t)i,  nonce[0],   nonce[1],   nonce[2]};
        uint32_t x[WORDS];
        memcpy(x, first, sizeof x);
        UNROLLED(10)
        for (int twice = 0; twice < 10; twice++) {
            QUARTER_ROUND(x[0], x[4], x[8], x[12])
            QUARTER_ROUND(x[1], x[5], x[9], x[13])
            QUARTER_ROUND(x[2], x[6], x[10], x[14])
            QUARTER_ROUND(x[3], x[7], x[11], x[15])
            QUARTER_ROUND(x[0], x[5], x[10], x[15])
            QUARTER_ROUND(x[1], x[6], x[11], x[12])
            QUARTER_ROUND(x[2], x[7], x[8], x[13])
            QUARTER_ROUND(x[3], x[4], x[9], x[14])
        }
        UNROLLED(16)
        for (int w = 0; w < WORDS; w++) words[w * LANES + i] = x[w] + first[w];
    }
}

/* Words of either kind become two independent normals R cos(phi) and R sin(phi), as portable.py tells. */
INLINED void box_muller(uint32_t radius_word, uint32_t angle_word, float *cosine, float *sine) {
    const float u = ((float)(int32_t)(radius_word >> 1) + 0.5f) * 0x1p-31f;
    const float radius = sqrtf(-2.0f * logarithm(u));
    const uint32_t quarter = (angle_word + 0x20000000u) >> 30;
    const float t = (float)(int32_t)(angle_word - (quarter << 30)) * 1.4629180792671596e-9f;
    const float z = t * t;
    const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * t + t;
    const float c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
    const uint32_t odd = -(quarter & 1); /* all ones in the second and fourth quarter: sine and cosine change places */
    const uint32_t of_cosine = (as_bits(c) & ~odd) | (as_bits(s) & odd);
    const uint32_t of_sine = (as_bits(s) & ~odd) | (as_bits(c) & odd);
    *cosine = radius * as_float(of_cosine ^ (((quarter + 1) & 2) << 30));
    *sine = radius * as_float(of_sine ^ ((quarter & 2) << 30));
}

/* Normals TILE * tile and those behind them of the stream of a key and a nonce. */
INLINED void standard_normals(float normals[TILE], const uint32_t key[8], int64_t tile, const uint32_t nonce[3]) {
    uint32_t words[TILE];
    chacha20(words, key, (uint32_t)(tile * LANES), nonce);
    for (int i = 0; i < PAIRS; i++) box_muller(words[i], words[PAIRS + i], &normals[i], &normals[PAIRS + i]);
}
