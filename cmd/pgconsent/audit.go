package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
)

type auditCmd struct {
	Tail   auditTailCmd   `cmd:"" help:"The newest records."`
	Verify auditVerifyCmd `cmd:"" help:"Verify the records of agents' statements and of consents: whether any is missing or was changed."`
	Export auditExportCmd `cmd:"" help:"Records as JSON lines or OCSF events, to go on from later."`
	Forget auditForgetCmd `cmd:"" help:"Forget which references belong to a person."`
}

func (auditCmd) Help() string {
	return `Every execution of an agent's statement has a record of the decision and one of the outcome, ` +
		`in a chain of hashes (docs/reference/audit.md).

  pgconsent audit tail --follow
  pgconsent audit tail --agent chat --verdict deny --since 24h
  pgconsent audit verify
  pgconsent audit export --format ocsf --resume shipped.seq >> events.jsonl`
}

// auditRecord has those members of audit records of all kinds that the commands use.
type auditRecord struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	auditCaller
	auditDecision
	auditCall
	Event      string         `json:"event"`
	Cause      string         `json:"cause"`
	Attributes map[string]any `json:"attributes"`
	Tables     []auditTable   `json:"-"`

	// the tables: a list of objects in a record of a decision, a list of names in a record of an observation
	RawTables json.RawMessage `json:"tables"`
}

// auditCaller says who caused a record, and from which address.
type auditCaller struct {
	Session    string `json:"session"`
	Agent      string `json:"agent"`
	OnBehalfOf string `json:"on_behalf_of"`
	Database   string `json:"database"`
	Purpose    string `json:"purpose"`
	Remote     string `json:"remote"`
	By         string `json:"by"`
	Role       string `json:"role"`
}

// auditDecision has the members about the decision on a statement, and about the statement's outcome.
type auditDecision struct {
	Tag         string `json:"tag"`
	Fingerprint string `json:"fingerprint"`
	Verdict     string `json:"verdict"`
	SQLState    string `json:"sqlstate"`
	Reason      string `json:"reason"`
	Decision    uint64 `json:"decision"`
	Rows        int64  `json:"rows"`
	Bytes       int64  `json:"bytes"`
}

// auditCall has the members about a call by HTTP, MCP or the console.
type auditCall struct {
	Operation string `json:"operation"`
	// the people whom the call is about: a list in the record of a call, a single text in the record of a report
	About     stringOrList `json:"about"`
	Everybody bool         `json:"everybody"`
	Written   bool         `json:"written"`
	Outcome   string       `json:"outcome"`
	Code      string       `json:"code"`
}

// auditTable is a table in a record, with the way in which the statement uses it.
type auditTable struct {
	Name string `json:"name"`
}

// stringOrList reads a list of strings, or a single string as a list of one.
type stringOrList []string

func (l *stringOrList) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(l))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	*l = stringOrList{text}
	return nil
}

