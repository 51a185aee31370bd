/* SPDX-License-Identifier: Apache-2.0 */
/* First 256 bytes of an RP2040's flash (RP2040 data sheet, 2.8.1.3 and 4.10). The boot ROM copies them to RAM, checks the CRC in
 * the last word and runs them: they set the flash up to be read in place, with a command that every serial NOR flash knows
 * in its state after reset (3Bh: address on one line, data on two), at half the system's clock, and go on to the vector
 * table behind them. Whoever changes a byte here must change the CRC; a test computes it. */
    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .section .boot, "ax"
    .balign 4
boot:
    ldr r3, ssi
    ldr r1, ssi_more
    movs r0, #0
    str r0, [r3, #0x08] /* SSIENR: off while it changes */
    movs r0, #2
    str r0, [r3, #0x14] /* BAUDR: the divider, even */
    movs r0, #1
    str r0, [r1, #0x00] /* RX_SAMPLE_DLY: one system cycle later */
    ldr r0, frame
    str r0, [r3, #0x00] /* CTRLR0 */
    ldr r0, command
    str r0, [r1, #0x04] /* SPI_CTRLR0 */
    movs r0, #0
    str r0, [r3, #0x04] /* CTRLR1: one word a transfer */
    movs r0, #1
    str r0, [r3, #0x08]

    ldr r0, vectors
    ldr r1, vtor
    str r0, [r1, #0]
    ldr r1, [r0, #0]
    ldr r2, [r0, #4]
    msr msp, r1
    bx r2

    .balign 4
ssi:
    .word 0x18000000
ssi_more:
    .word 0x180000F0
frame:
    .word 1 << 21 | 31 << 16 | 3 << 8 /* two lines, 32 bits, command and address before the read */
command:
    .word 0x3B << 24 | 8 << 11 | 2 << 8 | 6 << 2 /* 8 idle cycles, 8 bits of command, 24 of address */
vectors:
    .word 0x10000100
vtor:
    .word 0xE000ED08

    .org 252
    .word 0xA3E19125 /* CRC-32 of the 252 bytes before, as the boot ROM reckons it */
