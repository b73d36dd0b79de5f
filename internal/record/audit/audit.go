// Package audit is the append-only record of what agents asked and what became of it.
//
// Guarantee: in [Strict] mode [Ticket.Release] returns nil only after the decision's record has been written and
// synced, so no answer leaves without one (DESIGN invariant I8). Records form a hash chain: [Verify] finds any record
// changed, dropped, added or moved. With the [Key] it finds a chain that somebody else wrote anew, and with an anchor
// ([Head]), kept in another place, that the newest records were cut off. It cannot find what somebody did who may write
// all three (docs/reference/audit.md).
//
// Records hold who asked, which relations and columns a statement reads, the verdict and the versions it was made
// under. They hold no SQL text, no literal, no parameter and no row. What identifies a person is replaced by a
// reference before it gets here, which [Subjects] keeps and can forget.
package audit

import (
	"log/slog"
	"time"
)

// FormatVersion is the member "v" of every record. A newer pgconsent reads older formats: 1 had no codes, no
// checkpoints, and none of the members that say so.
const FormatVersion = 2

// Mode says what Release waits for.
type Mode string

// The modes. The zero value is Strict.
const (
	Strict   Mode = "strict"   // the record is synced to disk
	Buffered Mode = "buffered" // the record is queued; the disk is at most a second behind, else Release refuses
	Off      Mode = "off"      // nothing is written
)

// Observer is told about the log's health; metrics.Metrics is one.
type Observer interface {
	AuditQueue(length int)
	AuditSynced(lag time.Duration)
	AuditFailed(records int)
	AuditAnchorFailed()
}

// Config of a log.
type Config struct {
	Mode       Mode             // "": Strict
	Dir        string           // of the segments; made if it is missing. Required unless Mode is Off, or there is a Store
	Store      Store            // keeps the records instead of a directory; nil: none does
	Key        Key              // authenticates records; the zero Key does not
	Anchor     string           // file of the newest head, outside Dir; "": none
	MaxSegment int64            // bytes after which the next segment begins; 0: 64 MiB
	MaxAge     time.Duration    // of a segment's first record, after which the next begins; 0: any
	Retention  time.Duration    // how long records are kept at least; older segments are removed; 0: forever
	Deadline   time.Duration    // the longest a Release waits; 0: 1.5 s
	Observer   Observer         // nil: none
	Log        *slog.Logger     // nil: slog.Default()
	Now        func() time.Time // nil: time.Now

	openFile func(path string) (file, error) // nil: os.OpenFile; tests break it
}

// Table is a relation that a statement reads or writes.
type Table struct {
	Name    string   `json:"name"`              // schema.relation
	Columns []string `json:"columns,omitempty"` // left out: all
	Source  string   `json:"source,omitempty"`
	ByKey   bool     `json:"by_key,omitempty"`
	Written bool     `json:"written,omitempty"`
}

// Decision is the record of one execution of a statement, written before anything of it goes upstream.
type Decision struct {
	Session     string            `json:"session"`
	Agent       string            `json:"agent"`
	AccessedBy  string            `json:"accessed_by,omitempty"`  // the agent, since version 2
	OnBehalfOf  string            `json:"on_behalf_of,omitempty"` // the person: a reference
	Database    string            `json:"database"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Purpose     string            `json:"purpose,omitempty"`
	Protocol    string            `json:"protocol"` // simple | extended
	Tag         string            `json:"tag"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	Tables      []Table           `json:"tables,omitempty"`
	Functions   []string          `json:"functions,omitempty"`
	Contracts   []Contract        `json:"contracts,omitempty"` // those that govern what the statement touches
	Verdict     string            `json:"verdict"`             // allow | deny
	SQLState    string            `json:"sqlstate,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Door        string            `json:"door,omitempty"`
	Policy      string            `json:"policy"`
	Catalog     string            `json:"catalog"`
	Epoch       int64             `json:"epoch"` // of consent: every change up to it was visible to the statement
	Signed      bool              `json:"signed"`
}

// Contract is what a contract of the policy says of a statement, by the value of the attribute that decides; none if
// that is missing.
type Contract struct {
	Name    string `json:"name"`
	By      string `json:"by,omitempty"`
	Value   string `json:"value,omitempty"`
	Verdict string `json:"verdict"` // allow | deny
}

// Outcome is the record of what became of an execution.
type Outcome struct {
	Decision uint64 `json:"decision"` // seq of the decision; filled in by the log
	Session  string `json:"session"`  // filled in by the log
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	SQLState string `json:"sqlstate"`
	Keys     []Keys `json:"keys,omitempty"` // of the tables whose keys the policy has recorded
}

// Keys are the rows of a table that an answer may hold.
type Keys struct {
	Table string   `json:"table"`
	Exact bool     `json:"exact"`          // these and no others; false: any row that the session may see
	Rows  []string `json:"rows,omitempty"` // of each its commitment: [Key.Commit]
}

// Session is the record of a session's beginning or end.
type Session struct {
	Session    string            `json:"session"`
	Agent      string            `json:"agent"`
	Database   string            `json:"database"`
	Remote     string            `json:"remote,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Event      string            `json:"event"` // open | close | refused | revoked
	SQLState   string            `json:"sqlstate,omitempty"`
	Reason     string            `json:"reason,omitempty"`
}

// Recovery is the record of a log that went on after a crash or a broken disk.
type Recovery struct {
	// torn (a crash cut the last record) | disk or database (writing had failed) | anchor (it was missing)
	Cause  string `json:"cause"`
	Bytes  int64  `json:"bytes,omitempty"`  // torn: of the cut record
	SHA256 string `json:"sha256,omitempty"` // torn: of those bytes
	Kept   string `json:"kept,omitempty"`   // torn: the file they were moved to
	Lost   uint64 `json:"lost,omitempty"`   // disk, database: records that could not be written; each refused its statement
}

// Checkpoint is the record that stands for segments whose time was over. It is durable before they are removed.
type Checkpoint struct {
	Retention string    `json:"retention"`
	Removed   []Removed `json:"removed"`
}

// Removed is a segment and the last record in it.
type Removed struct {
	Segment int    `json:"segment"`
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"`
}

// The values of a record's member "kind".
const (
	KindDecision   = "decision"
	KindOutcome    = "outcome"
	KindSession    = "session"
	KindRecovery   = "recovery"
	KindCheckpoint = "checkpoint"
)
