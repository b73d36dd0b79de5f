// Package verdict has the types by which enforcement answers the proxy: the verdict on a statement and the seal of a
// session.
//
// It is the interface between package proxy, which knows messages and no SQL, and package enforce, which knows SQL and
// no messages; neither imports the other.
package verdict

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Decider decides for one agent's session. Its methods are called by one goroutine at a time, except the methods of
// [Ticket], which any goroutine may call.
type Decider interface {
	// Seal returns a fresh seal for the session on this backend. An error ends the session.
	Seal(ctx context.Context, b Backend) (Seal, error)

	// Decide judges one message's text: a Query may hold several statements, a Parse one. It never returns nil and never
	// fails: an error becomes a refusal.
	Decide(ctx context.Context, text string, p Protocol) *Verdict

	// DeclareParameters judges the types that a Parse declares for its parameters, by OID; 0 leaves one to the server. It
	// returns v itself, which was allowed, or a refusal.
	DeclareParameters(ctx context.Context, v *Verdict, types []uint32) *Verdict

	// UseRowSecurity judges v's text again for the row security path, whatever the values of its parameters are. types are
	// the types that Declare was called with.
	UseRowSecurity(ctx context.Context, v *Verdict, types []uint32) *Verdict

	// CheckValues judges the values that a Bind gives to the parameters of v, from $1 on; NULL is nil. It returns v
	// itself, which was allowed, a verdict with the same Text and with Values, or a refusal. It is called where
	// [Rewritten.NeedsValueCheck] says so.
	CheckValues(v *Verdict, values [][]byte) *Verdict

	// Recheck judges v's text again if the versions it was decided under are no longer active. It returns v itself when
	// nothing changed, a verdict with the same Text when the change does not affect the statement, and otherwise a refusal
	// (0A000, "cached plan must not change result type"), upon which drivers prepare again.
	Recheck(ctx context.Context, v *Verdict) *Verdict

	// ClientOrigin returns the column that the client is told in place of this one. It is called for each column that the
	// server describes.
	ClientOrigin(o Origin) Origin

	// Record writes the decision record of one execution of v (a Query, or an Execute), allowed or refused, and returns
	// at once. The ticket's Release must be called before anything of the execution goes upstream. runs are the verdicts
	// on what v runs by name: prepared statements, and the queries of cursors.
	Record(v *Verdict, runs ...*Verdict) Ticket

	// Snapshot returns a snapshot of the database as it is now. The proxy takes it before it sends what keeps a snapshot
	// for longer than one statement. The error is the refusal of that. The caller refuses what reads a
	// [Verdict.UntrackedRelation].
	Snapshot(ctx context.Context) (Snapshot, *sqlstate.Error)

	// CheckSnapshot returns nil if nothing that decides who sees a row was committed since that snapshot, and otherwise
	// the refusal (40001) of a statement that would show its rows. portal is true if results of the snapshot may be
	// waiting in a portal.
	CheckSnapshot(ctx context.Context, since Snapshot, portal bool) *sqlstate.Error

	// CheckCatalogs returns nil if nothing in the catalogs that concerns agents has changed since v was decided, as far as
	// the database records it. Otherwise it returns the refusal (40001): v could run another function than the checked
	// one.
	CheckCatalogs(ctx context.Context, v *Verdict) *sqlstate.Error

	// Close ends the session for enforcement; nothing else may be called after it.
	Close()
}

// Ticket is the receipt of a decision record.
type Ticket interface {
	// Release returns nil once the decision is as durable as the audit mode asks, or the refusal (58030) to send in
	// place of the answer. It does not block longer than the audit's own deadline.
	Release() *sqlstate.Error

	// ResultBound is how much of the result may be relayed. It is called once Release has returned nil.
	ResultBound() ResultBound

	// RowsReturned tells how many rows were relayed. It is called when no more rows will be relayed, and before the client
	// has the end of the answer, since its next statement may need what is given back. Done follows; for an execution
	// without an answer only Done is called.
	RowsReturned(rows int64)

	// RecordOutcome writes the outcome record. It is called once, after the last message of the answer has been relayed.
	RecordOutcome(Outcome)
}

// ResultBound is how large the result of a message may be. No part of a row beyond it is relayed. The client gets an
// error in place of the next row, and the statement fails on the server as well.
type ResultBound struct {
	Rows, Bytes int64 // how many rows and bytes may be relayed; 0: any number

	// MoreRows takes rows from the rates and returns how many; 0: there are none now. Rows that are not relayed, as
	// Returned tells, are given back. Nil: no rate limits the rows.
	MoreRows func() int64

	Exceeded func(ExceededBound) *sqlstate.Error // returns the error that ends the result; nil: there is no bound

	MustRollBack bool // the execution may have side effects, which the error is to roll back
}