func readAuditRecord(r audit.Record) (auditRecord, error) {
	var e auditRecord
	if err := json.Unmarshal(r.Line, &e); err != nil {
		return e, fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if e.Kind == audit.KindDecision && len(e.RawTables) > 0 {
		if err := json.Unmarshal(e.RawTables, &e.Tables); err != nil {
			return e, fmt.Errorf("record %d: %w", r.Seq, err)
		}
	}
	return e, nil
}

// auditFilter has the flags by which the commands tail and export select records.
type auditFilter struct {
	Agent   string `placeholder:"NAME" help:"Only what this agent did."`
	Table   string `placeholder:"NAME" help:"Only what reads or writes this table, as name or schema.name."`
	Verdict string `enum:"allow,deny,any" default:"any" help:"allow or deny. Default: any."`
	Since   string `placeholder:"TIME" help:"Only what was recorded since then: 24h, 2026-01-31, or 2026-01-31T12:00:00Z."`
	Subject string `placeholder:"ID" help:"Only what was done by this person, on their behalf, or about them."`

	since             time.Time // only records from this time on are selected
	subjectReferences []string  // the references that stand for the subject in records
}

// prepare evaluates the flags, and finds the references that stand for the subject in records.
func (f *auditFilter) prepare(s *session, c *config.Config) error {
	if f.Since != "" {
		var err error
		if f.since, err = parseSince(f.Since, time.Now()); err != nil {
			return err
		}
	}
	if f.Subject == "" {
		return nil
	}
	err := s.forEachDatabase(c, "", asControl, func(t targetDatabase) error {
		var ref string
		err := t.conn.QueryRow(s.ctx, "SELECT 'ref:' || s.ref FROM pgconsent.audit_subject AS s WHERE s.subject = $1",
			f.Subject).Scan(&ref)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		f.subjectReferences = append(f.subjectReferences, ref)
		return err
	})
	if err == nil && len(f.subjectReferences) == 0 {
		err = errors.New("the audit knows no such person: no session has read on behalf of them, or they were forgotten")
	}
	return err
}

// parseSince parses a time, or a duration, which counts back from now.
func parseSince(text string, now time.Time) (time.Time, error) {
	if dayCount, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(dayCount); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{
		fmt.Errorf("--since: %q is not a time: write 24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z", text)}
}

// recordFilter selects records. It selects the outcome of a statement if it has selected the decision on the statement.
type recordFilter struct {
	auditFilter
	awaitedOutcomes map[uint64]bool // the selected decisions whose outcomes have not been read yet
}

// chooses tells whether a record is selected, and remembers selected decisions.
func (f *recordFilter) chooses(e auditRecord) bool {
	if e.Time.Before(f.since) {
		return false
	}
	if e.Kind == audit.KindOutcome {
		// If the decision of an outcome was not read, the filters cannot be applied to it. The outcome is then selected only
		// if there are no filters.
		ok := f.awaitedOutcomes[e.Decision]
		delete(f.awaitedOutcomes, e.Decision)
		return ok || f.isEmpty()
	}
	ok := f.matches(e)
	if ok && e.Kind == audit.KindDecision {
		f.awaitedOutcomes[e.Seq] = true
	}
	return ok
}

func (f *recordFilter) isEmpty() bool {
	return f.Agent == "" && f.Table == "" && f.Verdict == "any" && len(f.subjectReferences) == 0
}

// matches reports whether a record passes the filter.
func (f *recordFilter) matches(e auditRecord) bool {
	switch {
	case f.Agent != "" && e.Agent != f.Agent:
		return false
	case f.Verdict != "any" && e.Verdict != f.Verdict:
		return false
	case f.Table != "" && !affectsTable(e, f.Table):
		return false
	}
	for _, ref := range f.subjectReferences {
		if e.OnBehalfOf == ref || e.By == ref || slices.Contains(e.About, ref) {
			return true
		}
	}
	return len(f.subjectReferences) == 0
}

func affectsTable(e auditRecord, table string) bool {
	for _, t := range e.Tables {
		_, bareName, _ := strings.Cut(t.Name, ".")
		if t.Name == table || bareName == table {
			return true
		}
	}
	return false
}

// verifyOptions returns what is needed to verify a log: its key, and the newest of the records in its anchor and in
// extraAnchor. The texts name the parts that are missing, and what cannot be proved without them.
func (s *session) verifyOptions(log config.Audit, extraAnchor string) (audit.VerifyOptions, []string, error) {
	var options audit.VerifyOptions
	var missingParts []string
	key, err := audit.LoadKey(log.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missingParts = append(missingParts, fmt.Sprintf("the key %s is missing: "+
			"without it a chain that somebody wrote anew cannot be told from the original", log.Key))
	case err != nil:
		return options, nil, err
	default:
		options.Key = key
	}
	for i, path := range []string{log.Anchor, extraAnchor} {
		if path == "" {
			continue
		}
		head, err := audit.ReadAnchor(path, options.Key)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i == 0:
			missingParts = append(missingParts, fmt.Sprintf(
				"the anchor %s is missing: without it nobody can tell whether the newest records were cut off", path))
		case err != nil:
			return options, nil, err
		case head.Seq > 0:
			options.Heads = append(options.Heads, head)
		}
	}
	return options, missingParts, nil
}

// auditConfig loads the configuration for a command that reads records.
func (s *session) auditConfig() (*config.Config, error) {
	c, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	if c.Audit.Mode == string(audit.ModeOff) {
		return nil, errors.New("audit.mode is off: there are no records")
	}
	return c, nil
}
