/* SPDX-License-Identifier: Apache-2.0 */
/* As much of Arduino as a generated sketch uses; prints to standard output. */
#ifndef ARDUINO_H
#define ARDUINO_H
#include <cstddef>
#include <cstdint>
#include <iostream>

struct SerialPort {
    void begin(unsigned long) {}
    template <typename T> void print(T value) { std::cout << value; }
    template <typename T> void println(T value) { std::cout << value << std::endl; }
};
inline SerialPort Serial;
inline void delay(unsigned long) {}
#endif
