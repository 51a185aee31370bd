/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_mve_tile.h"

#include "arenite_conv_2d_mve_resident.h"
#include "arenite_mve.h"

#if defined(__ARM_FEATURE_MVE)

/* VMLADAVA adds 16 products to a core register of even number. There are seven, so six sums are made at once: of three
 * pixels and two channels, with five loads. A turn of 16 bytes is predicated, so that it may be the last part of a run; turns
 * of 32 and 48 bytes save instructions of the loop. */
#define DOT_3X2(ADD)                                                                                         \
    "vldrb.8 q0, [r7], #16\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t" ADD ".s8 r0, q0, q1\n\t"                                                     \
    "vldrb.8 q2, [r3], #16\n\t" ADD ".s8 r4, q0, q2\n\t"                                                     \
    "vldrb.8 q3, [r5], #16\n\t" ADD ".s8 r8, q0, q3\n\t"                                                     \
    "vldrb.8 q0, [r9], #16\n\t" ADD ".s8 r2, q0, q1\n\t" ADD ".s8 r6, q0, q2\n\t" ADD ".s8 r10, q0, q3\n\t"
#define DOT_2X2(ADD)                                                                                         \
    "vldrb.8 q0, [r7], #16\n\t"                                                                              \
    "vldrb.8 q1, [r1], #16\n\t" ADD ".s8 r0, q0, q1\n\t"                                                     \
    "vldrb.8 q2, [r3], #16\n\t" ADD ".s8 r4, q0, q2\n\t"                                                     \
    "vldrb.8 q0, [r9], #16\n\t" ADD ".s8 r2, q0, q1\n\t" ADD ".s8 r6, q0, q2\n\t"
#define DOT_1X4(ADD)                                                                                         \
    "vldrb.8 q0, [r1], #16\n\t"                                                                              \
    "vldrb.8 q1, [r3], #16\n\t" ADD ".s8 r0, q0, q1\n\t"                                                     \
    "vldrb.8 q2, [r5], #16\n\t" ADD ".s8 r2, q0, q2\n\t"                                                     \
    "vldrb.8 q3, [r7], #16\n\t" ADD ".s8 r4, q0, q3\n\t"                                                     \
    "vldrb.8 q1, [r9], #16\n\t" ADD ".s8 r6, q0, q1\n\t"

#define ASSIGN "vmladav"
#define ACCUMULATE "vmladava"

/* Runs, whose pointers to pixels and turns `next` puts into r1, r3, r5 and lr. WLS leaves where the last run was: its entry
 * has no turns. Sums start with the first turn, or at 0 where turns are predicated. After a run that is no multiple of a
 * turn, the weights' pointers are moved back. */
#define BY_16(clear, next, DOT, back)                                                                        \
    clear next "dlstp.8 lr, lr\n2:\n\t" DOT(ACCUMULATE) "letp lr, 2b\n\t" back next                          \
                                                        "wlstp.8 lr, lr, 3f\n\tb 2b\n3:\n\t"
#define PEELED(next, first, more)                                                                            \
    next first "sub lr, lr, #1\n\twls lr, lr, 4f\n2:\n\t" more "le lr, 2b\n4:\n\t" next                      \
               "wls lr, lr, 3f\n\tb 2b\n3:\n\t"
#define BY_32(clear, next, DOT, back)                                                                        \
    PEELED(next, DOT(ASSIGN) DOT(ACCUMULATE), DOT(ACCUMULATE) DOT(ACCUMULATE))
#define BY_48(clear, next, DOT, back)                                                                        \
    PEELED(next, DOT(ASSIGN) DOT(ACCUMULATE) DOT(ACCUMULATE), DOT(ACCUMULATE) DOT(ACCUMULATE) DOT(ACCUMULATE))
/* The same for runs that are one turn; lr has the number of those behind the first. */
#define ALL_48(next, DOT)                                                                                    \
    next DOT(ASSIGN) DOT(ACCUMULATE) DOT(ACCUMULATE) "wls lr, lr, 4f\n2:\n\t" next DOT(ACCUMULATE)           \
        DOT(ACCUMULATE) DOT(ACCUMULATE) "le lr, 2b\n4:\n\t"

#define BACK_2 "ldr r1, [r12], #4\n\tsub r7, r7, r1\n\tsub r9, r9, r1\n\t"
#define BACK_4                                                                                               \
    "ldr r1, [r12], #4\n\t"                                                                                  \
    "sub r3, r3, r1\n\tsub r5, r5, r1\n\tsub r7, r7, r1\n\tsub r9, r9, r1\n\t"

