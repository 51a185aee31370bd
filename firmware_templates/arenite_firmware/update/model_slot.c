/* SPDX-License-Identifier: Apache-2.0 */
#include "model_slot.h"

#include <stdbool.h>
#include <stddef.h>

#include "app.h"
#include "arenite_models.h"
#include "update_link.h"

static const arenite_model_t *chosen;

/* Whoever made the image has checked this; here it costs little. */
static bool fits(const model_head_t *head, uint32_t payload_limit_bytes) {
    const arenite_model_t *own = arenite_models[0];
    const uint32_t at = (uint32_t)((uintptr_t)head->model - (uintptr_t)head);
    if (head->magic != MODEL_HEAD_MAGIC || head->runtime_version != ARENITE_RUNTIME_VERSION ||
        head->max_pointers > ARENITE_MAX_POINTERS || head->most_layers > ARENITE_MOST_LAYERS ||
        at > payload_limit_bytes - sizeof *own) {
        return false;
    }
    const arenite_model_t *model = head->model;
    if (model->region_count > own->region_count || model->input_count > APP_MAX_INPUTS ||
        model->layer_count > ARENITE_MOST_LAYERS) {
        return false;
    }
    for (uint32_t i = 0; i < model->region_count; i++) {
        if (model->region_bytes[i] > own->region_bytes[i]) {
            return false;
        }
    }
    return true;
}

void model_slot_start(void) {
    const update_slots_t *slots = board_update_slots(IMAGE_MODEL);
    update_boot_t *running = board_update_running(IMAGE_MODEL);
    chosen = arenite_models[0];
    if (running->slot < 0) {
        return;
    }
    const model_head_t *head =
        (const model_head_t *)(uintptr_t)(slots->start[running->slot] + UPDATE_PAYLOAD_AT);
    if (fits(head, update_payload_limit(slots->flash, slots->slot_bytes))) {
        chosen = head->model;
        return;
    }
    running->status[running->slot] = UPDATE_OTHER_BUILD;
    running->rolled_back = true;
    running->on_trial = false;
    running->slot = -1;
    running->version = 0;
}

const arenite_model_t *model_slot_model(void) { return chosen; }
