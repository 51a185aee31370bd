/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_strips_s8.h"

#include <stddef.h>

#include "arenite_conv_2d_s8.h"
#include "arenite_depthwise_conv_2d_s8.h"

/* A stretch of rows or columns: first .. last. */
typedef struct {
    int32_t first;
    int32_t last;
} span_t;

/* What a stage makes for one strip of one output row. */
typedef struct {
    span_t rows;    /* some may lie outside; those are not made */
    span_t columns; /* of its output */
    span_t reads;   /* columns of its input, all inside */
} part_t;

/* What the inputs of `outputs` begin and end with, pads included. */
static span_t needed(span_t outputs, int32_t kernel, int32_t stride, int32_t dilation, int32_t pad) {
    const span_t inputs = {outputs.first * stride - pad,
                           outputs.last * stride - pad + (kernel - 1) * dilation};
    return inputs;
}

static span_t clipped(span_t span, int32_t size) {
    const span_t inside = {span.first < 0 ? 0 : span.first, span.last < size ? span.last : size - 1};
    return inside;
}

/* run_<function>: a stage's kernel on the columns of one strip. */
#define RUN(function, kernel)                                                                                \
    void arenite_##function(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,        \
                            int32_t *scratch);                                                               \
    static void run_##function(const arenite_stage_t *stage, const part_t *part, const int8_t *const *rows,  \
                               int8_t *out) {                                                                \
        arenite_##kernel##_t own = *(const arenite_##kernel##_t *)stage->params;                             \
        own.in_w = part->reads.last - part->reads.first + 1;                                                 \
        own.out_w = part->columns.last - part->columns.first + 1;                                            \
        own.pad_left =                                                                                       \
            (int16_t)(part->reads.first - (part->columns.first * stage->stride_w - stage->pad_left));        \
        arenite_##function(&own, rows, out, 0, NULL);                                                        \
    }
ARENITE_STAGE_KERNELS(RUN)

static void run_kernel(const arenite_stage_t *stage, const part_t *part, const int8_t *const *rows,
                       int8_t *out) {
    switch (stage->kernel) {
#define CASE(function, kernel)                                                                               \
    case ARENITE_STAGE_##function:                                                                           \
        run_##function(stage, part, rows, out);                                                              \
        break;
        ARENITE_STAGE_KERNELS(CASE)
    default:
        break;
    }
}

/* Row `row` of what a stage makes for the next one. Only rows inside have a place in its buffer. */
static int8_t *buffer_row(const arenite_stage_t *stage, const part_t *part, int32_t row, int8_t *scratch) {
    const ptrdiff_t pitch = (ptrdiff_t)(part->columns.last - part->columns.first + 1) * stage->out_c;
    const int32_t first = part->rows.first < 0 ? 0 : part->rows.first;
    return scratch + stage->buffer_offset + (row - first) * pitch;
}

/* Row `row` of the stage's input at its first column that is read, or NULL outside. */
static const int8_t *input_row(const arenite_stage_t *stage, const part_t *parts, int32_t index, int32_t row,
                               const int8_t *const *rows, int8_t *scratch) {
    if (row < 0 || row >= stage->in_h) {
        return NULL;
    }
    if (index == 0) {
        const span_t window =
            needed(parts->rows, stage->kernel_h, stage->stride_h, stage->dilation_h, stage->pad_top);
        return rows[row - window.first] + (ptrdiff_t)parts->reads.first * stage->in_c;
    }
    /* Exactly the columns that this stage reads were made. */
    return buffer_row(stage - 1, &parts[index - 1], row, scratch);
}

static void run_stage(const arenite_strips_s8_t *p, const part_t *parts, int32_t index, int32_t row,
                      const int8_t *const *rows, int8_t *out, int8_t *scratch) {
    const arenite_stage_t *stage = &p->stages[index];
    const part_t *part = &parts[index];
    const int8_t *window[ARENITE_STRIPS_S8_MAX_KERNEL_H];
    for (int32_t k = 0; k < stage->kernel_h; k++) {
        const int32_t source = row * stage->stride_h - stage->pad_top + k * stage->dilation_h;
        window[k] = input_row(stage, parts, index, source, rows, scratch);
    }
    int8_t *to = out + (ptrdiff_t)part->columns.first * stage->out_c;
    if (index < p->count - 1) {
        to = buffer_row(stage, part, row, scratch);
    }
    run_kernel(stage, part, window, to);
}

/* From the last stage back to the first: what each must make for one strip. */
static void divide(const arenite_strips_s8_t *p, int32_t row, span_t columns, part_t *parts) {
    span_t rows = {row, row};
    for (int32_t i = p->count - 1; i >= 0; i--) {
        const arenite_stage_t *stage = &p->stages[i];
        parts[i].rows = rows;
        parts[i].columns = columns;
        rows = needed(rows, stage->kernel_h, stage->stride_h, stage->dilation_h, stage->pad_top);
        columns =
            clipped(needed(columns, stage->kernel_w, stage->stride_w, stage->dilation_w, stage->pad_left),
                    stage->in_w);
        parts[i].reads = columns;
    }
}

void arenite_strips_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch) {
    const arenite_strips_s8_t *p = (const arenite_strips_s8_t *)params;
    for (int32_t x = 0; x < p->out_w; x += p->strip_w) {
        const span_t columns = {x, x + p->strip_w < p->out_w ? x + p->strip_w - 1 : p->out_w - 1};
        part_t parts[ARENITE_STRIPS_S8_MAX_STAGES];
        divide(p, step, columns, parts);
        for (int32_t i = 0; i < p->count; i++) {
            const int32_t height = i == p->count - 1 ? step + 1 : p->stages[i + 1].in_h;
            const span_t made = clipped(parts[i].rows, height);
            for (int32_t row = made.first; row <= made.last; row++) {
                run_stage(p, parts, i, row, rows, out, (int8_t *)scratch);
            }
        }
    }
}
