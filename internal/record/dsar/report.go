package dsar

import (
	"encoding/json"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Report is the report to a subject. docs/schema/dsar.json describes its members.
type Report struct {
	Version      int            `json:"version"` // the version of the report's format: 1
	MadeAt       time.Time      `json:"made_at"` // the time, by the database's clock if there is a registry
	MadeBy       string         `json:"made_by"`
	Database     string         `json:"database"`
	Record       AuditRecord    `json:"record"`
	Subject      string         `json:"subject"`
	Controller   Controller     `json:"controller"`
	Active       bool           `json:"consent_active"`
	ConsentState string         `json:"standing"` // the state of consent in words
	LawfulBasis  []Basis        `json:"lawful_basis"`
	Purposes     []Purpose      `json:"purposes"`
	Categories   []Category     `json:"categories"`
	Retention    []Retention    `json:"retention"`
	Recipients   []Recipient    `json:"recipients"`
	Retrievals   Retrievals     `json:"retrievals"`
	Calls        Calls          `json:"calls"`
	Data         []TableData    `json:"data"`
	Sources      []string       `json:"sources"`
	Rights       []Right        `json:"rights"`
	History      []HistoryEntry `json:"history"`
	Logs         []Log          `json:"logs"`
	Limits       []string       `json:"limits"` // what the report cannot know
	// the statements that Article 15 requires and only the controller can make
	ToComplete []string `json:"to_complete"`
}

// AuditRecord names the record in the audit that says that the report was made.
type AuditRecord struct {
	Log      string `json:"log,omitempty"`
	Seq      uint64 `json:"seq,omitempty"`
	Registry int64  `json:"registry,omitempty"` // number of the consent record; 0: the registry does not know the subject
}

// Controller is the controller of the data.
type Controller struct {
	Name    string `json:"name"`
	Contact string `json:"contact"`
}

// Basis is a lawful basis of processing.
type Basis struct {
	Article string `json:"article"`
	Text    string `json:"text"`
	Active  bool   `json:"active"`
	Consent
}

// Consent is one of the subject's consents, now.
type Consent struct {
	Grantee   string     `json:"grantee"`
	Scope     string     `json:"scope"`
	State     string     `json:"state"`
	DPV       string     `json:"dpv"`
	Stream    *string    `json:"stream"`
	GivenAt   *time.Time `json:"given_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Record    int64      `json:"record"`
}

// Purpose is a purpose of processing.
type Purpose struct {
	Name    string `json:"name"`
	Consent bool   `json:"consent"`    // an active consent lists the purpose
	Used    uint64 `json:"retrievals"` // the number of statements in this report with the purpose
}

// Category is a kind of data.
type Category struct {
	Name    string `json:"name"`
	Text    string `json:"text,omitempty"`
	Consent bool   `json:"consent"` // an active consent lists the category
}

// Retention says how long data are kept under one consent.
type Retention struct {
	Grantee string     `json:"grantee"`
	Scope   string     `json:"scope"`
	Stream  *string    `json:"stream"`
	Period  string     `json:"period"`
	Until   *time.Time `json:"until"` // null: no date is set
	Steps   []Step     `json:"steps,omitempty"`
}

// Step is a change at a date.
type Step struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Recipient is an agent that received data.
type Recipient struct {
	Agent    string   `json:"agent"`
	Purposes []string `json:"purposes"`
	Tables   []string `json:"tables"`
	Exact    Count    `json:"exact"`    // the answers with rows of the subject
	Possible Count    `json:"possible"` // the answers that may have had rows of the subject
	Days     []Day    `json:"days"`
}

// Count is a number of events, with the times of the first and of the last.
type Count struct {
	Number uint64     `json:"number"`
	First  *time.Time `json:"first"`
	Last   *time.Time `json:"last"`
}

// Day has an agent's retrievals on a day (UTC).
type Day struct {
	Day      string `json:"day"`
	Exact    uint64 `json:"exact"`
	Possible uint64 `json:"possible"`
}

// Retrievals lists single statements: all exact ones, and the newest possible ones.
type Retrievals struct {
	Exact    uint64      `json:"exact"`
	Possible uint64      `json:"possible"`
	Left     uint64      `json:"left_out"` // the number of possible retrievals that are left out, the oldest ones
	List     []Retrieval `json:"list"`     // the retrievals, oldest first
}

// Retrieval is one statement that retrieved data.
type Retrieval struct {
	At        time.Time     `json:"at"`
	Agent     string        `json:"agent"`
	Purpose   string        `json:"purpose,omitempty"`
	ForYou    bool          `json:"on_behalf_of_subject"`
	Statement string        `json:"statement"`
	Certainty string        `json:"certainty"` // whether it returned rows of the subject: exact or possible
	Rows      int64         `json:"rows"`      // the number of rows in the whole answer, of all persons
	Tables    []TableAccess `json:"tables"`
	Log       string        `json:"log"`
	Record    uint64        `json:"record"`
}

// The values of Certainty.
const (
	CertaintyExact    = "exact"
	CertaintyPossible = "possible"
)

// TableAccess is what is known about one table of a statement.
type TableAccess struct {
	Table     string     `json:"table"`
	Certainty string     `json:"certainty"`
	Why       string     `json:"why,omitempty"`  // for a possible retrieval: the reason why it is not certain
	Keys      [][]string `json:"keys,omitempty"` // for an exact retrieval: the keys of the subject's rows in the answer
}

// TableData has the subject's present rows of a table.
type TableData struct {
	Table   string            `json:"table"`
	Rows    int               `json:"rows"`
	Columns []string          `json:"columns"`
	Key     []string          `json:"key"`
	Keys    [][]string        `json:"keys"`
	Copy    []json.RawMessage `json:"copy,omitempty"` // the rows, if a copy was asked for
}

// Right is a right of the subject.
type Right struct {
	Article string `json:"article"`
	Name    string `json:"name"`
	How     string `json:"how"`
}

// HistoryEntry is a record of the consent registry.
type HistoryEntry struct {
	Record     int64      `json:"record"`
	At         time.Time  `json:"at"`
	Event      string     `json:"event"`
	Grantee    string     `json:"grantee"`
	Scope      string     `json:"scope"`
	State      string     `json:"state"`
	DPV        string     `json:"dpv"`
	Stream     *string    `json:"stream"`
	Categories []string   `json:"categories"`
	Purposes   []string   `json:"purposes"`
	GivenAt    *time.Time `json:"given_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Grantor    string     `json:"grantor"`
	ByRole     string     `json:"by_role"`
	By         string     `json:"by"`
	Via        string     `json:"via"`
	Reason     string     `json:"reason"`
	Evidence   string     `json:"evidence"`
	Guardian   string     `json:"guardian"`
	Controller string     `json:"controller"`
}

// Log is an audit log that was read.
type Log struct {
	Name      string     `json:"name"`
	Records   uint64     `json:"records"`
	Decisions uint64     `json:"decisions"`
	From      *time.Time `json:"from"`
	To        *time.Time `json:"to"`
	First     uint64     `json:"first_record"` // the number of the first record; above 1: retention has removed older ones
	Intact    bool       `json:"intact"`       // the chain of hashes verifies, with codes and anchor if there are any
	Problem   string     `json:"problem,omitempty"`
	Unproved  []string   `json:"-"` // the checks that could not be made
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func streamOrNil(s consent.Stream) *string {
	if s == "" {
		return nil
	}
	return (*string)(&s)
}

func nonNil(words []string) []string {
	if words == nil {
		return []string{}
	}
	return words
}
