/* SPDX-License-Identifier: Apache-2.0 */
/* What a RISC-V core knows of a trap. */
#include "board.h"
#include "drivers.h"

void trap_record(uint32_t cause, uint32_t pc, uint32_t address, uint32_t lr);

__attribute__((used)) void trap_record(uint32_t cause, uint32_t pc, uint32_t address, uint32_t lr) {
    const board_fault_t fault = {.kind = cause, .pc = pc, .lr = lr, .address = address};
    fault_record(&fault);
}
