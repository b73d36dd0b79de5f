"""SQLAlchemy on psycopg2, and the pool of psycopg 3: four connections for 50 users at once."""
from concurrent.futures import ThreadPoolExecutor

import psycopg
import sqlalchemy as sa
from psycopg_pool import ConnectionPool

from check import done, dsn, refused, works

print("version", sa.__version__, psycopg.__version__)
engine = sa.create_engine(dsn.replace("postgres://", "postgresql+psycopg2://"), pool_size=4, max_overflow=0)
pool = ConnectionPool(dsn, min_size=4, max_size=4)
USER = "SELECT set_config('pgconsent.token', {}, true)"


def alchemy(user):
    with engine.begin() as c:
        c.execute(sa.text(USER.format(":token")), {"token": f"secret-token-of-{user}"})
        return [row[0] for row in c.execute(sa.text("SELECT user_id FROM notes"))]


def alchemy_nobody():
    with engine.begin() as c:
        return c.execute(sa.text("SELECT count(*) FROM notes")).scalar()


def psycopg3(user):
    with pool.connection() as c, c.transaction():
        c.execute(USER.format("%s"), (f"secret-token-of-{user}",))
        return [row[0] for row in c.execute("SELECT user_id FROM notes WHERE id > %s", (0,)).fetchall()]


def psycopg3_prepared(user):
    with pool.connection() as c, c.transaction():
        c.execute(USER.format("%s"), (f"secret-token-of-{user}",), prepare=True)
        return [row[0] for row in c.execute("SELECT user_id FROM notes", prepare=True).fetchall()]


def psycopg3_pipeline(user):
    with pool.connection() as c, c.pipeline(), c.transaction():
        c.execute(USER.format("%s"), (f"secret-token-of-{user}",))
        return [row[0] for row in c.execute("SELECT user_id FROM notes").fetchall()]


def psycopg3_nobody():
    with pool.connection() as c:
        return c.execute("SELECT count(*) FROM notes").fetchone()[0]


def each_sees_its_own(see, nobody):
    def one(i):
        user = 1 + (i * 17) % 50
        if see(user) != [user] * 3:
            raise AssertionError(f"user {user} sees {see(user)}")
        if nobody() != 0:
            raise AssertionError("nobody sees rows")

    def run():
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(one, range(100)))
    return run


works("sqlalchemy", each_sees_its_own(alchemy, alchemy_nobody))
works("psycopg", each_sees_its_own(psycopg3, psycopg3_nobody))
works("psycopg, prepared", each_sees_its_own(psycopg3_prepared, psycopg3_nobody))
works("psycopg, pipeline", each_sees_its_own(psycopg3_pipeline, psycopg3_nobody))
refused("sqlalchemy, a wrong token", "28000", lambda: alchemy("x"))
refused("psycopg, a wrong token", "28000", lambda: psycopg3("x"))
done()
