package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lockTimeout is how long a migration waits for a lock at most, and so how long later statements of other sessions can
// queue behind it. It is shorter than PostgreSQL's default deadlock_timeout.
const lockTimeout = "200ms"

// longestPause is the longest pause between two attempts of a migration to get its locks.
const longestPause = 2 * time.Second

// Holder is a session that holds a lock which a migration needs.
type Holder struct {
	PID  int32
	Role string
	// the state in pg_stat_activity, such as "idle in transaction"; "": the migrating role may not see it
	State          string
	TransactionAge time.Duration // the time since the session's transaction began
	Query          string        // the session's last query, if the migrating role may see it
	IsMigrate      bool          // the session is another pgconsent migrate
}

func (h Holder) String() string {
	if h.IsMigrate {
		return fmt.Sprintf("session %d, another pgconsent migrate", h.PID)
	}
	if h.State == "" {
		return fmt.Sprintf("session %d of %s (what it does only members of that role, and of pg_read_all_stats, see)",
			h.PID, h.Role)
	}
	text := fmt.Sprintf("session %d of %s, %s, in a transaction for %s", h.PID, h.Role, h.State,
		h.TransactionAge.Round(time.Second))
	if h.Query != "" {
		text += ": " + h.Query
	}
	return text
}

// transact runs f in a transaction, and tries again until it gets all locks that it needs. It also tries again, up to
// five times, if a migrate in another database of the server has made the same roles at the same time, or if somebody
// has dropped a role since the plan named it (42704).
func transact(ctx context.Context, conn *pgx.Conn, o Options, commit bool, f func(*migrationRun) error) error {
	pause, tries := 100*time.Millisecond, 0
	for {
		tables, err := inTx(ctx, conn, f, commit)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) {
			return err
		}
		locked := pgErr.Code == "55P03" || pgErr.Code == "40P01"
		again := slices.Contains([]string{"42710", "23505", "40001", "42704"}, pgErr.Code) || pgErr.Code == "XX000" &&
			(pgErr.Message == "tuple concurrently updated" || pgErr.Message == "tuple concurrently deleted")
		if tries++; !locked && (!again || tries == 5) {
			return err
		}
		if locked && o.OnWait != nil {
			holders, failed := readHolders(ctx, conn, tables)
			if failed != nil {
				return failed
			}
			o.OnWait(holders)
		}
		if !locked {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("migrate: nothing was changed: %w", ctx.Err())
		}
		pause = min(2*pause, longestPause)
	}
}

// governedTablesQuery selects the OIDs of the tables that have row policies of pgconsent.
const governedTablesQuery = "SELECT p.polrelid FROM pg_catalog.pg_policy AS p WHERE p.polname LIKE 'pgconsent%'"

// readHolders returns sessions that hold locks on these tables, or the lock of another migrate, the oldest transaction
// first. If tables is nil, it checks all tables with row policies of pgconsent.
func readHolders(ctx context.Context, conn *pgx.Conn, tables []string) ([]Holder, error) {
	rows, err := conn.Query(ctx, `SELECT a.pid, COALESCE(a.usename, ''), COALESCE(a.state, ''),
		  COALESCE(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start), 0),
		  COALESCE(pg_catalog.left(pg_catalog.regexp_replace(NULLIF(a.query, '<insufficient privilege>'), '\s+', ' ', 'g'), 100), ''),
		  pg_catalog.bool_or(l.locktype = 'advisory')
		FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
		WHERE l.granted AND a.pid <> pg_catalog.pg_backend_pid()
		  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
		  AND (CASE WHEN $2::text[] IS NULL THEN l.relation IN (`+governedTablesQuery+`)
		      ELSE l.relation IN (SELECT pg_catalog.to_regclass(t.name) FROM pg_catalog.unnest($2::text[]) AS t (name)) END
		    OR l.locktype = 'advisory' AND l.classid::int8 << 32 | l.objid::int8 = $1)
		GROUP BY 1, 2, 3, 4, 5 ORDER BY 4 DESC LIMIT 5`, lockID, tables)
	if err != nil {
		return nil, fmt.Errorf("migrate: who holds locks: %w", err)
	}
	var (
		holders []Holder
		h       Holder
		seconds float64
	)
	_, err = pgx.ForEachRow(rows, []any{&h.PID, &h.Role, &h.State, &seconds, &h.Query, &h.IsMigrate}, func() error {
		h.TransactionAge = time.Duration(seconds * float64(time.Second))
		holders = append(holders, h)
		return nil
	})
	return holders, err
}

// lockTables locks the tables, and with all also every table that has row policies of pgconsent, before the migration
// changes anything. So a lock that is not available makes the attempt fail early, before work was done. It first locks
// the views of pgconsent that read the tables. Statements lock a view before its tables, so another order could lead to
// deadlocks.
func (r *migrationRun) lockTables(ctx context.Context, tables []string, all bool) error {
	names, err := r.queryNames(ctx, `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND pg_catalog.has_table_privilege(c.oid, 'TRUNCATE')
		  AND ($2 AND c.oid IN (`+governedTablesQuery+`)
		    OR c.oid IN (SELECT pg_catalog.to_regclass(t.name) FROM pg_catalog.unnest($1::text[]) AS t (name)))
		ORDER BY c.oid`, tables, all)
	if err != nil || len(names) == 0 {
		return err
	}
	r.locks = names
	// LOCK TABLE on a view would also lock the relations that the view reads. ALTER VIEW … OWNER TO the current owner
	// locks only the view, and changes nothing.
	views, err := r.queryNames(ctx, `WITH RECURSIVE reading (oid) AS (
		SELECT pg_catalog.to_regclass(t.name)::oid FROM pg_catalog.unnest($1::text[]) AS t (name)
		UNION
		SELECT w.ev_class FROM reading AS r
		JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = r.oid
		JOIN pg_catalog.pg_rewrite AS w ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = w.oid)
		SELECT pg_catalog.format('ALTER VIEW %s OWNER TO %I', c.oid::regclass, pg_catalog.pg_get_userbyid(c.relowner))
		FROM reading AS r JOIN pg_catalog.pg_class AS c ON c.oid = r.oid
		JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind = 'v' AND n.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')
		  AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
		ORDER BY c.oid`, names)
	if err != nil {
		return err
	}
	return r.execUnlisted(ctx, strings.Join(append(views,
		"LOCK TABLE "+strings.Join(names, ", ")+" IN ACCESS EXCLUSIVE MODE"), ";\n"))
}
