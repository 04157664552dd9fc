/* Haar noise added to the rows of a matrix: normal coefficients, their weights and the inverse transform in one go.
 *
 * Coefficients are drawn a tile at a time, just before they are used, and those that reach no column are not drawn. Every
 * float operation is one of portable.py, here or of the normals (weights are powers of two), in an order that does not matter
 * between elements. */

#include "../../../kernels/normals.h"

/* Means of `count` blocks and their half differences become means of twice as many blocks of half the length. */
INLINED void split(const float *restrict means, const float *restrict details, float weight, int64_t count,
                   float *restrict halves) {
    for (int64_t i = 0; i < count; i++) {
        const float mean = means[i], detail = details[i] * weight;
        halves[2 * i] = mean + detail;
        halves[2 * i + 1] = mean - detail;
    }
}

/* The same, added to `columns` elements. */
INLINED void split_onto(const float *restrict means, const float *restrict details, float weight, int64_t columns,
                        float *restrict out) {
    for (int64_t i = 0; i < columns / 2; i++) {
        const float mean = means[i], detail = details[i] * weight;
        out[2 * i] += mean + detail;
        out[2 * i + 1] += mean - detail;
    }
    if (columns % 2) out[columns - 1] += means[columns / 2] + details[columns / 2] * weight;
}

/* Noise of one row. A level is the details of all blocks of a length; detail i of level l is coefficient 2^l + i. */
INLINED void add_row(float *restrict out, int64_t columns, float scale, const uint32_t key[8], const uint32_t nonce[3],
                     int64_t levels, float *from, float *to) {
    float drawn[TILE]; /* coefficients of the tile of `index` */
    float weight = 1.0f / (float)((int64_t)1 << levels);
    for (int64_t level = 0; level < levels; level++) {
        const int64_t span = (int64_t)1 << (levels - level); /* elements of a block that is split */
        const int64_t count = (columns + span - 1) / span;
        for (int64_t done = 0; done < count;) {
            const int64_t index = ((int64_t)1 << level) + done, within = index % TILE;
            if (index == 1 || within == 0) {
                standard_normals(drawn, key, index / TILE, nonce);
                for (int i = 0; i < TILE; i++) drawn[i] *= scale;
                if (index == 1) from[0] = drawn[0] * weight;
            }
            const int64_t part = smaller(count - done, TILE - within);
            if (level < levels - 1)
                split(from + done, drawn + within, weight, part, to + 2 * done);
            else
                split_onto(from + done, drawn + within, weight, smaller(columns - 2 * done, 2 * part), out + 2 * done);
            done += part;
        }
        float *const last = from;
        from = to;
        to = last;
        weight *= 2.0f;
    }
}

/* out[r][j] += element j of the inverse transform of c / W, where c are the first of 2^levels coefficients scale[r] * normal
 * of the stream of row r, levels > 0.
 *
 * out: rows of `columns` floats, `stride` floats apart; key: of all rows; nonces: three words a row; means: room for two
 * times 2^(levels - 1) floats. */
FOR_EACH_PROCESSOR
void wirelessfl_add_haar_noise(float *restrict out, int64_t rows, int64_t stride, int64_t columns,
                               const float *restrict scale, const uint32_t key[8], const uint32_t *restrict nonces,
                               int64_t levels, float *means) {
    for (int64_t r = 0; r < rows; r++)
        if (scale[r] != 0.0f)
            add_row(out + r * stride, columns, scale[r], key, nonces + 3 * r, levels, means,
                    means + ((int64_t)1 << (levels - 1)));
}
