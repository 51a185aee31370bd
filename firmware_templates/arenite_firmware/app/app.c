/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

#include <stddef.h>
#include <string.h>

#include "arenite.h"
#include "arenite_models.h"
#ifdef ARENITE_GUARDS
#include "arenite_guards.h"
#endif
#ifdef ARENITE_UPDATE
#include "update_link.h"
#endif
#ifdef ARENITE_MODEL_SLOTS
#include "model_slot.h"
#endif
#include "board.h"
#include "bytes.h"
#include "command.h"
#include "crc32.h"
#include "health.h"
#include "link.h"
#include "trace.h"

#define LOAD_HEADER 5u  /* index, offset */
#define READ_REQUEST 7u /* index, offset, bytes */
#define RUN_REQUEST 4u  /* count, or nothing for one run */
#define STATUS_BYTES 1u
#define TRACE_REQUEST 11u /* mode, layer, first row, rows */
#define LAYER_RECORD 16u  /* rows, checksum, counter */
#define NAME_LIMIT 255u   /* longer tensor names are cut in the description */

typedef char scale_is_32_bits_wide[sizeof(float) == sizeof(uint32_t) ? 1 : -1];

#define BUFFER(number, name, bytes) static uint8_t buffer_##number[bytes] BOARD_IN_MEMORY(name);
#define START(number) buffer_##number
ARENITE_BUFFERS(BUFFER)
static uint8_t *const memories[ARENITE_MODEL_COUNT][ARENITE_MOST_REGIONS] = ARENITE_MEMORY(START);

static arenite_link_t link_state;

static struct {
    uint8_t selected; /* of arenite_models */
    uint32_t loaded_bytes[APP_MAX_INPUTS];
    bool outputs_valid;
    bool run_known; /* the fields below are those of the last run */
    uint8_t run_sequence;
    uint64_t run_counter;
    uint32_t run_stack_peak_bytes;
    arenite_feed_t feed; /* of a row-fed model */
    uint32_t row_bytes;  /* of the next row, already there */
    uint64_t feed_counter;
} session;

#ifdef ARENITE_MODEL_SLOTS
static const arenite_model_t *model(void) { return model_slot_model(); }
#else
static const arenite_model_t *model(void) { return arenite_models[session.selected]; }
#endif
static uint8_t *const *memory(void) { return memories[session.selected]; }

static const arenite_io_t *find_io(bool output, uint32_t index) {
    const uint32_t count = output ? model()->output_count : model()->input_count;
    if (index >= count || (!output && index >= APP_MAX_INPUTS)) {
        return NULL;
    }
    return output ? &model()->outputs[index] : &model()->inputs[index];
}

static bool in_range(const arenite_io_t *io, uint32_t offset, uint32_t bytes) {
    return offset <= io->bytes && bytes <= io->bytes - offset;
}

static uint32_t copy_name(uint8_t *to, const char *name) {
    uint32_t n = 0;
    for (; n < NAME_LIMIT && name[n] != '\0'; n++) {
        to[n] = (uint8_t)name[n];
    }
    return n;
}

static app_status_t identify(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != 0) {
        return APP_BAD_LENGTH;
    }
    uint8_t *p = reply->data;
    p[0] = APP_PROTOCOL_VERSION;
    p[1] = BOARD_COUNTER_UNIT;
    p[2] = ARENITE_MODEL_COUNT;
    p[3] = session.selected;
    p[4] = model()->input_count;
    p[5] = model()->output_count;
    put_u16(p + 6, LINK_MAX_PAYLOAD);
    put_u32(p + 8, BOARD_COUNTER_HZ);
    put_u32(p + 12, ARENITE_ARENA_BYTES);
    memcpy(p + 16, model()->sha256, 32);
    reply->bytes = 48u + copy_name(p + 48, BOARD_NAME);
    return APP_OK;
}

