/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for MVE (Helium) share: requantisation, copies. Arithmetic as in
 * arenite_fixed_point.h.
 *
 * VQRDMULH is arenite_doubling_high_mul, as no multiplier is INT32_MIN. VRSHL rounds halves up, the reference away from
 * zero, so a negative value is moved by one first; a fused RELU clamps what would differ, and saves it.
 *
 * Blocks of 16 channels lie in the order of ARENITE_MVE_CHANNEL: two narrowings then give the bytes in channel order. */
#ifndef ARENITE_MVE_H
#define ARENITE_MVE_H

/* What holds for all channels of a layer; the generator finds it. */
typedef enum {
    ARENITE_MVE_POSITIVE = 1, /* shift < 0, and what is below the zero point is clamped */
    ARENITE_MVE_SIGNED = 2,   /* shift < 0 */
    ARENITE_MVE_ANY = 3
} arenite_mve_mode_t;

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#include <stdint.h>

#define ARENITE_MVE_BLOCK 16
/* The channel of a block whose constants and sums lie at `position`. */
#define ARENITE_MVE_CHANNEL(position) (4 * ((position) % 4) + (position) / 4)

#define ARENITE_MVE_INLINE static inline __attribute__((always_inline))

/* 4 sums by their multipliers and shifts, moved to the zero point modulo 2^32, whatever the mode. */
ARENITE_MVE_INLINE int32x4_t arenite_mve_scale(int32x4_t value, int32x4_t multiplier, int32x4_t shift,
                                               int32_t zero_point) {
    const int32x4_t zero = vdupq_n_s32(0);
    value = vqrdmulhq_s32(vshlq_s32(value, vmaxq_s32(shift, zero)), multiplier);
    shift = vminq_s32(shift, zero);
    value = vaddq_s32(value, vshrq_n_s32(vandq_s32(value, shift), 31));
    return vaddq_n_s32(vrshlq_s32(value, shift), zero_point);
}

/* Four vectors in the order of ARENITE_MVE_CHANNEL as 16 bytes in the order of channels. */
ARENITE_MVE_INLINE int8x16_t arenite_mve_narrow(int32x4_t v0, int32x4_t v1, int32x4_t v2, int32x4_t v3) {
    const int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), v0), v2);
    const int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), v1), v3);
    return vqmovntq_s16(vqmovnbq_s16(vuninitializedq_s8(), even), odd);
}

/* Copy `count` bytes; gives the end of the copy. */
ARENITE_MVE_INLINE int8_t *arenite_mve_copy(int8_t *to, const int8_t *from, int32_t count) {
    int8_t *const end = to + count;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vldrb.8 q0, [%[from]], #16\n\t"
                     "vstrb.8 q0, [%[to]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+r"(from)
                     : [count] "r"(count)
                     : "q0", "lr", "memory");
    return end;
}

/* Write `count` times the byte `value`; gives the end. */
ARENITE_MVE_INLINE int8_t *arenite_mve_fill(int8_t *to, int32_t value, int32_t count) {
    int8_t *const end = to + count;
    __asm__ volatile("vdup.8 q0, %[value]\n\t"
                     "wlstp.8 lr, %[count], 2f\n"
                     "1:\n\t"
                     "vstrb.8 q0, [%[to]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to)
                     : [value] "r"(value), [count] "r"(count)
                     : "q0", "lr", "memory");
    return end;
}

#endif
#endif
