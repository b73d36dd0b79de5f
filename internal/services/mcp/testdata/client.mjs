// What an independent client makes of the face: a report as JSON on stdout.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { URL: url, TOKEN: token, BRIDGE: bridge } = process.env;
const bridgeEnv = { ...process.env, PGCONSENT_TEST_BRIDGE: url, PGCONSENT_TOKEN: token };

const http = (bearer = token) =>
  new StreamableHTTPClientTransport(new globalThis.URL(url), { requestInit: { headers: { Authorization: `Bearer ${bearer}` } } });
const stdio = () => new StdioClientTransport({ command: bridge, env: bridgeEnv });

const query = (client, sql, options) => client.callTool({ name: "query", arguments: { sql } }, undefined, options);
const refusal = (answer) => (answer.isError ? answer.structuredContent.error.sqlstate : "answered");
const failure = (promise) => promise.then(() => "answered", (error) => String(error.code ?? error.name));

async function report(transport) {
  const client = new Client({ name: "independent", version: "1" });
  await client.connect(transport());
  const out = {};
  out.tools = (await client.listTools()).tools.map((tool) => tool.name);
  const found = await client.callTool({ name: "search_memories", arguments: { query_text: "a walk by the sea", match_count: 4 } });
  out.found = found.structuredContent.row_count;
  out.same = JSON.stringify(JSON.parse(found.content[0].text)) === JSON.stringify(found.structuredContent);
  out.refused = refusal(await query(client, "SELECT * FROM memory_edges"));
  out.strict = refusal(await client.callTool({ name: "search_memories", arguments: { query_text: "x", match_count: 1, respect_consent: false } }));
  out.unknown = await failure(client.callTool({ name: "no_such_tool", arguments: {} }));
  await Promise.all(Array.from({ length: 5 }, () => query(client, "SELECT count(*) FROM memories")));
  out.cancelled = await cancelled(client);

  // A second session beside it outlives it.
  const second = new Client({ name: "independent", version: "2" });
  await second.connect(transport());
  out.side = refusal(await query(second, "SELECT count(*) FROM memories"));
  await client.close();
  out.outlives = refusal(await query(second, "SELECT count(*) FROM memories"));
  await second.close();
  return out;
}

// As many calls as there may be at once are given up; then there is room for others, long before the calls would have been over.
async function cancelled(client) {
  const stop = new AbortController();
  const slow = Array.from({ length: 8 }, () => failure(query(client, "SELECT count(*) FROM generate_series(1, 100000000000) n", { signal: stop.signal, timeout: 60_000 })));
  await new Promise((done) => setTimeout(done, 500));
  stop.abort("given up");
  const ends = new Set(await Promise.all(slow));
  for (let i = 0; i < 100; i++) {
    const now = refusal(await query(client, "SELECT 1 AS n"));
    if (now === "answered") return ends.has("answered") ? "not given up" : "room";
    if (now !== "53300") return now;
    await new Promise((done) => setTimeout(done, 100));
  }
  return "no room";
}

// What no client of the protocol sends: over HTTP, and a line each over the bridge. Of each the status, and the code of the error.
const call = (id, method, params = {}) => JSON.stringify({ jsonrpc: "2.0", id, method, params });
const begin = call(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "independent", version: "3" } });
const wrong = [
  ["list before initialize", call(2, "tools/list")],
  ["no JSON", "{"],
  ["a name twice", '{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}'],
  ["a batch", `[${call(5, "ping")}]`],
  ["no version", '{"id":6,"method":"ping"}'],
  ["begin", begin],
  ["list before initialized", call(7, "tools/list")],
  ["initialized", '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
  ["unknown method", call(8, "resources/list")],
  ["no parameters", '{"jsonrpc":"2.0","id":9,"method":"tools/call"}'],
  ["begin again", begin],
  ["cancels nothing", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}'],
  ["list", call(10, "tools/list")],
];

async function rawHTTP() {
  const out = {};
  let session;
  for (const [what, body] of wrong) {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
    if (session) headers["Mcp-Session-Id"] = session;
    const answer = await fetch(url, { method: "POST", headers, body });
    session ??= answer.headers.get("Mcp-Session-Id") ?? undefined;
    out[what] = code(answer.status, await answer.text());
  }
  return out;
}

function code(status, text) {
  if (text === "") return `${status}`;
  const { error } = JSON.parse(text);
  return error ? `${status} ${error.code} ${error.data.sqlstate}` : `${status} answered`;
}

async function rawStdio() {
  const out = {};
  const child = spawn(bridge, { env: bridgeEnv, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  for (const [what, line] of wrong) {
    child.stdin.write(line + "\n");
    if (line.includes('"notifications/')) continue; // is not answered
    out[what] = code("", (await lines.next()).value).trim();
  }
  child.stdin.end();
  return out;
}

const all = { http: await report(http), stdio: await report(stdio), raw: { http: await rawHTTP(), stdio: await rawStdio() } };
all.http.wrongKey = await failure(new Client({ name: "independent", version: "1" }).connect(http("wrong")));
console.log(JSON.stringify(all));
process.exit(0);
