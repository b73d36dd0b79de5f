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

// lockID keeps two migrations of one database apart: "pgconsnt" as a number.
const lockID int64 = 0x7067636f6e736e74

// run is one transaction and the statements that it has run.
type run struct {
	tx    pgx.Tx
	ran   []Statement
	locks []string // the tables that it locks
}

// inTx runs f in a transaction, and returns the tables that it locks, or wanted to.
func inTx(ctx context.Context, conn *pgx.Conn, f func(*run) error, commit bool) (locks []string, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	r := &run{tx: tx}
	for _, sql := range append(slices.Clone(catalog.ReadingSettings),
		"SET LOCAL client_min_messages = error",
		"SET LOCAL row_security = on",
		"SET LOCAL lock_timeout = '"+lockTimeout+"'",
		fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock(%d)", lockID),
	) {
		if err := r.quietly(ctx, sql); err != nil {
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

// exec runs a statement of the migration.
func (r *run) exec(ctx context.Context, s Statement) error {
	r.ran = append(r.ran, s)
	if err := r.quietly(ctx, s.SQL); err != nil {
		return r.failed(s, err)
	}
	return nil
}

// failed is the error of a statement, which says for what the role that migrates has not the rights.
func (r *run) failed(s Statement, err error) error {
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

func (r *run) execAll(ctx context.Context, statements []Statement) error {
	for _, s := range statements {
		if err := r.exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// try runs a statement and forgets it if what it speaks of is gone, or still needed elsewhere. It tells whether it ran.
func (r *run) try(ctx context.Context, s Statement, codes ...string) (bool, error) {
	if err := r.quietly(ctx, "SAVEPOINT pgconsent_try"); err != nil {
		return false, err
	}
	err := r.quietly(ctx, s.SQL)
	var pgErr *pgconn.PgError
	if err == nil {
		r.ran = append(r.ran, s)
		return true, r.quietly(ctx, "RELEASE SAVEPOINT pgconsent_try")
	}
	if !errors.As(err, &pgErr) {
		return false, err
	}
	for _, code := range codes {
		if pgErr.Code == code {
			return false, r.quietly(ctx, "ROLLBACK TO SAVEPOINT pgconsent_try; RELEASE SAVEPOINT pgconsent_try")
		}
	}
	return false, r.failed(s, err)
}

// quietly runs SQL that is not part of what a DBA reviews. The simple protocol takes files of many statements.
func (r *run) quietly(ctx context.Context, sql string) error {
	_, err := r.tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// script is what ran, for reading.
func (r *run) script() string {
	var b strings.Builder
	b.WriteString("BEGIN;\nSET LOCAL search_path = pg_catalog, pg_temp;\nSET LOCAL standard_conforming_strings = on;\n")
	why := ""
	for _, s := range r.ran {
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
	if len(r.ran) == 0 {
		b.WriteString("\n-- nothing to do\n")
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String()
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteLiteral(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }
