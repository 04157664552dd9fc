/* Haar noise added to the rows of a matrix: weighted coefficients, their inverse transform and its sum in one go.
 *
 * A row's coefficients and block means stay in the cache, and what lies behind the last column is not computed. Every
 * float operation is one of portable.py (weights are powers of two), in an order that does not matter between elements. */

#include "../../../kernels/processors.h"

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

/* out[r][j] += element j of the inverse transform of coefficients c[r] / W of 2^levels elements, levels > 0.
 *
 * out: rows of `columns` floats, `stride` floats apart; c: rows `apart` floats apart, those that reach the columns;
 * means: room for two times 2^(levels - 1) + 2 floats. */
FOR_EACH_PROCESSOR
void wirelessfl_add_inverse_haar(float *restrict out, int64_t rows, int64_t stride, int64_t columns,
                                 const float *restrict c, int64_t apart, int64_t levels, float *restrict means) {
    const int64_t room = ((int64_t)1 << (levels - 1)) + 2;
    for (int64_t r = 0; r < rows; r++) {
        const float *own = c + r * apart;
        float *from = means, *to = means + room;
        float weight = 1.0f / (float)((int64_t)1 << levels);
        from[0] = own[0] * weight;
        for (int64_t level = 0; level < levels - 1; level++, weight *= 2.0f) {
            const int64_t spans = (int64_t)1 << (levels - level); /* elements of a block that is split */
            split(from, own + ((int64_t)1 << level), weight, (columns + spans - 1) / spans, to);
            float *const last = from;
            from = to;
            to = last;
        }
        split_onto(from, own + ((int64_t)1 << (levels - 1)), 0.5f, columns, out + r * stride);
    }
}
