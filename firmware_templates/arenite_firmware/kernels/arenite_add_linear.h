/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of arenite_add_s8_host_linear: of a run of neighbouring bytes of both sides as many as they allow; they
 * return how many. out may start at or before a or b. */
#ifndef ARENITE_ADD_LINEAR_H
#define ARENITE_ADD_LINEAR_H

#include "arenite_add_s8.h"

int32_t arenite_add_linear_avx512(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                                  int32_t count);
int32_t arenite_add_linear_avx2(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                                int32_t count);

#endif
