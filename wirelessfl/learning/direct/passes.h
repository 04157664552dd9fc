/* Direct sums of one kind of processor; the including file has defined its vectors, see there. */

#include "../../kernels/transposition.h"

#define ROWS (REGISTERS < 32 ? 6 : 8) /* of two vectors in the registers; the general registers hold no more than 8 pointers */

/* A sum of products: left (rows, depth), whose numbers lie at down[row] + along[k], times right (depth, vectors), whose rows are
 * `width` numbers apart, put at out + to[row] with `biases` if there are any; from `filled` on right is 0. Of two vectors the
 * second is `beside` numbers behind the first, in the sum `apart`. In `packed`, if there is one, there is room for PIECE rows of
 * the right, and behind it for what is put at `to`; there are no biases then. */
typedef struct {
    int64_t rows, depth, filled;
    const float *left;
    const int64_t *down, *along;
    const float *right;
    int64_t width, beside;
    float *out;
    const int64_t *to;
    int64_t apart;
    const float *biases;
    float *packed;
} NAMED(product);

/* One running sum of its rows from `first` on, `rows` at most, of `across` vectors: put there, added to what is there, or begun
 * with it. */
FUNCTION void NAMED(sum_block)(const int rows, const int across, const mode how, int64_t first, const NAMED(product) *of) {
    vector sums[ROWS][2];
    const float *row_of[ROWS], *right = of->right;
    const int64_t count = of->rows - first, *along = of->along;
    const int64_t apart = of->apart, *to = of->to + first; /* not in the loops: for all that is known, a store might change them */
    float *const out = of->out;
    for (int row = 0; row < rows; row++) {
        row_of[row] = of->left + of->down[first + smaller(row, count - 1)]; /* the last row again where there are no more */
        __asm__("" : "+r"(row_of[row])); /* each a register of its own: offsets from `left` would not all find one */
        for (int n = 0; n < across; n++)
            sums[row][n] = how == BEGUN ? LOAD(out + to[smaller(row, count - 1)] + n * apart) : ALL(0);
    }
    for (int64_t k = 0; k < of->depth; k++, right += of->width) {
        const int64_t at = along[k];
        vector numbers[2];
        for (int n = 0; n < across; n++) numbers[n] = LOAD(right + n * of->beside);
        for (int row = 0; row < rows; row++) {
            const vector value = ALL(row_of[row][at]);
            for (int n = 0; n < across; n++) sums[row][n] = MULTIPLY_ADD(value, numbers[n], sums[row][n]);
        }
    }
    const float *biases = of->biases;
    for (int row = 0; row < rows; row++)
        if (row < count)
            for (int n = 0; n < across; n++) {
                float *place = out + to[row] + n * apart;
                if (how == ADDED) STORE(place, LOAD(place) + sums[row][n]);
                else STORE(place, biases ? sums[row][n] + LOAD(biases + n * VECTOR) : sums[row][n]);
            }
}

/* Functions of their own: in one with much else the compiler has no registers left for the loop. */
#define ALL_ROWS(name, across, how)                                                                     \
    ALONE void NAMED(name)(const NAMED(product) *of) {                                                  \
        int64_t row = 0;                                                                                \
        for (; row + ROWS / 2 < of->rows; row += ROWS) NAMED(sum_block)(ROWS, across, how, row, of);    \
        if (row < of->rows) NAMED(sum_block)(ROWS / 2, across, how, row, of);                           \
    }
ALL_ROWS(put_one, 1, PUT)
ALL_ROWS(put_two, 2, PUT)
ALL_ROWS(add_one, 1, ADDED)
ALL_ROWS(add_two, 2, ADDED)
ALL_ROWS(go_on_one, 1, BEGUN)
ALL_ROWS(go_on_two, 2, BEGUN)
#undef ALL_ROWS

FUNCTION void NAMED(sum_rows)(mode how, const int across, const NAMED(product) *of) {
    switch (how) {
    case PUT: across == 1 ? NAMED(put_one)(of) : NAMED(put_two)(of); break;
    case ADDED: across == 1 ? NAMED(add_one)(of) : NAMED(add_two)(of); break;
    case BEGUN: across == 1 ? NAMED(go_on_one)(of) : NAMED(go_on_two)(of); break;
    }
}

/* One running sum, of all rows, piece by piece: what they are multiplied by is copied side by side and stays in the first cache
 * for all of them. */
