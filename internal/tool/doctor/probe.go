package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// RunProbes logs in as the agent role and tries what PostgreSQL must refuse. control is a connection that may read the
// keys; agent is a connection string of the agent role. RunProbes returns an error if a connection fails.
//
// The probes for rows read a table until a row is visible, and a table without visible rows to its end. s.ProbeTime
// limits each statement, and ctx all of them together. A probe that ran out of time is a warning, probe_timeout: it
// found no row that must be hidden, but has not read everything. That is acceptable since the probes are the second
// check: [RunChecks] must run before, and compares the definitions of policies, views and functions with those that
// migrate made. Without it, probes that only warn prove nothing.
func RunProbes(ctx context.Context, control *pgx.Conn, agent string, s Target) ([]Finding, error) {
	if s.ProbeTime == 0 {
		s.ProbeTime = 30 * time.Second
	}
	cfg, err := pgx.ParseConfig(agent)
	if err != nil {
		return nil, fmt.Errorf("connect as the agent role: %w", err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	cfg.RuntimeParams["application_name"] = "pgconsent doctor"
	// Agents' sessions have this setting, whatever the database or role defines.
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	cfg.RuntimeParams["row_security"] = "on" // Agents' sessions have this setting, too.
	// A hardened plan has this setting: PostgreSQL then evaluates row policies before leak-proof comparisons.
	cfg.RuntimeParams["cpu_operator_cost"] = "0"
	cfg.RuntimeParams["enable_bitmapscan"] = "off" // A hardened plan has this setting, too.
	// The settings above make plans look expensive, so PostgreSQL would compile them.
	cfg.RuntimeParams["jit"] = "off"
	cfg.RuntimeParams["statement_timeout"] = strconv.FormatInt(s.ProbeTime.Milliseconds(), 10)
	keys, err := seal.LoadKeyring(ctx, control)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect as the agent role: %w", err)
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closeCtx)
	}()
	p := &probe{examination: examination{Target: s.withDefaultRoles(), conn: conn}, keys: keys,
		timedOutTables: map[catalog.Name]bool{}}
	var found []Finding
	// The fastest probes run first.
	for _, c := range []struct {
		id, holds string
		run       func(context.Context) ([]Finding, error)
	}{
		{"pooler", "the connection leads to one server process", p.detectPooler},
		{"seal", "a seal made with the newest key is accepted", p.tryValidSeal},
		{"unsigned_text", "signed views refuse a text that is not signed", p.tryUnsignedReads},
		{SignedPathProbe, "the signed path runs no expression before it has verified the signature", p.checkSignedPath},
		{"row_security_path", "row security lets no expression at a hidden row", p.checkRowSecurityPath},
		{"leak", "without a seal no row shows", p.findRowsWithoutSeal},
		{"forged_seal", "a forged seal opens nothing", p.tryForgedSeals},
	} {
		if s.PassedProbes[c.id] {
			continue
		}
		f, err := c.run(ctx)
		if err != nil {
			var pg *pgconn.PgError
			switch isPg := errors.As(err, &pg); {
			case errors.Is(ctx.Err(), context.DeadlineExceeded), isPg && pg.Code == queryCanceled:
				f = append(f, probeTimeout(c.id, "the server did not answer in time"))
			case !isPg || conn.IsClosed():
				return found, fmt.Errorf("probe %s: %w", c.id, err)
			default:
				f = append(f, Finding{c.id, SeverityUnsafe,
					fmt.Sprintf("the probe failed: %s (SQLSTATE %s)", pg.Message, pg.Code), "Run pgconsent migrate."})
			}
		}
		if len(f) == 0 {
			f = []Finding{{ID: c.id, Severity: SeverityOK, Problem: c.holds}}
		}
		found = append(found, f...)
	}
	return found, nil
}

// HasUnfinished reports whether one of the findings is about a probe that ran out of time.
func HasUnfinished(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.ID == "probe_timeout" })
}

func probeTimeout(probe, reason string) Finding {
	return Finding{"probe_timeout", SeverityWarning, "the probe " + probe + " was not finished: " + reason +
		"; what is installed is as migrate made it, but it was not tried whether it works",
		"Run pgconsent doctor at a quiet time: it waits 30 s for each table."}
}

// queryCanceled is the SQLSTATE of a statement that took longer than statement_timeout.
const queryCanceled = "57014"

type probe struct {
	examination
	keys           *seal.Keyring
	timedOutTables map[catalog.Name]bool // tables on which a statement timed out: they are skipped from then on
}