// ExceededBound says which bound a result exceeds.
type ExceededBound int

// The bounds of a result.
const (
	TooManyRows ExceededBound = iota
	TooManyBytes
	RateExhausted // [ResultBound.MoreRows] had no more rows
)

// Outcome is the result of an execution.
type Outcome struct {
	Rows     int64         // number of DataRow messages and CopyData rows that were relayed
	Bytes    int64         // bytes of these rows
	Code     sqlstate.Code // "00000", or the SQLSTATE that the client received
	Upstream time.Duration // time spent waiting for the server
}

// Backend says which server process a session runs on.
type Backend struct{ PID uint32 }

// Seal is a signed session identity.
type Seal struct {
	Setting         string    // the setting that carries it: "pgconsent.seal"
	Value           string    // signed text of the seal, which is secret and never logged
	RepresentedUser *string   // value to which [RepresentedUserSetting] is set with the seal; nil: it is not set
	RenewAfter      time.Time // after this time the seal is renewed before the next transaction, by the proxy's clock
	Expires         time.Time // no transaction that starts after this time may be answered, by the proxy's clock

	RightsEpoch uint64 // verdicts with a lower number must not run under this seal; see [Verdict]
	// reports whether to renew the seal before the next transaction, whatever the time; nil: never
	IsStale func() bool
	// to be called when the database has found the seal expired, which makes IsStale true; nil: not to be called
	ReportExpired func()

	Identity any // identity that the seal is for; only a [SealSharer] uses it
}

// SealSharer is a [Decider] whose session can run under a seal that was made for another session.
type SealSharer interface {
	// CanShareSeal tells whether the seal speaks for this session as well, which then runs under it.
	CanShareSeal(Seal) bool
}

// Protocol says in which message a text came.
type Protocol int

// The two sub-protocols of PostgreSQL's protocol, and the way between them.
const (
	Simple   Protocol = iota // the text of a Query
	Extended                 // the text of a Parse

	// Bindable is the text of a Query that may be sent as a Parse and a Bind: the verdict may have parameters in Text and
	// their Values.
	Bindable
)

// Path is the way that a statement takes: row security, or a signature over signed views.
type Path string

// The paths. PathSigned is only for signed statements that read signed views and nothing else.
const (
	PathRowSecurity Path = "rls"
	PathSigned      Path = "signed"
)

// Versions are the versions of the policy and catalog under which a verdict was decided.
type Versions struct{ Policy, Catalog string }

// Verdict is the judgement of one message's text. It is immutable and may be shared by sessions of equal rights.
type Verdict struct {
	Original string          // the client's text
	Text     string          // the text that is sent upstream in place of the original; empty for a refusal
	Refusal  *sqlstate.Error // error for the client; nil: the text is allowed
	Versions Versions
	Rewritten

	// HardenedText is Text with the settings of a hardened plan in it (see [WithHardenedPlan]), for a Query of one signed
	// statement. The proxy cannot insert the settings, since they are signed too. It is empty if the text is not signed.
	HardenedText string

	// Parts returns the statements of Text, in order, if there are several: each means by itself what it means in Text.
	// Parts is nil if there is one statement, and returns nil if the text cannot be divided.
	Parts func() []Part

	RightsEpoch uint64 // the number of the rights under which the decision was made; later rights have higher numbers

	// PartialResult tells that an execution may take a part of the result: of a portal, whose other parts later executions
	// return.
	PartialResult bool

	// UntrackedRelation names a relation that the statement reads and whose changes no trigger records, or a function that
	// may read such a relation. The statement's snapshot must end with the statement. It is empty if the statement reads
	// none.
	UntrackedRelation string

	// CallsUncheckedFunctions tells that the statement calls functions of the owner and reads no table of the policy. Then
	// nothing in the database checks that the functions are unchanged since the decision; see [Decider.CheckCatalogs].
	CallsUncheckedFunctions bool

	// OneStatementPerMessage tells that each statement of the text must be sent in a message of its own. One of them may
	// show a row that expires while the statements before it run.
	OneStatementPerMessage bool

	// ForeignReads is how many statements of the text read from a foreign server, in the snapshot of their transaction's
	// first query there. A statement that PREPARE names counts in its Body.
	ForeignReads int

	// KeepsSessionState tells that the text uses what stays in the server's process until its end, and no setting tells:
	// advisory locks of the session, the seed of random().
	KeepsSessionState bool

	// MayLeaveState tells that the text writes rows or calls volatile functions of the owner. These may leave numbers
	// drawn from sequences, settings and locks in the server's process.
	MayLeaveState bool

	RecordsKeys bool // the audit records the keys of the rows that the statement reads; see [KeyReader]

	// Values are the values of parameters that are sent in place of those of a Bind; nil: the Bind's own are sent. Of a
	// Query they are the values of literals in whose place Text has parameters; nil: it has none.
	Values [][]byte

	// EnforcerDetail is what package enforce records of the statement.
	EnforcerDetail any
}

