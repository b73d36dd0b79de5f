package pgchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// A page is the rows of one query. The first page is small, since many callers read only the first record.
const (
	firstPageRows = 1
	lastPageRows  = 2048
)

var errNoConnection = errors.New("there is no connection")

// Reader reads a chain and never writes to it. It is an [audit.Source] for one goroutine.
type Reader struct {
	ctx         context.Context
	conn        *pgx.Conn
	chain       string
	displayName string
	pageTimeout time.Duration // how long reading one page may take; 0: any time
	wrapError   func(error) error
}

// NewReader returns a reader that uses a connection until ctx ends. Each page is a query of its own, except in
// [Reader.InSnapshot].
func NewReader(ctx context.Context, conn *pgx.Conn, name, chain string) *Reader {
	return &Reader{ctx: ctx, conn: conn, chain: chain, displayName: name, wrapError: func(err error) error {
		return fmt.Errorf("audit: chain %s of database %s: %w", chain, name, err)
	}}
}

// InSnapshot calls f with the chain as it is at one moment, whatever is added and removed meanwhile. Verification must
// read the chain in this way.
func (r *Reader) InSnapshot(f func(audit.Source) error) error {
	if r.conn == nil {
		return r.wrapError(errNoConnection)
	}
	ctx, cancel := r.withPageTimeout()
	defer cancel()
	tx, err := r.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return r.wrapError(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), statementTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // if the rollback fails, it closes the connection
	}()
	return f(r)
}

func (r *Reader) String() string {
	return fmt.Sprintf("chain %s of database %s", r.chain, r.displayName)
}

// Size returns 0, which means that the size is unknown.
func (r *Reader) Size(int) int64 { return 0 }

// Segments returns the numbers of all segments from that of the first record to that of the last.
func (r *Reader) Segments() ([]int, error) {
	if r.conn == nil {
		return nil, r.wrapError(errNoConnection)
	}
	ctx, cancel := r.withPageTimeout()
	defer cancel()
	var first, last *int64
	err := r.conn.QueryRow(ctx,
		"SELECT pg_catalog.min(seq), pg_catalog.max(seq) FROM pgconsent.audit_record WHERE chain = $1", r.chain).
		Scan(&first, &last)
	if err != nil {
		return nil, r.wrapError(err)
	}
	var out []int
	if first != nil {
		for n := SegmentOf(uint64(*first)); n <= SegmentOf(uint64(*last)); n++ {
			out = append(out, n)
		}
	}
	return out, nil
}

func (r *Reader) withPageTimeout() (context.Context, context.CancelFunc) {
	if r.pageTimeout == 0 {
		return r.ctx, func() {}
	}
	return context.WithTimeout(r.ctx, r.pageTimeout)
}

// Open reads a segment page by page, from the record after the given one.
func (r *Reader) Open(segment int, after uint64, _ int64) (io.ReadCloser, error) {
	if r.conn == nil {
		return nil, r.wrapError(errNoConnection)
	}
	from, through := uint64(segment-1)*segmentSize, uint64(segment)*segmentSize
	return &pageReader{reader: r, after: max(after, from), through: through, size: firstPageRows}, nil
}

// pageReader reads the lines of one segment, with a query for each page.
type pageReader struct {
	reader         *Reader
	after, through uint64
	size           int
	buf            []byte
	atEnd          bool
}

func (p *pageReader) Close() error { return nil }

func (p *pageReader) Read(to []byte) (int, error) {
	for len(p.buf) == 0 {
		if p.atEnd {
			return 0, io.EOF
		}
		if err := p.readPage(); err != nil {
			return 0, err
		}
	}
	n := copy(to, p.buf)
	p.buf = p.buf[n:]
	return n, nil
}

func (p *pageReader) readPage() error {
	ctx, cancel := p.reader.withPageTimeout()
	defer cancel()
	rows, err := p.reader.conn.Query(ctx,
		"SELECT seq, line FROM pgconsent.audit_record WHERE chain = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4",
		p.reader.chain, int64(p.after), int64(p.through), p.size)
	if err != nil {
		return p.reader.wrapError(err)
	}
	p.buf = p.buf[:0]
	n := 0
	for rows.Next() {
		values := rows.RawValues()
		p.buf = append(append(p.buf, values[1]...), '\n')
		var seq int64
		if err := rows.Scan(&seq, nil); err != nil {
			rows.Close()
			return p.reader.wrapError(err)
		}
		p.after = uint64(seq)
		n++
	}
	if err := rows.Err(); err != nil {
		return p.reader.wrapError(err)
	}
	p.atEnd = n < p.size
	p.size = min(p.size*8, lastPageRows)
	return nil
}

// ListChains returns the names of all chains in a database, sorted.
func ListChains(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, `WITH RECURSIVE c (chain) AS (
			SELECT pg_catalog.min(chain) FROM pgconsent.audit_record
			UNION ALL SELECT (SELECT pg_catalog.min(r.chain) FROM pgconsent.audit_record AS r WHERE r.chain > c.chain)
				FROM c WHERE c.chain IS NOT NULL)
		SELECT chain FROM c WHERE chain IS NOT NULL`)
	if err != nil {
		return nil, fmt.Errorf("chains of the audit: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("chains of the audit: %w", err)
	}
	return out, nil
}

// MissingGuards returns which triggers and rights that protect the records are missing or changed. Only a verification
// of the chain finds whether somebody has changed records meanwhile.
func MissingGuards(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, `SELECT w.relation || ': the trigger ' || w.name || ' that keeps records as they are is missing or off'
		FROM (VALUES ('audit_record', 'pgconsent_refuse'), ('audit_record', 'pgconsent_refuse_truncate'), ('audit_retired', 'pgconsent_refuse'),
			('audit_retired', 'pgconsent_refuse_truncate')) AS w (relation, name)
		WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
			JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
			JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
			WHERE n.nspname = 'pgconsent' AND c.relname = w.relation AND t.tgname = w.name AND t.tgenabled = 'A'
			AND p.proname = 'audit_refuse' AND p.pronamespace = n.oid)
		UNION ALL
		SELECT c.relname || ': ' || f.why FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		CROSS JOIN LATERAL (
			SELECT 'the trigger ' || pg_catalog.quote_ident(t.tgname) || ' is not of migrate''s making: records may be lost or changed on their way'
			FROM pg_catalog.pg_trigger AS t
			WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname NOT IN ('pgconsent_refuse', 'pgconsent_refuse_truncate')
			UNION ALL SELECT 'the rule ' || pg_catalog.quote_ident(r.rulename)
				|| ' is not of migrate''s making: records may be lost or changed on their way' FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class = c.oid
			UNION ALL SELECT 'it is not logged: a crash of the server loses it' WHERE c.relpersistence <> 'p'
			UNION ALL SELECT 'row security is on' WHERE c.relrowsecurity
			UNION ALL SELECT 'it is not a plain table, or others inherit from it'
				WHERE c.relkind <> 'r' OR EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid OR i.inhrelid = c.oid)
		) AS f (why)
		WHERE n.nspname = 'pgconsent' AND c.relname IN ('audit_record', 'audit_retired')`)
	if err != nil {
		return nil, fmt.Errorf("triggers of the audit: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("triggers of the audit: %w", err)
	}
	return out, nil
}
