"""FastMCP's client."""

import asyncio

from checks import args, check_all, command, env, headers, mode, revision, transport, url
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main():
    if transport == "stdio":
        server = StdioTransport(command, args, env=env, keep_alive=False)
    else:
        server = StreamableHttpTransport(url, headers=headers)
    async with Client(server, mode=mode, timeout=60) as client:
        assert client.protocol_version == revision, client.protocol_version

        def call(name, arguments, on_progress=None):
            return client.call_tool(name, arguments, progress_handler=on_progress, raise_on_error=False)

        await check_all(client.list_tools, call, client.read_resource)


asyncio.run(main())
