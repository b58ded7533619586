// The TypeScript SDK, version 1.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { checkAll, headers, stdio, transport, url } from "./checks.mjs";

const client = new Client({ name: "test", version: "0" });
await client.connect(
  transport === "stdio"
    ? new StdioClientTransport(stdio)
    : new StreamableHTTPClientTransport(url, { requestInit: { headers } }),
);
await checkAll({
  client,
  list: () => client.listTools(),
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  read: (uri) => client.readResource({ uri }),
});
await client.close();
