// SPDX-License-Identifier: Apache-2.0
// Runs an image on an emulated RP2040 (npm package rp2040js) from the first byte of its flash, as the boot ROM would after it has
// found the checksum right; UART0 is a TCP port. Says at the end what clocks the firmware made and how often pin 2 rose.
//   node rp2040js_runner.cjs IMAGE PORT
const fs = require('fs');
const net = require('net');
const { RP2040, Simulator } = require('rp2040js');

const CYCLE_NS = 8;
const [image, port] = process.argv.slice(2);
const simulator = new Simulator();
const chip = simulator.rp2040;
const received = [];
const unsent = [];
let peer = null;
let rises = 0;

chip.logger = { debug() {}, info() {}, warn() {}, error() {} };
chip.flash.set(fs.readFileSync(image), 0);
chip.core.PC = 0x10000000;
chip.gpio[2].addListener((state) => { rises += state === 1 ? 1 : 0; });
chip.uart[0].onByte = (byte) => { if (peer) peer.write(Buffer.from([byte])); else unsent.push(byte); };

const server = net.createServer((socket) => {
  peer = socket;
  socket.write(Buffer.from(unsent));
  socket.on('data', (data) => received.push(...data));
  socket.on('close', () => {
    console.log(JSON.stringify({ system_hz: chip.clkSys, peripheral_hz: chip.clkPeri, rises }));
    process.exit(0);
  });
});
server.listen(Number(port), '127.0.0.1', () => console.log('listening'));

function run() {
  for (let i = 0; i < 100000; i++) simulator.clock.tick(chip.core.executeInstruction() * CYCLE_NS);
  while (received.length && !chip.uart[0].rxFIFO.full) chip.uart[0].feedByte(received.shift());
  setImmediate(run);
}
run();
