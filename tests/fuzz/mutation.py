"""Damage to files: blind, and such as keeps the structure of a format and so reaches the decoder behind the header."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable

import numpy as np

PATTERNS = [bytes(4), b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\1\0", b"\0\1\0\0", b"\1\0\0\0"]
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 127, 128, 255, 256, 257, 32767, 32768, 65535, 65536)
NUMBERS += (2**24, 2**31 - 1, 2**31, 2**32 - 1)
HEAD = 400
TIFF_TYPES = {1: "B", 3: "H", 4: "I", 16: "Q"}
"""Types of TIFF fields that hold whole numbers, as struct writes them."""


def mutate(data: bytes, random: np.random.Generator) -> bytes:
    """The same file with one kind of damage anywhere in it."""
    if not data:
        return data
    changed, head = bytearray(data), min(len(data), HEAD)
    at, other = (int(place) for place in random.integers(len(data), size=2))
    length = int(random.integers(1, 50))
    match random.integers(7):
        case 0:
            del changed[at + 1 :]
        case 1:
            for _ in range(3):
                changed[random.integers(head)] = random.integers(256)
        case 2:
            for place in random.integers(len(data), size=8):
                changed[place] ^= 1 << int(random.integers(8))
        case 3:
            place = int(random.integers(head))
            changed[place : place + 4] = PATTERNS[random.integers(len(PATTERNS))]
        case 4:
            del changed[at : at + length]
        case 5:
            changed[at:at] = random.bytes(length)
        case 6:
            changed[at : at + length] = changed[other : other + length]
    return bytes(changed)


def damage(data: bytes, random: np.random.Generator) -> bytes:
    """One to three kinds of damage, half of the time to the structure of the format."""
    for _ in range(int(random.integers(1, 4))):
        structured = _STRUCTURED.get(data[:2])
        data = structured(data, random) if structured and random.random() < 0.5 else mutate(data, random)
    if data[:4] == b"\x89PNG" and random.random() < 0.9:
        data = with_valid_checksums(data)
    return data


def with_valid_checksums(data: bytes) -> bytes:
    """Let damage to a PNG reach the decoder behind the checksums."""
    changed, at = bytearray(data), 8
    while at + 12 <= len(changed):
        end = at + 8 + struct.unpack_from(">I", changed, at)[0]
        if end + 4 > len(changed):
            break
        struct.pack_into(">I", changed, end, zlib.crc32(changed[at + 4 : end]))
        at = end + 4
    return bytes(changed)


def _tiff_field(data: bytes, random: np.random.Generator) -> bytes:
    """Change tag, type, count or value of a field in the first directory, or swap the values of two."""
    try:
        order = {b"II": "<", b"MM": ">"}[data[:2]]
        (version,) = struct.unpack_from(order + "H", data, 2)
        big = version == 43
        (start,) = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)
        (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, start)
        size, first, word = (20, start + 8, "Q") if big else (12, start + 2, "I")
        field = first + size * int(random.integers(max(count, 1)))
        value = field + 4 + struct.calcsize(word)
        changed = bytearray(data)
        number = int(NUMBERS[random.integers(len(NUMBERS))])
        _, kind = struct.unpack_from(order + "HH", data, field)
        match random.integers(6):
            case 0:  # the file's format, photometric interpretation and such are small numbers
                struct.pack_into(order + "H", changed, field, int(random.integers(254, 350)))
            case 1:
                struct.pack_into(order + "H", changed, field + 2, int(random.integers(0, 19)))
            case 2:
                struct.pack_into(order + word, changed, field + 4, number)
            case 3:
                other = first + size * int(random.integers(max(count, 1)))
                changed[value : field + size] = data[other + value - field : other + size]
            case _:
                letter = TIFF_TYPES.get(kind, "I")
                top = 256 ** struct.calcsize(letter)
                small = int(random.integers(0, 70000)) if random.random() < 0.5 else number
                struct.pack_into(order + letter, changed, value, small % top)
    except (struct.error, KeyError, OverflowError, ValueError):
        return mutate(data, random)
    return bytes(changed)


def _number_in_text(data: bytes, random: np.random.Generator) -> bytes:
    """Change a number written in letters near the beginning, as in headers of PFM and NPY."""
    found = list(re.finditer(rb"\d+", data[:HEAD]))
    if not found:
        return mutate(data, random)
    place = found[random.integers(len(found))]
    number = b"%d" % NUMBERS[random.integers(len(NUMBERS))]
    return data[: place.start()] + number + data[place.end() :]


def _binary_number(data: bytes, random: np.random.Generator) -> bytes:
    """Write a number of one, two or four bytes somewhere near the beginning, as lengths and sizes are."""
    changed = bytearray(data)
    order, letter = "<>"[random.integers(2)], "BHI"[random.integers(3)]
    at = int(random.integers(max(min(len(data), 2 * HEAD) - 4, 1)))
    number = int(NUMBERS[random.integers(len(NUMBERS))]) % 256 ** struct.calcsize(letter)
    changed[at : at + struct.calcsize(letter)] = struct.pack(order + letter, number)
    return bytes(changed)


Damage = Callable[[bytes, np.random.Generator], bytes]
_STRUCTURED: dict[bytes, Damage] = {b"II": _tiff_field, b"MM": _tiff_field, b"PF": _number_in_text}
_STRUCTURED |= {b"Pf": _number_in_text, b"\x93N": _number_in_text, b'{"': _number_in_text}
_STRUCTURED |= {b"v/": _binary_number, b"\x89P": _binary_number, b"\xff\xd8": _binary_number, b"PK": _binary_number}
