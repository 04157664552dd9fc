/* Pooling of images in channels-last memory, with or without a ReLU before it, in one pass over them.
 *
 * Numbers are added up in the order of torch: all processors round alike, and as torch does, but for the sign of a zero. */

#include <math.h>
#include <stddef.h>

#include "../../../kernels/processors.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-loop-unroll-and-jam") /* with it the loops over channels took up to twenty times as long */
#endif

enum { TILE = 4 * LANES, NONE = UINT8_MAX, MOST = NONE };

/* Images (samples, height, width, channels), and on each of them windows (rows, columns) of at most MOST places (high, wide),
 * one of them on the image at least. A place of a window lies at stride · window + step · place − padding, along rows and
 * along columns. */
typedef struct {
    int64_t samples, height, width, channels, rows, columns, high, wide, stride[2], padding[2], step[2];
} geometry;

/* A place of a window and what it meets: of a window a pixel, of a pixel a window, by where its numbers begin. */
typedef struct {
    int64_t first;
    int32_t place;
} meeting;

/* The pixels of a window, place after place. */
INLINED int pixels_of(const geometry *on, const int64_t row, const int64_t column, meeting *pixels) {
    int count = 0;
    for (int64_t below = 0; below < on->high; below++) {
        const int64_t y = on->stride[0] * row + on->step[0] * below - on->padding[0];
        if (y < 0 || y >= on->height) continue;
        for (int64_t beside = 0; beside < on->wide; beside++) {
            const int64_t x = on->stride[1] * column + on->step[1] * beside - on->padding[1];
            if (x < 0 || x >= on->width) continue;
            pixels[count++] = (meeting){(y * on->width + x) * on->channels, (int32_t)(below * on->wide + beside)};
        }
    }
    return count;
}

/* The windows that cover a pixel, one after the other. */
INLINED int windows_of(const geometry *on, const int64_t y, const int64_t x, meeting *windows) {
    int count = 0;
    for (int64_t below = on->high - 1; below >= 0; below--) {
        const int64_t down = y + on->padding[0] - on->step[0] * below, row = down / on->stride[0];
        if (down < 0 || down % on->stride[0] || row >= on->rows) continue;
        for (int64_t beside = on->wide - 1; beside >= 0; beside--) {
            const int64_t right = x + on->padding[1] - on->step[1] * beside, column = right / on->stride[1];
            if (right < 0 || right % on->stride[1] || column >= on->columns) continue;
            windows[count++] = (meeting){(row * on->columns + column) * on->channels, (int32_t)(below * on->wide + beside)};
        }
    }
    return count;
}

/* A statement for `length` channels from `at` on, until all have been; the most by a length that is known when compiled. */
#define FOR_TILES(channels, statement)                                                                          \
    do {                                                                                                        \
        int64_t at = 0;                                                                                         \
        for (; at + TILE <= (channels); at += TILE) { enum { length = TILE }; statement; }                      \
        for (; at + TILE / 2 <= (channels); at += TILE / 2) { enum { length = TILE / 2 }; statement; }          \
        const int64_t length = (channels) - at;                                                                 \
        if (length) statement;                                                                                  \
    } while (0)

INLINED void tile_of_maxima(const float *image, const meeting *pixels, const int count, const int64_t rectified,
                            float *restrict maxima, uint8_t *restrict places, const int64_t length) {
    float best[TILE];
    int32_t place[TILE];
    const int32_t none = rectified ? NONE : pixels[0].place;
    for (int64_t at = 0; at < length; at++) best[at] = rectified ? 0 : -INFINITY, place[at] = none;
    for (int i = 0; i < count; i++) {
        const float *pixel = image + pixels[i].first;
        const int32_t here = pixels[i].place;
        for (int64_t at = 0; at < length; at++) {
            const int taken = (pixel[at] > best[at]) | (pixel[at] != pixel[at]);
            best[at] = taken ? pixel[at] : best[at];
            place[at] = taken ? here : place[at];
        }
    }
    for (int64_t at = 0; at < length; at++) maxima[at] = best[at];
    for (int64_t at = 0; at < length; at++) places[at] = (uint8_t)place[at];
}

/* Of each window and channel the maximum and the place where it lies, the first one if there are several; with a ReLU, the
 * maximum of what it gives, and NONE where that is zero: there it has no derivative. */
