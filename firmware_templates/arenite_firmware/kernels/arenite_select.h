/* SPDX-License-Identifier: Apache-2.0 */
/* SELECT and SELECT_V2 of any element type, one output row a call, each of the three with broadcasts.
 * Authority: TFLM reference_ops::Select, BroadcastSelect5DSlow. */
#ifndef ARENITE_SELECT_H
#define ARENITE_SELECT_H

#include <stdint.h>

/* Steps are in elements; 0 broadcasts. */
typedef struct {
    int32_t width;    /* output pixels a row */
    int32_t channels; /* output channels a pixel */
    int32_t element_bytes;
    int32_t which_pixel_step; /* of the bytes of 0 or 1 that choose */
    int32_t which_channel_step;
    int32_t a_pixel_step; /* of what 1 takes */
    int32_t a_channel_step;
    int32_t b_pixel_step; /* of what 0 takes */
    int32_t b_channel_step;
} arenite_select_t;

/* rows: one row of the chooser, of what 1 takes, of what 0 takes. out: width * channels elements, apart from all. */
void arenite_select(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