// Rewritten is what a rewriter says about a text that it made.
type Rewritten struct {
	Path    Path
	Effects []Effect // the effects of the statements in the text, in order

	// Forms are the forms that Text requires of parameters, by their numbers. For other values see
	// [Decider.UseRowSecurity].
	Forms map[int32]ValueForm

	// ExpectsForms tells that Text requires forms, or would on the signed path, which depends on the sizes of tables. Such
	// a statement must not run by EXECUTE, whose values the server computes and the proxy does not see.
	ExpectsForms bool

	// NeedsValueCheck tells that Text sets settings to the values of parameters, so each Bind needs [Decider.CheckValues].
	NeedsValueCheck bool

	CallsSetConfig bool // the text changes settings by calls of set_config

	// Position maps a 1-based character position in Text to one in Original; 0 stays 0.
	Position func(int) int

	// RenamedRelations are the relations that have other names in Text than in Original, longest name first.
	RenamedRelations []RenamedRelation

	// HardenBeforeParse tells that functions of other roles may run as the server parses the text, to convert its
	// constants. The settings of a hardened plan must apply from then on.
	HardenBeforeParse bool

	// MultiWriteCTE tells that one statement writes in several parts, which do not see each other's rows.
	MultiWriteCTE bool
}

// Part is one statement of a text with several statements.
type Part struct {
	Text   string
	Offset int // number of characters of the whole text before the part
}

// RenamedRelation is a relation under two names: the name in the server's messages, and the name that the client used.
// View and Relation are these names without a schema, as in messages about written rows. Columns are the columns that
// agents see, if the table hides some.
type RenamedRelation struct {
	ServerName, ClientName string
	View, Relation         string
	Columns                []string
}

// IsAllowed reports whether the text may be sent upstream.
func (v *Verdict) IsAllowed() bool { return v.Refusal == nil }

// Effect is what a statement does to the session, applied when its CommandComplete arrives.
type Effect struct {
	Kind       EffectKind
	Name       string // name of the setting, or the client's name of the prepared statement or cursor; "": all of them
	ReadsRows  bool   // the statement reads rows: SELECT, COPY TO, or a statement that also writes
	WritesRows bool   // the statement changes rows, or its WITH queries do

	ReturnsRows bool // the statement may send rows; if it runs others by name, these may

	// CommandTag is the command tag that the client gets. If it is empty, the client gets the server's.
	CommandTag string

	// Notices are the notices that the statement may raise and that pass to the client, each once. No other notice that a
	// function raises passes.
	Notices []Notice

	// Body is the verdict on the query that PREPARE or DECLARE names, with Effects of its own. Recheck accepts it like any
	// other verdict; its Text is that of the whole message.
	Body     *Verdict
	BodyTag  string // the command tag of the query in Body
	WithHold bool   // the cursor of DECLARE outlives its transaction (WITH HOLD)
	Binary   bool   // the cursor of DECLARE is BINARY: a Query that fetches from it gets binary values

	SnapshotHold SnapshotHold // which transactions hold one snapshot from now on

	HardenedPlan HardenedPlan // when the settings of a hardened plan must apply; see docs/decisions/0073

	// Claim is the claim that the statement changes, if the policy maps the setting Name to an attribute, or the setting
	// says for whom the session acts: by SET, RESET and RESET ALL, or by a SELECT of set_config.
	Claim      *Claim
	IsRollback bool // the effect EffectEnd comes from a ROLLBACK
}

// Notice is a notice in PostgreSQL's words.
type Notice struct {
	Code    sqlstate.Code
	Message string
}

// Claim is the new value of a setting that the policy maps to an attribute.
type Claim struct {
	Value                string // value of the setting, which is not logged
	IsReset              bool   // the setting returns to the value that the connection began with
	IsLocal              bool   // the value applies until the transaction ends
	NamesRepresentedUser bool   // the value says for whom the session acts, as [RepresentedUserSetting] does
}

