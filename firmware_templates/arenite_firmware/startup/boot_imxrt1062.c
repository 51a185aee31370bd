/* SPDX-License-Identifier: Apache-2.0 */
/* What an i.MX RT1062's boot ROM reads from a serial NOR flash (NXP IMXRT1060RM, 9.6 and 9.7): how the flash is read, at its
 * start, and at 4 KB the image's vector. The vector table of the core follows at 8 KB. */
#include <stdint.h>

#include "board_config.h"

#define FLASH 0x60000000u
#define HEADER_BYTES 0x2000u

extern const uint32_t arenite_vectors[];

/* Order of the image vector: header, entry, reserved, device configuration, boot data, itself, signature, reserved. */
typedef struct {
    uint32_t configuration[128];
    uint32_t unused[896];
    uint32_t header;
    const void *entry;
    uint32_t reserved;
    uint32_t device_configuration;
    uint32_t boot_data_address;
    uint32_t self;
    uint32_t signature;
    uint32_t reserved_2;
    uint32_t boot_data[3]; /* start of the image, its length, no plugin */
    uint32_t rest[1013];
} boot_header_t;

typedef char header_has_its_size[sizeof(boot_header_t) == HEADER_BYTES ? 1 : -1];

__attribute__((section(".boot"), used)) static const boot_header_t boot_header = {
    .configuration =
        {
            [0x000 / 4] = 0x42464346u, /* tag FCFB */
            [0x004 / 4] = 0x56010400u, /* version 1.4.0 */
            [0x00C / 4] =
                0x00030301u, /* sampled by the looped-back strobe; 3 cycles before and after select */
            [0x044 / 4] = 0x00030401u, /* serial NOR, four lines, 60 MHz */
            [0x050 / 4] = BOARD_FLASH_BYTES,
            [0x080 / 4] = 0x0A1804EBu, /* read: command EBh on one line, 24 bits of address on four */
            [0x084 / 4] = 0x26043206u, /* six idle cycles, data on four lines */
            [0x1C0 / 4] = 256u,        /* bytes of a page */
            [0x1C4 / 4] = 4096u,       /* of a sector */
            [0x1C8 / 4] = 1u,          /* commands at 30 MHz */
            [0x1D0 / 4] = 65536u,      /* bytes of a block */
        },
    .header = 0x402000D1u,
    .entry = arenite_vectors,
    .boot_data_address = FLASH + 0x1020u,
    .self = FLASH + 0x1000u,
    .boot_data = {FLASH, BOARD_FLASH_BYTES, 0},
};