static app_status_t describe(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != 2) {
        return APP_BAD_LENGTH;
    }
    const arenite_io_t *io =
        request->payload[0] <= 1 ? find_io(request->payload[0] == 1, request->payload[1]) : NULL;
    if (io == NULL) {
        return APP_BAD_INDEX;
    }
    uint8_t *p = reply->data;
    uint32_t scale_bits;
    memcpy(&scale_bits, &io->scale, sizeof scale_bits);
    p[0] = io->dtype;
    put_u16(p + 1, (uint16_t)io->zero_point);
    put_u32(p + 3, io->bytes);
    put_u32(p + 7, scale_bits);
    reply->bytes = 11u + copy_name(p + 11, io->name);
    return APP_OK;
}

/* Runs what a complete row allows. It waits for the byte after it, or for the run command: so the last row, after which
 * the rest of the network follows, is computed under that command's time-out. */
static void feed_complete_row(void) {
    if (session.row_bytes != 0 && session.row_bytes == arenite_row_bytes(&session.feed)) {
        board_marker(health_marker_is_on());
        const uint64_t start = board_counter();
        arenite_feed(&session.feed);
        session.feed_counter += board_counter() - start;
        board_marker(false);
        session.row_bytes = 0;
    }
}

static void begin_rows(void) {
    board_stack_paint();
    trace_begin();
    arenite_begin(&session.feed, model(), memory());
    session.row_bytes = 0;
    session.feed_counter = 0;
    session.loaded_bytes[0] = 0;
}

/* Takes the next bytes of a row-fed input. Bytes that are there already (the host repeats what it got no answer to) are
 * passed over; an offset of 0 starts anew. */
static app_status_t load_rows(uint32_t offset, const uint8_t *data, uint32_t bytes) {
    if (offset == 0) {
        begin_rows();
    } else if (offset < session.loaded_bytes[0] && bytes <= session.loaded_bytes[0] - offset) {
        return APP_OK;
    } else if (offset != session.loaded_bytes[0]) {
        return APP_NOT_LOADED;
    }
    session.loaded_bytes[0] += bytes;
    while (bytes > 0) {
        feed_complete_row();
        const uint32_t space = arenite_row_bytes(&session.feed) - session.row_bytes;
        const uint32_t now = bytes < space ? bytes : space;
        if (now == 0) {
            return APP_OUT_OF_RANGE;
        }
        memcpy((uint8_t *)arenite_row(&session.feed) + session.row_bytes, data, now);
        session.row_bytes += now;
        data += now;
        bytes -= now;
    }
    return APP_OK;
}

static app_status_t load(const app_request_t *request, app_reply_t *reply) {
    (void)reply;
    if (request->bytes < LOAD_HEADER) {
        return APP_BAD_LENGTH;
    }
    const uint8_t index = request->payload[0];
    const uint32_t offset = get_u32(request->payload + 1);
    const uint32_t bytes = request->bytes - LOAD_HEADER;
    const arenite_io_t *io = find_io(false, index);
    if (io == NULL) {
        return APP_BAD_INDEX;
    }
    if (!in_range(io, offset, bytes)) {
        return APP_OUT_OF_RANGE;
    }
    if (offset > session.loaded_bytes[index]) {
        return APP_NOT_LOADED;
    }
    session.outputs_valid = false;
    session.run_known = false;
    if (model()->row_fed) {
        return load_rows(offset, request->payload + LOAD_HEADER, bytes);
    }
    memcpy((uint8_t *)arenite_input(model(), memory(), index) + offset, request->payload + LOAD_HEADER,
           bytes);
    session.loaded_bytes[index] = offset + bytes;
    return APP_OK;
}

static bool is_loaded(void) {
    for (uint32_t i = 0; i < model()->input_count; i++) {
        const arenite_io_t *io = find_io(false, i);
        if (io == NULL || session.loaded_bytes[i] != io->bytes) {
            return false;
        }
    }
    return true;
}

