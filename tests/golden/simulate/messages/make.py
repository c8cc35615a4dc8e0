"""Writes small Chakra traces of 2 or 4 ranks that a simulator cannot run, or accepts silently."""

KINDS = {"comp": 4, "load": 2, "send": 5, "recv": 6, "coll": 7}
STRINGS = ("pg_name",)


def number(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(tag, value):
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(data)) + data


def node(ident, kind, after=(), duration=None, **attributes):
    data = field(1, ident) + field(2, f"{kind}{ident}") + field(3, KINDS[kind])
    data += b"".join(field(5, other) for other in after)
    if duration is not None:
        data += field(7, duration)
    data += field(10, field(1, "is_cpu_op") + field(27, 0))
    for name, value in attributes.items():
        tag = 29 if name in STRINGS else 7 if name in ("comm_src", "comm_dst", "comm_tag") else 9
        data += field(10, field(1, name) + field(tag, value))
    return data


def collective(size=1 << 20, kind=0, **attributes):
    return node(0, "coll", comm_type=kind, comm_size=size, **attributes)


def message(ident, kind, source, target, **more):
    return node(ident, kind, comm_src=source, comm_dst=target, comm_size=100, **more)


def write(prefix, ranks):
    for rank, nodes in enumerate(ranks):
        with open(f"{prefix}.{rank}.et", "wb") as file:
            for data in [field(1, "0.0.4"), *nodes]:
                file.write(number(len(data)) + data)


idle = [node(0, "comp", duration=5)]
ring = [node(i, "comp", after=[(i + 1) % 9], duration=5) for i in range(9)]
write("far", [[message(0, "send", 0, 9)], idle])
write("kind", [[collective(kind=44)]] * 2)
write("load", [[node(0, "load", tensor_size=1000)]] * 2)
write("cycle", [ring, idle])
write("group", [[collective(pg_name="1")]] * 4)
write("named", [[collective(pg_name="a")]] * 4)
write("sizeless", [[node(0, "coll", comm_type=0)]] * 2)
write("huge", [[collective(size=1 << 62)]] * 2)
write("all", [[collective()]] * 2)
# Programs of collectives.
crossed = [
    [message(0, "recv", 1 - rank, rank), message(1, "send", rank, 1 - rank, after=[0])]
    for rank in range(2)
]
write("crossed", crossed)
write("inner", [[collective()]] * 2)
write("empty", [[]] * 2)
