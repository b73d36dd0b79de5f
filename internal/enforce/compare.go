package enforce

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/record/audit"
)

const (
	// compareAgain is how long an agent's statement of one shape is not compared again.
	compareAgain = time.Minute
	// compareTime bounds each of the two statements of a comparison.
	compareTime = "5s"
	// maxCompares is how many comparisons wait, and maxShapes how many shapes are remembered; what is more is not compared.
	maxCompares, maxShapes = 64, 10_000
)

// comparing is a comparison that is to be made.
type comparing struct {
	*pair
	record     audit.Observation
	attributes map[string]string
	claims     map[string]string // by settings
}

// compares is the sample of the statements that are compared.
type compares struct {
	mu    sync.Mutex
	last  map[string]time.Time
	queue chan comparing // nil: there is no connection to compare on
}

// take puts a comparison into the queue, unless its shape was compared a moment ago or the queue is full.
func (c *compares) take(shape string, job comparing) bool {
	if c.queue == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if at, ok := c.last[shape]; ok && now.Sub(at) < compareAgain {
		return false
	}
	if len(c.last) >= maxShapes {
		clear(c.last)
	}
	select {
	case c.queue <- job:
		c.last[shape] = now
		return true
	default:
		return false
	}
}

// compareAll makes comparisons, one at a time, until ctx ends.
func (d *database) compareAll(ctx context.Context) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case job := <-d.compares.queue:
			var err error
			if conn == nil || conn.IsClosed() {
				if conn, err = d.agentConn(ctx); err != nil {
					conn = nil
				}
			}
			r := job.record
			if err == nil {
				r.Compared, err = d.compare(ctx, conn, job)
			}
			r.Session, r.Rows, r.Skipped = "", 0, ""
			if err != nil {
				r.Skipped = audit.ComparisonFailed
				d.e.cfg.Log.Debug("a comparison failed", "database", d.cfg.Name, "fingerprint", r.Fingerprint)
			}
			if ctx.Err() == nil {
				d.e.cfg.Audit.Observation(r)
			}
		}
	}
}

// agentConn connects as sessions of agents do.
func (d *database) agentConn(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	config, err := pgx.ParseConfig(d.cfg.Agent)
	if err != nil {
		return nil, err
	}
	for k, v := range d.params() {
		config.RuntimeParams[k] = v
	}
	config.RuntimeParams["application_name"] = "pgconsent observer"
	config.RuntimeParams["statement_timeout"] = compareTime
	return pgx.ConnectConfig(ctx, config)
}

// compare runs both statements over one moment, as the agent, changing nothing.
func (d *database) compare(ctx context.Context, conn *pgx.Conn, job comparing) (*audit.Comparison, error) {
	v, refused := d.current()
	if refused != nil {
		return nil, refused
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails
	value := v.state.key.Seal(seal.Claims{
		Nonce: binary.BigEndian.Uint32(nonce[:]), PID: conn.PgConn().PID(), Expires: time.Now().Add(v.offset + seal.TTL),
		Profile: v.state.profile, Attributes: job.attributes, Catalog: strconv.FormatInt(v.catalog, 10),
	})
	ctx, cancel := context.WithTimeout(ctx, 2*compareTimeout)
	defer cancel()
	set := conn.PgConn().ExecParams(ctx, "SELECT pg_catalog.set_config($1, $2, false)",
		[][]byte{[]byte(seal.Setting), []byte(value)}, nil, nil, nil).Read()
	if set.Err != nil {
		return nil, set.Err
	}
	if _, err := conn.PgConn().Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").ReadAll(); err != nil {
		return nil, err
	}
	defer func() { _, _ = conn.PgConn().Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll() }()
	for setting, value := range job.claims {
		set := conn.PgConn().ExecParams(ctx, "SELECT pg_catalog.set_config($1, $2, true)",
			[][]byte{[]byte(setting), []byte(value)}, nil, nil, nil).Read()
		if set.Err != nil {
			return nil, set.Err
		}
	}
	var counts, sums [2]string
	for i, text := range []string{job.plain, job.filtered} {
		results, err := conn.PgConn().Exec(ctx, text).ReadAll()
		if err != nil {
			return nil, err
		}
		if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 2 {
			return nil, lost(nil)
		}
		counts[i], sums[i] = string(results[0].Rows[0][0]), string(results[0].Rows[0][1])
	}
	out := &audit.Comparison{Differs: counts[0] != counts[1] || sums[0] != sums[1]}
	var err error
	if out.Rows, err = strconv.ParseInt(counts[0], 10, 64); err != nil {
		return nil, err
	}
	out.Visible, err = strconv.ParseInt(counts[1], 10, 64)
	return out, err
}
