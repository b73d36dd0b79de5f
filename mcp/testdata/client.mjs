// What an independent client makes of the face: a report as JSON on stdout.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { URL: url, TOKEN: token, BRIDGE: bridge } = process.env;

const http = (bearer) =>
  new StreamableHTTPClientTransport(new globalThis.URL(url), { requestInit: { headers: { Authorization: `Bearer ${bearer}` } } });
const stdio = () =>
  new StdioClientTransport({ command: bridge, env: { ...process.env, PGCONSENT_TEST_BRIDGE: url, PGCONSENT_TOKEN: token } });

async function report(transport) {
  const client = new Client({ name: "independent", version: "1" });
  await client.connect(transport);
  const out = {};
  out.tools = (await client.listTools()).tools.map((tool) => tool.name);
  const found = await client.callTool({ name: "search_memories", arguments: { query_text: "a walk by the sea", match_count: 4 } });
  out.found = found.structuredContent.row_count;
  out.same = JSON.stringify(JSON.parse(found.content[0].text)) === JSON.stringify(found.structuredContent);
  const refused = await client.callTool({ name: "query", arguments: { sql: "SELECT * FROM memory_edges" } });
  out.refused = refused.isError ? refused.structuredContent.error.sqlstate : "answered";
  const strict = await client.callTool({ name: "search_memories", arguments: { query_text: "x", match_count: 1, respect_consent: false } });
  out.strict = strict.isError ? strict.structuredContent.error.sqlstate : "answered";
  try {
    await client.callTool({ name: "no_such_tool", arguments: {} });
    out.unknown = "answered";
  } catch (error) {
    out.unknown = String(error.code);
  }
  await Promise.all(Array.from({ length: 5 }, () => client.callTool({ name: "query", arguments: { sql: "SELECT count(*) FROM memories" } })));
  await client.close();
  return out;
}

const all = { http: await report(http(token)), stdio: await report(stdio()) };
try {
  await new Client({ name: "independent", version: "1" }).connect(http("wrong"));
  all.http.wrongKey = "answered";
} catch (error) {
  all.http.wrongKey = String(error.code ?? error.message);
}
console.log(JSON.stringify(all));
process.exit(0);
