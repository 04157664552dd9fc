/* Squared norms of Haar coefficients of vectors in pieces, some of them outer products that are formed late.
 *
 * A vector stays in the cache through all of its levels. Every float operation is one of pieces.py and rounds by itself
 * (hatch_build.py forbids contraction); squares are summed in as many lanes as there, so that all processors give the
 * same numbers. */

#include "../../../kernels/processors.h"

/* Block sums: the outer product of `rows` and `columns` numbers, or, with no column, `rows` numbers themselves. */
typedef struct {
    const float *left, *right;
    int64_t rows, columns;
} piece;

INLINED int64_t length_of(const piece *one) { return one->columns ? one->rows * one->columns : one->rows; }

INLINED float energy_of(const float *restrict values, int64_t count) {
    float lanes[LANES] = {0};
    int64_t first = 0;
    for (; first + LANES <= count; first += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += values[first + lane] * values[first + lane];
    for (int lane = 0; first + lane < count; lane++) lanes[lane] += values[first + lane] * values[first + lane];
    return over_lanes(lanes);
}

/* Sums of neighbours among `count` values, a zero behind an odd last one; the energy of their differences. */
INLINED float level(const float *restrict values, int64_t count, float *restrict sums) {
    float lanes[LANES] = {0};
    const int64_t pairs = count / 2;
    int64_t first = 0;
    for (; first + LANES <= pairs; first += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float left = values[2 * (first + lane)], right = values[2 * (first + lane) + 1];
            const float difference = left - right;
            lanes[lane] += difference * difference;
            sums[first + lane] = left + right;
        }
    int lane = 0;
    for (; first + lane < pairs; lane++) {
        const float left = values[2 * (first + lane)], right = values[2 * (first + lane) + 1];
        const float difference = left - right;
        lanes[lane] += difference * difference;
        sums[first + lane] = left + right;
    }
    if (count % 2) {
        const float last = values[count - 1];
        lanes[lane] += last * last;
        sums[pairs] = last;
    }
    return over_lanes(lanes);
}

INLINED float *form(const piece *from, float *restrict to) {
    if (!from->columns) {
        for (int64_t at = 0; at < from->rows; at++) to[at] = from->left[at];
        return to + from->rows;
    }
    for (int64_t row = 0; row < from->rows; row++, to += from->columns) {
        const float factor = from->left[row];
        for (int64_t column = 0; column < from->columns; column++) to[column] = factor * from->right[column];
    }
    return to;
}

/* The next level of all pieces. What neighbours of a block share is formed before, in `formed`, and becomes one piece.
 * Returns their number; adds `factor` times the energies of the differences to `total`. */
INLINED int64_t next_level(const piece *from, int64_t count, piece *to, float *restrict sums, float *restrict formed,
                           float factor, float *total) {
    int64_t made = 0, offset = 0;
    for (int64_t at = 0; at < count;) {
        if (from[at].columns && from[at].columns % 2 == 0 && offset % 2 == 0) {
            const float energy = level(from[at].right, from[at].columns, sums);
            to[made++] = (piece){from[at].left, sums, from[at].rows, from[at].columns / 2};
            *total += factor * (energy * energy_of(from[at].left, from[at].rows));
            sums += from[at].columns / 2;
            offset += length_of(from + at);
            at++;
            continue;
        }
        const int64_t first = at;
        int64_t length = 0;
        do {
            length += length_of(from + at);
            at++;
        } while (at < count && (!from[at].columns || from[at].columns % 2 || (offset + length) % 2));
        const float *values = from[first].left;
        if (at - first > 1 || from[first].columns) {
            float *end = formed;
            for (int64_t one = first; one < at; one++) end = form(from + one, end);
            values = formed;
        }
        *total += factor * level(values, length, sums);
        to[made++] = (piece){sums, 0, (length + 1) / 2, 0};
        sums += (length + 1) / 2;
        offset += length;
    }
    return made;
}

/* out[i] = the squared norm of vector i, with `level_factor` to the power of l before the energy of level l.
 *
 * pieces: `count` of vector 0; those of vector i begin as many times `rows` (left) and `columns` (right) floats behind.
 * work: room for two times `count` pieces; room: for three times (`length` + `count`) floats, `length` those of a vector. */
FOR_EACH_PROCESSOR
void wirelessfl_haar_squared_norms(const piece *pieces, int64_t count, int64_t vectors, float level_factor, piece *work,
                                   float *restrict room, int64_t length, float *restrict out) {
    for (int64_t vector = 0; vector < vectors; vector++) {
        piece *from = work, *to = work + count;
        float *sums = room, *others = room + length + count, *const formed = room + 2 * (length + count);
        for (int64_t at = 0; at < count; at++) {
            from[at] = pieces[at];
            from[at].left += vector * pieces[at].rows;
            if (from[at].columns) from[at].right += vector * pieces[at].columns;
        }
        int64_t left = count;
        float total = 0.0f, factor = 1.0f;
        while (left > 1 || length_of(from) > 1) {
            factor *= level_factor;
            left = next_level(from, left, to, sums, formed, factor, &total);
            piece *const last = from;
            float *const before = sums;
            from = to, to = last, sums = others, others = before;
        }
        const float last = from->columns ? from->left[0] * from->right[0] : from->left[0];
        out[vector] = total + factor * (last * last);
    }
}
