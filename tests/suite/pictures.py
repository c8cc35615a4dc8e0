"""Pictures for fixtures, made without a library."""

import struct


def grey_jpeg(width, height=None):
    """Returns a JPEG of one grey: all blocks are two bits, 0 for "as before" and 0 for "nothing else"."""
    height = width if height is None else height

    def segment(mark, body):
        return struct.pack(">BBH", 0xFF, mark, len(body) + 2) + body

    def one_code(kind, symbol):
        return segment(0xC4, bytes([kind, 1] + [0] * 15 + [symbol]))

    blocks = -(-width // 8) * -(-height // 8)
    frame = segment(0xC0, struct.pack(">BHHBBBB", 8, height, width, 1, 1, 0x11, 0))
    tables = segment(0xDB, bytes([0] + [1] * 64)) + frame + one_code(0x00, 0) + one_code(0x10, 0)
    return b"\xff\xd8" + tables + segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + bytes(-(-blocks * 2 // 8)) + b"\xff\xd9"


def block_jpeg(rows):
    """A JPEG of 8 × 8 blocks of one colour each, given as rows of (red, green, blue), exactly."""

    def segment(mark, body):
        return struct.pack(">BBH", 0xFF, mark, len(body) + 2) + body

    # A difference of means has a code of four bits for its number of bits, from 0 to 8, and these bits; nothing else is "0".
    bits, before = "", [0, 0, 0]
    for row in rows:
        for colour in row:
            for part, value in enumerate(colour):
                difference = value - 128 - before[part]
                before[part] = value - 128
                size = abs(difference).bit_length()
                own = difference if difference >= 0 else difference + (1 << size) - 1
                bits += f"{size:04b}" + (f"{own:0{size}b}" if size else "") + "0"
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    parts = b"RGB"
    frame = struct.pack(">BHHB", 8, 8 * len(rows), 8 * len(rows[0]), 3) + b"".join(bytes([part, 0x11, 0]) for part in parts)
    means = bytes([0x00, 0, 0, 0, 9] + [0] * 12 + list(range(9)))
    rest = bytes([0x10, 1] + [0] * 15 + [0])
    tables = segment(0xDB, bytes([0] + [8] + [1] * 63)) + segment(0xC0, frame) + segment(0xC4, means) + segment(0xC4, rest)
    start = segment(0xDA, bytes([3]) + b"".join(bytes([part, 0]) for part in parts) + bytes([0, 63, 0]))
    return b"\xff\xd8" + tables + start + scan + b"\xff\xd9"
