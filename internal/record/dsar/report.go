package dsar

import (
	"encoding/json"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Report is an access report to a subject. docs/schema/dsar.json describes its members.
type Report struct {
	Version      int            `json:"version"` // the version of the report's format: 1
	MadeAt       time.Time      `json:"made_at"` // by the database's clock if there is a registry
	MadeBy       string         `json:"made_by"`
	Database     string         `json:"database"`
	Record       AuditRecord    `json:"record"`
	Subject      string         `json:"subject"`
	Controller   Controller     `json:"controller"`
	Active       bool           `json:"consent_active"`
	ConsentState string         `json:"standing"` // a text about the subject's consents
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
	Limits       []string       `json:"limits"` // what a reader must not conclude from the report
	// the statements that Article 15 requires and that only the controller can make
	ToComplete []string `json:"to_complete"`
}

// AuditRecord names the audit record which says that the report was made.
type AuditRecord struct {
	Log      string `json:"log,omitempty"`
	Seq      uint64 `json:"seq,omitempty"`
	Registry int64  `json:"registry,omitempty"` // the consent record about the report; 0: the registry has no such subject
}

// Controller is the data controller.
type Controller struct {
	Name    string `json:"name"`
	Contact string `json:"contact"`
}

// Basis is a lawful basis for processing the subject's data.
type Basis struct {
	Article string `json:"article"`
	Text    string `json:"text"`
	Active  bool   `json:"active"`
	Consent
}

// Consent is one of the subject's consents in its present state.
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

// Purpose is a purpose of processing that a consent or a retrieval names.
type Purpose struct {
	Name    string `json:"name"`
	Consent bool   `json:"consent"`    // an active consent lists the purpose
	Used    uint64 `json:"retrievals"` // how many retrievals in this report had the purpose
}

// Category is a category of data that a consent lists.
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
	Until   *time.Time `json:"until"` // when the data will be deleted; null: no date is known
	Steps   []Step     `json:"steps,omitempty"`
}

// Step is what happens to data at a time.
type Step struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Recipient is an agent that received the subject's data, or may have.
type Recipient struct {
	Agent    string   `json:"agent"`
	Purposes []string `json:"purposes"`
	Tables   []string `json:"tables"`
	Exact    Count    `json:"exact"`    // answers that had rows of the subject
	Possible Count    `json:"possible"` // answers that may have had rows of the subject
	Days     []Day    `json:"days"`
}

// Count is a number of events, with the times of the first and the last one.
type Count struct {
	Number uint64     `json:"number"`
	First  *time.Time `json:"first"`
	Last   *time.Time `json:"last"`
}

// Day counts an agent's retrievals on one day (UTC).
type Day struct {
	Day      string `json:"day"`
	Exact    uint64 `json:"exact"`
	Possible uint64 `json:"possible"`
}

// Retrievals lists statements that retrieved data: all exact ones, and the newest possible ones.
type Retrievals struct {
	Exact    uint64      `json:"exact"`
	Possible uint64      `json:"possible"`
	Left     uint64      `json:"left_out"` // how many possible retrievals the list leaves out; these are the oldest
	List     []Retrieval `json:"list"`     // the retrievals, oldest first
}

// Retrieval is one statement of an agent that retrieved data, or may have.
type Retrieval struct {
	At        time.Time     `json:"at"`
	Agent     string        `json:"agent"`
	Purpose   string        `json:"purpose,omitempty"`
	ForYou    bool          `json:"on_behalf_of_subject"`
	Statement string        `json:"statement"`
	Certainty string        `json:"certainty"` // exact: it returned rows of the subject; possible: it may have
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

// TableAccess says what is known about one table that a statement read.
type TableAccess struct {
	Table     string     `json:"table"`
	Certainty string     `json:"certainty"`
	Why       string     `json:"why,omitempty"`  // if Certainty is possible: why it is not certain
	Keys      [][]string `json:"keys,omitempty"` // if Certainty is exact: the keys of the subject's rows in the answer
}

// TableData has the subject's present rows in one table.
type TableData struct {
	Table   string            `json:"table"`
	Rows    int               `json:"rows"`
	Columns []string          `json:"columns"`
	Key     []string          `json:"key"`
	Keys    [][]string        `json:"keys"`
	Copy    []json.RawMessage `json:"copy,omitempty"` // the rows as JSON, if a copy was requested
}

// Right is a right of the subject and how to use it.
type Right struct {
	Article string `json:"article"`
	Name    string `json:"name"`
	How     string `json:"how"`
}

// HistoryEntry is one record of the consent registry about the subject.
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

// Log describes one audit log that was read.
type Log struct {
	Name      string     `json:"name"`
	Records   uint64     `json:"records"`
	Decisions uint64     `json:"decisions"`
	From      *time.Time `json:"from"`
	To        *time.Time `json:"to"`
	First     uint64     `json:"first_record"` // its first record; if above 1, retention has removed older ones
	Intact    bool       `json:"intact"`       // the log has passed verification, with codes and anchor if there are any
	Problem   string     `json:"problem,omitempty"`
	Unproved  []string   `json:"-"` // what could not be checked, and so is not proved
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