FUNCTION void NAMED(sum_pieces)(int adds, const int across, NAMED(product) of) {
    NAMED(product) piece = of;
    piece.right = of.packed, piece.width = across * VECTOR, piece.beside = VECTOR;
    if (adds) piece.out = of.packed + PIECE * across * VECTOR; /* begun there, and added to what was there at the end */
    for (int64_t first = 0; first == 0 || first < of.depth; first += PIECE) {
        piece.depth = smaller(PIECE, of.depth - first);
        for (int64_t k = 0; k < piece.depth; k++)
            for (int n = 0; n < across; n++) {
                const float *from = of.right + (first + k) * of.width + n * of.beside;
                __builtin_prefetch(from + AHEAD * of.width);
                STORE(of.packed + (k * across + n) * VECTOR, LOAD(from));
            }
        NAMED(sum_rows)(first ? BEGUN : PUT, across, &piece);
        piece.along += PIECE;
    }
    for (int64_t row = 0; adds && row < of.rows; row++)
        for (int n = 0; n < across; n++) {
            float *place = of.out + of.to[row] + n * of.apart;
            STORE(place, LOAD(place) + LOAD(piece.out + of.to[row] + n * of.apart));
        }
}

/* All running sums, one after the other; added to what is there, or put there. What is 0 counts for their lengths only. */
FUNCTION void NAMED(sum)(int adds, const int across, int64_t longest, NAMED(product) of) {
    for (int64_t left = of.depth, length; left; left -= length, adds = 1) {
        length = running(left, longest);
        of.depth = smaller(length, of.filled);
        if (!of.depth && adds) break;
        if (of.packed) NAMED(sum_pieces)(adds, across, of);
        else NAMED(sum_rows)(adds ? ADDED : PUT, across, &of);
        of.along += length, of.right += length * of.width, of.filled -= of.depth;
    }
}

/* The same for `columns` numbers beside each other. */
FUNCTION void NAMED(sum_columns)(int adds, int64_t columns, int64_t longest, NAMED(product) of) {
    of.beside = of.apart = VECTOR;
    for (int64_t column = 0; column < columns; column += 2 * VECTOR) {
        NAMED(sum)(adds, columns - column > VECTOR ? 2 : 1, longest, of);
        of.right += 2 * VECTOR, of.out += 2 * VECTOR;
        if (of.biases) of.biases += 2 * VECTOR;
    }
}

ALONE void NAMED(convolve)(const convolution *of, const float *from, const float *kernels, const float *biases, float *to,
                           void *room) {
    const tables at = tables_in(of, of->channels, 2 * VECTOR, room);
    for (part some = part_from(of, 0, 0); some.clients; some = next_part(of, some)) {
        const float *images = images_in(of, &at, from, some);
        for (int64_t client = 0; client < some.clients; client++) {
            const int64_t own = some.client + client, taps = at.places * at.lanes;
            float *panels = at.kernels + client * at.kernel;
            const int64_t positions = present_in(of, some, client) * at.positions;
            float *outputs = to + outputs_of(of, some, client);
            if (some.sample == 0) kernels_in(of, &at, kernels + own * of->client, panels);
            for (int64_t filter = 0; filter < of->filters; filter += at.panel)
                NAMED(sum_columns)(0, at.panel, of->longest, (NAMED(product)){
                    .rows = positions, .depth = taps, .filled = taps, .left = images + client * at.images.client,
                    .down = at.pixels, .along = at.taps, .right = panels + filter * taps, .width = at.panel,
                    .out = outputs + filter, .to = at.outputs,
                    .biases = biases ? biases + own * of->biases + filter : 0});
            for (int64_t absent = positions; absent < some.samples * at.positions; absent++)
                NAMED(zeros)(outputs + at.outputs[absent], of->filters);
        }
    }
}

/* The kernels of a client in panels, as (filters, channels, high, wide): eight by eight numbers at once. */
FUNCTION void NAMED(kernels_out)(const convolution *of, const tables *at, const float *panels, float *numbers) {
    const int64_t taps = at->places * at->lanes, panel = at->panel, whole = taps / 8 * 8;
    for (int64_t first = 0; first < of->filters; first += panel, panels += panel * taps, numbers += panel * taps) {
        for (int64_t tap = 0; tap < whole; tap += 8)
            for (int64_t filter = 0; filter < panel; filter += 8) {
                __m256 rows[8];
                for (int row = 0; row < 8; row++) rows[row] = _mm256_loadu_ps(panels + at->order[tap + row] + filter);
                NAMED(transpose)(rows);
                for (int row = 0; row < 8; row++) _mm256_storeu_ps(numbers + (filter + row) * taps + tap, rows[row]);
            }
        for (int64_t tap = whole; tap < taps; tap++)
            for (int64_t filter = 0; filter < panel; filter++) numbers[filter * taps + tap] = panels[at->order[tap] + filter];
    }
}

