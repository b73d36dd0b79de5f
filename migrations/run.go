package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// lockID is the key of the advisory lock by which concurrent migrations of a database exclude each other: "pgconsnt" in
// ASCII.
const lockID int64 = 0x7067636f6e736e74

// migrationRun is a migration's transaction, with the statements that it has run.
type migrationRun struct {
	tx         pgx.Tx
	statements []Statement
	locks      []string // the tables that the transaction locks or has tried to lock
}

// inTx runs f in a transaction, and returns the tables that the transaction has locked or tried to lock. It rolls back
// if f fails or commit is false.
func inTx(ctx context.Context, conn *pgx.Conn, f func(*migrationRun) error, commit bool) (locks []string, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	r := &migrationRun{tx: tx}
	for _, sql := range append(slices.Clone(catalog.ReadingSettings),
		"SET LOCAL client_min_messages = error",
		"SET LOCAL row_security = on",
		"SET LOCAL lock_timeout = '"+lockTimeout+"'",
		fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock(%d)", lockID),
	) {
		if err := r.execUnlisted(ctx, sql); err != nil {
			return nil, err
		}
	}
	if err := f(r); err != nil || !commit {
		return r.locks, err
	}
	if err := tx.Commit(ctx); err != nil {
		return r.locks, fmt.Errorf("migrate: %w", err)
	}
	return r.locks, nil
}

// exec runs a statement and adds it to r.statements, which [Render] prints.
func (r *migrationRun) exec(ctx context.Context, s Statement) error {
	r.statements = append(r.statements, s)
	if err := r.execUnlisted(ctx, s.SQL); err != nil {
		return r.statementError(s, err)
	}
	return nil
}

// statementError returns the error for a failed statement. If the migrating role lacks a right, the error quotes the
// statement and says what to do.
func (r *migrationRun) statementError(s Statement, err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != string(sqlstate.InsufficientPrivilege) {
		return fmt.Errorf("migrate: %s: %w", s.Why, err)
	}
	sql, _, more := strings.Cut(strings.TrimSpace(s.SQL), "\n")
	if more {
		sql += " …"
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream,
		"the role that migrates, %s, may not do all that is needed", quoteIdent(r.tx.Conn().Config().User)).
		WithHint("%s It was sent: %s\nMigrate as a role that owns the tables of the policy and may grant on their "+
			"schemas (roles.migrate), or let a superuser make it a member of the owner: GRANT owner TO %s.",
			s.Why, sql, quoteIdent(r.tx.Conn().Config().User)).WithCause(err)
}

// maxBatchBytes is how many bytes of statements are sent in one message at most. The server then parses no more than a
// long statement at once.
const maxBatchBytes = 16 << 10

// execAll runs statements in their order, several in one message where that is possible: an installation has hundreds of
// short statements, each of which would be a way to the server and back.
func (r *migrationRun) execAll(ctx context.Context, statements []Statement) error {
	for len(statements) > 0 {
		n := batchLength(statements)
		if n == 1 {
			if err := r.exec(ctx, statements[0]); err != nil {
				return err
			}
		} else if err := r.execBatch(ctx, statements[:n]); err != nil {
			return err
		}
		statements = statements[n:]
	}
	return nil
}

// batchLength returns how many of the first statements one message may have. A text with a semicolon may be several
// statements, or have it in a function's body, and is sent alone.
func batchLength(statements []Statement) int {
	size := 0
	for i, s := range statements {
		if size += len(s.SQL); strings.Contains(s.SQL, ";") || size > maxBatchBytes {
			return max(i, 1)
		}
	}
	return len(statements)
}

// execBatch runs statements that have no semicolon in one message, and adds them to r.statements. The server answers
// each of them, so the number of answers tells which one has failed.
func (r *migrationRun) execBatch(ctx context.Context, statements []Statement) error {
	var sql strings.Builder
	for _, s := range statements {
		sql.WriteString(s.SQL)
		sql.WriteString("\n;\n") // the statement may end with a comment
	}
	results, err := r.tx.Conn().PgConn().Exec(ctx, sql.String()).ReadAll()
	if err == nil {
		r.statements = append(r.statements, statements...)
		return nil
	}
	failed := min(len(results), len(statements)-1)
	r.statements = append(r.statements, statements[:failed+1]...)
	return r.statementError(statements[failed], err)
}

// tryExec runs a statement and reports whether it succeeded. Errors with one of the SQLSTATEs in codes are ignored and
// leave the transaction usable.
func (r *migrationRun) tryExec(ctx context.Context, s Statement, codes ...string) (bool, error) {
	if err := r.execUnlisted(ctx, "SAVEPOINT pgconsent_try"); err != nil {
		return false, err
	}
	err := r.execUnlisted(ctx, s.SQL)
	var pgErr *pgconn.PgError
	if err == nil {
		r.statements = append(r.statements, s)
		return true, r.execUnlisted(ctx, "RELEASE SAVEPOINT pgconsent_try")
	}
	if !errors.As(err, &pgErr) {
		return false, err
	}
	for _, code := range codes {
		if pgErr.Code == code {
			return false, r.execUnlisted(ctx, "ROLLBACK TO SAVEPOINT pgconsent_try; RELEASE SAVEPOINT pgconsent_try")
		}
	}
	return false, r.statementError(s, err)
}

// execUnlisted runs SQL without adding it to the script that a DBA reviews. sql may contain several statements.
func (r *migrationRun) execUnlisted(ctx context.Context, sql string) error {
	_, err := r.tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// script returns the statements that ran as a commented SQL script, without passwords' verifiers.
func (r *migrationRun) script() string {
	var b strings.Builder
	b.WriteString("BEGIN;\nSET LOCAL search_path = pg_catalog, pg_temp;\nSET LOCAL standard_conforming_strings = on;\n")
	why := ""
	for _, s := range r.statements {
		if s.Why != why {
			b.WriteString("\n-- " + strings.ReplaceAll(s.Why, "\n", "\n-- ") + "\n")
			why = s.Why
		}
		sql := strings.TrimSpace(s.SQL)
		if i := strings.Index(sql, "SCRAM-SHA-256$"); i >= 0 {
			sql = sql[:i] + "…'"
		}
		b.WriteString(strings.TrimSuffix(sql, ";") + ";\n")
	}
	if len(r.statements) == 0 {
		b.WriteString("\n-- nothing to do\n")
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String()
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteLiteral(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }
