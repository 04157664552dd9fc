/* Squared norms of single samples' gradients by the kernels of a convolution, from two Gram matrices of its positions.
 *
 * For each sample of each client the patches under the kernel, and the derivatives by the outputs, are copied to columns, one for
 * each position: both matrices are then sums of products of a number of a row with vectors of the same row. They are symmetric,
 * so that blocks below the diagonal are not computed. Products are added one after the other with a single rounding, up to a
 * number of them; then these sums are added up. So all processors round alike. On a processor without instructions for that
 * nothing is written. */

#include "../../../kernels/processors.h"

#define BLOCK 8 /* rows of what is left out below the diagonals in sums, the same on all processors */

/* Images (samples, height, width, clients, channels) and kernels (filters, high, wide, channels) with padding, stride and dilation.
 * A running sum has at most `longest` products. Of client i the first counts[i] samples are present, all where `counts` is null; of
 * others norms are 0. */
typedef struct {
    const int64_t *counts;
    int64_t clients, samples, channels, height, width, filters, rows, columns;
    int64_t high, wide, above, beside, down, right, below, next, longest;
} convolution;

/* Where each position lies on the image at each place of the kernel, -1 off it; `zeros` lie there. The numbers of a position are
 * in a column of `patches` and of `outputs`, whose rows, and those of the Gram matrices, are `lanes` numbers; columns behind the
 * last position are 0. */
typedef struct {
    int64_t positions, places, lanes;
    int64_t *pixels;
    float *zeros, *patches, *outputs, *of_patches, *of_outputs;
} tables;

static tables tables_in(const convolution *of, int64_t vector, void *room) {
    tables at = {.positions = of->rows * of->columns, .places = of->high * of->wide};
    const int64_t longest_run = larger(of->channels, of->filters);
    at.lanes = rounded_up(at.positions, vector);
    at.pixels = room;
    at.zeros = aligned((float *)(at.pixels + at.positions * at.places));
    at.patches = aligned(at.zeros + longest_run);
    at.outputs = aligned(at.patches + at.places * of->channels * at.lanes);
    at.of_patches = aligned(at.outputs + of->filters * at.lanes);
    at.of_outputs = aligned(at.of_patches + at.lanes * at.lanes);
    for (int64_t number = 0; number < longest_run; number++) at.zeros[number] = 0;
    int64_t *pixel = at.pixels;
    for (int64_t position = 0; position < at.positions; position++)
        for (int64_t place = 0; place < at.places; place++) {
            const int64_t row = position / of->columns * of->down + place / of->wide * of->below - of->above;
            const int64_t column = position % of->columns * of->right + place % of->wide * of->next - of->beside;
            const int on = row >= 0 && row < of->height && column >= 0 && column < of->width;
            *pixel++ = on ? (row * of->width + column) * of->clients * of->channels : -1;
        }
    return at;
}

/* The sum of the products of the entries of both matrices, from those on and above their diagonals in blocks of BLOCK. */
INLINED float sum_of_products(const tables *at) {
    float lanes[LANES] = {0};
    for (int64_t position = 0; position < at->positions; position++)
        for (int64_t first = position / BLOCK * BLOCK; first < at->lanes; first += BLOCK) {
            const float times = first > position ? 2.0f : 1.0f, *outputs = at->of_outputs + position * at->lanes + first;
            const float *patches = at->of_patches + position * at->lanes + first;
            for (int lane = 0; lane < BLOCK; lane++) lanes[first % LANES + lane] += times * (outputs[lane] * patches[lane]);
        }
    return over_lanes(lanes);
}

#define PASSES "../learning/cohort/gram/passes.h"
#include "../../../kernels/vectors.h"

/* out (clients, samples), from the derivatives by the outputs, `deltas` (samples, rows, columns, clients, filters). */
void wirelessfl_gram_squared_norms(const convolution *of, const float *images, const float *deltas, float *out, void *room) {
    RUN(squared_norms, of, images, deltas, out, room);
}
