/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_row.h"

#if defined(__aarch64__)
#include "arenite_neon.h"

#define QUARTERS 4 /* of a block: vectors of [4 channels][4 rows] */
#define BLOCK_GROUP (ARENITE_BLOCK * ARENITE_GROUP)

static inline int8x16_t load(const int8_t *bytes, int32_t count) {
    if (count >= ARENITE_BLOCK) {
        return vld1q_s8(bytes);
    }
    int8_t all[ARENITE_BLOCK] = {0};
    for (int32_t i = 0; i < count; i++) {
        all[i] = bytes[i];
    }
    return vld1q_s8(all);
}

/* sums[q] += a group of rows of input column x times their weights. */
static inline void add_group(const arenite_depthwise_row_t *r, int32_t group, int32_t x, int32_t channel,
                             const int8_t *w, int32x4_t *sums) {
    const int32_t ky = ARENITE_GROUP * group, count = r->params->in_c - channel;
    const int8x16_t r0 = load(arenite_depthwise_pixel(r, ky, x) + channel, count);
    const int8x16_t r1 = load(arenite_depthwise_pixel(r, ky + 1, x) + channel, count);
    const int8x16_t r2 = load(arenite_depthwise_pixel(r, ky + 2, x) + channel, count);
    const int8x16_t r3 = load(arenite_depthwise_pixel(r, ky + 3, x) + channel, count);
    const int8x16x2_t pairs01 = vzipq_s8(r0, r1), pairs23 = vzipq_s8(r2, r3);
    for (int half = 0; half < 2; half++) {
        const int16x8x2_t fours =
            vzipq_s16(vreinterpretq_s16_s8(pairs01.val[half]), vreinterpretq_s16_s8(pairs23.val[half]));
        for (int i = 0; i < 2; i++) {
            const int q = 2 * half + i;
            sums[q] = arenite_dot_neon(sums[q], vreinterpretq_s8_s16(fours.val[i]), vld1q_s8(w + 16 * q));
        }
    }
}

/* One block of channels of output pixel `pixel`. */
static inline void run(const arenite_depthwise_row_t *r, int32_t pixel, int32_t channel, const int8_t *w) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    int32_t x = pixel * p->stride_w - p->pad_left;
    int32x4_t sums[QUARTERS];
    for (int q = 0; q < QUARTERS; q++) {
        sums[q] = vld1q_s32(p->bias + channel + 4 * q);
    }
    for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
        for (int32_t g = 0; g < r->groups; g++, w += BLOCK_GROUP) {
            add_group(r, g, x, channel, w, sums);
        }
    }
    arenite_finish_neon(sums, p->multiplier + channel, p->shift + channel, p->out_zero_point,
                        r->out + (ptrdiff_t)pixel * p->in_c + channel, p->in_c - channel, p->act_min,
                        p->act_max);
}

void arenite_depthwise_row_neon(const arenite_depthwise_row_t *r) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    const int8_t *w = p->weights;
    for (int32_t channel = 0; channel < p->in_c; channel += ARENITE_BLOCK) {
        for (int32_t pixel = 0; pixel < p->out_w; pixel++) {
            run(r, pixel, channel, w);
        }
        w += (ptrdiff_t)p->kernel_w * r->groups * BLOCK_GROUP;
    }
}
#endif
