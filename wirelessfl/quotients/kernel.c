/* Quotients of the rows of matrices by a number each, added to what is there or multiplied, in one pass over memory.
 *
 * Every operation rounds by itself (hatch_build.py forbids contraction), in the order of torch's passes. Strides are of rows, in
 * which numbers are beside each other. */

#include "../kernels/processors.h"

/* out ← decay · out + value / divisor; where `decay` is 0, nothing that was there matters. */
FOR_EACH_PROCESSOR
void wirelessfl_add_quotients(int64_t rows, int64_t columns, float *restrict out, int64_t out_row, const float *restrict value,
                              int64_t value_row, const float *restrict divisor, float decay) {
    for (int64_t row = 0; row < rows; row++, out += out_row, value += value_row) {
        const float by = divisor[row];
        if (decay == 0)
            for (int64_t column = 0; column < columns; column++) out[column] = value[column] / by;
        else
            for (int64_t column = 0; column < columns; column++) out[column] = decay * out[column] + value[column] / by;
    }
}

/* out ← one / one_by · (other / other_by / then_by), rows of out beside each other. */
FOR_EACH_PROCESSOR
void wirelessfl_multiply_quotients(int64_t rows, int64_t columns, float *restrict out, const float *restrict one, int64_t one_row,
                                   const float *restrict one_by, const float *restrict other, int64_t other_row,
                                   const float *restrict other_by, const float *restrict then_by) {
    for (int64_t row = 0; row < rows; row++, out += columns, one += one_row, other += other_row) {
        const float by = one_by[row], first = other_by[row], second = then_by[row];
        for (int64_t column = 0; column < columns; column++) out[column] = one[column] / by * (other[column] / first / second);
    }
}
