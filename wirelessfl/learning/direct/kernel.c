/* Convolutions of many clients by direct sums: forward, and their derivatives by images and by kernels.
 *
 * Where the kernels lie on the images is a table of offsets, so that no patches are copied. Images that need padding, or whose
 * pixels would drive each other from the cache, are copied side by side, those of some clients at a time. All three are sums of
 * products of a number of one operand with some vectors of another. Products are added one after the other with a single rounding,
 * up to a number of them; then these sums are added up. So all processors round alike. On a processor without instructions for
 * that nothing is written. */

#include "../../kernels/processors.h"

#define PIECE 64 /* products for which what all rows are multiplied by stays in the first cache */
#define AHEAD 32 /* rows of it that are asked for before they are copied */

typedef enum { PUT, ADDED, BEGUN } mode; /* of a sum: in the place of what is there, added to it, or begun with it */

/* Where images (samples, clients, channels, height, width) lie: how many numbers neighbours along each axis are apart. */
typedef struct {
    int64_t sample, client, channel, row, column;
} steps;

/* Images with their padding, outputs (samples, rows, columns, clients, filters) and kernels (filters, channels, high, wide) with
 * their stride and dilation. Kernels and biases of clients are `client` and `biases` numbers apart; `some_clients` and of these
 * `some_samples` are taken at once: all for derivatives by the kernels, or one where these are (clients, samples, filters,
 * channels, high, wide) and not summed over the samples. Images without padding may be taken where they lie. A running
 * sum has at most `longest` products. Of client i the first counts[i] samples are present, all where `counts` is null; of others
 * outputs and derivatives are 0. */
typedef struct {
    const int64_t *counts;
    int64_t clients, samples, some_clients, some_samples;
    int64_t channels, height, width, above, beside;
    int64_t filters, rows, columns;
    int64_t high, wide, down, right, below, next;
    int64_t client, biases, by_sample, in_place, longest;
    steps images;
} convolution;

/* Some clients and samples of a convolution. */
typedef struct {
    int64_t client, clients, sample, samples;
} part;

/* Room for the images of a part, with padding and zero elsewhere, and for the kernels of its clients, `kernel` numbers each.
 * `pixels` is where a kernel begins at each position of some samples, `taps` where its numbers are from there on, in the order
 * (high, wide, channels), with so many `lanes` for the channels; `outputs` is where the outputs are, and `rows` where those of a
 * product. Kernels are in panels of so many filters, `order` is where the numbers (channels, high, wide) of a filter are in them.
 * `packed` is room for PIECE rows of a panel of the derivatives by the outputs, and for a panel of those by the kernels. */
typedef struct {
    int64_t positions, places, lanes, kernel, panel, in_place;
    steps images;
    int64_t *pixels, *outputs, *taps, *order, *rows;
    float *room, *kernels, *packed;
} tables;

/* The tables in `room`, with so many lanes for the channels, and at most `widest` filters, two vectors, in a panel. */
static tables tables_in(const convolution *of, int64_t lanes, int64_t widest, void *room) {
    const int64_t width = of->width + 2 * of->beside, image = (of->height + 2 * of->above) * width * lanes;
    tables at = {.positions = of->rows * of->columns, .places = of->high * of->wide, .lanes = lanes};
    at.kernel = at.places * lanes * of->filters;
    at.panel = of->filters % widest ? LANES : widest;
    at.in_place = of->in_place && lanes == of->channels;
    at.images = at.in_place ? of->images : (steps){image, of->some_samples * image, 1, width * lanes, lanes};
    const int64_t taps = at.places * lanes, positions = of->some_samples * at.positions;
    at.pixels = room;
    at.outputs = at.pixels + positions;
    at.taps = at.outputs + positions;
    at.order = at.taps + taps;
    at.rows = at.order + taps;
    at.room = aligned((float *)(at.rows + larger(taps, of->filters)));
    at.kernels = aligned(at.room + (at.in_place ? 0 : of->some_clients * of->some_samples * image));
    at.packed = aligned(at.kernels + of->some_clients * at.kernel);
    int64_t *pixel = at.pixels, *output = at.outputs, *along = at.taps;
    for (int64_t sample = 0; sample < of->some_samples; sample++)
        for (int64_t row = 0; row < of->rows; row++)
            for (int64_t column = 0; column < of->columns; column++)
                *pixel++ = sample * at.images.sample + row * of->down * at.images.row + column * of->right * at.images.column;
    for (int64_t position = 0; position < positions; position++) *output++ = position * of->clients * of->filters;
    for (int64_t row = 0; row < of->high; row++)
        for (int64_t column = 0; column < of->wide; column++)
            for (int64_t lane = 0; lane < lanes; lane++)
                *along++ = row * of->below * at.images.row + column * of->next * at.images.column + lane * at.images.channel;
    for (int64_t tap = 0; tap < taps; tap++) at.order[tap % lanes * at.places + tap / lanes] = tap * at.panel;
    if (of->above || of->beside)
        for (float *number = at.room; number < at.kernels; number++) *number = 0;
    return at;
}

/* Samples of a part that are present, of one of its clients. */
INLINED int64_t present_in(const convolution *of, part some, int64_t client) {
    if (!of->counts) return some.samples;
    return larger(0, smaller(of->counts[some.client + client] - some.sample, some.samples));
}