// detectPooler detects a connection pooler between pgconsent and PostgreSQL that switches the server process after each
// transaction.
func (p *probe) detectPooler(ctx context.Context) ([]Finding, error) {
	loginPID := p.conn.PgConn().PID()
	seenPIDs := map[uint32]bool{loginPID: true}
	for range 3 {
		var pid uint32
		if err := p.conn.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()").Scan(&pid); err != nil {
			return nil, err
		}
		seenPIDs[pid] = true
	}
	if len(seenPIDs) == 1 {
		return nil, nil
	}
	return []Finding{{"pooler", SeverityUnsafe,
		"there is a pooler between pgconsent and the server: the server process is not the one that was logged in to",
		"Point upstream at PostgreSQL itself; a session's identity must not travel to another process."}}, nil
}

// findRowsWithoutSeal searches all protected tables for a row that is visible in a session without a seal.
func (p *probe) findRowsWithoutSeal(ctx context.Context) ([]Finding, error) {
	if _, err := p.conn.Exec(ctx, "RESET pgconsent.seal"); err != nil {
		return nil, err
	}
	return p.findVisibleRows(ctx, "leak", "without a seal")
}

// tryForgedSeals searches for a visible row with seals that PostgreSQL must refuse: made without the key, for another
// process, or for another time.
func (p *probe) tryForgedSeals(ctx context.Context) ([]Finding, error) {
	claims := p.emptyClaims(ctx)
	forger := seal.Key{ID: p.keys.NewestKey().ID, Secret: make([]byte, 32)}
	foreignClaims := claims
	foreignClaims.PID++
	expiredClaims := claims
	expiredClaims.Expires = time.Now().Add(-24 * time.Hour)
	futureClaims := claims
	futureClaims.Expires = time.Now().Add(24 * time.Hour)
	var found []Finding
	for forgery, value := range map[string]string{
		"with a seal of another key":        forger.Seal(claims),
		"with a seal of another process":    p.keys.NewestKey().Seal(foreignClaims),
		"with a seal that has expired":      p.keys.NewestKey().Seal(expiredClaims),
		"with a seal that never expires":    p.keys.NewestKey().Seal(futureClaims),
		"with a seal of nothing but digits": "v1|1|1|1|1|1#" + strings.Repeat("0", 64),
	} {
		isAccepted, err := p.isSealAccepted(ctx, value)
		if err != nil {
			return found, err
		}
		if isAccepted {
			found = append(found, Finding{"forged_seal", SeverityUnsafe, "the database accepts a session " + forgery,
				"Run pgconsent migrate."})
		}
		f, err := p.findVisibleRows(ctx, "forged_seal", forgery)
		found = append(found, f...)
		if err != nil {
			return found, err
		}
	}
	_, err := p.conn.Exec(ctx, "RESET pgconsent.seal")
	return found, err
}

// tryValidSeal tests that PostgreSQL accepts a correct seal. It does not if the pads stored for a key do not match the
// key's secret.
func (p *probe) tryValidSeal(ctx context.Context) ([]Finding, error) {
	ok, err := p.isSealAccepted(ctx, p.keys.NewestKey().Seal(p.emptyClaims(ctx)))
	if err != nil || ok {
		return nil, err
	}
	return []Finding{{"bad_key", SeverityUnsafe, "the database does not accept a seal made with its newest key",
		makeKeyHint + "; if that does not help, compare the clocks of both machines."}}, nil
}

// isSealAccepted sets a seal in the session and reports whether PostgreSQL considers it valid.
func (p *probe) isSealAccepted(ctx context.Context, value string) (bool, error) {
	// The seal is a parameter of the extended protocol, so that it does not show in pg_stat_activity.
	if _, err := p.conn.Exec(ctx, "SELECT pg_catalog.set_config('pgconsent.seal', $1, false)", pgx.QueryExecModeExec,
		value); err != nil {
		return false, err
	}
	var isAccepted bool
	err := p.conn.QueryRow(ctx, "SELECT pgconsent_signed.sealed()").Scan(&isAccepted)
	return isAccepted, err
}

// emptyClaims returns the claims of a seal without attributes.
func (p *probe) emptyClaims(ctx context.Context) seal.Claims {
	now := time.Now()
	var serverTime time.Time
	if err := p.conn.QueryRow(ctx, "SELECT pg_catalog.clock_timestamp()").Scan(&serverTime); err == nil {
		now = serverTime
	}
	return seal.Claims{Nonce: 1, PID: p.conn.PgConn().PID(), Expires: now.Add(seal.SealLifetime), Profile: "doctor"}
}