/* Of two channels: the pixels and weights r7 and r9; of four: the pixel r1 and weights r3, r5, r7 and r9. After the last run
 * the entry behind it gives the first one, the step from channel to channel and the end of the sums. */
#define NEXT_PIXELS "ldm r12!, {r1, r3, r5, lr}\n\t"
#define NEXT_PIXEL "ldr r1, [r12], #12\n\tldr lr, [r12], #4\n\t"
#define NEXT_PIXELS_ALONE "ldm r12!, {r1, r3, r5}\n\t"
#define NEXT_PIXEL_ALONE "ldr r1, [r12], #12\n\t"
#define LAST_PIXELS "ldm r12!, {r1, r3, r5, lr}\n\t"
#define LAST_PIXEL "ldr r1, [r12], #12\n\tldr lr, [r12], #4\n\t"
#define COUNT "ldr lr, [r12, #-4]\n"
#define START_2 "ldrd r7, r9, [r12], #16\n\tadd r9, r9, r7\n"
#define START_4                                                                                              \
    "ldrd r3, r9, [r12], #16\n\t"                                                                            \
    "add r5, r3, r9\n\tadd r7, r5, r9\n\tadd r9, r9, r7\n"
#define ON_2 "mov r7, r9\n\tadd r9, r9, r3\n\tmov r12, r1\n\tcmp r11, r5\n\tbne 1b\n\tstr r7, [r12, #-16]"
#define ON_4                                                                                                 \
    "ldrd r0, r2, [r12, #-12]\n\t"                                                                           \
    "mov r3, r9\n\tadd r5, r3, r0\n\tadd r7, r5, r0\n\tadd r9, r7, r0\n\t"                                   \
    "mov r12, r1\n\tcmp r11, r2\n\tbne 1b\n\tstr r3, [r12, #-16]"

#define CLEAR_4 "movs r0, #0\n\tmovs r2, #0\n\tmovs r4, #0\n\tmovs r6, #0\n\t"
#define CLEAR_6 CLEAR_4 "mov r8, r0\n\tmov r10, r0\n\t"
#define SAVE_3 "strd r4, r6, [r11, #64]\n\tstrd r8, r10, [r11, #128]\n\tstrd r0, r2, [r11], #8\n\t"
#define SAVE_2 "strd r4, r6, [r11, #64]\n\tstrd r0, r2, [r11], #8\n\t"
#define SAVE_1 "strd r4, r6, [r11, #8]\n\tstrd r0, r2, [r11], #16\n\t"

/* Until all channels of a block are done. */
#define RUN_BY_RUN(product, sums, START, RUNS, SAVE, ON)                                                     \
    do {                                                                                                     \
        register arenite_mve_product_t *run_product __asm__("r12") = (product);                              \
        register int32_t *run_sums __asm__("r11") = (sums);                                                  \
        __asm__ volatile(START "1:\n\t" RUNS SAVE ON                                                         \
                         : "+r"(run_sums), "+r"(run_product)                                                 \
                         :                                                                                   \
                         : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "lr", "q0",    \
                           "q1", "q2", "q3", "cc", "memory");                                                \
    } while (0)
#define RUN_3(product, sums, BY)                                                                             \
    RUN_BY_RUN(product, sums, START_2, BY(CLEAR_6, NEXT_PIXELS, DOT_3X2, BACK_2), SAVE_3, ON_2)
#define RUN_3_ALONE(product, sums)                                                                           \
    RUN_BY_RUN(product, sums, START_2 COUNT, ALL_48(NEXT_PIXELS_ALONE, DOT_3X2), LAST_PIXELS SAVE_3, ON_2)
#define RUN_2(product, sums, BY)                                                                             \
    RUN_BY_RUN(product, sums, START_2, BY(CLEAR_4, NEXT_PIXELS, DOT_2X2, BACK_2), SAVE_2, ON_2)
#define RUN_2_ALONE(product, sums)                                                                           \
    RUN_BY_RUN(product, sums, START_2 COUNT, ALL_48(NEXT_PIXELS_ALONE, DOT_2X2), LAST_PIXELS SAVE_2, ON_2)
#define RUN_1(product, sums, BY)                                                                             \
    RUN_BY_RUN(product, sums, START_4, BY(CLEAR_4, NEXT_PIXEL, DOT_1X4, BACK_4), SAVE_1, ON_4)
