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

/* Of kernels (size, size); `block` tiles, a multiple of ROWS, and `panel` outputs are taken at once. */
typedef struct {
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

INLINED int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

INLINED int64_t larger(int64_t one, int64_t other) { return one > other ? one : other; }

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

#if defined(__x86_64__)
#include <immintrin.h>

typedef float vector_of_16 __attribute__((vector_size(64)));
typedef float vector_of_8 __attribute__((vector_size(32)));

#define FUNCTION INLINED __attribute__((target("avx512f")))
#define NAMED(name) name##_by_16
#define vector vector_of_16
#define VECTOR 16
#define WIDEST 4 /* vectors beside each other in a product: six rows of them stay in 32 registers */
#define LOAD(from) ((vector)_mm512_loadu_ps(from))
#define STORE(to, value) _mm512_storeu_ps(to, (__m512)(value))
#define ALL(value) ((vector)_mm512_set1_ps(value))
#define MULTIPLY_ADD(one, other, sum) ((vector)_mm512_fmadd_ps((__m512)(one), (__m512)(other), (__m512)(sum)))
#include "passes.h"
#undef FUNCTION
#undef NAMED
#undef vector
#undef VECTOR
#undef WIDEST
#undef LOAD
#undef STORE
#undef ALL
#undef MULTIPLY_ADD

#define FUNCTION INLINED __attribute__((target("avx2,fma")))
#define NAMED(name) name##_by_8
#define vector vector_of_8
#define VECTOR 8
#define WIDEST 2 /* 16 registers */
#define LOAD(from) ((vector)_mm256_loadu_ps(from))
#define STORE(to, value) _mm256_storeu_ps(to, (__m256)(value))
#define ALL(value) ((vector)_mm256_set1_ps(value))
#define MULTIPLY_ADD(one, other, sum) ((vector)_mm256_fmadd_ps((__m256)(one), (__m256)(other), (__m256)(sum)))
#include "passes.h"

#define FOR_VECTORS(lanes, instructions)                                                                                  \
    __attribute__((target(instructions))) static void convolve_on_##lanes(                                                \
        const convolution *of, const float *from, const float *kernels, const float *biases, float *to, float *room) {    \
        of->size == 3 ? convolve_by_##lanes(3, of, from, kernels, biases, to, room)                                       \
                      : convolve_by_##lanes(5, of, from, kernels, biases, to, room);                                      \
    }                                                                                                                     \
    __attribute__((target(instructions))) static void kernel_gradients_on_##lanes(                                        \
        const convolution *of, const float *from, const float *deltas, float *gradients, float *room) {                   \
        of->size == 3 ? kernel_gradients_by_##lanes(3, of, from, deltas, gradients, room)                                 \
                      : kernel_gradients_by_##lanes(5, of, from, deltas, gradients, room);                                \
    }
FOR_VECTORS(16, "avx512f")
FOR_VECTORS(8, "avx2,fma")

#ifdef WITHOUT_AVX512
#define HAS_16 0
#else
#define HAS_16 __builtin_cpu_supports("avx512f")
#endif
#define HAS_8 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define RUN(name, ...) HAS_16 ? name##_on_16(__VA_ARGS__) : HAS_8 ? name##_on_8(__VA_ARGS__) : (void)0
#else
#define RUN(name, ...) (void)0
#endif

/* Sets to (clients, samples, height, width, outputs) to the convolutions of `from`; `biases` may be null. */
void wirelessfl_convolve(const convolution *of, const float *from, const float *kernels, const float *biases, float *to,
                         float *room) {
    RUN(convolve, of, from, kernels, biases, to, room);
}

/* Sets `gradients`, laid out as the kernels are, to the derivatives by the kernels, of the images and the derivatives by outputs. */
void wirelessfl_kernel_gradients(const convolution *of, const float *from, const float *deltas, float *gradients, float *room) {
    RUN(kernel_gradients, of, from, deltas, gradients, room);
}
