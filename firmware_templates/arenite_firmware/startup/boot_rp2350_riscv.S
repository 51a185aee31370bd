/* SPDX-License-Identifier: Apache-2.0 */
/* What an RP2350's boot ROM looks for in the first 4 KB of the flash (RP2350 data sheet, 5.9): an image for its RISC-V cores, with
 * the address where it starts and the stack. */
    .section .image_def, "a"
    .balign 4
    .global image_def
image_def:
    .word 0xFFFFDED3 /* start of a block */
    .word 0x11010142 /* image type: executable, RISC-V, RP2350; one word */
    .word 0x00000344 /* entry point; three words */
    .word Reset_Handler
    .word __stack_end
    .word 0x000004FF /* last item; four words before it */
    .word 0x00000000 /* no other block */
    .word 0xAB123579 /* end */