#define RUN_1_ALONE(product, sums)                                                                           \
    RUN_BY_RUN(product, sums, START_4 COUNT, ALL_48(NEXT_PIXEL_ALONE, DOT_1X4), LAST_PIXEL SAVE_1, ON_4)

#define ADD_BIAS(q, at)                                                                                      \
    "vldrw.u32 q4, [%[bias], #" at "]\n\t"                                                                   \
    "vadd.i32 " q ", " q ", q4\n\t"
#define SCALE_POSITIVE(q, multiplier, shift)                                                                 \
    ADD_BIAS(q, multiplier)                                                                                  \
    "vldrw.u32 q4, [%[multipliers], #" multiplier "]\n\t"                                                    \
    "vqrdmulh.s32 " q ", " q ", q4\n\t"                                                                      \
    "vldrb.s32 q4, [%[shifts], #" shift "]\n\t"                                                              \
    "vrshl.s32 " q ", " q ", q4\n\t"
#define SCALE_SIGNED(q, multiplier, shift)                                                                   \
    ADD_BIAS(q, multiplier)                                                                                  \
    "vldrw.u32 q4, [%[multipliers], #" multiplier "]\n\t"                                                    \
    "vqrdmulh.s32 " q ", " q ", q4\n\t"                                                                      \
    "vshr.s32 q4, " q ", #31\n\t"                                                                            \
    "vadd.i32 " q ", " q ", q4\n\t"                                                                          \
    "vldrb.s32 q4, [%[shifts], #" shift "]\n\t"                                                              \
    "vrshl.s32 " q ", " q ", q4\n\t"
#define SCALE_ANY(q, multiplier, shift)                                                                      \
    ADD_BIAS(q, multiplier)                                                                                  \
    "vldrb.s32 q4, [%[shifts], #" shift "]\n\t"                                                              \
    "vmov.i32 q7, #0\n\t"                                                                                    \
    "vmax.s32 q7, q7, q4\n\t"                                                                                \
    "vshl.s32 " q ", " q ", q7\n\t"                                                                          \
    "vldrw.u32 q7, [%[multipliers], #" multiplier "]\n\t"                                                    \
    "vqrdmulh.s32 " q ", " q ", q7\n\t"                                                                      \
    "vmov.i32 q7, #0\n\t"                                                                                    \
    "vmin.s32 q4, q4, q7\n\t"                                                                                \
    "vand q7, " q ", q4\n\t"                                                                                 \
    "vshr.s32 q7, q7, #31\n\t"                                                                               \
    "vadd.i32 " q ", " q ", q7\n\t"                                                                          \
    "vrshl.s32 " q ", " q ", q4\n\t"                                                                         \
    "vadd.i32 " q ", " q ", %[zero]\n\t"

/* A whole block of some pixels as bytes in the order of channels. The zero point is added to 32 bits, where a sum may reach
 * their end, or else to 16. */
