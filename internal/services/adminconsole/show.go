package adminconsole

import (
	"strings"
	"time"
)

// showTable is a table that an operator can query with SHOW.
type showTable struct {
	name    string
	help    string
	columns []column
	rows    func(c *Console) ([]row, error)
}

// showTables lists the tables in the order in which HELP shows them.
var showTables = []showTable{
	{"SESSIONS", "sessions of agents, owners and operators, the oldest first",
		[]column{textColumn("id"), textColumn("kind"), textColumn("user"), textColumn("database"), textColumn("client"),
			textColumn("state"), timeColumn("since"),
			timeColumn("last_statement"), integerColumn("statements"), integerColumn("refused")}, sessionRows},
	{"POOLS", "connections to the server that agents' sessions share; empty without pools",
		[]column{textColumn("database"), textColumn("agent"), integerColumn("size"), integerColumn("used"), integerColumn("idle"),
			integerColumn("waiting"),
			integerColumn("taken"), integerColumn("timed_out"), floatColumn("waited_seconds")}, poolRows},
	{"STATS", "the metrics of this process since its start, as /metrics has them",
		[]column{textColumn("metric"), textColumn("labels"), floatColumn("value")}, statisticRows},
	{"POLICY", "the versions of policy and catalog that agents are served by, for each database",
		[]column{textColumn("database"), booleanColumn("served"), textColumn("policy"), textColumn("catalog"), booleanColumn("migrate_pending"),
			booleanColumn("signed_path"), integerColumn("tables"), integerColumn("observed"), timeColumn("verified"), timeColumn("paused_since"),
			textColumn("refusal")}, policyRows},
	{"SUSPENDED", "tables, functions and databases whose statements are refused, with cause and remedy",
		[]column{textColumn("database"), textColumn("kind"), textColumn("name"), textColumn("cause"), textColumn("remedy")}, suspendedRows},
	{"VERSION", "the version of pgconsent", []column{textColumn("version")},
		func(c *Console) ([]row, error) { return []row{{c.Version}}, nil }},
}

func sessionRows(c *Console) (out []row, _ error) {
	for _, s := range c.Service.Sessions() {
		r := row{s.ID, s.Kind, s.User, s.Database, s.Client, s.State, s.StartedAt, nullIfZero(s.LastStatementAt), nil, nil}
		if s.CountsStatements {
			r[8], r[9] = int64(s.Statements), int64(s.Refused)
		}
		out = append(out, r)
	}
	return out, nil
}

func poolRows(c *Console) (out []row, _ error) {
	for _, p := range c.Service.Pools() {
		out = append(out, row{p.Database, p.Agent, int64(p.Size), int64(p.Used), int64(p.Idle), int64(p.Waiting),
			int64(p.TakenCount), int64(p.TimeoutCount), p.WaitTime.Round(time.Millisecond).Seconds()})
	}
	return out, nil
}

func statisticRows(c *Console) (out []row, _ error) {
	statistics, err := c.Service.Statistics()
	for _, s := range statistics {
		out = append(out, row{s.Name, nullIfZero(s.Labels), s.Value})
	}
	return out, err
}

func policyRows(c *Console) (out []row, _ error) {
	for _, p := range c.Service.Policies() {
		out = append(out, row{p.Database, p.IsServed, nullIfZero(p.Policy), nullIfZero(p.Catalog), p.MigrationPending,
			p.SignedPath, p.Tables,
			p.ObservedTables, nullIfZero(p.VerifiedAt), nullIfZero(p.PausedSince), nullIfZero(p.Refusal)})
	}
	return out, nil
}

func suspendedRows(c *Console) (out []row, _ error) {
	for _, s := range c.Service.Suspended() {
		out = append(out, row{s.Database, s.Kind, nullIfZero(s.Name), s.Cause, nullIfZero(s.Remedy)})
	}
	return out, nil
}

// helpColumns are the columns of HELP.
var helpColumns = []column{textColumn("command"), textColumn("what it does")}

// helpRows returns the rows of HELP: one for each command.
func helpRows() (out []row) {
	for _, s := range showTables {
		out = append(out, row{"SHOW " + s.name, s.help})
	}
	for _, a := range actions {
		out = append(out, row{strings.TrimSpace(a.name + " " + a.argument), a.help})
	}
	return append(out, row{"HELP", "this list"})
}