static void run_model(uint8_t sequence, uint32_t count) {
    if (model()->row_fed) {
        feed_complete_row();
        session.run_counter = session.feed_counter;
    } else {
        board_stack_paint();
        board_marker(health_marker_is_on());
        const uint64_t start = board_counter();
        for (uint32_t i = 0; i < count; i++) {
            trace_begin();
            arenite_run(model(), memory());
        }
        session.run_counter = board_counter() - start;
        board_marker(false);
    }
    session.run_stack_peak_bytes = board_stack_peak_bytes();
    health_ran(count, session.run_stack_peak_bytes);
    memset(session.loaded_bytes, 0, sizeof session.loaded_bytes);
    session.outputs_valid = count == 1; /* later runs read what the first one left of its inputs */
    session.run_known = true;
    session.run_sequence = sequence;
}

static app_status_t run(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != 0 && request->bytes != RUN_REQUEST) {
        return APP_BAD_LENGTH;
    }
    const uint32_t count = request->bytes == 0 ? 1u : get_u32(request->payload);
    if (count == 0 || (model()->row_fed && count != 1)) {
        return APP_NOT_POSSIBLE;
    }
    const bool repeated = session.run_known && session.run_sequence == request->sequence;
    if (!repeated) {
        if (!is_loaded()) {
            return APP_NOT_LOADED;
        }
        run_model(request->sequence, count);
    }
#ifdef ARENITE_GUARDS
    const arenite_damage_t *damage = arenite_guard_damage();
    if (damage != NULL) {
        put_u32(reply->data, damage->guard);
        put_u16(reply->data + 4, damage->layer);
        put_u32(reply->data + 6, damage->step);
        reply->bytes = 10;
        return APP_DAMAGED;
    }
#endif
    reply->data[0] = BOARD_COUNTER_UNIT;
    put_u64(reply->data + 1, session.run_counter);
    put_u32(reply->data + 9, session.run_stack_peak_bytes);
    reply->bytes = 13;
    return APP_OK;
}

static app_status_t read_output(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != READ_REQUEST) {
        return APP_BAD_LENGTH;
    }
    const uint8_t index = request->payload[0];
    const uint32_t offset = get_u32(request->payload + 1);
    const uint32_t bytes = get_u16(request->payload + 5);
    const arenite_io_t *io = find_io(true, index);
    if (io == NULL) {
        return APP_BAD_INDEX;
    }
    if (bytes > LINK_MAX_PAYLOAD - STATUS_BYTES || !in_range(io, offset, bytes)) {
        return APP_OUT_OF_RANGE;
    }
    if (!session.outputs_valid) {
        return APP_NOT_RUN;
    }
    memcpy(reply->data, (const uint8_t *)arenite_output(model(), memory(), index) + offset, bytes);
    reply->bytes = bytes;
    return APP_OK;
}

static app_status_t trace(const app_request_t *request) {
    if (request->bytes != TRACE_REQUEST) {
        return APP_BAD_LENGTH;
    }
    const uint8_t *p = request->payload;
    const trace_request_t wanted = {p[0], (uint16_t)get_u16(p + 1), get_u32(p + 3), get_u32(p + 7)};
    if (wanted.mode > TRACE_ALL) {
        return APP_NOT_POSSIBLE;
    }
    if (wanted.layer >= model()->layer_count) {
        return APP_BAD_INDEX;
    }
    trace_set(&wanted);
    return APP_OK;
}

