// Does with an unpacked bundle what a client does: fills in what a user would have set, starts the
// server, and asks it for its tools. node bundle.mjs FOLDER WORKING_DIR
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";

const [extensionPath, working_dir] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(`${extensionPath}/manifest.json`, "utf8"));
const fill = (userConfig) =>
  getMcpConfigForManifest({ manifest, extensionPath, systemDirs: {}, userConfig, pathSeparator: "/" });

assert.equal(await fill({}), undefined, "a working directory must be chosen");
const { command, args } = await fill({ working_dir });
assert.ok(!args.some((argument) => argument.includes("${")), args.join(" "));

const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
const say = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const ask = async (id, method, params) => {
  say({ id, method, params });
  for (;;) {
    const { value, done } = await lines.next();
    assert.ok(!done, "the server has left");
    const message = JSON.parse(value);
    if (message.id === id) return message.result;
  }
};
const clientInfo = { name: "bundle", version: "1" };
const { serverInfo } = await ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
assert.equal(serverInfo.version, manifest.version);
say({ method: "notifications/initialized" });
const { tools } = await ask(2, "tools/list", {});
const names = (tools) => tools.map((tool) => tool.name).sort();
assert.deepEqual(names(tools), names(manifest.tools));
const run = (id, command) => ask(id, "tools/call", { name: "execute_command", arguments: { command } });
assert.equal((await run(3, "pwd")).structuredContent.output.trim(), working_dir);
assert.equal((await run(5, "touch here && ! touch ~/there")).structuredContent.return_code, 0);
assert.ok((await run(4, "sudo true")).isError, "what is denied by default");
server.stdin.end();
const [code] = await new Promise((resolve) => server.on("exit", (...how) => resolve(how)));
assert.equal(code, 0);
