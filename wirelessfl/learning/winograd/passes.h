/* Convolutions of one kind of processor; the including file has defined its vectors, see there. */

#include "../../kernels/transposition.h"

#define WIDEST (REGISTERS / 8) /* vectors beside each other in a product: ROWS of them stay in the registers */
#define TRANSFORM(name) FUNCTION void NAMED(name)
#include "transforms.h"
#undef TRANSFORM

/* Sets out (rows, across vectors), or adds to it, left (rows, depth) times right (depth, across vectors). What is added comes in
 * at the end: one running sum over all tiles would lose ten times as much to rounding. */
FUNCTION void NAMED(multiply_block)(const int rows, const int across, const int adds, int64_t depth, const float *restrict left,
                                    int64_t down, int64_t along, const float *restrict right, int64_t width, float *restrict out) {
    vector sums[ROWS][WIDEST];
    for (int row = 0; row < rows; row++)
        for (int at = 0; at < across; at++) sums[row][at] = ALL(0);
    for (int64_t k = 0; k < depth; k++, left += along, right += width) {
        vector beside[WIDEST];
        for (int at = 0; at < across; at++) beside[at] = LOAD(right + at * VECTOR);
        for (int row = 0; row < rows; row++) {
            const vector value = ALL(left[row * down]);
            for (int at = 0; at < across; at++) sums[row][at] = MULTIPLY_ADD(value, beside[at], sums[row][at]);
        }
    }
    for (int row = 0; row < rows; row++)
        for (int at = 0; at < across; at++) {
            float *place = out + row * width + at * VECTOR;
            STORE(place, adds ? LOAD(place) + sums[row][at] : sums[row][at]);
        }
}

/* The same for out (height, width), width a multiple of VECTOR; rows up to the next multiple of `rows` are written too. */
FUNCTION void NAMED(multiply)(const int rows, int adds, int64_t height, int64_t depth, int64_t width, const float *left,
                              int64_t down, int64_t along, const float *right, float *out) {
    for (int64_t column = 0; column < width; column += WIDEST * VECTOR)
        for (int64_t row = 0; row < height; row += rows) {
            const float *from = left + row * down, *beside = right + column;
            float *to = out + row * width + column;
            switch ((width - column) / VECTOR) {
            case 1: NAMED(multiply_block)(rows, 1, adds, depth, from, down, along, beside, width, to); break;
#if REGISTERS > 16
            case 2: NAMED(multiply_block)(rows, 2, adds, depth, from, down, along, beside, width, to); break;
            case 3: NAMED(multiply_block)(rows, 3, adds, depth, from, down, along, beside, width, to); break;
#endif
            default: NAMED(multiply_block)(rows, WIDEST, adds, depth, from, down, along, beside, width, to);
            }
        }
}

/* Planes (36, tiles, channels) of `count` tiles from `first` on: of pixels, or of derivatives by outputs; zeros off the image, and
 * in tiles that fill up the last ROWS. */
FUNCTION void NAMED(tiles_in)(const int r, const int of_outputs, const images *of, const float *numbers, tiling by,
                              int64_t first, int64_t count, int64_t channels, const float *zeros, float *planes, int64_t plane) {
    const int side = of_outputs ? 7 - r : 6;
    for (int64_t tile = 0; tile < count; tile++) {
        const place at = place_of(by, first + tile, 7 - r);
        const int64_t top = at.row - (of_outputs ? 0 : of->above), left = at.column - (of_outputs ? 0 : of->beside);
        const float *image = numbers + at.sample * of->sample, *pixels[36];
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                const int inside = top + y >= 0 && top + y < of->height && left + x >= 0 && left + x < of->width;
                pixels[y * side + x] = inside ? image + (top + y) * of->row + (left + x) * of->column : zeros;
            }
        for (int64_t channel = 0; channel < channels; channel += VECTOR) {
            vector from[36], half[36], to[36];
            for (int pixel = 0; pixel < side * side; pixel++) from[pixel] = LOAD(pixels[pixel] + channel);
            for (int x = 0; x < side; x++)
                of_outputs ? NAMED(of_outputs)(r, from + x, side, half + x, side)
                           : NAMED(of_pixels)(from + x, side, half + x, side);
            for (int y = 0; y < 6; y++)
                of_outputs ? NAMED(of_outputs)(r, half + y * side, 1, to + 6 * y, 1)
                           : NAMED(of_pixels)(half + y * side, 1, to + 6 * y, 1);
            for (int point = 0; point < 36; point++) STORE(planes + point * plane + tile * channels + channel, to[point]);
        }
    }
    for (int64_t number = count * channels; number < (count + ROWS - 1) / ROWS * ROWS * channels; number++)
        for (int point = 0; point < 36; point++) planes[point * plane + number] = 0;
}

