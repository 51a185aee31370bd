/* SPDX-License-Identifier: Apache-2.0 */
/* A model that runs from a slot of its own: weights, row schedule and descriptions, linked for the slot and against the
 * kernels of this firmware. Its payload starts with a head, by which the firmware finds it. */
#ifndef ARENITE_MODEL_SLOT_H
#define ARENITE_MODEL_SLOT_H

#include <stdint.h>

#include "arenite.h"

#define MODEL_HEAD_MAGIC 0x6F4D7241u /* 'ArMo' */

typedef struct {
    uint32_t magic;
    uint32_t runtime_version; /* ARENITE_RUNTIME_VERSION */
    uint32_t max_pointers;    /* most row pointers that one of its steps hands to a kernel */
    uint32_t most_layers;
    const arenite_model_t *model;
} model_head_t;

/* Chooses, once a start: the model of the slot that counts, or the one that this firmware has inside. */
void model_slot_start(void);

/* The model that was chosen. */
const arenite_model_t *model_slot_model(void);

#endif
