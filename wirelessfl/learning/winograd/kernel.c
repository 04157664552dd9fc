/* Convolutions by Winograd's minimal filtering, of many clients: forward, and their derivatives by images and by kernels.
 *
 * A tile of 6 x 6 pixels gives 4 x 4 outputs of a 3 x 3 kernel, or 2 x 2 of a 5 x 5 kernel. Of its transform each of the 36
 * points is multiplied by the transform of the kernels: 4 or 2.8 times fewer products than the kernels have. For each point
 * these are products of matrices (tiles, inputs) and (inputs, outputs). Tiles are taken in blocks and outputs in panels, so
 * that what is multiplied stays in the cache. Products are added one after the other with a single rounding, so that all
 * processors round alike. On a processor without instructions for that nothing is written. */

#include "../../kernels/processors.h"

#define ROWS 6 /* tiles multiplied at once */
#define GROUP 8 /* inputs whose kernels are rearranged at once: those of an output lie side by side */

/* Images in memory: how many numbers samples, rows, columns and clients are apart; channels lie side by side. */
typedef struct {
    int64_t height, width, above, beside, client, sample, row, column;
} images;

/* Kernels in memory, their places side by side; turned by half a circle for derivatives by images. Derivatives by the kernels
 * are summed over the samples, or are `sample` numbers apart where that is not 0. */
typedef struct {
    int64_t inputs, outputs, input, output, client, biases, turned, sample;
} kernels;

/* Of kernels (size, size); `block` tiles, a multiple of ROWS, and `panel` outputs are taken at once. Of client i the first
 * counts[i] samples are present, all where `counts` is null; of others outputs and derivatives are 0. */
typedef struct {
    const int64_t *counts;
    int64_t clients, samples, size, block, panel;
    images from, to;
    kernels kernels;
} convolution;

typedef struct {
    int64_t down, across, tiles;
} tiling;

typedef struct {
    int64_t sample, row, column;
} place;

INLINED int64_t present_of(const convolution *of, int64_t client) {
    return of->counts ? larger(0, smaller(of->counts[client], of->samples)) : of->samples;
}

INLINED tiling tiles_of(const convolution *of, int64_t samples, int64_t side) {
    const int64_t down = (of->to.height + side - 1) / side, across = (of->to.width + side - 1) / side;
    return (tiling){down, across, samples * down * across};
}

/* Where the outputs of a tile begin. */
INLINED place place_of(tiling by, int64_t tile, int64_t side) {
    return (place){tile / by.across / by.down, tile / by.across % by.down * side, tile % by.across * side};
}

/* Room for the transforms, each plane followed by one line of the cache: planes would else begin at the same place in it. */
typedef struct {
    int64_t kernel_plane, input_plane, output_plane;
    float *kernels, *inputs, *outputs, *by_place, *zeros;
} planes;

INLINED planes planes_in(const convolution *of, float *room) {
    const int64_t inputs = of->kernels.inputs, panel = smaller(of->panel, of->kernels.outputs);
    planes at = {.kernel_plane = inputs * panel + LANES, .input_plane = of->block * inputs + LANES};
    at.output_plane = of->block * panel + LANES;
    at.kernels = room;
    at.inputs = at.kernels + 36 * at.kernel_plane;
    at.outputs = at.inputs + 36 * at.input_plane;
    at.by_place = at.outputs + 36 * at.output_plane;
    at.zeros = at.by_place + GROUP * of->size * of->size * panel;
    for (int64_t channel = 0; channel < larger(inputs, panel); channel++) at.zeros[channel] = 0;
    return at;
}

#define PASSES "../learning/winograd/passes.h"
#include "../../kernels/vectors.h"

/* Sets to (clients, samples, height, width, outputs) to the convolutions of `from`; `biases` may be null. */
void wirelessfl_minimal_convolution(const convolution *of, const float *from, const float *kernels, const float *biases, float *to,
                         float *room) {
    RUN(convolve, of, from, kernels, biases, to, room);
}

/* Sets `gradients`, laid out as the kernels are, to the derivatives by the kernels, of the images and the derivatives by outputs. */
void wirelessfl_minimal_kernel_derivatives(const convolution *of, const float *from, const float *deltas, float *gradients, float *room) {
    RUN(kernel_gradients, of, from, deltas, gradients, room);
}
