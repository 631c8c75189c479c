#!/usr/bin/env python3
"""A TCP proxy that can be told to hold back, cut or delay what passes: proxy.py.

On standard input, a line each, answered by `ok`:
    route PORT TARGET       listens on 127.0.0.1:PORT for 127.0.0.1:TARGET
    move PORT TARGET        later connections lead to this one, those that are open stay
    name PID NAME           connections of this process come from NAME
    rule PORT WHO WAY HOW   WHO: the name or address that a connection comes from, or *;
                            WAY: in (to the target), out (from it), both;
                            HOW: pass, hold, cut, half, or so many ms of delay
The last rule that fits counts. `hold` is a partition: connections stay, new ones are
taken, and nothing passes, an end neither, until it does again. `cut` resets what there
is and whatever comes. `half`: of what comes next one half passes, then it is cut.
"""
import asyncio
import os
import pathlib
import socket
import struct
import sys

CHUNK = 1 << 16
HALF_S = 0.01  # in which the other side reads what there is, before it is cut


def reset(writer):
    """Closes as a host that does not know the connection."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST = 4, 20, 1
INODE_AT = 16 + 4 + 48 + 4 * 4  # in the answer: two heads, the socket's id, four numbers
NAMES = {}  # pid -> name


def inode_of(address, to):
    """Of the socket at the other end of a connection: the kernel is asked for this one
    (sock_diag(7)), as /proc/net/tcp is long on a busy machine."""
    ports = struct.pack("!HH4s12x4s12x", address[1], to[1], socket.inet_aton(address[0]),
                        socket.inet_aton(to[0]))
    body = struct.pack("BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    body += ports + struct.pack("III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    head = struct.pack("IHHII", 16 + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as link:
        link.send(head + body)
        said = link.recv(1 << 12)
    if struct.unpack_from("H", said, 4)[0] != SOCK_DIAG_BY_FAMILY:
        return None
    return struct.unpack_from("I", said, INODE_AT)[0]


def name_of(address, to):
    """Who it is that connects from there."""
    wanted = f"socket:[{inode_of(address, to)}]" if NAMES else None
    for pid, name in NAMES.items():
        try:
            for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                if os.readlink(link) == wanted:
                    return name
        except OSError:
            pass  # it ended, or its socket did
    return address[0]


class Route:
    """One port that stands for another."""

    def __init__(self, port, target):
        self.port, self.target = port, target
        self.rules = []  # (who, way, how)
        self.changed = asyncio.Event()
        self.links = set()  # (who, writer)
        self.tasks = set()

    async def listen(self):
        self.server = await asyncio.start_server(self.take, "127.0.0.1", self.port)

    def how(self, who, way):
        for whom, along, how in reversed(self.rules):
            if whom in ("*", who) and along in ("both", way):
                return how
        return "pass"

    def rule(self, who, way, how):
        if who == "*":
            self.rules.clear()
        self.rules.append((who, way, how))
        self.changed.set()
        self.changed = asyncio.Event()
        for link in list(self.links):
            if how == "cut" and who in ("*", link[0]):
                reset(link[1])

    async def passes(self, who, way):
        """Waits until something may; says how: pass, half, or the delay in ms."""
        while (how := self.how(who, way)) in ("hold", "cut"):
            await self.changed.wait()
        return how

    async def take(self, reader, writer):
        who = name_of(writer.get_extra_info("peername"),
                      writer.get_extra_info("sockname"))
        if self.how(who, "in") == "cut":
            reset(writer)
            return
        self.links.add((who, writer))
        others = None
        try:
            await self.passes(who, "in")
            others = await asyncio.open_connection("127.0.0.1", self.target)
            self.links.add((who, others[1]))
            await asyncio.gather(self.pump(who, "in", reader, others[1]),
                                 self.pump(who, "out", others[0], writer))
        except OSError:
            reset(writer)
        finally:
            self.links.discard((who, writer))
            writer.close()
            if others is not None:
                self.links.discard((who, others[1]))
                others[1].close()

    async def pump(self, who, way, reader, writer):
        try:
            while True:
                data = await reader.read(CHUNK)
                how = await self.passes(who, way)
                if how == "half":
                    writer.write(data[:len(data) // 2])
                    await asyncio.sleep(HALF_S)
                    raise ConnectionAbortedError
                if how != "pass":
                    await asyncio.sleep(int(how) / 1000)
                if not data:
                    break
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            reset(writer)


async def main():
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    routes = {}
    while line := (await orders.readline()).decode().split():
        if line[0] == "route":
            port = int(line[1])
            routes[port] = Route(port, int(line[2]))
            await routes[port].listen()
        elif line[0] == "move":
            routes[int(line[1])].target = int(line[2])
        elif line[0] == "name":
            NAMES[int(line[1])] = line[2]
        else:
            routes[int(line[1])].rule(*line[2:])
        print("ok", flush=True)


asyncio.run(main())
