/* Normal numbers from the ChaCha20 stream, added to the rows of a matrix. */

#include "../kernels/normals.h"

/* out[r][j] += scale[r] * normal j of the stream of row r.
 *
 * out: rows of `columns` floats, `stride` floats apart; key: of all rows; nonces: three words a row. */
FOR_EACH_PROCESSOR
void wirelessfl_add_normals(float *restrict out, int64_t rows, int64_t stride, int64_t columns,
                            const float *restrict scale, const uint32_t key[8], const uint32_t *restrict nonces) {
    for (int64_t r = 0; r < rows; r++) {
        if (scale[r] == 0.0f) continue;
        for (int64_t done = 0; done < columns; done += TILE) {
            float normals[TILE];
            standard_normals(normals, key, done / TILE, nonces + 3 * r);
            float *here = out + r * stride + done;
            if (columns - done >= TILE)
                for (int i = 0; i < TILE; i++) here[i] += scale[r] * normals[i];
            else
                for (int64_t i = 0; i < columns - done; i++) here[i] += scale[r] * normals[i];
        }
    }
}