// findVisibleRows returns a finding for each protected table of which the agent role sees a row.
func (p *probe) findVisibleRows(ctx context.Context, id, message string) ([]Finding, error) {
	var found []Finding
	for _, table := range p.Policy.Tables() {
		name := table.Relation.Name
		if table.Columns != nil {
			name = predicate.RowView(name)
		}
		if p.timedOutTables[name] {
			continue
		}
		var isVisible bool
		err := p.conn.QueryRow(ctx, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM %s.%s)", quoteIdent(name.Schema),
			quoteIdent(name.Name))).Scan(&isVisible)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == queryCanceled {
			p.timedOutTables[name] = true
			found = append(found, probeTimeout(id, "reading "+name.String()+" took longer than "+p.ProbeTime.String()))
			continue
		}
		if err != nil {
			return found, err
		}
		if isVisible {
			found = append(found, Finding{id, SeverityUnsafe, message + " the agent role sees rows of " + name.String(),
				"Run pgconsent migrate."})
		}
	}
	return found, nil
}

// tryUnsignedReads reads every signed view without a signature, in a session with a valid seal. The view must raise an
// error: if it merely returned no rows, a NOT EXISTS over it would be true.
func (p *probe) tryUnsignedReads(ctx context.Context) ([]Finding, error) {
	if _, err := p.isSealAccepted(ctx, p.keys.NewestKey().Seal(p.emptyClaims(ctx))); err != nil {
		return nil, err
	}
	views, err := p.queryStrings(ctx, `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'pgconsent_signed' AND c.relkind = 'v' ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var found []Finding
	statements := []string{"SELECT pgconsent_signed.text_is_signed()"}
	for _, view := range views {
		statements = append(statements, "SELECT 1 FROM "+view+" LIMIT 1")
	}
	for _, sql := range statements {
		_, err := p.conn.Exec(ctx, sql)
		var pg *pgconn.PgError
		if err == nil {
			// If the result is empty whatever the rows are, the planner removes the check of the signature together with the
			// read. Then the view need not raise the error.
			isEmpty, err := p.isPlannedEmpty(ctx, sql)
			switch {
			case errors.As(err, &pg) && pg.Code == queryCanceled:
				found = append(found, probeTimeout("unsigned_text", sql+" was not answered in time"))
				continue
			case err != nil:
				return found, err
			case isEmpty:
				continue
			}
		}
		switch {
		case err == nil:
			found = append(found, Finding{"unsigned_text", SeverityUnsafe,
				"signed views answer a statement without a signature: " + sql,
				"Run pgconsent migrate."})
		case !errors.As(err, &pg):
			return found, err
		case pg.Code == queryCanceled: // The other tables are still tested when one table is locked.
			found = append(found, probeTimeout("unsigned_text", sql+" was not answered in time"))
		case pg.Code != "42501":
			found = append(found, Finding{"unsigned_text", SeverityUnsafe,
				"the check of signatures fails in an unexpected way (SQLSTATE " + pg.Code + "): " + sql, "Run pgconsent migrate."})
		}
	}
	_, err = p.conn.Exec(ctx, "RESET pgconsent.seal")
	return found, err
}

// isPlannedEmpty reports whether the planner knows that a statement returns no row, so that PostgreSQL reads nothing.
func (p *probe) isPlannedEmpty(ctx context.Context, sql string) (bool, error) {
	var text []byte
	if err := p.conn.QueryRow(ctx, "EXPLAIN (COSTS false, FORMAT json) "+sql).Scan(&text); err != nil {
		return false, err
	}
	var explainOutput []struct{ Plan planNode }
	if err := json.Unmarshal(text, &explainOutput); err != nil || len(explainOutput) != 1 {
		return false, err
	}
	return explainOutput[0].Plan.isEmpty(), nil
}

// planNode is a node of a plan, as EXPLAIN prints it.
type planNode struct {
	Node          string `json:"Node Type"`
	Is            string `json:"Parent Relationship"`
	OneTimeFilter string `json:"One-Time Filter"`
	Plans         []planNode
}

// isEmpty reports whether the node is a Result that is never true, or a Limit or sub-query over such a node. InitPlans
// do not count: PostgreSQL runs one only if its result is needed, and here it is not.
func (p planNode) isEmpty() bool {
	inputs := slices.DeleteFunc(slices.Clone(p.Plans), func(in planNode) bool { return in.Is == "InitPlan" })
	switch p.Node {
	case "Result":
		return p.OneTimeFilter == "false" && len(inputs) == 0
	case "Limit", "Subquery Scan":
		return len(inputs) == 1 && inputs[0].isEmpty()
	}
	return false
}
