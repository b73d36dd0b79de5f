package adminconsole

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// action is a command by which an operator acts on the process, such as RELOAD.
type action struct {
	name               string
	argument           string // argument of the command, as HELP shows it; "": the command takes none
	isArgumentOptional bool   // the argument may be left out
	help               string
	record             string // name of the operation in the audit record
	// run runs the command. It returns the name of the database for the audit record, and a notice for the operator.
	run func(c *Console, argument string) (database, notice string, err error)
}

// actions lists the commands that act on the process, in the order in which HELP shows them.
var actions = []action{
	{name: "RELOAD", help: "read agents, credentials, policies and the certificate again, as SIGHUP does",
		record: "configuration.reload",
		run:    func(c *Console, _ string) (string, string, error) { return "", "", c.Service.Reload() }},
	{name: "PAUSE", argument: "[database]", isArgumentOptional: true,
		help:   "new statements of agents wait, in one database or in all; open transactions go on",
		record: "database.pause", run: pauseDatabase},
	{name: "RESUME", argument: "[database]", isArgumentOptional: true, help: "statements that wait go on",
		record: "database.resume",
		run:    resumeDatabase},
	{name: "KILL", argument: "session", help: "end a session, by its id in SHOW SESSIONS, and cancel its statement",
		record: "session.kill", run: killSession},
}

func pauseDatabase(c *Console, name string) (string, string, error) {
	databases, err := c.databases(name)
	busyCount, unchangedCount := 0, 0
	for _, d := range databases {
		n, isChanged := c.Service.Pause(d)
		busyCount += n
		if !isChanged {
			unchangedCount++
		}
	}
	switch {
	case err != nil || busyCount == 0 && unchangedCount < len(databases):
		return name, "", err
	case busyCount == 0:
		return name, "it was paused already", nil
	default:
		return name, fmt.Sprintf("%d sessions have a statement or a transaction under way, which goes on: "+
			"SHOW SESSIONS lists them, KILL ends them", busyCount), nil
	}
}

func resumeDatabase(c *Console, name string) (string, string, error) {
	databases, err := c.databases(name)
	isChanged := false
	for _, d := range databases {
		isChanged = c.Service.Resume(d) || isChanged
	}
	if err != nil || isChanged {
		return name, "", err
	}
	return name, "it was not paused", nil
}

func killSession(c *Console, id string) (string, string, error) {
	database, err := c.Service.Kill(id)
	return database, "", err
}

// databases returns the named database, or all databases if the name is "". It returns an error for an unknown name.
func (c *Console) databases(name string) ([]string, error) {
	names := c.Service.Databases()
	if name == "" {
		return names, nil
	}
	if !slices.Contains(names, name) {
		return nil, sqlstate.New(sqlstate.InvalidCatalogName, sqlstate.ReasonNone, "database \"%s\" is not configured", name).
			WithHint("SHOW POLICY lists the databases, by the names in databases: of the configuration.")
	}
	return []string{name}, nil
}

// runAction runs an action for an operator, and writes it to the log and to the audit. If isWarning is set, the notice
// is sent as a WARNING.
func (c *Console) runAction(operator string, a action, argument string) (notice string, isWarning bool, err error) {
	database, notice, err := a.run(c, argument)
	record := audit.Call{Interface: "admin", CallerName: operator, Role: "operator", Database: database,
		Operation:     a.record,
		MayChangeData: true, Outcome: audit.OutcomeDone}
	if err != nil {
		record.Outcome, record.Code = audit.OutcomeFailed, string(operatorError(err).Code)
	}
	c.Log.Info("admin console", "operator", operator, "command", a.name, "of", cmp.Or(argument, "everything"),
		"outcome", record.Outcome)
	if e := c.Record(record); e != nil {
		c.Log.Error("admin console: a command cannot be recorded", "command", a.name, "error", e)
		if err == nil {
			return "the command took effect, but the audit could not record it: the log has it", true, nil
		}
	}
	return notice, false, err
}

// operatorError converts an error to the error that an operator gets. Operators, unlike agents, get the text of every
// error, since it may say what is wrong in their files.
func operatorError(err error) *sqlstate.Error {
	var e *sqlstate.Error
	if errors.As(err, &e) && err.Error() == e.Error() {
		return e
	}
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonNone, "%v", err)
}
