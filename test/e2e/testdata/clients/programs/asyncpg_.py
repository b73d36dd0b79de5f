"""asyncpg and peewee: binary parameters and rows, row types, cursors, COPY, pools; models made from the database."""
import asyncio
import io

import asyncpg
import peewee
from playhouse.reflection import Introspector

from check import code, done, dsn, refused, url, works

print("version", asyncpg.__version__, peewee.__version__)
loop = asyncio.new_event_loop()
c = loop.run_until_complete(asyncpg.connect(dsn))


def tried(name, f):
    works(name, lambda: loop.run_until_complete(f()))


def not_for_agents(name, state, f):
    refused(name, state, lambda: loop.run_until_complete(f()))


async def everything():
    rows = await c.fetch("SELECT * FROM memories WHERE id = ANY ($1::uuid[])", [r["id"] for r in await c.fetch("SELECT id FROM memories")])
    assert len(rows) == await c.fetchval("SELECT count(*) FROM memories") > 3, rows
    return len(rows)


async def row_types():
    row = await c.fetchval("SELECT p FROM people AS p LIMIT 1")
    rows = await c.fetchval("SELECT array_agg(x) FROM memory_participants AS x")
    assert {"id", "user_id"} <= set(row.keys()) and rows[0]["memory_id"], rows
    return list(row.keys())


async def cursor():
    async with c.transaction(isolation="serializable", readonly=True, deferrable=True):
        return len([r async for r in c.cursor("SELECT id FROM memories WHERE title LIKE $1", "%", prefetch=3)])


async def savepoint():
    async with c.transaction():
        try:
            async with c.transaction():
                await c.fetch("SELECT 1 / 0")
        except asyncpg.DivisionByZeroError as e:
            assert code(e) == "22012", e
        return await c.fetchval("SELECT count(*) FROM memories")


async def prepared():
    s = await c.prepare("SELECT title FROM memories WHERE title LIKE $1")
    return s.get_parameters(), s.get_attributes(), len(await s.fetch("%a%"))


async def copies():
    out = io.BytesIO()
    return await c.copy_from_query("SELECT id, title FROM memories WHERE title <> $1", "x", output=out), await c.copy_from_table("memories", columns=["id"], output=out, format="csv")


async def codecs():
    await c.set_type_codec("json", encoder=str, decoder=str, schema="pg_catalog")
    await c.reload_schema_state()
    return await c.fetchval("""SELECT '{"a": 1}'::json""")


async def pool():
    async with asyncpg.create_pool(dsn, min_size=1, max_size=2) as p:
        for i in range(3):
            async with p.acquire() as d:
                assert await d.fetchval("SELECT $1::int", i) == i
        return await p.fetchval("SELECT count(*) FROM people")


tried("asyncpg rows", everything)
tried("asyncpg row types", row_types)
tried("asyncpg cursor", cursor)
tried("asyncpg savepoint", savepoint)
tried("asyncpg prepared", prepared)
tried("asyncpg copy", copies)
tried("asyncpg codecs", codecs)
tried("asyncpg many", lambda: c.executemany("SELECT $1::int", [(1,), (2,)]))
tried("asyncpg several", lambda: c.execute("SELECT 1; SELECT 2"))
tried("asyncpg pool", pool)
tried("asyncpg reset", c.reset)
not_for_agents("asyncpg listen", "0A000", lambda: c.add_listener("news", print))
loop.run_until_complete(c.close())

db = peewee.PostgresqlDatabase(url.path[1:], user=url.username, password=url.password, host=url.hostname, port=url.port)
works("peewee tables", lambda: (db.get_tables(), db.get_views()))
works("peewee columns", lambda: [(x.name, x.data_type, x.primary_key) for x in db.get_columns("memories")])
works("peewee keys", lambda: (db.get_indexes("memories")[0], db.get_primary_keys("memories"), db.get_foreign_keys("memory_participants")[0]))
models = Introspector.from_database(db).generate_models()
memory, participant = models["memories"], models["memory_participants"]
works("peewee join", lambda: memory.select().join(participant, on=(participant.memory_id == memory.id)).where(memory.title % "%a%").count())
with db.atomic(), db.atomic():
    works("peewee order", lambda: [m.title for m in memory.select().order_by(memory.occurred_at.desc()).limit(2)])
done()
