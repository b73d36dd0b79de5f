// Package audit is the append-only log of the statements that agents ran, and their outcomes.
//
// Guarantee: in [ModeStrict] [Ticket.Release] returns nil only after the record of the decision has been written and
// synced, so that no answer is sent without a record (invariant I8). Records form a hash chain: [Verify] finds any
// record that was changed, removed, added or moved. With the [Key] it also finds a chain that somebody else has
// rewritten, and with an anchor ([NewestHead]), which is kept elsewhere, that the newest records were cut off. It
// cannot detect changes by somebody who can write all three (docs/reference/audit.md).
//
// Records say who ran a statement, which relations and columns it reads, the verdict, and the versions of policy and
// catalog. They contain no SQL text, literal, parameter or row. A person is named by a reference, which the database
// resolves and can forget.
package audit

import (
	"log/slog"
	"time"
)

// FormatVersion is the member "v" of every record. This version also reads older formats: format 1 had no codes and no
// checkpoints.
const FormatVersion = 2

// Mode says what [Ticket.Release] waits for.
type Mode string

// The modes. The zero value means ModeStrict.
const (
	ModeStrict   Mode = "strict"   // the record is synced to disk
	ModeBuffered Mode = "buffered" // the record is queued; Release refuses if the disk is more than a second behind
	ModeOff      Mode = "off"      // nothing is written
)

// Observer receives the health of the log; metrics.Metrics is one.
type Observer interface {
	SetAuditQueue(length int)
	AuditSynced(lag time.Duration)
	AuditFailed(records int)
	AuditAnchorFailed()
}

// Config configures a log.
type Config struct {
	Mode           Mode             // "": Strict
	Dir            string           // the directory of the segments, which is made if it is missing
	Store          Store            // the place that has the records if they are not in Dir
	Key            Key              // the key that authenticates records; the zero Key does not
	AnchorFile     string           // the file with the newest head, outside Dir; "": none
	MaxSegment     int64            // the size in bytes at which the next segment begins; 0: 64 MiB
	MaxSegmentAge  time.Duration    // the age of a segment's first record at which the next segment begins; 0: unlimited
	Retention      time.Duration    // how long records are kept at least; segments that are older are removed; 0: forever
	ReleaseTimeout time.Duration    // the longest time that a Release waits; 0: 1.5 s
	Observer       Observer         // nil: none
	Log            *slog.Logger     // nil: slog.Default()
	Clock          func() time.Time // nil: time.Now

	openFile func(path string) (file, error) // opens a segment's file; nil: os.OpenFile; replaced in tests
}

// Table is a relation that a statement reads or writes.
type Table struct {
	Name       string   `json:"name"`              // the name, as schema.relation
	Columns    []string `json:"columns,omitempty"` // the columns that the statement uses; left out: all
	DataSource string   `json:"source,omitempty"`
	ByKey      bool     `json:"by_key,omitempty"`
	IsWritten  bool     `json:"written,omitempty"`
}

// Decision is the record of one execution of a statement, written before anything of it is sent to the server.
type Decision struct {
	Session    string `json:"session"`
	Agent      string `json:"agent"`
	AccessedBy string `json:"accessed_by,omitempty"` // the agent; since format version 2
	// the person on whose behalf the agent acts, as a reference
	OnBehalfOf  string            `json:"on_behalf_of,omitempty"`
	Database    string            `json:"database"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Purpose     string            `json:"purpose,omitempty"`
	Protocol    string            `json:"protocol"` // the protocol: simple or extended
	Tag         string            `json:"tag"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	Tables      []Table           `json:"tables,omitempty"`
	Functions   []string          `json:"functions,omitempty"`
	Contracts   []Contract        `json:"contracts,omitempty"` // contracts that govern what the statement uses
	Verdict     string            `json:"verdict"`             // the verdict: allow or deny
	SQLState    string            `json:"sqlstate,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Path        string            `json:"path,omitempty"` // the path of the statement: rls (row security) or signed
	Policy      string            `json:"policy"`
	Catalog     string            `json:"catalog"`
	// the number of the last change of consent that the statement saw
	Epoch  int64 `json:"epoch"`
	Signed bool  `json:"signed"`
}

// Contract is the decision of one contract about a statement, for the value of the attribute on which it depends.
type Contract struct {
	Name      string `json:"name"`
	Attribute string `json:"by,omitempty"`
	Value     string `json:"value,omitempty"`
	Verdict   string `json:"verdict"` // the verdict: allow or deny
}

// Outcome is the record of the result of an execution.
type Outcome struct {
	Decision uint64 `json:"decision"` // the number of the decision's record; the log fills it in
	Session  string `json:"session"`  // the session; the log fills it in
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	SQLState string `json:"sqlstate"`
	// the keys of returned rows of the tables for which the policy says audit: { keys: true }
	Keys []Keys `json:"keys,omitempty"`
}

// Keys are the keys of a table's rows that may be in an answer.
type Keys struct {
	Table string `json:"table"`
	// Rows are exactly the rows in the answer; false: the answer may have any row that the session may see
	AreComplete bool     `json:"exact"`
	Commitments []string `json:"rows,omitempty"` // for each row a commitment to its key: [Key.Commit]
}

// Session is the record of a session's beginning or end.
type Session struct {
	Session    string            `json:"session"`
	Agent      string            `json:"agent"`
	Database   string            `json:"database"`
	Remote     string            `json:"remote,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Event      string            `json:"event"` // what happened: open, close, refused or revoked
	SQLState   string            `json:"sqlstate,omitempty"`
	Reason     string            `json:"reason,omitempty"`
}

// Recovery records that the log continued after a crash or a failed write.
type Recovery struct {
	// the cause: torn: a crash cut off part of the last record; disk, database: writing had failed; anchor: it was
	// missing
	Cause   string `json:"cause"`
	Bytes   int64  `json:"bytes,omitempty"`  // for torn: the number of bytes that were cut off
	SHA256  string `json:"sha256,omitempty"` // for torn: the hash of those bytes
	SavedAs string `json:"kept,omitempty"`   // for torn: the file into which they were moved
	// for disk and database: the number of records that could not be written; each refused its statement
	LostRecords uint64 `json:"lost,omitempty"`
}

// Checkpoint records which segments are removed because their retention is over. It is durable before they are removed.
// A removal that was interrupted is continued later, so that some of these segments may still exist.
type Checkpoint struct {
	Retention       string           `json:"retention"`
	RemovedSegments []RemovedSegment `json:"removed"`
}

// RemovedSegment is a removed segment and its last record.
type RemovedSegment struct {
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