ALONE void NAMED(by_kernels)(const convolution *of, const float *from, const float *deltas, float *to, void *room) {
    const tables at = tables_in(of, of->channels, 2 * VECTOR, room);
    const int64_t taps = at.places * at.lanes;
    for (int64_t tap = 0; tap < taps; tap++) at.rows[tap] = tap * at.panel;
    for (part some = part_from(of, 0, 0); some.clients; some = next_part(of, some)) {
        const float *images = images_in(of, &at, from, some);
        for (int64_t client = 0; client < some.clients; client++) {
            const int64_t present = present_in(of, some, client), own = some.client + client;
            float *panels = at.kernels + client * at.kernel;
            float *sums = to + (of->by_sample ? own * of->samples + some.sample : own) * at.kernel;
            if (!present) {
                NAMED(zeros)(sums, at.kernel);
                continue;
            }
            for (int64_t filter = 0; filter < of->filters; filter += at.panel)
                NAMED(sum_columns)(0, at.panel, of->longest, (NAMED(product)){
                    .rows = taps, .depth = some.samples * at.positions, .filled = present * at.positions,
                    .left = images + client * at.images.client, .down = at.taps, .along = at.pixels,
                    .right = deltas + outputs_of(of, some, client) + filter, .width = of->clients * of->filters,
                    .out = panels + filter * taps, .to = at.rows, .packed = at.packed});
            NAMED(kernels_out)(of, &at, panels, sums);
        }
    }
}

/* The images of a client of a part set to zero, with their padding. */
FUNCTION void NAMED(clear)(const convolution *of, const tables *at, part some, float *images) {
    for (int64_t sample = 0; sample < some.samples; sample++)
        for (int64_t y = 0; y < of->height + 2 * of->above; y++)
            for (int64_t x = 0; x < of->width + 2 * of->beside; x++) {
                float *pixel = images + sample * at->images.sample + y * at->images.row + x * at->images.column;
                for (int64_t lane = 0; lane < at->lanes; lane += VECTOR) STORE(pixel + lane, ALL(0));
            }
}

/* Place by place of the kernel, so that a pixel's sum has one order for all vectors; two at once where they never meet. */
ALONE void NAMED(by_images)(const convolution *of, const float *deltas, const float *kernels, float *to, void *room) {
    const int64_t lanes = (of->channels + LANES - 1) / LANES * LANES;
    const tables at = tables_in(of, lanes, 2 * VECTOR, room);
    const int two = lanes == VECTOR && of->next % of->right;
    for (int64_t filter = 0; filter < of->filters; filter++) at.rows[filter] = filter;
    for (part some = part_from(of, 0, 0); some.clients; some = next_part(of, some)) {
        float *images = at.in_place ? to + images_of(of, some) : at.room;
        for (int64_t client = 0; client < some.clients; client++) {
            float *own = at.kernels + client * at.kernel;
            if (some.sample == 0) turned_kernels_in(of, &at, kernels + (some.client + client) * of->client, own);
            NAMED(clear)(of, &at, some, images + client * at.images.client);
            for (int64_t place = 0; place < at.places; place++) {
                NAMED(product) sum = {
                    .rows = present_in(of, some, client) * at.positions, .depth = of->filters, .filled = of->filters,
                    .left = deltas + outputs_of(of, some, client), .down = at.outputs, .along = at.rows,
                    .right = own + place * of->filters * lanes, .width = lanes,
                    .out = images + client * at.images.client + at.taps[place * lanes], .to = at.pixels};
                if (two && place % of->wide + 1 < of->wide) {
                    sum.beside = of->filters * lanes, sum.apart = of->next * at.images.column, place++;
                    NAMED(sum)(1, 2, of->longest, sum);
                } else NAMED(sum_columns)(1, lanes, of->longest, sum);
            }
        }
        images_out(of, &at, to, some);
    }
}

#undef ROWS
