#!/usr/bin/env python3
"""Reads a TensorBoard event file by its published description alone: TFRecord frames with masked
CRC-32C around protobuf messages.

usage: read_events.py FILE    prints a line per event: step, then tag=value in order of the file

Ends with 1 and a reason when a frame, a CRC or a message is not right.
"""

import struct
import sys

POLYNOMIAL = 0x1EDC6F41  # Castagnoli, highest power first


def reversed_bits(value, width):
    return int(f"{value:0{width}b}"[::-1], 2)


def crc32c(data):
    """Bit by bit, in the polynomial's own order: slow and unlike any table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= reversed_bits(byte, 8) << 24
        for _ in range(8):
            crc = (crc << 1) ^ (POLYNOMIAL if crc & 0x80000000 else 0)
            crc &= 0xFFFFFFFF
    return reversed_bits(crc, 32) ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        if len(data) - at < 12:
            raise ValueError(f"half a header at byte {at}")
        header = data[at:at + 8]
        (length,) = struct.unpack("<Q", header)
        (crc,) = struct.unpack("<I", data[at + 8:at + 12])
        if crc != masked(crc32c(header)):
            raise ValueError(f"wrong CRC of the length at byte {at}")
        body = data[at + 12:at + 12 + length]
        tail = data[at + 12 + length:at + 16 + length]
        if len(body) < length or len(tail) < 4:
            raise ValueError(f"half a record at byte {at}")
        if struct.unpack("<I", tail)[0] != masked(crc32c(body)):
            raise ValueError(f"wrong CRC of the data at byte {at}")
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack("<d", data[at:at + 8])[0], at + 8
        elif wire == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            if len(value) < length:
                raise ValueError("a field runs past its message")
        elif wire == 5:
            value, at = struct.unpack("<f", data[at:at + 4])[0], at + 4
        else:
            raise ValueError(f"unknown wire type {wire}")
        yield number, value


def event_line(data):
    event = dict(fields(data))
    if event[1] < 1e9:
        raise ValueError(f"the wall time {event[1]} lies before 2001")
    words = [str(event.get(2, 0))]
    if 3 in event:
        words.append(event[3].decode())
    for number, value in fields(event.get(5, b"")):
        if number != 1:
            raise ValueError(f"unknown field {number} of a summary")
        scalar = dict(fields(value))
        words.append(f"{scalar[1].decode()}={scalar[2]:.6g}")
    return " ".join(words)


def main(arguments):
    with open(arguments[0], "rb") as file:
        data = file.read()
    try:
        for record in records(data):
            print(event_line(record))
    except (ValueError, IndexError, KeyError, struct.error) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
