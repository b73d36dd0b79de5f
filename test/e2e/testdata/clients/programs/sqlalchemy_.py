"""SQLAlchemy on psycopg2: the inspector, reflection, queries, the ORM, sessions and the pool."""
from check import dsn, works, refused, done
import warnings
import sqlalchemy as sa
from sqlalchemy import orm

warnings.simplefilter("ignore")
print("version", sa.__version__)
engine = sa.create_engine(dsn.replace("postgres://", "postgresql+psycopg2://"), pool_pre_ping=True, pool_size=1)
look = sa.inspect(engine)
works("schemas", look.get_schema_names)
works("tables", lambda: (sorted(look.get_table_names()) == ["memories", "memory_participants", "people"]) or 1 / 0)
works("views", look.get_view_names)
works("materialised views", lambda: look.get_view_names(include=("materialized",)))
works("enums", look.get_enums)
works("foreign tables", look.get_foreign_table_names)
works("sequences", look.get_sequence_names)
for table in look.get_table_names():
    for what in ("columns", "pk_constraint", "foreign_keys", "indexes", "unique_constraints", "check_constraints", "table_options"):
        works(f"{what} of {table}", lambda: getattr(look, "get_" + what)(table))
    works(f"comment of {table}", lambda: look.get_table_comment(table))
    works(f"oid of {table}", lambda: look.get_table_oid(table))
works("has_table", lambda: look.has_table("memories") and not look.has_table("memory_edges") or 1 / 0)
works("has_sequence", lambda: look.has_sequence("nosuch"))
with engine.connect() as c:
    works("has_schema", lambda: engine.dialect.has_schema(c, "public") or 1 / 0)
    works("has_type", lambda: engine.dialect.has_type(c, "cube"))
md = sa.MetaData()
works("reflect", lambda: md.reflect(engine, views=True))
M, P, L = (md.tables[t] for t in ("memories", "people", "memory_participants"))
works("reflected keys", lambda: ([f.target_fullname for f in L.foreign_keys] == ["memories.id"] and [k.name for k in M.primary_key] == ["id"]) or 1 / 0)
with engine.connect() as c:
    works("select", lambda: c.execute(sa.select(M.c.title).order_by(M.c.occurred_at.desc(), M.c.id).limit(3)).fetchall())
    works("join", lambda: c.execute(sa.select(sa.func.count()).select_from(M.join(L, L.c.memory_id == M.c.id).join(P, P.c.id == L.c.person_id))).scalar())
    works("in", lambda: c.execute(sa.select(P.c.name).where(P.c.name.in_(["a", "b"]))).fetchall())
    works("ilike", lambda: c.execute(sa.select(M.c.title).where(M.c.title.ilike("%a%"))).fetchall())
    works("json", lambda: c.execute(sa.select(M.c.metadata["mood"].astext, sa.func.count()).group_by(M.c.metadata["mood"].astext)).fetchall())
    works("window", lambda: c.execute(sa.select(M.c.title, sa.func.row_number().over(order_by=M.c.occurred_at))).fetchall())
    works("cte", lambda: c.execute(sa.select(sa.select(M).cte("x").c.title)).fetchall())
    works("exists", lambda: c.execute(sa.select(sa.exists().where(M.c.title == "x"))).scalar())
    works("array", lambda: c.execute(sa.select(sa.func.array_agg(M.c.title))).scalar())
    works("lateral", lambda: c.execute(sa.select(P.c.name, sa.select(sa.func.count()).where(L.c.person_id == P.c.id).scalar_subquery())).fetchall())
    refused("a column that is not there", "42703", lambda: c.execute(sa.text("SELECT titel FROM memories")))
for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"):
    with engine.connect().execution_options(isolation_level=level) as c:
        works(level, lambda: c.execute(sa.text("SELECT 1")).scalar())
with engine.connect().execution_options(postgresql_readonly=True, postgresql_deferrable=True) as c:
    works("read only", lambda: c.execute(sa.text("SELECT 1")).scalar())

with engine.connect().execution_options(stream_results=True, max_row_buffer=2) as c:
    works("a cursor on the server", lambda: len(list(c.execute(sa.select(M.c.id)))) > 2 or 1 / 0)


class Memory(orm.declarative_base()):
    __table__ = M


with orm.Session(engine) as s:
    works("orm", lambda: [m.title for m in s.query(Memory).filter(Memory.title.like("%a%")).order_by(Memory.occurred_at).limit(2)])
    works("orm get", lambda: s.get(Memory, s.query(Memory).first().id).title)
    works("orm count", lambda: s.query(Memory).count())
    works("savepoint", lambda: (s.begin_nested(), s.execute(sa.text("SELECT 1")), s.commit()))
    refused("update", "42501", lambda: s.execute(sa.update(M).values(title="x")))
engine.dispose()
done()
