/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_pixels.h"

#define MATRIX_BITS 14

void arenite_pixels_ycc(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                        uint32_t first, uint32_t count, uint8_t *out) {
    for (uint32_t x = first; x < first + count; x++) {
        const uint8_t *pair = chroma + (x >> 1) * pixels->pair_step;
        const int32_t y = row[x * pixels->step + pixels->at[0]];
        const int32_t cb = pair[pixels->at[1]], cr = pair[pixels->at[2]];
        const int32_t *m = pixels->matrix;
        for (uint32_t c = 0; c < 3; c++, m += 4) {
            const int32_t sum = m[0] * y + m[1] * cb + m[2] * cr + m[3] + (1 << (MATRIX_BITS - 1));
            const int32_t value = sum < 0 ? 0 : sum >> MATRIX_BITS;
            *out++ = (uint8_t)(value > 255 ? 255 : value);
        }
    }
}
