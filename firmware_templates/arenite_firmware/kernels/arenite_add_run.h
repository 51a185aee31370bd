/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for computers of ADD share: a run of neighbouring bytes of both sides. */
#ifndef ARENITE_ADD_RUN_H
#define ARENITE_ADD_RUN_H

#include "arenite_add_s8.h"

/* out may start at or before a or b. */
void arenite_add_run(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out, int32_t count);

/* As many of `count` as their vectors allow; they return how many. */
int32_t arenite_add_run_avx512(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                               int32_t count);
int32_t arenite_add_run_avx2(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                             int32_t count);

#endif