/* Outputs of `count` tiles from `first` on, of their planes (36, tiles, channels), with biases. */
FUNCTION void NAMED(tiles_out)(const int r, const images *of, float *numbers, tiling by, int64_t first, int64_t count,
                               int64_t channels, const float *planes, int64_t plane, const float *biases) {
    const int side = 7 - r;
    for (int64_t tile = 0; tile < count; tile++) {
        const place at = place_of(by, first + tile, side);
        float *image = numbers + at.sample * of->sample + at.row * of->row + at.column * of->column;
        for (int64_t channel = 0; channel < channels; channel += VECTOR) {
            vector from[36], half[36], to[36];
            for (int point = 0; point < 36; point++) from[point] = LOAD(planes + point * plane + tile * channels + channel);
            for (int x = 0; x < 6; x++) NAMED(to_outputs)(r, from + x, 6, half + x, 6);
            for (int y = 0; y < side; y++) NAMED(to_outputs)(r, half + 6 * y, 1, to + side * y, 1);
            const vector bias = biases ? LOAD(biases + channel) : ALL(0);
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++)
                    if (at.row + y < of->height && at.column + x < of->width)
                        STORE(image + y * of->row + x * of->column + channel, to[side * y + x] + bias);
        }
    }
}

/* Rows (rows, columns) as columns `apart`; rows, a multiple of 8, are `row` numbers apart. */
FUNCTION void NAMED(as_columns)(const float *from, int64_t row, int64_t rows, int64_t columns, float *to, int64_t apart) {
    const int64_t whole = columns / 8 * 8;
    for (int64_t first = 0; first < rows; first += 8) {
        const float *numbers = from + first * row;
        for (int64_t column = 0; column < whole; column += 8) {
            __m256 eight[8];
            for (int at = 0; at < 8; at++) eight[at] = _mm256_loadu_ps(numbers + at * row + column);
            NAMED(transpose)(eight);
            for (int at = 0; at < 8; at++) _mm256_storeu_ps(to + (column + at) * apart + first, eight[at]);
        }
        for (int64_t column = whole; column < columns; column++)
            for (int at = 0; at < 8; at++) to[column * apart + first + at] = numbers[at * row + column];
    }
}

/* Planes (36, inputs, outputs) of the kernels between all inputs and `outputs` outputs. */
FUNCTION void NAMED(kernels_in)(const int r, const kernels *at, const float *numbers, int64_t outputs, float *by_place,
                                float *planes, int64_t plane) {
    const int64_t places = r * r;
    for (int64_t first = 0; first < at->inputs; first += GROUP) {
        const float *kernel = numbers + first * at->input;
        if (at->turned) /* kernels of an input lie side by side, and their places from the last to the first */
            for (int64_t input = 0; input < GROUP; input++)
                NAMED(as_columns)(kernel + input * at->input, at->output, outputs, places,
                                  by_place + (input * places + places - 1) * outputs, -outputs);
        else NAMED(as_columns)(kernel, at->output, outputs, GROUP * places, by_place, outputs);
        for (int64_t input = 0; input < GROUP; input++)
            for (int64_t output = 0; output < outputs; output += VECTOR) {
                vector from[25], half[30], to[36];
                for (int64_t place = 0; place < places; place++)
                    from[place] = LOAD(by_place + (input * places + place) * outputs + output);
                for (int x = 0; x < r; x++) NAMED(of_kernel)(r, from + x, r, half + x, r);
                for (int y = 0; y < 6; y++) NAMED(of_kernel)(r, half + y * r, 1, to + 6 * y, 1);
                float *out = planes + (first + input) * outputs + output;
                for (int point = 0; point < 36; point++) STORE(out + point * plane, to[point]);
            }
    }
}

/* The derivatives by those kernels, of their planes. */
FUNCTION void NAMED(kernels_out)(const int r, const kernels *at, float *numbers, int64_t outputs, float *by_place,
                                 const float *planes, int64_t plane) {
    const int64_t places = r * r;
    for (int64_t first = 0; first < at->inputs; first += GROUP) {
        for (int64_t input = 0; input < GROUP; input++)
            for (int64_t output = 0; output < outputs; output += VECTOR) {
                vector from[36], half[30], to[25];
                const float *in = planes + (first + input) * outputs + output;
                for (int point = 0; point < 36; point++) from[point] = LOAD(in + point * plane);
                for (int x = 0; x < 6; x++) NAMED(to_kernel)(r, from + x, 6, half + x, 6);
                for (int y = 0; y < r; y++) NAMED(to_kernel)(r, half + 6 * y, 1, to + r * y, 1);
                for (int64_t place = 0; place < places; place++)
                    STORE(by_place + (input * places + place) * outputs + output, to[place]);
            }
        NAMED(as_columns)(by_place, outputs, GROUP * places, outputs, numbers + first * at->input, at->output);
    }
}

/* Outputs of samples from `present` on. */
FUNCTION void NAMED(absent_out)(const images *of, int64_t present, int64_t samples, int64_t channels, float *numbers) {
    for (int64_t sample = present; sample < samples; sample++)
        for (int64_t y = 0; y < of->height; y++)
            for (int64_t x = 0; x < of->width; x++)
                NAMED(zeros)(numbers + sample * of->sample + y * of->row + x * of->column, channels);
}

