"""psycopg 2 and 3: parameters, prepared statements, pipelines, COPY, type information, cancelling."""
from check import dsn, works, refused, done
import datetime
import io
import threading
import uuid
import psycopg
import psycopg2
import psycopg2.extras
from psycopg.types import TypeInfo
from psycopg.types.composite import CompositeInfo
from psycopg.types.enum import EnumInfo
from psycopg.types.range import RangeInfo

print("version", psycopg.__version__, psycopg2.__version__)
c = psycopg.connect(dsn)
works("select", lambda: c.execute("SELECT title FROM memories WHERE title LIKE %s LIMIT 1", ("%a%",)).fetchall())
works("binary", lambda: c.cursor(binary=True).execute("SELECT id, occurred_at, metadata FROM memories LIMIT 1").fetchall())
works("prepared", lambda: [c.execute("SELECT %s::int", (i,), prepare=True).fetchone() for i in range(8)][-1])
works("uuids", lambda: c.execute("SELECT count(*) FROM memories WHERE id = ANY (%s)", ([uuid.uuid4()],)).fetchall())
works("type", lambda: TypeInfo.fetch(c, "cube").oid)
works("no type", lambda: TypeInfo.fetch(c, "hstore"))
works("composite", lambda: CompositeInfo.fetch(c, "people").field_names)
works("no enum", lambda: EnumInfo.fetch(c, "nosuch"))
works("range", lambda: RangeInfo.fetch(c, "int4range"))
c.rollback()


def savepoint():
    with c.transaction():
        try:
            with c.transaction():
                c.execute("SELECT nope")
        except psycopg.errors.UndefinedColumn:
            pass
        return c.execute("SELECT 1").fetchone()


def pipeline():
    with psycopg.connect(dsn) as d, d.pipeline():
        return sum(x.fetchone()[0] for x in [d.execute("SELECT %s::int", (i,)) for i in range(20)]) == 190 or 1 / 0


def copy():
    with c.cursor().copy("COPY (SELECT title FROM memories LIMIT 3) TO STDOUT (FORMAT binary)") as k:
        k.set_types(["text"])
        return list(k.rows())


def cancel():
    threading.Timer(0.3, c.cancel).start()
    try:
        c.execute("SELECT count(*) FROM generate_series(1, 2000000000)")
    except psycopg.errors.QueryCanceled:
        c.rollback()
        return "cancelled"
    return 1 / 0


def diagnostics():
    try:
        c.execute("SELECT titel FROM memories")
    except psycopg.Error as e:
        c.rollback()
        assert (e.diag.sqlstate, e.diag.statement_position) == ("42703", "8") and "memories.title" in e.diag.message_hint, e.diag
        assert e.diag.context is None and e.diag.source_file is None and e.diag.table_name is None


works("savepoint", savepoint)
works("pipeline", pipeline)
works("copy", copy)
works("cancel", cancel)
works("diagnostics", diagnostics)
works("stream", lambda: len(list(c.cursor().stream("SELECT id FROM memories LIMIT 50"))))
works("client cursor", lambda: psycopg.ClientCursor(c).execute("SELECT %s, %s::timestamptz", ("it's", datetime.datetime.now())).fetchone())
works("named cursor", lambda: c.cursor("mine").execute("SELECT id FROM memories").fetchmany(3))
works("scrolling", lambda: (lambda k: (k.execute("SELECT id FROM memories"), k.scroll(3), k.fetchone(), k.scroll(0, mode="absolute"), k.fetchone()))(c.cursor("scrolled", scrollable=True)))
works("a cursor over the commit", lambda: (lambda k: (k.execute("SELECT 1"), c.commit(), k.fetchone(), k.close()))(c.cursor("held", withhold=True)))
refused("update", "42501", lambda: c.execute("UPDATE memories SET title = 'x'"))
c.rollback()
c.close()

k = psycopg2.connect(dsn)


def query(sql, *args):
    with k.cursor() as x:
        x.execute(sql, args or None)
        return x.fetchall()


works("psycopg2", lambda: query("SELECT title, metadata FROM memories WHERE title LIKE %s LIMIT 1", "%a%"))
works("psycopg2 no hstore", lambda: psycopg2.extras.HstoreAdapter.get_oids(k))
works("psycopg2 composite", lambda: psycopg2.extras.register_composite("people", k).attnames)
works("psycopg2 values", lambda: psycopg2.extras.execute_values(k.cursor(), "SELECT * FROM (VALUES %s) x (a, b)", [(1, 2), (3, 4)], fetch=True))
works("psycopg2 copy", lambda: k.cursor().copy_expert("COPY (SELECT title FROM memories LIMIT 1) TO STDOUT csv", io.StringIO()))
k.rollback()
works("psycopg2 named cursor", lambda: (lambda x: (x.execute("SELECT id FROM memories"), x.fetchmany(3), x.close()))(k.cursor("named")))
k.rollback()
works("psycopg2 reset", k.reset)
works("psycopg2 session", lambda: (k.set_session(readonly=True, autocommit=True), query("SELECT 1")))
k.close()
done()
