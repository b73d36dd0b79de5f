// Package pgcatalog reads a catalog snapshot from a server.
//
// It reads public catalogs only, so that any role may load one and every role loads the same. It does not wait for
// locks of others' DDL longer than the server's settings say, and it reads no table of the application.
package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Load reads what the database contains, resolved along searchPath.
func Load(ctx context.Context, conn *pgx.Conn, searchPath []string) (*catalog.Snapshot, error) {
	l := loader{reader: reader{spec: catalog.Spec{SearchPath: append([]string(nil), searchPath...)}}}
	if err := l.load(ctx, conn); err != nil {
		return nil, fmt.Errorf("read the catalogs: %w", err)
	}
	return catalog.NewSnapshot(l.spec), nil
}

// reader asks the server, and keeps what needs nothing else to be understood.
type reader struct {
	tx   pgx.Tx
	spec catalog.Spec
}

// loader is a reader that puts together what several queries have told.
type loader struct {
	reader
	relations map[uint32]*catalog.Relation

	attributes map[uint32][]attribute // the columns of each relation
	heaps      map[uint32]bool        // tables of PostgreSQL's own access method

	known known

	checks           []check
	indexes          []*index
	generatedColumns []generated
	virtual          map[uint32][]generated // the columns that are computed when they are read, by relation
	partitionKeys    []partitionKey
	statistics       []statistics
	policies         []policy
	triggers         []trigger
}

// load reads everything in one snapshot. With an empty path every name that format_type writes is qualified, except for
// the names of pg_catalog.
func (l *loader) load(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	l.tx = tx
	for _, sql := range catalog.ReadingSettings {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := tx.QueryRow(ctx, "SELECT current_database(), current_setting('server_version_num')::int4").
		Scan(&l.spec.Database, &l.spec.ServerVersion); err != nil {
		return err
	}
	if err := inTurn(ctx, l.readKnown, l.readRelations, l.readParents, l.readViews, l.readColumns,
		l.readPartitionedBy, l.setChecked, l.readKeys, l.setIndexes, l.setUnique, l.readVectors, l.setRechecked, l.setComputed,
		l.readCompared, l.readUserCodeOfWrites, l.readRuns, l.readValues, l.readFunctions, l.readTypes, l.readCollations,
		l.readCasts, l.readOperators, l.readSystemNames); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// inTurn calls functions until one of them fails.
func inTurn(ctx context.Context, read ...func(context.Context) error) error {
	for _, f := range read {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each runs a query and hands every row to f through the scanned destinations.
func (r *reader) each(ctx context.Context, sql string, scan []any, f func() error, args ...any) error {
	rows, err := r.tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, scan, f)
	return err
}
