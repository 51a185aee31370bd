/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <string.h>

#include "board.h"
#include "bytes.h"
#include "crc32.h"

#define FULL_BLOCK 254u /* longest run of non-zero bytes behind one code byte */

static void start_frame(arenite_link_t *link) {
    link->count = 0;
    link->block = 0;
    link->pending_zero = false;
    link->dropped = false;
}

void link_reset(arenite_link_t *link) {
    start_frame(link);
    link->damaged_frames = 0;
}

static void append(arenite_link_t *link, uint8_t byte) {
    if (link->count == LINK_MAX_FRAME) {
        link->dropped = true;
        return;
    }
    link->frame[link->count++] = byte;
}

static void unstuff(arenite_link_t *link, uint8_t byte) {
    if (link->dropped) {
        return;
    }
    if (link->block != 0) {
        link->block--;
        append(link, byte);
        return;
    }
    if (link->pending_zero) {
        append(link, 0);
    }
    link->block = (uint8_t)(byte - 1u);
    link->pending_zero = link->block != FULL_BLOCK;
}

static bool is_whole(const arenite_link_t *link) {
    if (link->dropped || link->block != 0 || link->count < LINK_HEADER_BYTES + LINK_CRC_BYTES) {
        return false;
    }
    const uint32_t body = link->count - LINK_CRC_BYTES;
    return link->frame[0] == 'A' && link->frame[1] == 'r' &&
           link_payload_bytes(link) == body - LINK_HEADER_BYTES &&
           get_u32(link->frame + body) == link_crc32(link->frame, body);
}

bool link_receive(arenite_link_t *link, uint8_t byte) {
    if (byte != 0) {
        unstuff(link, byte);
        return false;
    }
    const bool whole = is_whole(link);
    /* Two zeros in a row are the end of one frame and the start of the next. */
    link->damaged_frames += !whole && (link->count != 0 || link->block != 0 || link->dropped) ? 1u : 0u;
    start_frame(link); /* leaves the bytes of the frame in place for its reader */
    return whole;
}

/* A frame in pieces that lie apart. */
typedef struct {
    const uint8_t *data;
    uint32_t bytes;
} part_t;

#define PARTS 3u

static uint8_t byte_at(const part_t *parts, uint32_t at) {
    while (at >= parts->bytes) {
        at -= parts->bytes;
        parts++;
    }
    return parts->data[at];
}

static void send_stuffed(const part_t parts[PARTS]) {
    const uint32_t bytes = parts[0].bytes + parts[1].bytes + parts[2].bytes;
    uint32_t at = 0;
    board_uart_write(0);
    for (;;) {
        uint32_t run = 0;
        while (run < FULL_BLOCK && at + run < bytes && byte_at(parts, at + run) != 0) {
            run++;
        }
        board_uart_write((uint8_t)(run + 1u));
        for (uint32_t i = 0; i < run; i++) {
            board_uart_write(byte_at(parts, at + i));
        }
        at += run;
        if (at == bytes) {
            break;
        }
        at += run < FULL_BLOCK ? 1u : 0u; /* the zero that this block stands for */
    }
    board_uart_write(0);
}

static void put_header(uint8_t *frame, uint8_t command, uint8_t sequence, uint32_t payload_bytes) {
    frame[0] = 'A';
    frame[1] = 'r';
    frame[2] = command;
    frame[3] = sequence;
    put_u16(frame + 4, (uint16_t)payload_bytes);
}

void link_send(arenite_link_t *link, uint8_t command, uint8_t sequence, uint32_t payload_bytes) {
    const uint32_t body = LINK_HEADER_BYTES + payload_bytes;
    put_header(link->frame, command, sequence, payload_bytes);
    put_u32(link->frame + body, link_crc32(link->frame, body));
    const part_t parts[PARTS] = {{link->frame, body + LINK_CRC_BYTES}, {NULL, 0}, {NULL, 0}};
    send_stuffed(parts);
}

void link_send_apart(uint8_t command, uint8_t sequence, const uint8_t *head, uint32_t head_bytes,
                     const uint8_t *data, uint32_t data_bytes) {
    uint8_t start[LINK_HEADER_BYTES + LINK_MAX_HEAD];
    uint8_t end[LINK_CRC_BYTES];
    const uint32_t start_bytes = LINK_HEADER_BYTES + head_bytes;
    put_header(start, command, sequence, head_bytes + data_bytes);
    memcpy(start + LINK_HEADER_BYTES, head, head_bytes);
    const uint32_t crc = link_crc32_more(LINK_CRC32_START, start, start_bytes);
    put_u32(end, LINK_CRC32_END(link_crc32_more(crc, data, data_bytes)));
    const part_t parts[PARTS] = {{start, start_bytes}, {data, data_bytes}, {end, LINK_CRC_BYTES}};
    send_stuffed(parts);
}
