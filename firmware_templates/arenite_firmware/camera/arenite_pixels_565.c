/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_pixels.h"

void arenite_pixels_565(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                        uint32_t first, uint32_t count, uint8_t *out) {
    const uint32_t high = pixels->at[0];
    (void)chroma;
    row += first * 2u;
    for (; count > 0; count--, row += 2) {
        const uint32_t word = (uint32_t)row[high] << 8 | row[1u - high];
        const uint32_t red = word >> 11, green = word >> 5 & 0x3Fu, blue = word & 0x1Fu;
        *out++ = (uint8_t)(red << 3 | red >> 2);
        *out++ = (uint8_t)(green << 2 | green >> 4);
        *out++ = (uint8_t)(blue << 3 | blue >> 2);
    }
}
