// node-postgres, postgres.js, TypeORM, Sequelize, Knex, Kysely and Drizzle, as far as they are installed.
const url = process.argv[2];
async function works(name, f) {
  try {
    const r = await f();
    console.log('ok', name, (JSON.stringify(r === undefined ? null : r) || '').slice(0, 150));
  } catch (e) {
    console.log('failed', name, e.code || '', String(e.message || e).replace(/\s+/g, ' ').slice(0, 400));
  }
}
function load(name) {
  let m;
  try {
    m = require(name);
  } catch (e) {
    console.log('missing', name);
    return null;
  }
  try {
    console.log('version', name, require(name + '/package.json').version);
  } catch (e) {
    console.log('version', name, 'not told');
  }
  return m;
}
const check = (ok, what) => { if (!ok) throw new Error(JSON.stringify(what)); return what; };

async function pg({ Client }) {
  const c = new Client({ connectionString: url, application_name: 'app pg', statement_timeout: 60000 });
  await c.connect();
  await works('pg select', async () => (await c.query('SELECT title FROM memories LIMIT 2')).rows);
  await works('pg parameters', async () => (await c.query('SELECT count(*) FROM memories WHERE title LIKE $1 AND occurred_at > $2', ['%a%', new Date(0)])).rows);
  await works('pg named', async () => { for (let i = 0; i < 3; i++) await c.query({ name: 'q1', text: 'SELECT $1::text', values: ['x'] }); });
  await works('pg several', async () => (await c.query('SELECT 1; SELECT 2')).length);
  await works('pg error', async () => { try { await c.query('SELECT titel FROM memories'); } catch (e) { return check(e.code === '42703' && e.position === '8' && e.hint && !e.where && !e.table, e.hint); } });
  await works('pg transaction', async () => { await c.query('BEGIN'); await c.query('SELECT 1'); await c.query('COMMIT'); });
  const Cursor = load('pg-cursor');
  if (Cursor) await works('pg cursor', async () => { const k = c.query(new Cursor('SELECT id FROM memories')); const r = await k.read(3); await k.close(); return check(r.length === 3, r.length); });
  await c.end();
}
async function postgres(connect) {
  const sql = connect(url, { max: 2 });
  await works('postgres.js', () => sql`SELECT title FROM memories WHERE title LIKE ${'%a%'} LIMIT 2`);
  await works('postgres.js list', () => sql`SELECT title FROM memories WHERE title IN ${sql(['a', 'b'])}`);
  await works('postgres.js cursor', async () => { let n = 0; await sql`SELECT id FROM memories`.cursor(5, (r) => { n += r.length; }); return n; });
  await works('postgres.js transaction', () => sql.begin(async (s) => { await s.savepoint(async (x) => { await x`SELECT 1`; }); return 1; }));
  await works('postgres.js describe', async () => (await sql`SELECT id, metadata FROM memories`.describe()).columns.length);
  await sql.end();
}
async function typeorm({ DataSource }) {
  const d = new DataSource({ type: 'postgres', url, entities: [], installExtensions: false });
  await d.initialize();
  const q = d.createQueryRunner();
  await works('typeorm tables', async () => {
    const t = await q.getTables(['memories', 'people', 'memory_participants']);
    check(t.length === 3 && t.some((x) => x.foreignKeys.length === 1) && t.every((x) => x.primaryColumns.length > 0), t.map((x) => x.name));
  });
  await works('typeorm all', async () => check((await q.getTables()).length >= 3));
  await works('typeorm views', () => q.getViews());
  await works('typeorm hasTable', async () => check(await q.hasTable('memories') && !(await q.hasTable('memory_edges')), true));
  await works('typeorm hasColumn', () => q.hasColumn('memories', 'title'));
  await works('typeorm hasSchema', () => q.hasSchema('public'));
  await works('typeorm currents', async () => [await q.getCurrentSchema(), await q.getCurrentDatabase()]);
  await q.release();
  await d.destroy();
}
async function sequelize({ Sequelize, QueryTypes }) {
  const s = new Sequelize(url, { logging: false });
  const q = s.getQueryInterface();
  await works('sequelize authenticate', () => s.authenticate());
  await works('sequelize schemas', () => q.showAllSchemas());
  await works('sequelize tables', async () => check((await q.showAllTables()).length === 3));
  await works('sequelize describe', async () => check((await q.describeTable('memories')).id.primaryKey));
  await works('sequelize indexes', () => q.showIndex('memories'));
  await works('sequelize constraints', () => q.showConstraint('memory_participants'));
  await works('sequelize foreign keys', () => q.getForeignKeyReferencesForTable('memory_participants'));
  await works('sequelize transaction', () => s.transaction((t) => s.query('SELECT 1', { transaction: t })));
  await works('sequelize bind', () => s.query('SELECT count(*) FROM memories WHERE title LIKE $1', { bind: ['%a%'], type: QueryTypes.SELECT }));
  await s.close();
}
async function knex(make) {
  const k = make({ client: 'pg', connection: url, searchPath: ['public'] });
  await works('knex select', () => k('memories').select('title').where('title', 'like', '%a%').limit(1));
  await works('knex first', () => k('people').first());
  await works('knex hasTable', async () => check(await k.schema.hasTable('memories')));
  await works('knex hasColumn', async () => check(await k.schema.hasColumn('memories', 'title')));
  await works('knex columnInfo', () => k('memories').columnInfo());
  await works('knex transaction', () => k.transaction(async (x) => { await x.raw('SELECT 1'); await x.transaction((y) => y.raw('SELECT 2')); }));
  await works('knex json', () => k('memories').whereJsonPath('metadata', '$.mood', '=', 'calm').count());
  await k.destroy();
}
async function kysely({ Kysely, PostgresDialect }, { Pool }) {
  const k = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) });
  await works('kysely tables', async () => check((await k.introspection.getTables()).length === 3));
  await works('kysely schemas', () => k.introspection.getSchemas());
  await works('kysely select', () => k.selectFrom('memories').select(['title']).limit(1).execute());
  await works('kysely transaction', () => k.transaction().execute((x) => x.selectFrom('people').select('name').limit(1).execute()));
  await k.destroy();
}
async function drizzle({ drizzle: make }, { Pool }) {
  const { sql } = require('drizzle-orm');
  const pool = new Pool({ connectionString: url });
  await works('drizzle query', async () => (await make(pool).execute(sql`SELECT count(*) FROM memories`)).rows);
  await works('drizzle transaction', () => make(pool).transaction((x) => x.execute(sql`SELECT 1`)));
  await pool.end();
}
(async () => {
  const driver = load('pg');
  load('reflect-metadata'); // which TypeORM wants
  if (driver) await pg(driver);
  for (const [name, f] of Object.entries({ postgres, typeorm, sequelize, knex, kysely, 'drizzle-orm/node-postgres': drizzle })) {
    const m = load(name);
    if (m) await f(m, driver);
  }
  console.log('done');
})();
