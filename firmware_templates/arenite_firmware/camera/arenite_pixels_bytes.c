/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_pixels.h"

void arenite_pixels_bytes(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                          uint32_t first, uint32_t count, uint8_t *out) {
    (void)chroma;
    row += first * pixels->step;
    for (; count > 0; count--, row += pixels->step) {
        for (uint32_t c = 0; c < pixels->channels; c++) {
            *out++ = row[pixels->at[c]];
        }
    }
}
