/* Transposition of one kind of processor, within its passes; the including file has defined its vectors, see there. */

/* Rows of eight numbers as columns: pairs of numbers, pairs of these, then halves. */
FUNCTION void NAMED(transpose)(__m256 rows[8]) {
    __m256 pairs[8], fours[8];
    for (int at = 0; at < 8; at += 2) {
        pairs[at] = _mm256_unpacklo_ps(rows[at], rows[at + 1]);
        pairs[at + 1] = _mm256_unpackhi_ps(rows[at], rows[at + 1]);
    }
    for (int at = 0; at < 8; at += 4)
        for (int half = 0; half < 2; half++) {
            fours[at + 2 * half] = _mm256_shuffle_ps(pairs[at + half], pairs[at + half + 2], _MM_SHUFFLE(1, 0, 1, 0));
            fours[at + 2 * half + 1] = _mm256_shuffle_ps(pairs[at + half], pairs[at + half + 2], _MM_SHUFFLE(3, 2, 3, 2));
        }
    for (int at = 0; at < 4; at++) {
        rows[at] = _mm256_permute2f128_ps(fours[at], fours[at + 4], 0x20);
        rows[at + 4] = _mm256_permute2f128_ps(fours[at], fours[at + 4], 0x31);
    }
}
