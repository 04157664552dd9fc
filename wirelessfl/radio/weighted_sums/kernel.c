/* Weighted sums of the rows of a matrix by ranges of columns, and the energies of the rows in each, in one pass.
 *
 * The rows come from memory, the sums stay in the cache. Every float operation rounds by itself (hatch_build.py forbids
 * contraction) and in the order of portable.py, so that all processors give the same numbers. */

#include "../../kernels/processors.h"

#define TILE 4096               /* columns whose sums stay in the cache while all rows pass */
#define TOGETHER 4              /* rows that pass together */

/* One column of `rows` (1 or 4) rows: to `outputs` (1 or 2) sums, and its squares. */
INLINED void column(const float *restrict x, int64_t stride, int rows, const float *restrict weights, int64_t all, float *restrict out,
                    int64_t length, int outputs, float *restrict squares) {
    float value[TOGETHER];
    UNROLLED(4) for (int row = 0; row < rows; row++) value[row] = x[row * stride];
    UNROLLED(2) for (int output = 0; output < outputs; output++) {
        float sum = out[output * length];
        UNROLLED(4) for (int row = 0; row < rows; row++) sum += weights[output * all + row] * value[row];
        out[output * length] = sum;
    }
    UNROLLED(4) for (int row = 0; row < rows; row++) squares[row * LANES] += value[row] * value[row];
}

INLINED void some_rows(const float *restrict x, int64_t stride, int rows, const float *restrict weights, int64_t all, float *restrict out,
                       int64_t length, int64_t columns, int outputs, double *restrict energies, int64_t ranges) {
    float squares[TOGETHER * LANES] = {0};
    int64_t first = 0;
    for (; first + LANES <= columns; first += LANES)
        for (int lane = 0; lane < LANES; lane++)
            column(x + first + lane, stride, rows, weights, all, out + first + lane, length, outputs, squares + lane);
    for (int lane = 0; first + lane < columns; lane++)
        column(x + first + lane, stride, rows, weights, all, out + first + lane, length, outputs, squares + lane);
    for (int row = 0; row < rows; row++) energies[row * ranges] += over_lanes(squares + row * LANES);
}

INLINED void all_rows(const float *restrict x, int64_t stride, int64_t rows, const float *restrict weights, float *restrict out, int64_t length,
                      int64_t columns, int outputs, double *restrict energies, int64_t ranges) {
    int64_t row = 0;
    for (; row + TOGETHER <= rows; row += TOGETHER)
        some_rows(x + row * stride, stride, TOGETHER, weights + row, rows, out, length, columns, outputs,
                  energies + row * ranges, ranges);
    for (; row < rows; row++)
        some_rows(x + row * stride, stride, 1, weights + row, rows, out, length, columns, outputs,
                  energies + row * ranges, ranges);
}

/* Adds to out (ranges, outputs, length) the rows x (rows, ranges * length), whose beginnings are `stride` apart, by
 * weights (ranges, outputs, rows), and to energies (rows, ranges) the sums of their squares. */
FOR_EACH_PROCESSOR void wirelessfl_add_weighted(const float *restrict x, int64_t rows, int64_t stride, int64_t ranges,
                                                int64_t length, int64_t outputs, const float *restrict weights, float *restrict out,
                                                double *restrict energies) {
    for (int64_t range = 0; range < ranges; range++)
        for (int64_t first = 0; first < length; first += TILE) {
            const int64_t left = length - first, columns = left < TILE ? left : TILE;
            const float *here = x + range * length + first, *own = weights + range * outputs * rows;
            float *sums = out + range * outputs * length + first;
            if (outputs == 1)
                all_rows(here, stride, rows, own, sums, length, columns, 1, energies + range, ranges);
            else
                all_rows(here, stride, rows, own, sums, length, columns, 2, energies + range, ranges);
        }
}
