/* SPDX-License-Identifier: Apache-2.0 */
/* What every layer of a run did: its rows, a checksum over them, its share of the counter. Where rings are smaller than
 * their values a layer's output never exists as a whole, so it is taken row by row, as each step makes it. */
#ifndef ARENITE_TRACE_H
#define ARENITE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "arenite.h"

enum {
    TRACE_COUNTERS = 1u << 0,      /* the counter's advance in each layer's kernel */
    TRACE_CHECKSUMS = 1u << 1,     /* of each layer's rows, one after the other, item after item */
    TRACE_ROW_CHECKSUMS = 1u << 2, /* sends a frame with the checksum of each row of the watched layer */
    TRACE_ROW_BYTES = 1u << 3,     /* sends the rows themselves */
    TRACE_ALL = 0xFu
};

typedef struct {
    uint8_t mode;
    uint16_t layer;     /* the watched one */
    uint32_t first_row; /* rows are counted through all items of the batch */
    uint32_t rows;
} trace_request_t;

typedef struct {
    uint64_t counter;
    uint32_t checksum; /* CRC-32 */
    uint32_t rows;     /* that the layer made */
} trace_layer_t;

/* From the next run on, until another request. */
void trace_set(const trace_request_t *request);

/* A run begins: forgets the last one. */
void trace_begin(void);

/* What a layer did in the last run; NULL if nothing was traced. */
const trace_layer_t *trace_layer(uint16_t layer);

#endif
