"""A TCP proxy in front of the nodes of the store, as a load balancer would be: `store.py` starts one for each process of the load.

A new connection goes to the first node, in the order of the command line, that is healthy and accepts it. With health checks a
node that does not answer two requests in a row gets no new connections, and the connections to it are cut. Without them a node
is left only when it refuses a connection, so a paused node keeps its connections. The proxy ends when its input ends.
"""

import asyncio
import sys

CONNECT_WAIT = 1
CHECK_INTERVAL = 1
CHECK_WAIT = 2
MOST_FAILURES = 2
BLOCK = 1 << 18


class Node:
    """A node of the store."""

    def __init__(self, port):
        self.port = port
        self.failures = 0
        self.writers = set()

    def is_healthy(self):
        """Whether new connections may go to the node."""
        return self.failures < MOST_FAILURES

    async def answers(self):
        """Whether the node answers an HTTP request, with whatever status."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: check\r\nConnection: close\r\n\r\n")
            return (await reader.read(5)).startswith(b"HTTP")
        finally:
            writer.close()

    async def check(self):
        """Checks the node again and again."""
        while True:
            try:
                is_right = await asyncio.wait_for(self.answers(), CHECK_WAIT)
            except (OSError, asyncio.TimeoutError):
                is_right = False
            self.failures = 0 if is_right else self.failures + 1
            if not self.is_healthy():
                for writer in list(self.writers):
                    writer.transport.abort()
            await asyncio.sleep(CHECK_INTERVAL)


async def pump(reader, writer):
    """Copies bytes until either side ends, and then ends the other one."""
    try:
        while data := await reader.read(BLOCK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):
        writer.transport.abort()


class Proxy:
    """The proxy."""

    def __init__(self, nodes):
        self.nodes = nodes

    async def connect(self):
        """Connects to the first node that accepts. Unhealthy nodes are asked last."""
        for node in sorted(self.nodes, key=lambda node: not node.is_healthy()):
            try:
                return node, *await asyncio.wait_for(asyncio.open_connection("127.0.0.1", node.port), CONNECT_WAIT)
            except (OSError, asyncio.TimeoutError):
                continue
        return None

    async def serve(self, reader, writer):
        """Serves one connection."""
        found = await self.connect()
        if found is None:
            writer.transport.abort()
            return
        node, upstream_reader, upstream_writer = found
        node.writers.update((writer, upstream_writer))
        try:
            await asyncio.gather(pump(reader, upstream_writer), pump(upstream_reader, writer))
        finally:
            node.writers.difference_update((writer, upstream_writer))
            for each in (writer, upstream_writer):
                each.transport.abort()


async def main():
    """`store_proxy.py PORT NODE,NODE,… [checks]`"""
    port, nodes = int(sys.argv[1]), [Node(int(node)) for node in sys.argv[2].split(",")]
    checks = [asyncio.create_task(node.check()) for node in nodes if sys.argv[3:] == ["checks"]]
    server = await asyncio.start_server(Proxy(nodes).serve, "127.0.0.1", port)
    print("running", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()
    for check in checks:
        check.cancel()


if __name__ == "__main__":
    asyncio.run(main())
