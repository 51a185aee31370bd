/* SPDX-License-Identifier: Apache-2.0 */
/* Framing of the serial link: finds frames in a stream of bytes and sends frames into one.
 *
 * A frame, before stuffing, all integers little-endian:
 *
 *     'A' 'r'  command  sequence  length (2)  payload (length)  CRC-32 of all before (4)
 *
 * The frame is stuffed (COBS: consistent overhead byte stuffing, one byte more in 254), so that no byte of it
 * is zero, and stands between two zero bytes. A zero therefore always ends whatever came before it: after any
 * garbage, cut or merged frame, the next whole frame is understood, with no time-out and no escape rule. A
 * frame that is damaged, too long or has no magic is dropped in silence; the host asks again.
 */
#ifndef ARENITE_LINK_H
#define ARENITE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_MAX_PAYLOAD 1032u
#define LINK_HEADER_BYTES 6u
#define LINK_CRC_BYTES 4u
#define LINK_MAX_FRAME (LINK_HEADER_BYTES + LINK_MAX_PAYLOAD + LINK_CRC_BYTES)

typedef struct {
    uint8_t frame[LINK_MAX_FRAME]; /* the frame as decoded so far; afterwards the reply is built in it */
    uint32_t count;                /* bytes of it that are valid, <= LINK_MAX_FRAME */
    uint8_t block;                 /* stuffed bytes that the current block still lacks */
    bool pending_zero;             /* the next block starts with a zero that stuffing took out */
    bool dropped;                  /* this frame is too long: ignore bytes up to the next zero */
    uint32_t damaged_frames;       /* since the start: those that ended and were not whole */
} arenite_link_t;

/* Empties the receiver and its count of damaged frames. */
void link_reset(arenite_link_t *link);

/* Takes one byte from the line. True when it completes a valid frame: then the accessors below hold until the
 * next call. */
bool link_receive(arenite_link_t *link, uint8_t byte);

/* Sends the frame whose payload (payload_bytes <= LINK_MAX_PAYLOAD) already lies at link_payload(). */
void link_send(arenite_link_t *link, uint8_t command, uint8_t sequence, uint32_t payload_bytes);

/* Sends a frame whose payload is `head` and then `data`, together at most LINK_MAX_PAYLOAD bytes, from where they are: the
 * receiver keeps what it holds. */
#define LINK_MAX_HEAD 16u
void link_send_apart(uint8_t command, uint8_t sequence, const uint8_t *head, uint32_t head_bytes,
                     const uint8_t *data, uint32_t data_bytes);

static inline uint8_t link_command(const arenite_link_t *link) { return link->frame[2]; }
static inline uint8_t link_sequence(const arenite_link_t *link) { return link->frame[3]; }
static inline uint8_t *link_payload(arenite_link_t *link) { return link->frame + LINK_HEADER_BYTES; }

/* Bytes of payload in the frame just received. */
static inline uint32_t link_payload_bytes(const arenite_link_t *link) {
    return (uint32_t)link->frame[4] | (uint32_t)link->frame[5] << 8;
}

#endif
