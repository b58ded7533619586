// The Inspector's command line. Each call is a connection of its own that asks one thing and shows no
// progress and cancels nothing, so neither is looked at here.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { checkEcho, checkTimeout, checkTools, headers, revision, stdio, transport, url } from "./checks.mjs";

const inspector = fileURLToPath(import.meta.resolve("@modelcontextprotocol/inspector/clients/launcher/build/index.js"));
const server =
  transport === "stdio"
    ? ["--", stdio.command, ...stdio.args]
    : ["--transport", "http", "--server-url", url.href, "--header", `Authorization: ${headers.Authorization}`];
// How it ends after an answer with isError, which it prints all the same.
const TOOL_ERROR = 5;

const era = revision === "2025-11-25" ? "legacy" : "modern";

// Some options take as many words as follow, so the server comes last.
async function ask(method, ...options) {
  const common = ["--cli", "--format", "json", "--protocol-era", era, "--connect-timeout", "60000"];
  const args = [inspector, ...common, "--method", method, ...options, ...server];
  const ended = promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 26 });
  const { stdout } = await ended.catch((error) => {
    if (error.code === TOOL_ERROR) return error;
    throw error;
  });
  return JSON.parse(stdout).result;
}

const call = (name, args) =>
  ask("tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));

checkTools((await ask("tools/list", "--strict")).tools);
checkEcho(await call("execute_command", { command: "echo hi" }));
checkTimeout(await call("execute_command", { command: "sleep 300", timeout: 1 }));
assert.notEqual((await ask("prompts/list")).prompts.length, 0);

const kept = await call("shell_exec", { cmd: "seq 1 100000" });
const { resources } = await ask("resources/list");
if (transport === "http") {
  // Here kept output belongs to whoever has the token, from one connection to the next.
  const uri = kept.structuredContent.spill_uri;
  assert(resources.some((resource) => resource.uri === uri));
  const { contents } = await ask("resources/read", "--uri", uri);
  assert(contents[0].text.startsWith("1\n2\n3\n"));
} else {
  assert.deepEqual(resources, [], "kept output goes with its connection");
}
