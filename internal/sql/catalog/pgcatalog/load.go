// Package pgcatalog reads a catalog snapshot from a server.
//
// It reads public catalogs only, so that every role can load a snapshot and all roles load the same. It waits for locks
// of DDL no longer than the server's settings allow, and it reads no table of the application.
package pgcatalog

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Load reads a snapshot of the database, in which names without a schema are found along searchPath.
func Load(ctx context.Context, conn *pgx.Conn, searchPath []string) (*catalog.Snapshot, error) {
	return NewReader(searchPath).Read(ctx, conn)
}

// catalogReader runs queries in one transaction on the server.
type catalogReader struct {
	tx            pgx.Tx
	serverVersion int
	queue         *pgx.Batch // the queries that each adds and together sends; nil: each sends its query itself
}

// readAll reads all facts from the server.
func readAll(ctx context.Context, reader *catalogReader, searchPath []string) (*catalogFacts, error) {
	f := &catalogFacts{spec: catalog.Spec{SearchPath: slices.Clone(searchPath)}, collations: map[uint32]collation{}}
	if err := reader.tx.QueryRow(ctx, "SELECT current_database(), current_setting('server_version_num')::int4").
		Scan(&f.spec.Database, &f.spec.ServerVersion); err != nil {
		return nil, err
	}
	reader.serverVersion = f.spec.ServerVersion
	l := &loader{catalogReader: *reader, catalogFacts: f}
	types := map[uint32]*typeFacts{}
	if err := callUntilError(ctx, l.readExtensions, l.readOtherFunctions,
		func(ctx context.Context) error { return l.readTypeFacts(ctx, types, "true") },
		l.readOperatorFacts, l.readDomainChecks, l.readDomainValues, l.readDomainDefaults, l.readRangeTypes,
		l.readPolicies); err != nil {
		return nil, err
	}
	f.objects.setTypes(types)
	f.spec.Extensions = l.spec.Extensions
	relations := relationReader{catalogReader: *reader, objects: &f.objects}
	if err := relations.read(ctx); err != nil {
		return nil, err
	}
	f.relations = relations.facts
	l = newLoader(*reader, f)
	if err := callUntilError(ctx, l.readCalledFunctions, l.readUserCodeObjects, l.readFunctions, l.readTypes, l.readCasts, l.readOperators,
		l.readSystemNames); err != nil {
		return nil, err
	}
	f.spec = l.spec
	f.spec.Relations = nil
	return f, nil
}

// callUntilError calls the functions in order, and stops at the first error.
func callUntilError(ctx context.Context, read ...func(context.Context) error) error {
	for _, f := range read {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each runs a query, or adds it to the queue. For every row it stores the values in the variables to which scan points,
// and calls f.
func (r *catalogReader) each(ctx context.Context, sql string, scan []any, f func() error, args ...any) error {
	readRows := func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, scan, f)
		return err
	}
	if r.queue != nil {
		r.queue.Queue(sql, args...).Query(readRows)
		return nil
	}
	rows, err := r.tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	return readRows(rows)
}

// together calls the functions, whose queries it sends together. For a few rows, the messages of a query cost the
// server as much time as its plan. No function may need what another one reads.
func (r *catalogReader) together(ctx context.Context, read ...func(context.Context) error) error {
	r.queue = &pgx.Batch{}
	err := callUntilError(ctx, read...)
	queue := r.queue
	r.queue = nil
	if err != nil {
		return err
	}
	return r.tx.SendBatch(ctx, queue).Close()
}