/* Images of a part that lie `there`, copied to where they lie `here`; those of absent samples where `all` are. */
INLINED void copy_images(const convolution *of, part some, const int all, const float *restrict from, steps there,
                         float *restrict to, steps here, const int64_t channels) {
    for (int64_t sample = 0; sample < some.samples; sample++)
        for (int64_t y = 0; y < of->height; y++)
            for (int64_t client = 0; client < some.clients; client++) {
                if (!all && sample >= present_in(of, some, client)) continue;
                const float *of_row = from + sample * there.sample + client * there.client + y * there.row;
                float *row = to + sample * here.sample + client * here.client + y * here.row;
                for (int64_t x = 0; x < of->width; x++)
                    for (int64_t channel = 0; channel < channels; channel++)
                        row[x * here.column + channel * here.channel] = of_row[x * there.column + channel * there.channel];
            }
}

static void copy(const convolution *of, part some, const int all, const float *from, steps there, float *to, steps here) {
    if (there.channel == 1 && here.channel == 1 && of->channels % LANES == 0) {
        there.channel = here.channel = 1; /* known as it is compiled */
        copy_images(of, some, all, from, there, to, here, of->channels / LANES * LANES);
    } else if (of->channels == 1) copy_images(of, some, all, from, there, to, here, 1); /* else a call for each pixel */
    else if (of->channels == 3) copy_images(of, some, all, from, there, to, here, 3);
    else copy_images(of, some, all, from, there, to, here, of->channels);
}

/* Where images of a part begin, of those that begin at `images`. */
INLINED int64_t images_of(const convolution *of, part some) {
    return some.sample * of->images.sample + some.client * of->images.client;
}

INLINED float *without_padding(const convolution *of, const tables *at) {
    return at->room + of->above * at->images.row + of->beside * at->images.column;
}

/* The images of a part that are present, with padding. */
static const float *images_in(const convolution *of, const tables *at, const float *from, part some) {
    if (at->in_place) return from + images_of(of, some);
    copy(of, some, 0, from + images_of(of, some), of->images, without_padding(of, at), at->images);
    return at->room;
}

static void images_out(const convolution *of, const tables *at, float *to, part some) {
    if (!at->in_place) copy(of, some, 1, without_padding(of, at), at->images, to + images_of(of, some), of->images);
}

/* Where in outputs (samples, rows, columns, clients, filters) those of a client of a part begin. */
INLINED int64_t outputs_of(const convolution *of, part some, int64_t client) {
    return (some.sample * of->rows * of->columns * of->clients + some.client + client) * of->filters;
}

/* The part that begins at a client and a sample, empty behind the last client. */
INLINED part part_from(const convolution *of, int64_t client, int64_t sample) {
    const int64_t clients = larger(0, smaller(of->some_clients, of->clients - client));
    return (part){client, clients, sample, smaller(of->some_samples, of->samples - sample)};
}

/* The part behind another: all samples of some clients, then those of others. */
INLINED part next_part(const convolution *of, part some) {
    const int64_t sample = some.sample + some.samples;
    return sample < of->samples ? part_from(of, some.client, sample) : part_from(of, some.client + some.clients, 0);
}

/* The kernels of a client as panels (high, wide, channels, filters of the panel). */
static void kernels_in(const convolution *of, const tables *at, const float *numbers, float *panels) {
    const int64_t channels = of->channels, taps = at->places * channels, panel = at->panel;
    for (int64_t first = 0; first < of->filters; first += panel, numbers += panel * taps, panels += panel * taps)
        for (int64_t channel = 0; channel < channels; channel++)
            for (int64_t place = 0; place < at->places; place++)
                for (int64_t filter = 0; filter < panel; filter++)
                    panels[(place * channels + channel) * panel + filter] = numbers[filter * taps + channel * at->places + place];
}

/* The kernels of a client as (high, wide, filters, lanes), zero where there is no channel. */
static void turned_kernels_in(const convolution *of, const tables *at, const float *numbers, float *kernels) {
    for (int64_t filter = 0; filter < of->filters; filter++, numbers += of->channels * at->places)
        for (int64_t place = 0; place < at->places; place++) {
            float *restrict of_place = kernels + (place * of->filters + filter) * at->lanes;
            for (int64_t lane = 0; lane < at->lanes; lane++)
                of_place[lane] = lane < of->channels ? numbers[lane * at->places + place] : 0;
        }
}

#define PASSES "../learning/direct/passes.h"
#include "../../kernels/vectors.h"

/* Sets `to` to the outputs; `biases` may be null. */
void wirelessfl_direct_convolution(const convolution *of, const float *from, const float *kernels, const float *biases, float *to,
                                  void *room) {
    RUN(convolve, of, from, kernels, biases, to, room);
}

/* Sets `to` to the derivatives by the images, of those by the outputs. */
void wirelessfl_direct_image_derivatives(const convolution *of, const float *deltas, const float *kernels, float *to, void *room) {
    RUN(by_images, of, deltas, kernels, to, room);
}

/* Sets `to` to the derivatives by the kernels, of the images and the derivatives by the outputs. */
void wirelessfl_direct_kernel_derivatives_by_pieces(const convolution *of, const float *from, const float *deltas, float *to, void *room) {
    RUN(by_kernels, of, from, deltas, to, room);
}