/* As many records as one frame holds. */
static app_status_t read_layers(const app_request_t *request, app_reply_t *reply) {
    if (request->bytes != 2) {
        return APP_BAD_LENGTH;
    }
    const uint32_t first = get_u16(request->payload);
    if (first >= model()->layer_count) {
        return APP_BAD_INDEX;
    }
    if (!session.outputs_valid || trace_layer(0) == NULL) {
        return APP_NOT_RUN;
    }
    const uint32_t most = (LINK_MAX_PAYLOAD - STATUS_BYTES) / LAYER_RECORD;
    const uint32_t left = model()->layer_count - first;
    const uint32_t count = left < most ? left : most;
    for (uint32_t i = 0; i < count; i++) {
        const trace_layer_t *layer = trace_layer((uint16_t)(first + i));
        uint8_t *to = reply->data + i * LAYER_RECORD;
        put_u32(to, layer->rows);
        put_u32(to + 4, LINK_CRC32_END(layer->checksum));
        put_u64(to + 8, layer->counter);
    }
    reply->bytes = count * LAYER_RECORD;
    return APP_OK;
}

/* The models share the arena: what was loaded or computed for one is no longer there for another. A model that remembers
 * starts anew. */
static app_status_t select_model(const app_request_t *request) {
    if (request->bytes != 1) {
        return APP_BAD_LENGTH;
    }
    const uint8_t index = request->payload[0];
    if (index >= ARENITE_MODEL_COUNT) {
        return APP_BAD_INDEX;
    }
    memset(&session, 0, sizeof session);
    session.selected = index;
    trace_set(&(trace_request_t){0, 0, 0, 0});
    arenite_reset(model(), memory());
    return APP_OK;
}

static app_status_t dispatch(uint8_t command, const app_request_t *request, app_reply_t *reply) {
    switch (command) {
    case APP_IDENTIFY:
        return identify(request, reply);
    case APP_DESCRIBE:
        return describe(request, reply);
    case APP_LOAD:
        return load(request, reply);
    case APP_RUN:
        return run(request, reply);
    case APP_READ:
        return read_output(request, reply);
    case APP_SELECT:
        return select_model(request);
    case APP_ABOUT:
        return health_about(request, reply, model()->layer_count);
    case APP_TRACE:
        return trace(request);
    case APP_LAYERS:
        return read_layers(request, reply);
    case APP_HEARTBEAT:
        return health_heartbeat(request, reply, link_state.damaged_frames);
    case APP_RESET_CAUSE:
        return health_reset_cause(request, reply);
    case APP_PARAMETER:
        return health_parameter(request, reply);
    case APP_REBOOT:
        return request->bytes == 0 ? APP_OK : APP_BAD_LENGTH;
#ifdef ARENITE_UPDATE
    case APP_UPDATE:
        return update_link(request, reply);
#endif
    default:
        return APP_UNKNOWN_COMMAND;
    }
}

void app_start(void) {
    memset(&session, 0, sizeof session);
    health_start();
#ifdef ARENITE_UPDATE
    update_link_start();
#endif
#ifdef ARENITE_MODEL_SLOTS
    model_slot_start();
#endif
    trace_set(&(trace_request_t){0, 0, 0, 0});
    arenite_reset(model(), memory());
    link_reset(&link_state);
    link_send(&link_state, APP_BANNER, 0, 0);
}

bool app_may_sleep(void) { return health_may_sleep(); }

void app_receive(uint8_t byte) {
    if (!link_receive(&link_state, byte)) {
        return;
    }
    const uint8_t command = link_command(&link_state);
    uint8_t *payload = link_payload(&link_state);
    const app_request_t request = {payload, link_payload_bytes(&link_state), link_sequence(&link_state)};
    app_reply_t reply = {payload + STATUS_BYTES, 0};
    const app_status_t status = dispatch(command, &request, &reply);
    if (status != APP_OK) {
        health_refused(command, status);
    }
    payload[0] = (uint8_t)status;
    link_send(&link_state, command | APP_REPLY, request.sequence, STATUS_BYTES + reply.bytes);
    if (command == APP_REBOOT && status == APP_OK) {
        board_reset();
    }
#ifdef ARENITE_UPDATE
    if (update_link_wants_restart()) {
        board_reset();
    }
#endif
}
