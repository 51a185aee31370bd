/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_guards.h"

#ifdef ARENITE_GUARDS

#include <stddef.h>

#define GUARD_BYTES 4u

/* Unlike a zero point, a rail of int8 or a pattern that counts. */
static const uint8_t word[GUARD_BYTES] = {0xA7, 0x1D, 0xB3, 0xE9};

static arenite_damage_t damage;
static int is_damaged;

/* A guard lies at any alignment: right behind the last byte of its block. */
static int is_intact(const uint8_t *bytes) {
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (bytes[i] != word[i]) {
            return 0;
        }
    }
    return 1;
}

const arenite_damage_t *arenite_guard_damage(void) { return is_damaged ? &damage : NULL; }

void arenite_guards_start(arenite_feed_t *feed) {
    feed->done = 0;
    if (feed->item == 0) {
        is_damaged = 0;
    }
}

void arenite_guards_open(const arenite_feed_t *feed) {
    for (uint32_t g = 0; g < feed->model->guard_count; g++) {
        const arenite_guard_t *guard = &feed->model->guards[g];
        if (guard->first == feed->done) {
            uint8_t *to = arenite_at(feed->memory, guard->place);
            for (uint32_t i = 0; i < GUARD_BYTES; i++) {
                to[i] = word[i];
            }
        }
    }
}

void arenite_guards_check(arenite_feed_t *feed) {
    const uint32_t step = feed->done++;
    for (uint32_t g = 0; g < feed->model->guard_count && !is_damaged; g++) {
        const arenite_guard_t *guard = &feed->model->guards[g];
        if (guard->first <= step && step <= guard->last &&
            !is_intact(arenite_at(feed->memory, guard->place))) {
            damage.guard = g;
            damage.step = step;
            damage.layer = feed->layer;
            is_damaged = 1;
        }
    }
}

#endif
