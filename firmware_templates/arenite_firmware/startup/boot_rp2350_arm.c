/* SPDX-License-Identifier: Apache-2.0 */
/* What an RP2350's boot ROM looks for in the first 4 KB of the flash (RP2350 data sheet, 5.9): an image that Arm cores run in
 * the secure state, entered by the vector table at its start. */
#include <stdint.h>

__attribute__((section(".image_def"), used)) static const uint32_t image_def[] = {
    0xFFFFDED3u, /* start of a block */
    0x10210142u, /* image type: executable, secure, Arm, RP2350; one word */
    0x000001FFu, /* last item; one word before it */
    0x00000000u, /* no other block */
    0xAB123579u, /* end */
};
