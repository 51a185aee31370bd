/* SPDX-License-Identifier: Apache-2.0 */
/* What the convolution for MVE (Helium) is made of: products of up to three pixels and a block of 16 channels, and their
 * sums as bytes. Offsets in these structs are known to the assembly. */
#ifndef ARENITE_CONV_2D_MVE_TILE_H
#define ARENITE_CONV_2D_MVE_TILE_H

#include <stdint.h>

#define ARENITE_MVE_TILE 3 /* pixels */

/* A run of bytes, of up to ARENITE_MVE_TILE pixels, times the weights of some channels. */
typedef struct {
    const int8_t *x[ARENITE_MVE_TILE];
    const int8_t *weights; /* of the first channel; moves on */
    int32_t turns;         /* of the loop: the run's bytes, or their 32nd or 48th part */
    int32_t step;          /* bytes from the weights of one channel to those of the next */
    const int32_t *end;    /* of the sums of the first pixel */
} arenite_mve_product_t;

/* How many bytes of a run one turn of the loop takes. Only the first takes runs that are no multiple. */
typedef enum { ARENITE_MVE_BY_16, ARENITE_MVE_BY_32, ARENITE_MVE_BY_48 } arenite_mve_turn_t;

/* sums[pixel][16] += x[pixel] * weights[channel], for channels up to `end`; of three or two pixels channel by pairs, of one
 * pixel by fours. */
void arenite_mve_multiply_3(arenite_mve_product_t *product, int32_t *sums, arenite_mve_turn_t turn);
void arenite_mve_multiply_2(arenite_mve_product_t *product, int32_t *sums, arenite_mve_turn_t turn);
void arenite_mve_multiply_1(arenite_mve_product_t *product, int32_t *sums, arenite_mve_turn_t turn);

/* How the sums of a block become bytes: requantised, moved to the zero point, clamped. */
typedef struct {
    const int32_t *multiplier; /* and shift: as arenite_conv_2d_s8_mve.h says */
    const int8_t *shift;
    int32_t zero_point;
    int32_t out_c;
    int8_t limits[32]; /* 16 times act_min, 16 times act_max */
    int16_t act_min;
    int16_t act_max;
} arenite_mve_output_t;

/* A whole block of some pixels, constants from `at` on. The modes are those of arenite_mve.h. */
void arenite_mve_store_positive(const arenite_mve_output_t *o, const int32_t *sums, int32_t at,
                                int32_t pixels, int8_t *out);
void arenite_mve_store_signed(const arenite_mve_output_t *o, const int32_t *sums, int32_t at, int32_t pixels,
                              int8_t *out);
void arenite_mve_store_any(const arenite_mve_output_t *o, const int32_t *sums, int32_t at, int32_t pixels,
                           int8_t *out);

/* `count` channels of one pixel, which lie in the order of channels, in any mode. */
void arenite_mve_store_part(const arenite_mve_output_t *o, const int32_t *sums, int32_t at, int32_t count,
                            int8_t *out);

#endif