#define STORE(p, block_sums, at, pixels, block_out, SCALE, NARROW_16)                                        \
    do {                                                                                                     \
        register int32_t left __asm__("lr") = (pixels);                                                      \
        const int32_t *from = (block_sums);                                                                  \
        int8_t *to = (block_out);                                                                            \
        __asm__ volatile(                                                                                    \
            "vdup.8 q5, %[low]\n\t"                                                                          \
            "vdup.8 q6, %[high]\n\t"                                                                         \
            "dls lr, lr\n"                                                                                   \
            "1:\n\t"                                                                                         \
            "vldrw.u32 q0, [%[sums]], #16\n\t"                                                               \
            "vldrw.u32 q1, [%[sums]], #16\n\t"                                                               \
            "vldrw.u32 q2, [%[sums]], #16\n\t"                                                               \
            "vldrw.u32 q3, [%[sums]], #16\n\t" SCALE("q0", "0", "0") SCALE("q1", "16", "4")                  \
                SCALE("q2", "32", "8") SCALE("q3", "48", "12") NARROW_32 NARROW_16                           \
            : [sums] "+r"(from), [out] "+r"(to), "+r"(left)                                                  \
            : [bias] "r"((p)->bias + (at)), [multipliers] "r"((p)->multiplier + (at)),                       \
              [shifts] "l"((p)->shift + (at)), [zero] "r"((int32_t)(p)->out_zero_point),                     \
              [out_c] "r"((p)->out_c), [low] "r"((int32_t)(p)->act_min), [high] "r"((int32_t)(p)->act_max)   \
            : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");                                     \
    } while (0)
#define NARROW_32                                                                                            \
    "vqmovnb.s32 q0, q0\n\t"                                                                                 \
    "vqmovnt.s32 q0, q2\n\t"                                                                                 \
    "vqmovnb.s32 q1, q1\n\t"                                                                                 \
    "vqmovnt.s32 q1, q3\n\t"
#define NARROW_MOVED                                                                                         \
    "vqmovnb.s16 q0, q0\n\t"                                                                                 \
    "vqmovnt.s16 q0, q1\n\t"                                                                                 \
    "vmax.s8 q0, q0, q5\n\t"                                                                                 \
    "vmin.s8 q0, q0, q6\n\t"                                                                                 \
    "vstrb.8 q0, [%[out]]\n\t"                                                                               \
    "add %[out], %[out], %[out_c]\n\t"                                                                       \
    "le lr, 1b"
#define MOVE_AND_NARROW "vqadd.s16 q0, q0, %[zero]\n\tvqadd.s16 q1, q1, %[zero]\n\t" NARROW_MOVED

/* The first channels of a block of one pixel, in the order of channels and in any mode, as arenite_to_byte does it. */
static __attribute__((noinline)) void store_part(const arenite_conv_2d_s8_t *p, const int32_t *sums,
                                                 int32_t at, int32_t count, int8_t *out) {
    const int32_t *multipliers = p->multiplier + at, *bias = p->bias + at;
    const int8_t *shifts = p->shift + at;
    register int32_t left __asm__("lr") = count;
    __asm__ volatile("vdup.32 q3, %[low]\n\t"
                     "vdup.32 q4, %[high]\n\t"
                     "vmov.i32 q5, #0\n\t"
                     "dlstp.32 lr, lr\n"
                     "1:\n\t"
                     "vldrb.s32 q2, [%[shifts]], #4\n\t"
                     "vldrw.u32 q0, [%[sums]], #16\n\t"
                     "vldrw.u32 q1, [%[bias]], #16\n\t"
                     "vadd.i32 q0, q0, q1\n\t"
                     "vmax.s32 q1, q2, q5\n\t"
                     "vshl.s32 q0, q0, q1\n\t"
                     "vldrw.u32 q1, [%[multipliers]], #16\n\t"
                     "vqrdmulh.s32 q0, q0, q1\n\t"
                     "vmin.s32 q2, q2, q5\n\t"
                     "vand q1, q0, q2\n\t"
                     "vshr.s32 q1, q1, #31\n\t"
                     "vadd.i32 q0, q0, q1\n\t"
                     "vrshl.s32 q0, q0, q2\n\t"
                     "vadd.i32 q0, q0, %[zero]\n\t"
                     "vmax.s32 q0, q0, q3\n\t"
                     "vmin.s32 q0, q0, q4\n\t"
                     "vstrb.32 q0, [%[out]], #4\n\t"
                     "letp lr, 1b"
                     : [bias] "+r"(bias), [shifts] "+l"(shifts), [out] "+l"(out), [sums] "+r"(sums),
                       [multipliers] "+r"(multipliers), "+r"(left)
                     : [zero] "r"((int32_t)p->out_zero_point), [low] "r"((int32_t)p->act_min),
                       [high] "r"((int32_t)p->act_max)
                     : "q0", "q1", "q2", "q3", "q4", "q5", "memory");
}

/* How a block is multiplied: 10 times the pixels, and 2 and the steps of 16 bytes of windows that stay in registers; or 4
 * times the pixels less one, and arenite_mve_turn_t. */
#define RESIDENT_WAY(pixels, steps) (10 * (pixels) + 2 + (steps))
#define WAY(pixels, turn) (4 * ((pixels) - 1) + (turn))

static int32_t way_of(const arenite_mve_product_t *product, int32_t is_resident, int32_t pixels) {
    const uint32_t steps = ((uint32_t)product->bytes + 15) / 16;
    return is_resident ? RESIDENT_WAY(pixels, (int32_t)steps) : WAY(pixels, (int32_t)product->turn);
}

#define RESIDENT(pixels, steps, CHANNELS)                                                                    \
    ARENITE_MVE_RESIDENT_RUN(product, sums, groups, LOADS_##pixels##_##steps,                                \
                             CHANNELS(CHANNEL_##pixels##_##steps))

void arenite_mve_tile(arenite_mve_product_t *product, const arenite_conv_2d_s8_t *p, int32_t is_resident,
                      int32_t pixels, int8_t *out) {
    const int32_t way = way_of(product, is_resident, pixels), together = pixels == 1 ? 4 : 2;
    int32_t sums[ARENITE_MVE_TILE * ARENITE_MVE_BLOCK]; /* of each pixel a block */
    int32_t groups = ARENITE_MVE_BLOCK / together;
    product->end[2] = (uint32_t)(uintptr_t)(sums + ARENITE_MVE_BLOCK);
    for (int32_t at = 0, left = p->out_c; left > 0; at += ARENITE_MVE_BLOCK, left -= ARENITE_MVE_BLOCK) {
        if (left < ARENITE_MVE_BLOCK) {
            groups = (left + together - 1) / together;
            product->end[2] = (uint32_t)(uintptr_t)(sums + groups * together);
        }
        switch (way) {
        case WAY(1, ARENITE_MVE_BY_16):
            RUN_1(product, sums, BY_16);
            break;
        case WAY(1, ARENITE_MVE_BY_32):
            RUN_1(product, sums, BY_32);
            break;
        case WAY(1, ARENITE_MVE_BY_48):
            RUN_1(product, sums, BY_48);
            break;
        case WAY(1, ARENITE_MVE_ALL_48):
            RUN_1_ALONE(product, sums);
            break;
        case WAY(2, ARENITE_MVE_BY_16):
            RUN_2(product, sums, BY_16);
            break;
        case WAY(2, ARENITE_MVE_BY_32):
            RUN_2(product, sums, BY_32);
            break;
        case WAY(2, ARENITE_MVE_BY_48):
            RUN_2(product, sums, BY_48);
            break;
        case WAY(2, ARENITE_MVE_ALL_48):
            RUN_2_ALONE(product, sums);
            break;
        case WAY(3, ARENITE_MVE_BY_16):
            RUN_3(product, sums, BY_16);
            break;
        case WAY(3, ARENITE_MVE_BY_32):
            RUN_3(product, sums, BY_32);
            break;
        case WAY(3, ARENITE_MVE_BY_48):
            RUN_3(product, sums, BY_48);
            break;
        case WAY(3, ARENITE_MVE_ALL_48):
            RUN_3_ALONE(product, sums);
            break;
        case RESIDENT_WAY(1, 1):
            RESIDENT(1, 1, FOUR_1);
            break;
        case RESIDENT_WAY(1, 2):
            RESIDENT(1, 2, FOUR_1);
            break;
        case RESIDENT_WAY(1, 3):
            RESIDENT(1, 3, FOUR_1);
            break;
        case RESIDENT_WAY(1, 4):
            RESIDENT(1, 4, FOUR_1);
            break;
        case RESIDENT_WAY(1, 5):
            RESIDENT(1, 5, FOUR_1);
            break;
        case RESIDENT_WAY(1, 6):
            RESIDENT(1, 6, FOUR_1);
            break;
        case RESIDENT_WAY(1, 7):
            RESIDENT(1, 7, FOUR_1);
            break;
        case RESIDENT_WAY(1, 8):
            RESIDENT(1, 8, FOUR_1);
            break;
        case RESIDENT_WAY(2, 1):
            RESIDENT(2, 1, PAIR_2);
            break;
        case RESIDENT_WAY(2, 2):
            RESIDENT(2, 2, PAIR_2);
            break;
        case RESIDENT_WAY(2, 3):
            RESIDENT(2, 3, PAIR_2);
            break;
        case RESIDENT_WAY(2, 4):
            RESIDENT(2, 4, PAIR_2);
            break;
        case RESIDENT_WAY(3, 1):
            RESIDENT(3, 1, PAIR_3);
            break;
        case RESIDENT_WAY(3, 2):
            RESIDENT(3, 2, PAIR_3);
            break;
        case RESIDENT_WAY(3, 3):
            RESIDENT(3, 3, PAIR_3);
            break;
        case RESIDENT_WAY(3, 4):
            RESIDENT(3, 4, PAIR_3);
            break;
        default:
            return;
        }
        if (left < ARENITE_MVE_BLOCK) {
            for (int32_t i = 0; i < pixels; i++) {
                store_part(p, sums + i * ARENITE_MVE_BLOCK, at, left, out + at + i * p->out_c);
            }
        } else if (p->per_channel == ARENITE_MVE_POSITIVE) {
            STORE(p, sums, at, pixels, out + at, SCALE_POSITIVE, MOVE_AND_NARROW);
        } else if (p->per_channel == ARENITE_MVE_SIGNED) {
            STORE(p, sums, at, pixels, out + at, SCALE_SIGNED, MOVE_AND_NARROW);
        } else {
            STORE(p, sums, at, pixels, out + at, SCALE_ANY, NARROW_MOVED);
        }
    }
}

#endif
