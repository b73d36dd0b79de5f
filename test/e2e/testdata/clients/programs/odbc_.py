"""pyodbc on psqlODBC: the catalog functions, queries, transactions."""
from check import url, works, refused, done
import sys
import pyodbc

print("version", pyodbc.version)
c = pyodbc.connect("DRIVER={PostgreSQL Unicode};SERVER=%s;PORT=%s;DATABASE=%s;UID=%s;PWD=%s;%s" % (
    url.hostname, url.port, url.path[1:], url.username, url.password, sys.argv[2] if len(sys.argv) > 2 else ""))
print("version", c.getinfo(pyodbc.SQL_DRIVER_VER))
k = c.cursor()
works("tables", lambda: len(k.tables(schema="public", tableType="TABLE").fetchall()) == 3 or 1 / 0)
for name, args in {"all": {}, "catalogs": {"catalog": "%", "schema": "", "table": ""}, "schemas": {"catalog": "", "schema": "%", "table": ""}, "types": {"catalog": "", "schema": "", "table": "", "tableType": "%"}}.items():
    works("tables: " + name, lambda: k.tables(**args).fetchall())
for table in ("memories", "people", "memory_participants"):
    works("columns of " + table, lambda: k.columns(table=table).fetchall()[0])
    works("a column of " + table, lambda: k.columns(table=table, schema="public", column="id").fetchall())
    works("key of " + table, lambda: k.primaryKeys(table).fetchall()[0])
    works("keys to " + table, lambda: k.foreignKeys(table).fetchall())
    works("keys from " + table, lambda: k.foreignKeys(foreignTable=table).fetchall())
    works("statistics of " + table, lambda: k.statistics(table).fetchall()[0])
    works("unique indexes of " + table, lambda: k.statistics(table, unique=True, quick=False).fetchall())
    works("row id of " + table, lambda: k.rowIdColumns(table).fetchall())
    works("row version of " + table, lambda: k.rowVerColumns(table).fetchall())
works("procedures", lambda: k.procedures().fetchall())
works("procedure columns", lambda: k.procedureColumns("match_memories").fetchall())
works("types", lambda: k.getTypeInfo().fetchall())
works("select", lambda: k.execute("SELECT * FROM memories").fetchmany(2))
works("select all", lambda: len(k.execute("SELECT id, title, occurred_at, metadata FROM memories").fetchall()))
works("parameters", lambda: k.execute("SELECT title FROM memories WHERE title LIKE ? AND occurred_at > ?", "%a%", "2020-01-01").fetchmany(2))
works("an integer", lambda: k.execute("SELECT ?::int + 1", 41).fetchval() == 42 or 1 / 0)
works("a null", lambda: k.execute("SELECT ?::text", None).fetchval())
works("commit", lambda: (k.execute("SELECT 1"), c.commit()))
refused("a column that is not there", "42703", lambda: k.execute("SELECT titel FROM memories"))
works("afterwards", lambda: (c.rollback(), k.execute("SELECT 1").fetchval()))
refused("update", "42501", lambda: k.execute("UPDATE memories SET title = 'x'"))
c.rollback()
c.autocommit = True
works("autocommit", lambda: k.execute("SELECT 1").fetchval())
works("several statements", lambda: (k.execute("SELECT 1; SELECT 2"), k.nextset(), k.fetchval()))
works("a call", lambda: k.execute("{call lower('X')}").fetchval() == "x" or 1 / 0)
works("what it says of the server", lambda: [c.getinfo(x) for x in (pyodbc.SQL_DBMS_NAME, pyodbc.SQL_DBMS_VER, pyodbc.SQL_DATABASE_NAME, pyodbc.SQL_USER_NAME)])
works("isolation", lambda: c.set_attr(pyodbc.SQL_ATTR_TXN_ISOLATION, pyodbc.SQL_TXN_READ_COMMITTED))
c.close()
done()
