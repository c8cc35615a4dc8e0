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