/* Outputs of all clients, panel by panel: the kernels of a panel are transformed once, the tiles once for each panel. */
FUNCTION void NAMED(convolve_of)(const int r, const convolution *of, const float *from, const float *kernels, const float *biases,
                                 float *to, float *room) {
    const planes at = planes_in(of, room);
    for (int64_t client = 0; client < of->clients; client++) {
        const int64_t present = present_of(of, client);
        const tiling by = tiles_of(of, present, 7 - r);
        NAMED(absent_out)(&of->to, present, of->samples, of->kernels.outputs, to + client * of->to.client);
        for (int64_t output = 0; output < of->kernels.outputs && present; output += of->panel) {
            const int64_t outputs = smaller(of->panel, of->kernels.outputs - output);
            const float *of_panel = kernels + client * of->kernels.client + output * of->kernels.output;
            const float *added = biases ? biases + client * of->kernels.biases + output : 0;
            NAMED(kernels_in)(r, &of->kernels, of_panel, outputs, at.by_place, at.kernels, at.kernel_plane);
            for (int64_t first = 0; first < by.tiles; first += of->block) {
                const int64_t count = smaller(of->block, by.tiles - first);
                const float *pixels = from + client * of->from.client;
                NAMED(tiles_in)(r, 0, &of->from, pixels, by, first, count, of->kernels.inputs, at.zeros, at.inputs, at.input_plane);
                for (int point = 0; point < 36; point++)
                    NAMED(multiply)(ROWS, 0, count, of->kernels.inputs, outputs, at.inputs + point * at.input_plane, of->kernels.inputs,
                                    1, at.kernels + point * at.kernel_plane, at.outputs + point * at.output_plane);
                float *images = to + client * of->to.client + output;
                NAMED(tiles_out)(r, &of->to, images, by, first, count, outputs, at.outputs, at.output_plane, added);
            }
        }
    }
}

/* Derivatives by the kernels of one client, summed over the tiles of `by`. */
FUNCTION void NAMED(sum_gradients)(const int r, const convolution *of, tiling by, const float *from, const float *deltas,
                                   float *gradients, planes at) {
    for (int64_t output = 0; output < of->kernels.outputs; output += of->panel) {
        const int64_t outputs = smaller(of->panel, of->kernels.outputs - output);
        for (int64_t first = 0; first < by.tiles; first += of->block) {
            const int64_t count = smaller(of->block, by.tiles - first);
            NAMED(tiles_in)(r, 0, &of->from, from, by, first, count, of->kernels.inputs, at.zeros, at.inputs, at.input_plane);
            NAMED(tiles_in)(r, 1, &of->to, deltas + output, by, first, count, outputs, at.zeros, at.outputs, at.output_plane);
            for (int point = 0; point < 36; point++)
                NAMED(multiply)(4, first > 0, of->kernels.inputs, count, outputs, at.inputs + point * at.input_plane, 1,
                                of->kernels.inputs, at.outputs + point * at.output_plane, at.kernels + point * at.kernel_plane);
        }
        float *of_panel = gradients + output * of->kernels.output;
        NAMED(kernels_out)(r, &of->kernels, of_panel, outputs, at.by_place, at.kernels, at.kernel_plane);
    }
}

/* The same of all clients, summed over their samples or for each sample. */
FUNCTION void NAMED(kernel_gradients_of)(const int r, const convolution *of, const float *from, const float *deltas,
                                         float *gradients, float *room) {
    const int64_t sums = of->kernels.sample ? of->samples : 1, samples = of->samples / sums;
    const planes at = planes_in(of, room);
    for (int64_t client = 0; client < of->clients; client++)
        for (int64_t sum = 0; sum < sums; sum++) {
            const int64_t present = smaller(samples, present_of(of, client) - sum);
            float *own = gradients + client * of->kernels.client + sum * of->kernels.sample;
            if (present > 0)
                NAMED(sum_gradients)(r, of, tiles_of(of, present, 7 - r), from + client * of->from.client + sum * of->from.sample,
                                     deltas + client * of->to.client + sum * of->to.sample, own, at);
            else NAMED(zeros)(own, of->kernels.inputs * of->kernels.outputs * r * r);
        }
}

ALONE void NAMED(convolve)(const convolution *of, const float *from, const float *kernels, const float *biases, float *to,
                           float *room) {
    of->size == 3 ? NAMED(convolve_of)(3, of, from, kernels, biases, to, room)
                  : NAMED(convolve_of)(5, of, from, kernels, biases, to, room);
}

ALONE void NAMED(kernel_gradients)(const convolution *of, const float *from, const float *deltas, float *gradients, float *room) {
    of->size == 3 ? NAMED(kernel_gradients_of)(3, of, from, deltas, gradients, room)
                  : NAMED(kernel_gradients_of)(5, of, from, deltas, gradients, room);
}

#undef WIDEST
