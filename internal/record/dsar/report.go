package dsar

import (
	"encoding/json"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Report is the document. docs/schema/dsar.json says what each member means.
type Report struct {
	Version      int         `json:"version"` // of the document's shape: 1
	MadeAt       time.Time   `json:"made_at"` // by the database's clock, where there is a registry
	MadeBy       string      `json:"made_by"`
	Database     string      `json:"database"`
	Record       AuditRecord `json:"record"`
	Subject      string      `json:"subject"`
	Controller   Controller  `json:"controller"`
	Active       bool        `json:"consent_active"`
	ConsentState string      `json:"standing"` // in words
	LawfulBasis  []Basis     `json:"lawful_basis"`
	Purposes     []Purpose   `json:"purposes"`
	Categories   []Category  `json:"categories"`
	Retention    []Retention `json:"retention"`
	Recipients   []Recipient `json:"recipients"`
	Retrievals   Retrievals  `json:"retrievals"`
	Calls        Calls       `json:"calls"`
	Data         []TableData `json:"data"`
	Sources      []string    `json:"sources"`
	Rights       []Right     `json:"rights"`
	History      []Entry     `json:"history"`
	Logs         []Log       `json:"logs"`
	Limits       []string    `json:"limits"`      // what the report cannot know
	ToComplete   []string    `json:"to_complete"` // what Article 15 asks for and only the controller knows
}

// AuditRecord says where it is recorded that the report was made.
type AuditRecord struct {
	Log      string `json:"log,omitempty"`
	Seq      uint64 `json:"seq,omitempty"`
	Registry int64  `json:"registry,omitempty"` // number of the consent record; 0: the registry does not know the subject
}

// Controller answers for the data.
type Controller struct {
	Name    string `json:"name"`
	Contact string `json:"contact"`
}

// Basis is a ground for processing.
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

// Purpose is why data are processed.
type Purpose struct {
	Name    string `json:"name"`
	Consent bool   `json:"consent"`    // a consent in force lists it
	Used    uint64 `json:"retrievals"` // statements for it that are in this report
}

// Category is a kind of data.
type Category struct {
	Name    string `json:"name"`
	Text    string `json:"text,omitempty"`
	Consent bool   `json:"consent"` // a consent in force lists it
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

// Step is a change that the calendar brings.
type Step struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Recipient is an agent that had data.
type Recipient struct {
	Agent    string   `json:"agent"`
	Purposes []string `json:"purposes"`
	Tables   []string `json:"tables"`
	Exact    Count    `json:"exact"`    // answers that held rows of the subject
	Possible Count    `json:"possible"` // answers that may have
	Days     []Day    `json:"days"`
}

// Count is how many, from when, to when.
type Count struct {
	Number uint64     `json:"number"`
	First  *time.Time `json:"first"`
	Last   *time.Time `json:"last"`
}

// Day is a day of an agent, UTC.
type Day struct {
	Day      string `json:"day"`
	Exact    uint64 `json:"exact"`
	Possible uint64 `json:"possible"`
}

// Retrievals are the single statements: each exact one, and the newest of the possible ones.
type Retrievals struct {
	Exact    uint64      `json:"exact"`
	Possible uint64      `json:"possible"`
	Left     uint64      `json:"left_out"` // of the possible ones, the oldest
	List     []Retrieval `json:"list"`     // the oldest first
}

// Retrieval is one statement.
type Retrieval struct {
	At        time.Time     `json:"at"`
	Agent     string        `json:"agent"`
	Purpose   string        `json:"purpose,omitempty"`
	ForYou    bool          `json:"on_behalf_of_subject"`
	Statement string        `json:"statement"`
	Certainty string        `json:"certainty"` // exact | possible
	Rows      int64         `json:"rows"`      // of the whole answer, of whomever
	Tables    []TableAccess `json:"tables"`
	Log       string        `json:"log"`
	Record    uint64        `json:"record"`
}

// The certainties.
const (
	Exact    = "exact"
	Possible = "possible"
)

// TableAccess is what is known of one table of a statement.
type TableAccess struct {
	Table     string     `json:"table"`
	Certainty string     `json:"certainty"`
	Why       string     `json:"why,omitempty"`  // of what is possible: why nobody can say
	Keys      [][]string `json:"keys,omitempty"` // of what is exact: the subject's rows in the answer
}

// TableData are the subject's rows of a table now.
type TableData struct {
	Table   string            `json:"table"`
	Rows    int               `json:"rows"`
	Columns []string          `json:"columns"`
	Key     []string          `json:"key"`
	Keys    [][]string        `json:"keys"`
	Copy    []json.RawMessage `json:"copy,omitempty"` // the rows, where they were asked for
}

// Right is one that the subject has.
type Right struct {
	Article string `json:"article"`
	Name    string `json:"name"`
	How     string `json:"how"`
}

// Entry is a record of the registry.
type Entry struct {
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

// Log is an audit directory that was read.
type Log struct {
	Name      string     `json:"name"`
	Records   uint64     `json:"records"`
	Decisions uint64     `json:"decisions"`
	From      *time.Time `json:"from"`
	To        *time.Time `json:"to"`
	First     uint64     `json:"first_record"` // above 1: older ones were removed when their time was over
	Intact    bool       `json:"intact"`       // the chain of hashes holds, with codes and anchor where they are there
	Problem   string     `json:"problem,omitempty"`
	Unproved  []string   `json:"-"` // what the log could not be held to
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func stream(s consent.Stream) *string {
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
