/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_dsp_clamp.h"

#include "arenite_dsp.h"
#include "arenite_fixed_point.h"

#if ARENITE_HAS_DSP

/* Four bytes at a time: SSUB8 says of each difference whether it is negative, SEL chooses by that. */
static int8_t *clamp_words(int8_t *out, const int8_t *end, int32_t low, int32_t high) {
    const uint32_t lows = (uint32_t)(uint8_t)low * 0x01010101u, highs = (uint32_t)(uint8_t)high * 0x01010101u;
    for (; end - out >= 4; out += 4) {
        uint32_t word = arenite_dsp_load(out), difference;
        __asm__("ssub8 %1, %0, %2\n\t"
                "sel %0, %0, %2\n\t"
                "ssub8 %1, %3, %0\n\t"
                "sel %0, %0, %3\n\t"
                : "+&r"(word), "=&r"(difference)
                : "r"(lows), "r"(highs)
                : "cc");
        __builtin_memcpy(out, &word, sizeof word);
    }
    return out;
}

#else

static int8_t *clamp_words(int8_t *out, const int8_t *end, int32_t low, int32_t high) {
    (void)end, (void)low, (void)high;
    return out;
}

#endif

void arenite_dsp_clamp(int8_t *out, int32_t count, int32_t low, int32_t high) {
    const int8_t *end = out + count;
    if (low <= INT8_MIN && high >= INT8_MAX) {
        return;
    }
    for (out = clamp_words(out, end, low, high); out < end; out++) {
        *out = (int8_t)arenite_clamp(*out, low, high);
    }
}
