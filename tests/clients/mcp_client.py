"""The Python SDK."""

import asyncio

import httpx2
from checks import args, check_all, command, env, headers, mode, revision, transport, url
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def check(server):
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        assert client.protocol_version == revision, client.protocol_version

        async def list_tools():
            return (await client.list_tools()).tools

        def call(name, arguments, on_progress=None):
            return client.call_tool(name, arguments, progress_callback=on_progress)

        async def read(uri):
            return (await client.read_resource(uri)).contents

        await check_all(list_tools, call, read)


async def main():
    if transport == "stdio":
        await check(StdioServerParameters(command=command, args=args, env=env))
    else:
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            await check(streamable_http_client(url, http_client=http))


asyncio.run(main())
