/* SPDX-License-Identifier: Apache-2.0 */
/* What the convolution for MVE (Helium) is made of: products of up to three pixels and a block of 16 channels, and their
 * sums as bytes. Offsets in these structs are known to the assembly. */
#ifndef ARENITE_CONV_2D_MVE_TILE_H
#define ARENITE_CONV_2D_MVE_TILE_H

#include <stdint.h>

#include "arenite_conv_2d_s8.h"

#define ARENITE_MVE_TILE 3 /* pixels */
/* Words of stack for entries, and for pixels that do not lie in memory as they are needed. */
#define ARENITE_MVE_WORDS 112

/* Bytes of windows that are one run and whose pixels stay in registers: of two or three pixels, and of one. */
#define ARENITE_MVE_RESIDENT 64
#define ARENITE_MVE_RESIDENT_ALONE 128

/* How many bytes of a run one turn of the loop takes. Only the first takes runs that are no multiple, the
 * last takes no others than those of 48 bytes. */
typedef enum {
    ARENITE_MVE_BY_16,
    ARENITE_MVE_BY_32,
    ARENITE_MVE_BY_48,
    ARENITE_MVE_ALL_48
} arenite_mve_turn_t;

/* Windows of up to ARENITE_MVE_TILE pixels times the weights of all channels. The windows are runs of bytes, all of one
 * length, described by entries of 4 words, or of 5 where a turn takes 16 bytes:
 *   the run's address in each pixel, how many turns it takes (bytes, where a turn takes 16), and 5th how many bytes the
 *   weights are to be moved back behind it.
 * An entry without turns ends them:
 *   the address of the first entry, the bytes from the weights of one channel to those of the next, the end of the sums
 *   of the first pixel in a block (written by arenite_mve_tile), 0.
 * Where a turn takes all of a run, entries have 3 words, the addresses, and the last one ends with their number
 * less one. */
typedef struct {
    const int8_t *weights; /* of the next channel; moves on */
    int32_t step;          /* bytes from the weights of one channel to those of the next */
    int32_t bytes;         /* of a run */
    int32_t more_runs;     /* than one */
    uint32_t entries[ARENITE_MVE_WORDS];
    uint32_t *end; /* the entry without turns */
    arenite_mve_turn_t turn;
} arenite_mve_product_t;

/* All channels of `pixels` pixels of a layer (packed as arenite_conv_2d_s8_mve.h says), which lie one behind the other in `out`. `is_resident`: windows are one run each, and
 * no longer than ARENITE_MVE_RESIDENT or ARENITE_MVE_RESIDENT_ALONE allows. */
void arenite_mve_tile(arenite_mve_product_t *product, const arenite_conv_2d_s8_t *p, int32_t is_resident,
                      int32_t pixels, int8_t *out);

#endif
