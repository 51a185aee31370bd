/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_tile.h"

#include "arenite_fixed_point.h"
#include "arenite_host_isa.h"

/* acc[l] += 4 input bytes times the weights of channel l. */
static void add_word(const int8_t *x, const int8_t *w, uint32_t *acc) {
    for (int32_t l = 0; l < ARENITE_BLOCK; l++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < ARENITE_WORD; i++) {
            sum += x[i] * w[ARENITE_WORD * l + i];
        }
        acc[l] += (uint32_t)sum;
    }
}

static void finish(const arenite_conv_2d_s8_t *p, const uint32_t *acc, int32_t channel, int8_t *out) {
    for (int32_t l = 0; l < ARENITE_BLOCK && channel + l < p->out_c; l++) {
        out[channel + l] = arenite_to_byte((int32_t)acc[l], p->multiplier[channel + l], p->shift[channel + l],
                                           p->out_zero_point, p->act_min, p->act_max);
    }
}

static void tile_plain(const arenite_conv_tile_t *t) {
    const arenite_conv_2d_s8_t *p = t->params;
    for (int32_t pixel = 0; pixel < t->pixels; pixel++) {
        const int8_t *w = p->weights;
        for (int32_t channel = 0; channel < p->out_c; channel += ARENITE_BLOCK) {
            uint32_t acc[ARENITE_BLOCK];
            for (int32_t l = 0; l < ARENITE_BLOCK; l++) {
                acc[l] = (uint32_t)p->bias[channel + l];
            }
            for (int32_t s = 0; s < t->segments; s++) {
                const int8_t *x = t->pointers[s * t->pixels + pixel];
                for (int32_t k = 0; k < t->words; k++, w += ARENITE_BLOCK * ARENITE_WORD) {
                    add_word(x + ARENITE_WORD * k, w, acc);
                }
            }
            finish(p, acc, channel, t->out + pixel * p->out_c);
        }
    }
}

int32_t arenite_conv_tile_pixels(const arenite_conv_2d_s8_t *params) {
    const int is_large = arenite_host_isa() == ARENITE_ISA_AVX512 && params->out_c <= 2 * ARENITE_BLOCK;
    return is_large ? ARENITE_LARGE_TILE_PIXELS : ARENITE_TILE_PIXELS;
}

void arenite_conv_2d_tile(const arenite_conv_tile_t *t) {
#if defined(__x86_64__)
    const int32_t isa = arenite_host_isa();
    if (isa == ARENITE_ISA_AVX512) {
        arenite_conv_2d_tile_avx512(t);
        return;
    }
#if ARENITE_KNOWS_AVXVNNI
    if (isa == ARENITE_ISA_AVXVNNI) {
        arenite_conv_2d_tile_avxvnni(t);
        return;
    }
#endif
    if (isa == ARENITE_ISA_AVX2) {
        arenite_conv_2d_tile_avx2(t);
        return;
    }
#elif defined(__aarch64__)
    if (arenite_host_isa() == ARENITE_ISA_NEON) {
        arenite_conv_2d_tile_neon(t);
        return;
    }
#endif
    tile_plain(t);
}
