// Package pgchain stores a chain of audit records in PostgreSQL: the table pgconsent.audit_record has a row for each
// record.
//
// Guarantee: records for which [Store.Append] has returned nil are committed. Each call ends within seconds, whatever
// the server does. The store has its own connection, so it never waits for agents' connections and takes part in none
// of their transactions.
package pgchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

const (
	// statementTimeout limits a query. A waiting statement is refused after at most two queries.
	statementTimeout = 2 * time.Second
	// lockTimeout is how long the first LockChain waits until the process that had the chain before has ended.
	lockTimeout = 3 * time.Second
	// removeTimeout limits the removal of one batch of removeBatch records.
	removeTimeout = 5 * time.Second
	removeBatch   = 5000
	// segmentSize is the number of records in a segment. A segment is only a name for a range of record numbers here.
	segmentSize = 1 << 16
	// lockClass is the first key of the advisory lock on a chain; the second is a hash of the chain's name.
	lockClass = 1885825891
)

// SegmentOf returns the number of the segment that has a record.
func SegmentOf(seq uint64) int { return int((max(seq, 1)-1)/segmentSize) + 1 }

// Store reads and writes one chain; it implements [audit.Store].
type Store struct {
	config      *pgx.ConnConfig
	chain       string
	displayName string
	conn        *pgx.Conn
	isLocked    bool
}

// New returns the store of a chain. name is the database's name for messages. [Store.LockChain] makes the connection.
func New(config *pgx.ConnConfig, name, chain string) *Store {
	config = config.Copy()
	config.RuntimeParams["application_name"] = "pgconsent audit"
	config.RuntimeParams["search_path"] = "pg_catalog"
	config.RuntimeParams["client_encoding"] = "UTF8"
	config.RuntimeParams["statement_timeout"] = "5s" // PostgreSQL then ends a statement whose client is gone
	config.ConnectTimeout = statementTimeout
	return &Store{config: config, chain: chain, displayName: name}
}

func (s *Store) String() string {
	return fmt.Sprintf("chain %s of database %s", s.chain, s.displayName)
}

// LockChain connects if there is no connection. The first call also makes sure that no other process uses the chain.
func (s *Store) LockChain() error {
	wait := statementTimeout
	if !s.isLocked {
		wait += lockTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if s.conn != nil && s.conn.IsClosed() {
		s.conn = nil
	}
	if s.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
		if err != nil {
			return s.closeAfter(err)
		}
		s.conn = conn
		var encoding string
		err = conn.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_encoding'),
			CASE WHEN pg_catalog.current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
				THEN pg_catalog.set_config('synchronous_commit', 'on', false) END`).Scan(&encoding, nil)
		if err != nil {
			return s.closeAfter(err)
		}
		if encoding != "UTF8" {
			s.dropConnection()
			return fmt.Errorf(
				"audit: %s: its encoding is %s, and a record may hold any character: keep the audit in a database "+
					"in UTF8, or in files", s, encoding)
		}
	}
	for {
		var free bool
		if err := s.conn.QueryRow(ctx,
			"SELECT pg_catalog.pg_try_advisory_lock($1::pg_catalog.int4, pg_catalog.hashtext($2))", int32(lockClass),
			s.chain).Scan(&free); err != nil {
			return s.closeAfter(err)
		}
		// The lock may belong to an older connection of this process, whose end the server has not noticed yet. If another
		// process has written meanwhile, Append fails.
		if free || s.isLocked {
			s.isLocked = true
			return nil
		}
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < statementTimeout {
			s.dropConnection()
			return fmt.Errorf("audit: %s is in use by another pgconsent; give each its own audit.chain", s)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Append adds records; the first line has the record number first.
func (s *Store) Append(first uint64, lines [][]byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if s.conn == nil {
		return s.closeAfter(errNoConnection)
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = string(line)
	}
	if _, err := s.conn.Exec(ctx, "SELECT pgconsent.audit_append($1, $2, $3)", s.chain, int64(first), texts); err != nil {
		return s.closeAfter(err)
	}
	return nil
}

// Remove removes the records up to the given one in batches, over a separate connection.
func (s *Store) Remove(through uint64) error {
	for removedCount := int64(1); removedCount > 0; {
		if err := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
			defer cancel()
			conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			return conn.QueryRow(ctx, "SELECT pgconsent.audit_retire($1, $2, $3)", s.chain, int64(through),
				int32(removeBatch)).Scan(&removedCount)
		}(); err != nil {
			return fmt.Errorf("audit: %s: %w", s, err)
		}
	}
	return nil
}

// InSnapshot calls f with the chain as it is at one moment.
func (s *Store) InSnapshot(f func(audit.Source) error) error { return s.reader().InSnapshot(f) }

// Segments returns the segments that have records.
func (s *Store) Segments() ([]int, error) { return s.reader().Segments() }

// Open reads a segment from the record after the given one.
func (s *Store) Open(segment int, after uint64, offset int64) (io.ReadCloser, error) {
	return s.reader().Open(segment, after, offset)
}

func (s *Store) reader() *Reader {
	return &Reader{ctx: context.Background(), conn: s.conn, chain: s.chain, displayName: s.displayName,
		pageTimeout: statementTimeout,
		wrapError:   s.closeAfter}
}

// Size returns 0, which means that the size is unknown.
func (s *Store) Size(int) int64 { return 0 }

// SegmentOf returns the number of the segment that has a record.
func (s *Store) SegmentOf(seq uint64) int { return SegmentOf(seq) }

// Close closes the connection, which also unlocks the chain.
func (s *Store) Close() { s.dropConnection() }

func (s *Store) dropConnection() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = s.conn.Close(ctx)
	s.conn = nil
}

// closeAfter closes the connection, whose state is unknown after err. It wraps [audit.ErrUnreachable] if only the
// connection failed.
func (s *Store) closeAfter(err error) error {
	s.dropConnection()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("audit: %s: %w: %w", s, audit.ErrUnreachable, err)
	}
	hint := ""
	if pg.Hint != "" {
		hint = " (" + pg.Hint + ")"
	}
	switch pg.Code[:2] {
	case "08", "53", "57": // error classes of connections, resources and shutdowns, which pass
		return fmt.Errorf("audit: %s: %w: %w%s", s, audit.ErrUnreachable, err, hint)
	case "3F", "42":
		return fmt.Errorf("audit: %s: %w (run pgconsent migrate)", s, err)
	default:
		return fmt.Errorf("audit: %s: %w%s", s, err, hint)
	}
}
