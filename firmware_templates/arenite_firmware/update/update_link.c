/* SPDX-License-Identifier: Apache-2.0 */
#include "update_link.h"

#include <stddef.h>
#include <string.h>

#include "bytes.h"

enum { STATE = 0, BEGIN = 1, TAKE = 2, FINISH = 3, CONFIRM = 4, RESTART = 5, OF_MODEL = 16 };
enum { CONFIRMED = 1, ON_TRIAL = 2, ROLLED_BACK = 4 };
#define TAKE_HEADER 5u /* operation, offset */

static update_install_t install;
static bool finished; /* the install has come to its end, with this result */
static update_status_t finish_result;
static bool restart;

static void put_state(const update_slots_t *slots, const update_boot_t *running, app_reply_t *reply) {
    uint8_t *p = reply->data;
    p[1] = (uint8_t)running->slot;
    put_u32(p + 2, running->version);
    p[6] = (uint8_t)((running->confirmed ? CONFIRMED : 0) | (running->on_trial ? ON_TRIAL : 0) |
                     (running->rolled_back ? ROLLED_BACK : 0));
    p[7] = (uint8_t)running->status[0];
    p[8] = (uint8_t)running->status[1];
    put_u32(p + 9, update_payload_limit(slots->flash, slots->slot_bytes));
    reply->bytes = 13;
}

static update_status_t begin(image_kind_t kind, const uint8_t *header) {
    finished = false;
    return update_begin(&install, board_update_slots(kind), board_update_running(kind), header);
}

/* Bytes that are there already come again when the reply to them was lost. */
static update_status_t take(uint32_t offset, const uint8_t *data, uint32_t bytes) {
    if (install.slots != NULL && offset < install.taken_bytes && bytes <= install.taken_bytes - offset) {
        return UPDATE_OK;
    }
    return update_take(&install, offset, data, bytes);
}

static update_status_t finish(void) {
    if (!finished) {
        finish_result = update_finish(&install);
        finished = true;
    }
    return finish_result;
}

static update_status_t ask_restart(void) {
    restart = finished && finish_result == UPDATE_OK;
    return restart ? UPDATE_OK : UPDATE_OUT_OF_ORDER;
}

static update_status_t confirm(image_kind_t kind) {
    update_boot_t *running = board_update_running(kind);
    if (running->slot < 0) {
        return UPDATE_NO_IMAGE;
    }
    const update_status_t status = update_confirm(board_update_slots(kind), running->slot);
    running->confirmed = running->confirmed || status == UPDATE_OK;
    return status;
}

void update_link_start(void) {
    memset(&install, 0, sizeof install);
    finished = false;
    restart = false;
}

bool update_link_wants_restart(void) { return restart; }

app_status_t update_link(const app_request_t *request, app_reply_t *reply) {
    const uint8_t *p = request->payload;
    const uint32_t bytes = request->bytes;
    if (bytes < 1) {
        return APP_BAD_LENGTH;
    }
    const uint32_t operation = p[0] & (OF_MODEL - 1u);
    const image_kind_t kind = (p[0] & OF_MODEL) != 0 ? IMAGE_MODEL : IMAGE_FIRMWARE;
    const bool fits = operation == BEGIN  ? bytes == 1u + IMAGE_HEADER_BYTES
                      : operation == TAKE ? bytes >= TAKE_HEADER
                                          : bytes == 1;
    if (!fits) {
        return APP_BAD_LENGTH;
    }
    if (p[0] >= 2 * OF_MODEL) {
        return APP_BAD_INDEX;
    }
    reply->bytes = 1;
    const bool needs_slots = operation == STATE || operation == BEGIN || operation == CONFIRM;
    if (needs_slots && board_update_slots(kind) == NULL) {
        reply->data[0] = (uint8_t)UPDATE_OTHER_KIND;
        return APP_OK;
    }
    update_status_t result = UPDATE_OK;
    switch (operation) {
    case STATE:
        put_state(board_update_slots(kind), board_update_running(kind), reply);
        break;
    case BEGIN:
        result = begin(kind, p + 1);
        break;
    case TAKE:
        result = take(get_u32(p + 1), p + TAKE_HEADER, bytes - TAKE_HEADER);
        break;
    case FINISH:
        result = finish();
        break;
    case CONFIRM:
        result = confirm(kind);
        break;
    case RESTART:
        result = ask_restart();
        break;
    default:
        reply->bytes = 0;
        return APP_BAD_INDEX;
    }
    reply->data[0] = (uint8_t)result;
    return APP_OK;
}
