// What every TypeScript client has to see of the server, however it spells its calls.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const [transport, revision] = process.argv.slice(2);
const { MCPZ, MCPZ_EMPTY_CONFIG, MCPZ_URL, MCPZ_TOKEN } = process.env;

export const stdio = {
  command: MCPZ,
  args: ["server", "shell", "--tools", "all", "--config", MCPZ_EMPTY_CONFIG],
  env: process.env,
};
export const url = new URL(MCPZ_URL);
export const headers = { Authorization: `Bearer ${MCPZ_TOKEN}` };

const JOBS = ["list_jobs", "read_job", "write_job", "stop_job"];
const TOOLS = [...JOBS, "execute_command", "read_file_chunk", "shell", "execute", "run_shell_command", "shell_exec"];

// Processes with this variable in their environment. One that has ended and waits for its parent has
// none any more.
function marked(mark) {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`MARK=${mark}`);
    } catch {
      return false; // it ended meanwhile
    }
  });
}

export function checkTools(tools) {
  assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS.toSorted());
  for (const tool of tools) {
    assert(JOBS.includes(tool.name) || tool.outputSchema, `${tool.name} has an output schema`);
  }
}

export function checkEcho(result) {
  assert(!result.isError);
  assert.equal(result.structuredContent.output, "hi\n");
  assert.equal(result.structuredContent.return_code, 0);
}

export function checkTimeout(result) {
  assert(result.isError);
  assert.equal(result.structuredContent.timed_out, true);
}

// Each step of the command waits until the progress of the one before has arrived here, so that
// progress that comes late or all at once is noticed. The command's timeout is shorter than the
// client's, whose words would not say what is missing.
async function checkProgress(call) {
  const folder = mkdtempSync(join(tmpdir(), "mcpz-progress-"));
  const seen = [];
  const onprogress = ({ progress }) => {
    seen.push(progress);
    writeFileSync(join(folder, `${seen.length}`), "");
  };
  const step = (n) => `echo ${n}; until [ -e "$FOLDER/${n}" ]; do sleep 0.05; done`;
  const args = { command: `${step(1)}; ${step(2)}`, environment: { FOLDER: folder }, timeout: 50 };
  const result = await call("execute_command", args, { onprogress });
  rmSync(folder, { recursive: true });
  assert.equal(result.structuredContent.output, "1\n2\n");
  assert(seen.length >= 2, `progress came ${seen.length} times`);
  for (let i = 1; i < seen.length; i++) assert(seen[i] > seen[i - 1], `progress grows: ${seen}`);
}

// The SDK forgets a call when its answer comes, and looks at progress that it has read with it only then.
// It complains of it, and some clients show the server as gone. Over HTTP the server cannot know what was read.
async function checkApart(client, call) {
  if (transport !== "stdio") return;
  const errors = [];
  client.onerror = (error) => errors.push(error.message);
  for (const pause of ["0", "0.01", "0.05", "0.06", "0.1", "0.15"]) {
    for (let n = 0; n < 5; n++) {
      await call("execute_command", { command: `echo a; sleep ${pause}; echo b` }, { onprogress() {} });
    }
  }
  client.onerror = undefined;
  assert.deepEqual(errors, []);
}

async function checkCancel(call) {
  const mark = crypto.randomUUID();
  const cancel = new AbortController();
  const started = Promise.withResolvers();
  const args = { command: "echo started; sleep 300", environment: { MARK: mark }, timeout: 300 };
  const options = { onprogress: started.resolve, signal: cancel.signal };
  const called = call("execute_command", args, options);
  await Promise.race([started.promise, called]);
  assert.notEqual(marked(mark).length, 0, "the command runs");

  cancel.abort();
  await assert.rejects(called);
  // Nobody is told of the end of a process that is not theirs: look again and again.
  const deadline = Date.now() + 60_000;
  while (marked(mark).length > 0) {
    assert(Date.now() < deadline, "the cancelled command has ended");
    await sleep(20);
  }
}

async function checkResource(call, read) {
  const result = await call("shell_exec", { cmd: "seq 1 100000" });
  const { contents } = await read(result.structuredContent.spill_uri);
  assert(contents[0].text.startsWith("1\n2\n3\n"));
  assert(contents[0].text.length > 64 * 1024, "more than what an answer shows");
}

// Lists before it calls: clients check answers against the schemas they have seen.
export async function checkAll({ client, list, call, read }) {
  checkTools((await list()).tools);
  checkEcho(await call("execute_command", { command: "echo hi" }));
  await checkProgress(call);
  await checkApart(client, call);
  await checkCancel(call);
  checkTimeout(await call("execute_command", { command: "sleep 300", timeout: 1 }));
  await checkResource(call, read);
}