FOR_EACH_PROCESSOR void wirelessfl_maxima(const float *images, const geometry *on, const int64_t rectified, float *maxima,
                                          uint8_t *places) {
    const int64_t channels = on->channels;
    meeting pixels[MOST];
    for (int64_t sample = 0; sample < on->samples; sample++, images += on->height * on->width * channels)
        for (int64_t row = 0; row < on->rows; row++)
            for (int64_t column = 0; column < on->columns; column++, maxima += channels, places += channels) {
                const int count = pixels_of(on, row, column, pixels);
                FOR_TILES(channels, tile_of_maxima(images + at, pixels, count, rectified, maxima + at, places + at, length));
            }
}

INLINED void tile_of_means(const float *image, const meeting *pixels, const int count, const int64_t rectified, const float places,
                           float *restrict means, const int64_t length) {
    float sum[TILE];
    for (int64_t at = 0; at < length; at++) sum[at] = 0;
    for (int i = 0; i < count; i++) {
        const float *pixel = image + pixels[i].first;
        for (int64_t at = 0; at < length; at++) sum[at] += rectified && pixel[at] <= 0 ? 0 : pixel[at];
    }
    for (int64_t at = 0; at < length; at++) means[at] = sum[at] / places;
}

/* Of each window and channel the mean over its places, those off the image counted as zeros; with a ReLU, of what it gives. */
FOR_EACH_PROCESSOR void wirelessfl_means(const float *images, const geometry *on, const int64_t rectified, float *means) {
    const int64_t channels = on->channels;
    const float places = (float)(on->high * on->wide);
    meeting pixels[MOST];
    for (int64_t sample = 0; sample < on->samples; sample++, images += on->height * on->width * channels)
        for (int64_t row = 0; row < on->rows; row++)
            for (int64_t column = 0; column < on->columns; column++, means += channels) {
                const int count = pixels_of(on, row, column, pixels);
                FOR_TILES(channels, tile_of_means(images + at, pixels, count, rectified, places, means + at, length));
            }
}

INLINED void tile_from_maxima(const float *delta, const uint8_t *places, const meeting *windows, const int count,
                              float *restrict pixel, const int64_t length) {
    float sum[TILE];
    for (int64_t at = 0; at < length; at++) sum[at] = 0;
    for (int i = 0; i < count; i++) {
        const float *of_window = delta + windows[i].first;
        const uint8_t *of_maximum = places + windows[i].first;
        const int32_t here = windows[i].place;
        for (int64_t at = 0; at < length; at++) {
            const float number = of_window[at]; /* read in any case: without a branch the loop is vectorised */
            const int32_t place = of_maximum[at];
            sum[at] += place == here ? number : 0;
        }
    }
    for (int64_t at = 0; at < length; at++) pixel[at] = sum[at];
}

/* The derivative by the images from that by the maxima, and the places where these lie. */
FOR_EACH_PROCESSOR void wirelessfl_from_maxima(const float *delta, const uint8_t *places, const geometry *on, float *images) {
    const int64_t channels = on->channels, windows = on->rows * on->columns * channels;
    meeting covers[MOST];
    for (int64_t sample = 0; sample < on->samples; sample++, delta += windows, places += windows)
        for (int64_t y = 0; y < on->height; y++)
            for (int64_t x = 0; x < on->width; x++, images += channels) {
                const int count = windows_of(on, y, x, covers);
                FOR_TILES(channels, tile_from_maxima(delta + at, places + at, covers, count, images + at, length));
            }
}

INLINED void tile_from_means(const float *delta, const float *before, const meeting *windows, const int count, const float places,
                             float *restrict pixel, const int64_t length) {
    float sum[TILE];
    for (int64_t at = 0; at < length; at++) sum[at] = 0;
    for (int i = 0; i < count; i++) {
        const float *of_window = delta + windows[i].first;
        for (int64_t at = 0; at < length; at++) sum[at] += of_window[at] / places;
    }
    for (int64_t at = 0; at < length; at++) pixel[at] = before && before[at] <= 0 ? 0 : sum[at];
}

/* The derivative by the images from that by the means; `before` are the images before a ReLU, NULL without one. */
FOR_EACH_PROCESSOR void wirelessfl_from_means(const float *delta, const float *before, const geometry *on, float *images) {
    const int64_t channels = on->channels;
    const float places = (float)(on->high * on->wide);
    meeting covers[MOST];
    for (int64_t sample = 0; sample < on->samples; sample++, delta += on->rows * on->columns * channels)
        for (int64_t y = 0; y < on->height; y++)
            for (int64_t x = 0; x < on->width; x++, images += channels) {
                const int count = windows_of(on, y, x, covers);
                FOR_TILES(channels, tile_from_means(delta + at, before ? before + at : NULL, covers, count, places, images + at, length));
                if (before) before += channels;
            }
}
