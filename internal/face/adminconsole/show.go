package adminconsole

import (
	"strings"
	"time"
)

// show is a table that SHOW answers.
type show struct {
	name    string
	help    string
	columns []column
	rows    func(c *Console) ([]row, error)
}

// shows are the tables, in the order in which HELP lists them.
var shows = []show{
	{"SESSIONS", "sessions of agents, owners and operators, the oldest first",
		[]column{text("id"), text("kind"), text("user"), text("database"), text("client"), text("state"), instant("since"),
			instant("last_statement"), number("statements"), number("refused")}, sessionRows},
	{"POOLS", "connections to the server that agents' sessions share; empty without pools",
		[]column{text("database"), text("agent"), number("size"), number("used"), number("idle"), number("waiting"),
			number("taken"), number("timed_out"), value("waited_seconds")}, poolRows},
	{"STATS", "the metrics of this process since its start, as /metrics has them",
		[]column{text("metric"), text("labels"), value("value")}, statisticRows},
	{"POLICY", "the versions of policy and catalog that agents are served by, for each database",
		[]column{text("database"), boolean("served"), text("policy"), text("catalog"), boolean("migrate_pending"),
			boolean("signed_path"), number("tables"), number("observed"), instant("verified"), instant("paused_since"),
			text("refusal")}, policyRows},
	{"SUSPENDED", "tables, functions and databases whose statements are refused, with cause and remedy",
		[]column{text("database"), text("kind"), text("name"), text("cause"), text("remedy")}, suspendedRows},
	{"VERSION", "the version of pgconsent", []column{text("version")},
		func(c *Console) ([]row, error) { return []row{{c.Version}}, nil }},
}

func sessionRows(c *Console) (out []row, _ error) {
	for _, s := range c.Service.Sessions() {
		r := row{s.ID, s.Kind, s.User, s.Database, s.Client, s.State, s.Since, orNull(s.Last), nil, nil}
		if s.Decided {
			r[8], r[9] = int64(s.Statements), int64(s.Refused)
		}
		out = append(out, r)
	}
	return out, nil
}

func poolRows(c *Console) (out []row, _ error) {
	for _, p := range c.Service.Pools() {
		out = append(out, row{p.Database, p.Agent, int64(p.Size), int64(p.Used), int64(p.Idle), int64(p.Waiting),
			int64(p.Taken), int64(p.TimedOut), p.Waited.Round(time.Millisecond).Seconds()})
	}
	return out, nil
}

func statisticRows(c *Console) (out []row, _ error) {
	all, err := c.Service.Statistics()
	for _, s := range all {
		out = append(out, row{s.Name, orNull(s.Labels), s.Value})
	}
	return out, err
}

func policyRows(c *Console) (out []row, _ error) {
	for _, p := range c.Service.Policies() {
		out = append(out, row{p.Database, p.Served, orNull(p.Policy), orNull(p.Catalog), p.Pending, p.SignedPath, p.Tables,
			p.Observed, orNull(p.Verified), orNull(p.PausedSince), orNull(p.Refusal)})
	}
	return out, nil
}

func suspendedRows(c *Console) (out []row, _ error) {
	for _, s := range c.Service.Suspended() {
		out = append(out, row{s.Database, s.Kind, orNull(s.Name), s.Cause, orNull(s.Remedy)})
	}
	return out, nil
}

// helpColumns are the columns of HELP.
var helpColumns = []column{text("command"), text("what it does")}

// helpRows are the rows of HELP: every command.
func helpRows() (out []row) {
	for _, s := range shows {
		out = append(out, row{"SHOW " + s.name, s.help})
	}
	for _, a := range actions {
		out = append(out, row{strings.TrimSpace(a.name + " " + a.argument), a.help})
	}
	return append(out, row{"HELP", "this list"})
}
