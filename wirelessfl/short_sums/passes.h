/* Short sums of one kind of processor; the including file has defined its vectors, see there. */

#define ROWS (REGISTERS < 32 ? 5 : 10) /* of two vectors in the registers */
#define HALF ((ROWS + 1) / 2)
#define FEW ((ROWS + 3) / 5)

/* A piece of out, `rows` by `across` vectors, from rows of `left` side by side, (terms, rows), and `right`, whose rows are `apart`
 * numbers apart. */
FUNCTION void NAMED(sum_piece)(const int rows, const int across, int64_t terms, const float *left, const float *right,
                               int64_t apart, float *out, int64_t out_row, float decay) {
    vector sums[ROWS][2];
    for (int row = 0; row < rows; row++)
        for (int n = 0; n < across; n++) sums[row][n] = ALL(0);
    for (int64_t term = 0; term < terms; term++, left += rows, right += apart) {
        vector numbers[2];
        for (int n = 0; n < across; n++) numbers[n] = LOAD(right + n * VECTOR);
        for (int row = 0; row < rows; row++)
            for (int n = 0; n < across; n++) sums[row][n] = MULTIPLY_ADD(ALL(left[row]), numbers[n], sums[row][n]);
    }
    for (int row = 0; row < rows; row++, out += out_row)
        for (int n = 0; n < across; n++) {
            float *place = out + n * VECTOR;
            STORE(place, decay == 0 ? sums[row][n] : MULTIPLY_ADD(ALL(decay), LOAD(place), sums[row][n]));
        }
}

/* The last columns, fewer than a vector has, with zeros behind them. */
FUNCTION void NAMED(sum_rest)(const int rows, int64_t columns, int64_t terms, const float *left, const float *right,
                              int64_t apart, float *out, int64_t out_row, float decay) {
    float numbers[LONGEST * VECTOR], sums[ROWS * VECTOR] = {0};
    for (int64_t term = 0; term < terms; term++)
        for (int64_t column = 0; column < VECTOR; column++)
            numbers[term * VECTOR + column] = column < columns ? right[term * apart + column] : 0;
    for (int row = 0; row < rows && decay != 0; row++)
        for (int64_t column = 0; column < columns; column++) sums[row * VECTOR + column] = out[row * out_row + column];
    NAMED(sum_piece)(rows, 1, terms, left, numbers, VECTOR, sums, VECTOR, decay);
    for (int row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) out[row * out_row + column] = sums[row * VECTOR + column];
}

/* `rows` rows of out of one client. */
FUNCTION void NAMED(sum_rows)(const int rows, const products *of, const float *left, const float *right, float *out, float decay) {
    const int64_t terms = of->terms, apart = of->right_term, columns = of->columns;
    float beside[LONGEST * ROWS];
    for (int64_t term = 0; term < terms; term++)
        for (int row = 0; row < rows; row++) beside[term * rows + row] = left[row * of->left_row + term * of->left_term];
    int64_t at = 0;
    for (; at + 2 * VECTOR <= columns; at += 2 * VECTOR)
        NAMED(sum_piece)(rows, 2, terms, beside, right + at, apart, out + at, of->out_row, decay);
    for (; at + VECTOR <= columns; at += VECTOR)
        NAMED(sum_piece)(rows, 1, terms, beside, right + at, apart, out + at, of->out_row, decay);
    if (at < columns) NAMED(sum_rest)(rows, columns - at, terms, beside, right + at, apart, out + at, of->out_row, decay);
}

/* Functions of their own: in one with much else the compiler has no registers left for the loop. */
#define FOR_ROWS(name, rows)                                                                                            \
    ALONE void NAMED(name)(const products *of, const float *left, const float *right, float *out, float decay) {        \
        NAMED(sum_rows)(rows, of, left, right, out, decay);                                                             \
    }
FOR_ROWS(sum_all, ROWS)
FOR_ROWS(sum_half, HALF)
FOR_ROWS(sum_few, FEW)
FOR_ROWS(sum_one, 1)
#undef FOR_ROWS

/* All rows of out of one client, for some columns of all. */
FUNCTION void NAMED(sum_panel)(const products *of, const float *left, const float *right, float *out, float decay) {
    for (int64_t row = 0, some; row < of->rows; row += some) {
        const int64_t rest = of->rows - row;
        const float *first = left + row * of->left_row;
        float *to = out + row * of->out_row;
        if (rest >= ROWS) some = ROWS, NAMED(sum_all)(of, first, right, to, decay);
        else if (rest >= HALF) some = HALF, NAMED(sum_half)(of, first, right, to, decay);
        else if (rest >= FEW) some = FEW, NAMED(sum_few)(of, first, right, to, decay);
        else some = 1, NAMED(sum_one)(of, first, right, to, decay);
    }
}

ALONE void NAMED(add_sums)(const products *of, const float *left, const float *right, float *out, float decay) {
    const int64_t panel = larger(1, CACHED / (2 * VECTOR * larger(1, of->terms))) * 2 * VECTOR;
    for (int64_t client = 0; client < of->clients; client++) {
        for (int64_t column = 0; column < of->columns; column += panel) {
            products some = *of;
            some.columns = smaller(panel, of->columns - column);
            NAMED(sum_panel)(&some, left, right + column, out + column, decay);
        }
        left += of->left_client, right += of->right_client, out += of->out_client;
    }
}
#undef ROWS
#undef HALF
#undef FEW
