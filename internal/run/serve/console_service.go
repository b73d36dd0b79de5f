package serve

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/services/adminconsole"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/proxy"
)

// consoleService implements [adminconsole.Service].
type consoleService struct{ *Service }

var _ adminconsole.Service = consoleService{}

var routeKindNames = map[proxy.RouteKind]string{proxy.Agent: "agent", proxy.Owner: "owner", proxy.Operator: "operator"}

func (s consoleService) Sessions() []adminconsole.Session {
	agents := map[string]enforce.OpenSession{}
	for _, a := range s.enforcer.OpenSessions() {
		agents[a.ID] = a
	}
	var out []adminconsole.Session
	for _, c := range s.proxy.Sessions() {
		a, isAgent := agents[c.ID]
		out = append(out, adminconsole.Session{ID: c.ID, Kind: routeKindNames[c.Kind], User: c.User, Database: c.Database,
			Client: c.Remote, State: string(c.State), StartedAt: c.Since, LastStatementAt: a.Last, CountsStatements: isAgent,
			Statements: a.Executed, Refused: a.Denied})
	}
	return out
}

func (s consoleService) Pools() []adminconsole.Pool {
	var out []adminconsole.Pool
	for _, p := range s.proxy.Pools() {
		out = append(out, adminconsole.Pool{Database: p.Database, Agent: p.Agent, Size: p.Size, Used: p.Used, Idle: p.Idle,
			Waiting: p.Waiting, TakenCount: p.Taken, TimeoutCount: p.TimedOut, WaitTime: p.Waited})
	}
	return out
}

// sessionCountTimeout limits the time of the queries by which metrics are updated before they are read.
const sessionCountTimeout = 10 * time.Second

// metricPrefix begins the names of pgconsent's own metrics.
const metricPrefix = "pgconsent_"

func (s consoleService) Statistics() ([]adminconsole.Statistic, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sessionCountTimeout)
	defer cancel()
	s.refreshCounts(ctx)
	families, err := s.registry.Gather()
	var out []adminconsole.Statistic
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), metricPrefix) {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+strconv.Quote(l.GetValue()))
			}
			add := func(suffix string, value float64) {
				out = append(out, adminconsole.Statistic{Name: f.GetName() + suffix, Labels: strings.Join(labels, ","),
					Value: value})
			}
			switch {
			case m.GetHistogram() != nil:
				add("_count", float64(m.GetHistogram().GetSampleCount()))
				add("_sum", m.GetHistogram().GetSampleSum())
			case m.GetCounter() != nil:
				add("", m.GetCounter().GetValue())
			case m.GetGauge() != nil:
				add("", m.GetGauge().GetValue())
			}
		}
	}
	return out, err
}

func (s consoleService) Policies() []adminconsole.Policy {
	var out []adminconsole.Policy
	for _, d := range s.enforcer.DatabaseStatuses() {
		out = append(out, adminconsole.Policy{Database: d.Database, IsServed: d.Served, Refusal: d.Refusal, Policy: d.Policy,
			Catalog: d.Catalog, MigrationPending: d.Pending, SignedPath: d.Served && !d.SignedPathOff, Tables: int64(d.Tables),
			ObservedTables: int64(len(d.Observed)), VerifiedAt: d.Verified,
			PausedSince: s.operators.pauses[d.Database].beganAt()})
	}
	return out
}

func (s consoleService) Suspended() []adminconsole.SuspendedObject {
	var out []adminconsole.SuspendedObject
	for _, o := range s.enforcer.SuspendedObjects() {
		out = append(out, adminconsole.SuspendedObject(o))
	}
	return out
}

func (s consoleService) Databases() []string { return sortedKeys(s.operators.pauses) }

func (s consoleService) Pause(database string) (busyCount int, isChanged bool) {
	isChanged = s.operators.pauses[database].begin()
	s.metrics.SetPaused(database, true)
	if isChanged {
		s.log.Warn("new statements of agents wait until RESUME in the admin console", "database", database)
	}
	busyStates := []proxy.SessionState{proxy.Active, proxy.InTransaction, proxy.InFailedTransaction}
	for _, c := range s.proxy.Sessions() {
		if c.Kind == proxy.Agent && c.Database == database && slices.Contains(busyStates, c.State) {
			busyCount++
		}
	}
	return busyCount, isChanged
}

func (s consoleService) Resume(database string) (isChanged bool) {
	isChanged = s.operators.pauses[database].end()
	s.metrics.SetPaused(database, false)
	if isChanged {
		s.log.Info("statements of agents go on", "database", database)
	}
	return isChanged
}

func (s consoleService) Kill(id string) (database string, err error) {
	for _, c := range s.proxy.Sessions() {
		if c.ID == id {
			database = c.Database
		}
	}
	reason := sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonNone,
		"terminating connection due to administrator command").
		WithHint("An operator has ended this session.")
	if s.enforcer.EndSession(id, reason) || s.proxy.End(id, reason) {
		return database, nil
	}
	return "", sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonNone, "there is no session %q", id).
		WithHint("SHOW SESSIONS lists them, each with its id. It may have ended.")
}
