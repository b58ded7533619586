// The TypeScript client, version 2.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { checkAll, headers, revision, stdio, transport, url } from "./checks.mjs";

// "auto" asks the server what it speaks; by default the client stays with the older revisions.
const mode = revision === "2025-11-25" ? "legacy" : "auto";
const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode } });
await client.connect(
  transport === "stdio"
    ? new StdioClientTransport(stdio)
    : new StreamableHTTPClientTransport(url, { requestInit: { headers } }),
);
assert.equal(client.getNegotiatedProtocolVersion(), revision);
await checkAll({
  client,
  list: () => client.listTools(),
  call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  read: (uri) => client.readResource({ uri }),
});
await client.close();
