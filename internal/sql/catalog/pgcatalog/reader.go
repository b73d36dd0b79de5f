package pgcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Reader reads snapshots of one database, one after another. After the first snapshot it reads only the relations that
// have changed. It reads everything if other objects have changed. All connections must be to the same server.
type Reader struct {
	searchPath []string

	lastSnapshot *catalog.Snapshot // nil: nothing has been read
	facts        *catalogFacts
	versions     *versions
	lastFullRead time.Time // when the catalogs were last read as a whole

	fullReads    int
	agentChanges int64
}

// NewReader returns a Reader of snapshots whose names are resolved along searchPath.
func NewReader(searchPath []string) *Reader {
	return &Reader{searchPath: slices.Clone(searchPath)}
}

const (
	// maxRelations is the largest number of changed relations that are read one by one; with more, everything is read.
	maxRelations = 300
	// fullReadInterval is the time after a full read from which on the next change causes another full read.
	fullReadInterval = 10 * time.Minute
)

// transactionSettings are the settings of the transaction that reads. Queries about some relations are planned once for
// each connection: the generic plan serves for all of them, and planning takes longer than reading.
var transactionSettings = append(slices.Clone(catalog.ReadingSettings), "SET LOCAL plan_cache_mode = force_generic_plan")

// Reset makes the next Read read everything again.
func (r *Reader) Reset() { r.lastSnapshot, r.facts, r.versions = nil, nil, nil }

// AgentChanges counts the calls of Read that found changed rows in the catalogs, apart from rows about temporary
// tables. It also counts changes that no snapshot shows, such as rights, and the definitions of pgconsent's own views
// and policies. It counts each full read, since a full read does not tell what has changed.
func (r *Reader) AgentChanges() int64 { return r.agentChanges }

// ColumnNumbers returns the numbers of a relation's columns by their names, as they were last read.
func (r *Reader) ColumnNumbers(relation uint32) map[string]int16 {
	if r.facts == nil || r.facts.relations[relation] == nil {
		return nil
	}
	numbers := map[string]int16{}
	for _, c := range r.facts.relations[relation].columns {
		numbers[c.Name] = c.number
	}
	return numbers
}

// Read returns a snapshot of the database as it is now. If nothing has changed, it is the previous snapshot.
func (r *Reader) Read(ctx context.Context, conn *pgx.Conn) (*catalog.Snapshot, error) {
	if err := r.read(ctx, conn); err != nil {
		var serverError *pgconn.PgError
		if !errors.As(err, &serverError) || serverError.Code != "55P03" { // lock_not_available
			r.Reset()
		}
		return nil, fmt.Errorf("read the catalogs: %w", err)
	}
	return r.lastSnapshot, nil
}

// read reads everything in one snapshot of PostgreSQL. The search path is empty, so that format_type qualifies all
// names except those of pg_catalog.
func (r *Reader) read(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := conn.PgConn().Exec(ctx, strings.Join(transactionSettings, "; ")).ReadAll(); err != nil {
		return err
	}
	reader := catalogReader{tx: tx}
	var catalogChanges *changes
	if r.lastSnapshot != nil {
		reader.serverVersion = r.facts.spec.ServerVersion
		if catalogChanges, err = reader.changes(ctx, r.versions); err != nil {
			return err
		}
		isRenamed, err := reader.ownersRenamed(ctx, r.facts)
		if err != nil {
			return err
		}
		catalogChanges.readAll = catalogChanges.readAll || isRenamed
		if catalogChanges.isEmpty() {
			r.versions.update(catalogChanges)
			return tx.Commit(ctx)
		}
		if err := r.addDependents(ctx, reader, catalogChanges); err != nil {
			return err
		}
	}
	var (
		newFacts    *catalogFacts
		newSnapshot *catalog.Snapshot
		newVersions *versions
		fullReadAt  = r.lastFullRead
	)
	if catalogChanges == nil || catalogChanges.readAll || len(catalogChanges.relations) > maxRelations ||
		time.Since(r.lastFullRead) > fullReadInterval {
		fullReadAt, catalogChanges = time.Now(), nil
		if newVersions, err = reader.readVersions(ctx); err != nil {
			return err
		}
		if newFacts, err = readAll(ctx, &reader, r.searchPath); err != nil {
			return err
		}
	} else if newFacts, err = r.facts.readChanged(ctx, reader, catalogChanges); err != nil {
		return err
	}
	if newFacts == r.facts {
		newSnapshot = r.lastSnapshot
	} else if newSnapshot, err = newLoader(reader, newFacts).snapshot(ctx); err != nil {
		return err
	}
	if r.lastSnapshot != nil && newSnapshot.Version() == r.lastSnapshot.Version() {
		newSnapshot = r.lastSnapshot
	}
	hasWrites := catalogChanges == nil || catalogChanges.concerns(r.facts) || catalogChanges.concerns(newFacts)
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if hasWrites {
		r.agentChanges++
	}
	if catalogChanges != nil {
		r.versions.update(catalogChanges)
	} else {
		r.versions = newVersions
		r.fullReads++
	}
	r.lastSnapshot, r.facts, r.lastFullRead = newSnapshot, newFacts, fullReadAt
	return nil
}
