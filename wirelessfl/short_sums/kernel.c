/* Products of many pairs of small matrices, whose numbers are sums of few products, added to what is there.
 *
 * Rows of the left matrix stand side by side, and a piece of as many rows of what is formed stays in registers for a whole sum.
 * Products are added one after the other with a single rounding. So all processors round alike. On a processor without
 * instructions for that nothing is written. */

#include "../kernels/processors.h"

#define LONGEST 384
#define CACHED (1 << 16) /* numbers of `right` that the cache of a core holds while all rows are formed */

/* Of each client left (rows, terms), right (terms, columns) and out (rows, columns). Strides are named by what they lead to;
 * columns are beside each other. */
typedef struct {
    int64_t clients, rows, terms, columns;
    int64_t left_client, left_row, left_term, right_client, right_term, out_client, out_row;
} products;

#define PASSES "../short_sums/passes.h"
#include "../kernels/vectors.h"

/* out ← decay · out + left · right; where `decay` is 0, nothing that was there matters. */
void wirelessfl_add_short_sums(const products *of, const float *left, const float *right, float *out, const float *decay) {
    RUN(add_sums, of, left, right, out, *decay);
}
