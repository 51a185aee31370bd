/* SPDX-License-Identifier: Apache-2.0 */
/* Validation builds: a guard word behind every block of the arena, written before the block's first step and compared
 * after each step until its last. */
#ifndef ARENITE_GUARDS_H
#define ARENITE_GUARDS_H

#include "arenite.h"

#ifdef ARENITE_GUARDS

#ifdef __cplusplus
extern "C" {
#endif

/* The first guard that was not intact, and the step after which that was seen. */
typedef struct {
    uint32_t guard; /* of model->guards */
    uint32_t step;  /* of its batch item */
    uint16_t layer; /* that ran */
} arenite_damage_t;

/* Of the inference that began last; NULL while every guard is intact. */
const arenite_damage_t *arenite_guard_damage(void);

/* Called by the executor. */
void arenite_guards_start(arenite_feed_t *feed);
void arenite_guards_open(const arenite_feed_t *feed);
void arenite_guards_check(arenite_feed_t *feed);

#ifdef __cplusplus
}
#endif

#endif

#endif