// RepresentedUserSetting is the name of the setting that says for whom a session acts.
const RepresentedUserSetting = "pgconsent.acting"

// Claims are the values of the settings that the policy maps to attributes, by their names in lower case. A setting
// that is not among them has the value that the connection began with. Where the proxy does not know the values, Known
// is false, and the attributes count as missing. Expected are then the values if all that is under way succeeds, where
// the message at hand would be skipped otherwise; nil: they are not known either.
type Claims struct {
	Known    bool // the proxy knows the values
	Values   map[string]string
	Expected map[string]string
}

// ClaimsChangeWithin reports whether a statement of a text may run with other claims than the statements before it.
func ClaimsChangeWithin(effects []Effect) bool {
	for i, e := range effects {
		if i+1 == len(effects) {
			break
		}
		switch e.Kind {
		case EffectEnd, EffectRollbackTo, EffectResetAll, EffectDiscard:
			return true
		}
		if e.Claim != nil {
			return true
		}
	}
	return false
}

// EffectKind is the kind of an Effect.
type EffectKind int

// The effects that statements can have on a session.
const (
	EffectNone       EffectKind = iota
	EffectBegin                 // the effect of BEGIN and START TRANSACTION
	EffectEnd                   // the effect of COMMIT and ROLLBACK
	EffectSavepoint             // the effect of SAVEPOINT
	EffectRelease               // the effect of RELEASE SAVEPOINT
	EffectRollbackTo            // the effect of ROLLBACK TO SAVEPOINT
	EffectSet                   // the effect of SET and RESET
	EffectDeallocate            // the effect of DEALLOCATE
	EffectPrepare               // the effect of PREPARE
	EffectDeclare               // the effect of DECLARE
	EffectFetch                 // the effect of FETCH and MOVE: they do what the query of the cursor does
	EffectClose                 // the effect of CLOSE
	EffectExecute               // the effect of EXECUTE: it does what the statement of that name does
	EffectResetAll              // the effect of RESET ALL, which leaves the session's seal: see [ResetSettings]
	EffectCopyIn                // the effect of COPY FROM STDIN: rows come from the client
	EffectListen                // the effect of LISTEN to a channel of this name: notifications of it are for the client
	EffectExplain               // the effect of EXPLAIN EXECUTE: the statement of that name must exist
	// the effect of DISCARD ALL: it removes the seal, all settings, prepared statements and portals
	EffectDiscard
)

// SnapshotHold says what keeps one snapshot for more than a statement.
type SnapshotHold int

// What can keep a snapshot.
const (
	NoSnapshotHold     SnapshotHold = iota
	HoldForTransaction              // the current transaction holds its snapshot
	// every transaction of the session that does not say otherwise holds its snapshot
	HoldForSession
)

// Snapshot is a moment in the life of the database, taken by [Decider.Snapshot].
type Snapshot struct {
	Value        string    // the snapshot as the database writes it
	RulesVersion string    // version of the rules that decide who sees a row
	TakenAt      time.Time // when the snapshot was taken, by the proxy's clock
}

// IsRunnable reports whether v is a query, or empty, which SQL may run by name. EXECUTE can name any statement that was
// prepared by Parse; the proxy would then not notice what it does to the session.
func (v *Verdict) IsRunnable() bool {
	return len(v.Effects) == 0 || len(v.Effects) == 1 && v.Effects[0].Kind == EffectNone && v.Effects[0].ReadsRows
}

// The names of statements and portals on the server. No client's name is [SealStatement].
const (
	SealStatement = "pgconsent_seal" // the name of the proxy's own statement that sets the seal

	namePrefix   = "c:"
	hashPrefix   = "h:"
	maxNameBytes = 60 // longest name in bytes; PostgreSQL compares the first 63 bytes
)

// UpstreamName is the server's name of a client's prepared statement or portal: SQL that names one must use this name,
// quoted. It has at most 62 bytes and differs for different names; the unnamed one stays unnamed.
func UpstreamName(name string) string {
	switch {
	case name == "":
		return ""
	case len(name) > maxNameBytes:
		sum := sha256.Sum256([]byte(name))
		return hashPrefix + hex.EncodeToString(sum[:24])
	default:
		return namePrefix + name
	}
}

// ClientName returns the client's name for a name that [UpstreamName] made. It returns false if the name cannot be
// recovered, as for a long one.
func ClientName(upstream string) (name string, ok bool) {
	return strings.CutPrefix(upstream, namePrefix)
}
