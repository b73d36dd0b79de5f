// Package audit is the append-only log of the statements that agents ran, and their outcomes.
//
// Guarantee: in [ModeStrict] [Ticket.Release] returns nil only after the record of the decision is written and synced
// to disk, so that no answer is sent without a record (invariant I8). Records form a hash chain: [Verify] finds any
// record that was changed, removed, added or moved. With the [Key] it also finds a chain that somebody else has
// rewritten. With an anchor ([NewestHead]), which is stored elsewhere, it finds that the newest records were cut off.
// It cannot detect changes by somebody who can write all three (docs/reference/audit.md).
//
// Records say who ran a statement, which relations and columns it reads, the verdict, and the versions of policy and
// catalog. They contain no SQL text, literal, parameter or row. A record names a person by a reference, which the
// database can resolve and forget.
package audit

import (
	"log/slog"
	"time"
)

// FormatVersion is the member "v" of every new record. This version of pgconsent also reads format 1, which had no
// codes and no checkpoints.
const FormatVersion = 2

// Mode says what [Ticket.Release] waits for.
type Mode string

// The modes. The zero value means ModeStrict.
const (
	ModeStrict   Mode = "strict"   // Release waits until the record is synced to disk
	ModeBuffered Mode = "buffered" // Release only queues the record, but refuses if the disk is more than a second behind
	ModeOff      Mode = "off"      // no record is written
)

// Observer is told about the health of the log; metrics.Metrics implements it.
type Observer interface {
	SetAuditQueue(length int)
	AuditSynced(lag time.Duration)
	AuditFailed(records int)
	AuditAnchorFailed()
}

// Config configures a log.
type Config struct {
	Mode           Mode             // "": ModeStrict
	Dir            string           // the directory of the segments, which is made if it is missing
	Store          Store            // where the records are if they are not in Dir; nil: in Dir
	Key            Key              // the key that signs records; with the zero Key records have no codes
	AnchorFile     string           // the anchor file, which names the newest record; outside Dir; "": none
	MaxSegment     int64            // the size in bytes at which the next segment begins; 0: 64 MiB
	MaxSegmentAge  time.Duration    // the age of a segment's first record at which the next segment begins; 0: unlimited
	Retention      time.Duration    // how long records stay at least, before their segments are removed; 0: forever
	ReleaseTimeout time.Duration    // the longest time that a Release waits; 0: 1.5 s
	Observer       Observer         // nil: none
	Log            *slog.Logger     // nil: slog.Default()
	Clock          func() time.Time // nil: time.Now

	openFile func(path string) (file, error) // opens a segment's file; nil: os.OpenFile; replaced in tests
}

// Table is a relation that a statement reads or writes.
type Table struct {
	Name       string   `json:"name"`              // the name, as schema.relation
	Columns    []string `json:"columns,omitempty"` // the columns that the statement uses; left out: all columns
	DataSource string   `json:"source,omitempty"`
	ByKey      bool     `json:"by_key,omitempty"`
	IsWritten  bool     `json:"written,omitempty"`
}

// Decision is the record of one execution of a statement. It is written before the statement is sent to PostgreSQL.
type Decision struct {
	Session    string `json:"session"`
	Agent      string `json:"agent"`
	AccessedBy string `json:"accessed_by,omitempty"` // the agent again; since format version 2
	// a reference to the person on whose behalf the agent acts
	OnBehalfOf  string            `json:"on_behalf_of,omitempty"`
	Database    string            `json:"database"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Purpose     string            `json:"purpose,omitempty"`
	Protocol    string            `json:"protocol"` // simple or extended
	Tag         string            `json:"tag"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	Tables      []Table           `json:"tables,omitempty"`
	Functions   []string          `json:"functions,omitempty"`
	Contracts   []Contract        `json:"contracts,omitempty"` // the contracts that apply to the statement
	Verdict     string            `json:"verdict"`             // allow or deny
	SQLState    string            `json:"sqlstate,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Path        string            `json:"path,omitempty"` // rls (row security) or signed
	Policy      string            `json:"policy"`
	Catalog     string            `json:"catalog"`
	// the number of the newest consent record that the statement's snapshot contained
	Epoch  int64 `json:"epoch"`
	Signed bool  `json:"signed"`

	Encoding *StatementEncoding `json:"-"` // what is kept of earlier decisions about the statement; nil: nothing is kept
}

// Contract is what one contract decided about a statement, and the attribute's value on which that depended.
type Contract struct {
	Name      string `json:"name"`
	Attribute string `json:"by,omitempty"`
	Value     string `json:"value,omitempty"`
	Verdict   string `json:"verdict"` // allow or deny
}

// Outcome is the record of the result of an execution.
type Outcome struct {
	Decision uint64 `json:"decision"` // the number of the decision's record, which the log fills in
	Session  string `json:"session"`  // the decision's session, which the log fills in
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	SQLState string `json:"sqlstate"`
	// the keys of returned rows, for tables with audit: { keys: true } in the policy
	Keys []Keys `json:"keys,omitempty"`
}

// Keys says which rows of a table an answer may have, by their keys.
type Keys struct {
	Table string `json:"table"`
	// true: the answer has exactly these rows; false: it may have any row that the session may see
	AreComplete bool     `json:"exact"`
	Commitments []string `json:"rows,omitempty"` // one commitment for each row: [Key.Commit]
}

// Session is the record of the beginning or the end of a session.
type Session struct {
	Session    string            `json:"session"`
	Agent      string            `json:"agent"`
	Database   string            `json:"database"`
	Remote     string            `json:"remote,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Event      string            `json:"event"` // open, close, refused or revoked
	SQLState   string            `json:"sqlstate,omitempty"`
	Reason     string            `json:"reason,omitempty"`
}

// Recovery records that the log continued after a crash or a failed write.
type Recovery struct {
	// torn: a crash cut off a part of the last record; disk, database: records could not be written; anchor: the anchor
	// file was missing
	Cause   string `json:"cause"`
	Bytes   int64  `json:"bytes,omitempty"`  // if Cause is torn: how many bytes the incomplete record had
	SHA256  string `json:"sha256,omitempty"` // if Cause is torn: the hash of these bytes
	SavedAs string `json:"kept,omitempty"`   // if Cause is torn: the file to which these bytes were moved
	// if Cause is disk or database: how many records could not be written; their statements were refused
	LostRecords uint64 `json:"lost,omitempty"`
}

// Checkpoint records which segments are removed because their retention is over. It is durable before they are removed.
// A removal may have been interrupted, so some of these segments may still exist.
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
