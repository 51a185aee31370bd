/* SPDX-License-Identifier: Apache-2.0 */
/* LOGICAL_AND, LOGICAL_OR and, of both sides alike, LOGICAL_NOT, of bytes of 0 or 1, one output row a call, with
 * broadcasts.
 * Authority: TFLM logical.cc, logical_not in elementwise.cc. */
#ifndef ARENITE_LOGICAL_H
#define ARENITE_LOGICAL_H

#include "arenite_binary.h"

enum { ARENITE_AND, ARENITE_OR, ARENITE_NOT };

typedef struct {
    ARENITE_BINARY_STEPS;
    uint8_t operation; /* ARENITE_AND .. ARENITE_NOT */
} arenite_logical_t;

/* rows: one row of each side. out: width * channels bytes. No scratch. */
void arenite_logical(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
