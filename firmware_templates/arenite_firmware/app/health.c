/* SPDX-License-Identifier: Apache-2.0 */
#include "health.h"

#include <stddef.h>
#include <string.h>

#include "arenite_models.h"
#ifdef ARENITE_GUARDS
#include "arenite_guards.h"
#endif
#include "board.h"
#include "bytes.h"

#ifndef ARENITE_BUILD_ID /* the digest of sources and compiler; the build gives it */
#define ARENITE_BUILD_ID 0ull
#endif

#define ROUNDING_DOUBLE 0u /* the rule of the TFLite reference kernels */

enum { FEATURE_GUARDS = 1, FEATURE_WATCHDOG = 2, FEATURE_MARKER = 4 };
enum { GUARDS_ABSENT = 0, GUARDS_INTACT = 1, GUARDS_DAMAGED = 2 };

static struct {
    uint64_t start;
    uint32_t inferences;
    uint32_t stack_peak_bytes;
    uint32_t refusals;
    uint8_t last_command;
    uint8_t last_status;
    uint32_t parameters[APP_PARAMETERS];
} health;

void health_start(void) {
    memset(&health, 0, sizeof health);
    health.start = board_counter();
    for (uint32_t i = 0; i < APP_PARAMETERS; i++) {
        health.parameters[i] = 1;
    }
}

void health_refused(uint8_t command, app_status_t status) {
    health.refusals++;
    health.last_command = command;
    health.last_status = (uint8_t)status;
}

void health_ran(uint32_t inferences, uint32_t stack_peak_bytes) {
    health.inferences += inferences;
    if (stack_peak_bytes > health.stack_peak_bytes) {
        health.stack_peak_bytes = stack_peak_bytes;
    }
}

bool health_marker_is_on(void) { return health.parameters[APP_MARKER] != 0; }

bool health_may_sleep(void) { return health.parameters[APP_SLEEP] != 0; }

static uint8_t features(void) {
    uint8_t found = 0;
#ifdef ARENITE_GUARDS
    found |= FEATURE_GUARDS;
#endif
#ifdef BOARD_WATCHDOG_FEED
    found |= FEATURE_WATCHDOG;
#endif
#ifdef BOARD_MARKER_ON
    found |= FEATURE_MARKER;
#endif
    return found;
}

app_status_t health_about(const app_request_t *request, app_reply_t *reply, uint16_t layers) {
    if (request->bytes != 0) {
        return APP_BAD_LENGTH;
    }
    uint8_t *p = reply->data;
    p[0] = features();
    p[1] = ROUNDING_DOUBLE;
    put_u16(p + 2, layers);
    put_u32(p + 4, BOARD_CLOCK_HZ);
    put_u64(p + 8, ARENITE_BUILD_ID);
    reply->bytes = 16u + board_mcu_id(p + 16);
    return APP_OK;
}

static uint8_t guards(void) {
#ifdef ARENITE_GUARDS
    return arenite_guard_damage() == NULL ? GUARDS_INTACT : GUARDS_DAMAGED;
#else
    return GUARDS_ABSENT;
#endif
}

app_status_t health_heartbeat(const app_request_t *request, app_reply_t *reply, uint32_t damaged_frames) {
    if (request->bytes != 0) {
        return APP_BAD_LENGTH;
    }
    uint8_t *p = reply->data;
    put_u64(p, board_counter() - health.start);
    put_u32(p + 8, health.inferences);
    put_u32(p + 12, health.stack_peak_bytes);
    put_u32(p + 16, damaged_frames);
    put_u32(p + 20, health.refusals);
    p[24] = health.last_command;
    p[25] = health.last_status;
    p[26] = guards();
    reply->bytes = 27;
    return APP_OK;
}

app_status_t health_reset_cause(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != 0) {
        return APP_BAD_LENGTH;
    }
    const board_fault_t *fault = board_fault();
    uint8_t *p = reply->data;
    p[0] = (uint8_t)board_reset_cause();
    put_u32(p + 1, fault->kind);
    put_u32(p + 5, fault->pc);
    put_u32(p + 9, fault->lr);
    put_u32(p + 13, fault->status);
    put_u32(p + 17, fault->address);
    put_u16(p + 21, fault->layer);
    put_u16(p + 23, fault->step);
    reply->bytes = 25;
    return APP_OK;
}

app_status_t health_parameter(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != 1 && request->bytes != 5) {
        return APP_BAD_LENGTH;
    }
    const uint8_t index = request->payload[0];
    if (index >= APP_PARAMETERS) {
        return APP_BAD_INDEX;
    }
    if (request->bytes == 5) {
        health.parameters[index] = get_u32(request->payload + 1);
    }
    put_u32(reply->data, health.parameters[index]);
    reply->bytes = 4;
    return APP_OK;
}
