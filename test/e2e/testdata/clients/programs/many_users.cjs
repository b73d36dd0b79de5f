// node-postgres: a pool of four connections for 50 users at once. Each transaction shows the token of its user.
const { Pool } = require('pg');
console.log('version', 'pg', require('pg/package.json').version);
const pool = new Pool({ connectionString: process.argv[2], max: 4 });
const tell = (ok, name, what) => console.log(ok ? 'ok' : 'failed', name, String(what || '').replace(/\s+/g, ' ').slice(0, 300));

async function asUser(user, f, set) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await set(client, 'secret-token-of-' + user);
    const rows = await f(client);
    await client.query('COMMIT');
    return rows;
  } catch (e) {
    await client.query('ROLLBACK');
    throw e;
  } finally {
    client.release();
  }
}

const ways = {
  'a parameter': (c, token) => c.query("SELECT set_config('pgconsent.token', $1, true)", [token]),
  'a named statement': (c, token) => c.query({ name: 'user', text: "SELECT set_config('pgconsent.token', $1, true)", values: [token] }),
  'SET LOCAL': (c, token) => c.query(`SET LOCAL pgconsent.token = '${token}'`),
  'a literal': (c, token) => c.query(`SELECT set_config('pgconsent.token', '${token}', true)`),
};
const reads = {
  'text': (c) => c.query('SELECT user_id FROM notes'),
  'parameters': (c) => c.query('SELECT user_id FROM notes WHERE id > $1', [0]),
  'named': (c) => c.query({ name: 'notes', text: 'SELECT user_id FROM notes WHERE body LIKE $1', values: ['note%'] }),
};

(async () => {
  for (const [way, set] of Object.entries(ways)) {
    for (const [read, f] of Object.entries(reads)) {
      const wrong = [];
      await Promise.all(Array.from({ length: 100 }, async (_, i) => {
        const user = 1 + (i * 17) % 50;
        try {
          const { rows } = await asUser(user, f, set);
          if (rows.length !== 3 || rows.some((r) => r.user_id !== user)) wrong.push([user, rows]);
          const none = await pool.query('SELECT count(*)::int AS n FROM notes');
          if (none.rows[0].n !== 0) wrong.push(['nobody', none.rows]);
        } catch (e) {
          wrong.push([user, e.code, e.message]);
        }
      }));
      tell(wrong.length === 0, `${way}, ${read}`, JSON.stringify(wrong.slice(0, 2)));
    }
  }
  try {
    await asUser('x', reads.text, ways['a parameter']);
    tell(false, 'a wrong token', 'is taken');
  } catch (e) {
    tell(e.code === '28000' && e.hint, 'a wrong token', e.message);
  }
  await pool.end();
  console.log('done');
})();
