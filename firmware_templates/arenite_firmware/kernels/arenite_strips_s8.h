/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of convolutions, one output row a call, made strip by strip: the rows between two convolutions exist only a few
 * columns wide, and only as long as the strip. A row or column that two calls or strips need is computed for each.
 * Authority: as CONV_2D and DEPTHWISE_CONV_2D, whose kernels run here on narrower rows. */
#ifndef ARENITE_STRIPS_S8_H
#define ARENITE_STRIPS_S8_H

#include <stdint.h>

#include "arenite_limits.h" /* generated: ARENITE_STAGE_KERNELS */

#define ARENITE_STRIPS_S8_MAX_STAGES 4
#define ARENITE_STRIPS_S8_MAX_KERNEL_H 8

/* Which kernel a stage calls: ARENITE_STAGE_<function>. They are called by name, not through a pointer, so that a bound
 * of the stack can be computed. */
#define ARENITE_STAGE_ENTRY(function, kernel) ARENITE_STAGE_##function,
enum { ARENITE_STAGE_KERNELS(ARENITE_STAGE_ENTRY) ARENITE_STAGE_COUNT };

typedef struct {
    const void *params;     /* arenite_conv_2d_s8_t or arenite_depthwise_conv_2d_s8_t, of whole rows */
    uint32_t buffer_offset; /* of the stage's rows in scratch; the last stage writes the output row instead */
    uint16_t in_h;          /* rows of the whole input of the stage */
    uint16_t in_w;
    uint16_t in_c;
    uint16_t out_c;
    uint8_t kernel_h; /* 1 .. ARENITE_STRIPS_S8_MAX_KERNEL_H */
    uint8_t kernel_w;
    uint8_t stride_h;
    uint8_t stride_w;
    uint8_t dilation_h; /* 1 but in the first stage */
    uint8_t dilation_w;
    uint8_t pad_top;
    uint8_t pad_left;
    uint8_t kernel;
} arenite_stage_t;

typedef struct {
    const arenite_stage_t *stages;
    int32_t count; /* 2 .. ARENITE_STRIPS_S8_MAX_STAGES */
    int32_t out_w;
    int32_t strip_w; /* output pixels of a strip; the last one may have fewer */
} arenite_strips_s8_t;

/* rows: every row from the first to the last that the first stage needs for this output row, NULL outside. Scratch: the
 * buffers of all stages but the last. out: apart from all rows. */
void arenite_strips_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch);

#endif
