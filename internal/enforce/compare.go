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
	// compareInterval is the time between two comparisons of one agent's statements of one shape.
	compareInterval = time.Minute
	// compareStatementTimeout limits each of the two statements of a comparison.
	compareStatementTimeout = "5s"
	// maxComparisons is how many comparisons may wait, and maxShapes how many shapes are remembered.
	maxComparisons, maxShapes = 64, 10_000
)

// comparison is a comparison that waits to be made: of the rows that an observed statement returned with the rows that
// the policy would let it return.
type comparison struct {
	*comparedTexts
	record     audit.Observation
	attributes map[string]string
	claims     map[string]string // the claims of the session, by setting
}

// comparisonQueue has the comparisons that wait, and the time when the statements of each shape were compared last.
type comparisonQueue struct {
	mu           sync.Mutex
	lastCompared map[string]time.Time
	queue        chan comparison // nil: there is no connection on which statements can be compared
}

// enqueue puts a comparison into the queue and returns true. It returns false if the shape was compared within the last
// minute, if the queue is full, or if there is no queue.
func (c *comparisonQueue) enqueue(shape string, job comparison) bool {
	if c.queue == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if comparedAt, ok := c.lastCompared[shape]; ok && now.Sub(comparedAt) < compareInterval {
		return false
	}
	if len(c.lastCompared) >= maxShapes {
		clear(c.lastCompared)
	}
	select {
	case c.queue <- job:
		c.lastCompared[shape] = now
		return true
	default:
		return false
	}
}

// runComparisons makes the comparisons of the queue, one at a time, until ctx ends.
func (d *database) runComparisons(ctx context.Context) {
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
		case job := <-d.comparisons.queue:
			var err error
			if conn == nil || conn.IsClosed() {
				if conn, err = d.connectAsAgentRole(ctx); err != nil {
					conn = nil
				}
			}
			r := job.record
			if err == nil {
				r.Compared, err = d.compare(ctx, conn, job)
			}
			r.Session, r.Rows, r.SkipReason = "", 0, ""
			if err != nil {
				r.SkipReason = audit.ComparisonFailed
				d.enforcer.cfg.Log.Debug("a comparison failed", "database", d.cfg.Name, "fingerprint", r.Fingerprint)
			}
			if ctx.Err() == nil {
				d.enforcer.cfg.Audit.Observation(r)
			}
		}
	}
}

// connectAsAgentRole opens a connection with the role and the settings that agents' sessions have.
func (d *database) connectAsAgentRole(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	config, err := pgx.ParseConfig(d.cfg.AgentConnection)
	if err != nil {
		return nil, err
	}
	for k, v := range d.pinnedSettings() {
		config.RuntimeParams[k] = v
	}
	config.RuntimeParams["application_name"] = "pgconsent observer"
	config.RuntimeParams["statement_timeout"] = compareStatementTimeout
	return pgx.ConnectConfig(ctx, config)
}

// compare runs the statement with and without the policy's rules, in one read-only snapshot and with the agent's
// rights.
func (d *database) compare(ctx context.Context, conn *pgx.Conn, job comparison) (*audit.Comparison, error) {
	v, refused := d.current()
	if refused != nil {
		return nil, refused
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // rand.Read never returns an error.
	value := v.state.sealKey.Seal(seal.Claims{
		Nonce: binary.BigEndian.Uint32(nonce[:]), PID: conn.PgConn().PID(),
		Expires: time.Now().Add(v.clockOffset + seal.SealLifetime),
		Profile: v.state.profile, Attributes: job.attributes, Catalog: strconv.FormatInt(v.catalogVersion, 10),
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
			return nil, unavailableRefusal(nil)
		}
		counts[i], sums[i] = string(results[0].Rows[0][0]), string(results[0].Rows[0][1])
	}
	out := &audit.Comparison{Differs: counts[0] != counts[1] || sums[0] != sums[1]}
	var err error
	if out.Rows, err = strconv.ParseInt(counts[0], 10, 64); err != nil {
		return nil, err
	}
	out.VisibleRows, err = strconv.ParseInt(counts[1], 10, 64)
	return out, err
}
