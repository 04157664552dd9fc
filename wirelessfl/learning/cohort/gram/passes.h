/* Gram matrices of one kind of processor; the including file has defined its vectors, see there. */

/* BLOCK numbers of as many rows, from `at` on, become columns of `to`, whose rows are `lanes` numbers. */
FUNCTION void NAMED(transpose)(const float *const rows[BLOCK], int64_t at, float *to, int64_t lanes) {
    __m256 one[BLOCK], two[BLOCK];
    for (int row = 0; row < BLOCK; row++) one[row] = _mm256_loadu_ps(rows[row] + at);
    for (int row = 0; row < BLOCK; row += 2) {
        two[row] = _mm256_unpacklo_ps(one[row], one[row + 1]);
        two[row + 1] = _mm256_unpackhi_ps(one[row], one[row + 1]);
    }
    for (int row = 0; row < BLOCK; row += 4)
        for (int half = 0; half < 2; half++) {
            one[row + 2 * half] = _mm256_shuffle_ps(two[row + half], two[row + half + 2], _MM_SHUFFLE(1, 0, 1, 0));
            one[row + 2 * half + 1] = _mm256_shuffle_ps(two[row + half], two[row + half + 2], _MM_SHUFFLE(3, 2, 3, 2));
        }
    for (int row = 0; row < 4; row++) {
        _mm256_storeu_ps(to + row * lanes, _mm256_permute2f128_ps(one[row], one[row + 4], 0x20));
        _mm256_storeu_ps(to + (row + 4) * lanes, _mm256_permute2f128_ps(one[row], one[row + 4], 0x31));
    }
}

/* `count` numbers of each of VECTOR rows become a column of `to`. */
FUNCTION void NAMED(put_columns)(const float *const rows[VECTOR], int64_t count, float *to, int64_t lanes) {
    int64_t at = 0;
    for (; at + BLOCK <= count; at += BLOCK, to += BLOCK * lanes)
        for (int row = 0; row < VECTOR; row += BLOCK) NAMED(transpose)(rows + row, at, to + row, lanes);
    for (; at < count; at++, to += lanes)
        for (int row = 0; row < VECTOR; row++) to[row] = rows[row][at];
}

/* The patches of an image, and the derivatives by its outputs, in columns. */
FUNCTION void NAMED(gather)(const convolution *of, const tables *at, const float *image, const float *delta) {
    const float *rows[VECTOR];
    for (int64_t first = 0; first < at->lanes; first += VECTOR) {
        const int64_t count = at->positions - first;
        for (int64_t place = 0; place < at->places; place++) {
            for (int row = 0; row < VECTOR; row++) {
                const int64_t pixel = row < count ? at->pixels[(first + row) * at->places + place] : -1;
                rows[row] = pixel < 0 ? at->zeros : image + pixel;
            }
            NAMED(put_columns)(rows, of->channels, at->patches + place * of->channels * at->lanes + first, at->lanes);
        }
        for (int row = 0; row < VECTOR; row++)
            rows[row] = row < count ? delta + (first + row) * of->clients * of->filters : at->zeros;
        NAMED(put_columns)(rows, of->filters, at->outputs + first, at->lanes);
    }
}

/* One running sum of a block of inner products of columns from `first` and from `second` on; added to what is there, or put there. */
ALONE void NAMED(block)(const float *first, const float *second, int64_t lanes, int64_t depth, const int adds, float *out) {
    vector sums[VECTOR];
    for (int row = 0; row < VECTOR; row++) sums[row] = ALL(0);
    for (int64_t k = 0; k < depth; k++, first += lanes, second += lanes) {
        const vector numbers = LOAD(second);
        for (int row = 0; row < VECTOR; row++) sums[row] = MULTIPLY_ADD(ALL(first[row]), numbers, sums[row]);
    }
    for (int row = 0; row < VECTOR; row++, out += lanes) STORE(out, adds ? LOAD(out) + sums[row] : sums[row]);
}

/* The Gram matrix of columns of `depth` numbers, on and above its diagonal. */
FUNCTION void NAMED(gram)(const float *columns, int64_t lanes, int64_t depth, int64_t longest, float *out) {
    for (int64_t from = 0, length; from < depth; from += length) {
        length = running(depth - from, longest);
        const float *part = columns + from * lanes;
        for (int64_t second = 0; second < lanes; second += VECTOR)
            for (int64_t first = 0; first <= second; first += VECTOR)
                NAMED(block)(part + first, part + second, lanes, length, from > 0, out + first * lanes + second);
    }
}

ALONE void NAMED(squared_norms)(const convolution *of, const float *images, const float *deltas, float *out, void *room) {
    const tables at = tables_in(of, VECTOR, room);
    const int64_t image = of->height * of->width * of->clients * of->channels;
    for (int64_t sample = 0; sample < of->samples; sample++, images += image) /* which stays in the cache for all clients */
        for (int64_t client = 0; client < of->clients; client++) {
            float *const norm = out + client * of->samples + sample;
            *norm = 0;
            if (of->counts && sample >= of->counts[client]) continue;
            const float *delta = deltas + (sample * at.positions * of->clients + client) * of->filters;
            NAMED(gather)(of, &at, images + client * of->channels, delta);
            NAMED(gram)(at.patches, at.lanes, at.places * of->channels, of->longest, at.of_patches);
            NAMED(gram)(at.outputs, at.lanes, of->filters, of->longest, at.of_outputs);
            *norm = sum_of_products(&at);
        }
}
