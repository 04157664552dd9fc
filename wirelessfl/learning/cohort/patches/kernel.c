/* Patches under the kernels of convolutions: copied side by side, and added up where they overlap.
 *
 * Nothing but copies and sums of two numbers at a time, in the order of portable.py: all processors round alike. */

#include "../../../kernels/processors.h"

/* Along each axis of a view its length, and how many numbers its neighbours are apart. */
typedef struct {
    int64_t size[7], step[7];
} view;

INLINED void copy(const float *restrict images, const view *from, float *restrict out, const int64_t length, const int64_t step) {
    const int64_t *size = from->size, *steps = from->step;
    for (int64_t client = 0; client < size[0]; client++)
        for (int64_t sample = 0; sample < size[1]; sample++)
            for (int64_t row = 0; row < size[2]; row++)
                for (int64_t column = 0; column < size[3]; column++) {
                    const float *patch = images + client * steps[0] + sample * steps[1] + row * steps[2] + column * steps[3];
                    for (int64_t below = 0; below < size[4]; below++)
                        for (int64_t beside = 0; beside < size[5]; beside++, out += length)
                            for (int64_t at = 0; at < length; at++)
                                out[at] = patch[below * steps[4] + beside * steps[5] + at * step];
                }
}

/* Copies the view (clients, samples, rows, columns, kernel rows, runs in a kernel row, numbers in a run) of images. */
FOR_EACH_PROCESSOR void wirelessfl_copy_patches(const float *restrict images, const view *from, float *restrict out) {
    const int64_t length = from->size[6], step = from->step[6];
    if (step != 1) copy(images, from, out, length, step);
    else if (length == 8) copy(images, from, out, 8, 1);
    else if (length == 16) copy(images, from, out, 16, 1);
    else if (length == 64) copy(images, from, out, 64, 1);
    else copy(images, from, out, length, 1);
}

INLINED void add_up(const float *restrict values, const view *to, int64_t rows, int64_t columns, const int64_t *row_under,
                    const int64_t *column_under, float *restrict images, const int64_t channels) {
    const int64_t *size = to->size, *steps = to->step, across = size[5] * channels, patch = size[4] * across;
    for (int64_t client = 0; client < size[0]; client++)
        for (int64_t sample = 0; sample < size[1]; sample++, values += rows * columns * patch)
            for (int64_t y = 0; y < size[2]; y++)
                for (int64_t x = 0; x < size[3]; x++) {
                    float *restrict pixel = images + client * steps[0] + sample * steps[1] + y * steps[2] + x * steps[3];
                    for (int64_t at = 0; at < channels; at++) pixel[at] = 0;
                    for (int64_t below = 0; below < size[4]; below++) {
                        const int64_t row = row_under[y * size[4] + below];
                        if (row < 0) continue;
                        for (int64_t beside = 0; beside < size[5]; beside++) {
                            const int64_t column = column_under[x * size[5] + beside];
                            if (column < 0) continue;
                            const float *restrict value = values + (row * columns + column) * patch + below * across + beside * channels;
                            for (int64_t at = 0; at < channels; at++) pixel[at] += value[at];
                        }
                    }
                }
}

/* Sets the view (clients, samples, height, width, kernel rows, kernel columns, channels) of images to the sums of the values
 * (clients, samples, rows, columns, kernel rows, kernel columns, channels) of the patches that cover each pixel. Of the
 * view's steps the last three are not used: channels lie side by side. row_under (height, kernel rows) is the row of the
 * patch of which that row of the kernel covers the pixel, -1 where there is none; column_under likewise. */
FOR_EACH_PROCESSOR void wirelessfl_add_patches(const float *restrict values, const view *to, int64_t rows, int64_t columns,
                                               const int64_t *row_under, const int64_t *column_under, float *restrict images) {
    const int64_t channels = to->size[6];
    if (channels == 16) add_up(values, to, rows, columns, row_under, column_under, images, 16);
    else if (channels == 32) add_up(values, to, rows, columns, row_under, column_under, images, 32);
    else if (channels == 64) add_up(values, to, rows, columns, row_under, column_under, images, 64);
    else add_up(values, to, rows, columns, row_under, column_under, images, channels);
}
