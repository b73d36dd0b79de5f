// Package verdict has the types by which package enforce answers the proxy: the verdict on a statement, and the seal of
// a session.
//
// It is the interface between package proxy, which knows protocol messages but no SQL, and package enforce, which knows
// SQL but no messages. Neither imports the other.
package verdict

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Decider decides for one agent's session. The proxy calls its methods from one goroutine at a time, except the methods
// of [Ticket], which any goroutine may call.
type Decider interface {
	// Seal returns a new seal for the session on this server process. An error ends the session.
	Seal(ctx context.Context, b Backend) (Seal, error)

	// Decide decides on the text of one message: a Query may have several statements, a Parse has one. It never returns
	// nil and never fails: an error becomes a refusal.
	Decide(ctx context.Context, text string, p Protocol) *Verdict

	// DeclareParameters checks the types that a Parse declares for its parameters, by OID; 0 means that the server chooses
	// the type. v was allowed. It returns v, a verdict on the same text that fits these types, or a refusal.
	DeclareParameters(ctx context.Context, v *Verdict, types []uint32) *Verdict

	// UseRowSecurity decides again on v's text, for the row security path, where parameters may have any values. types are
	// the types that DeclareParameters was called with.
	UseRowSecurity(ctx context.Context, v *Verdict, types []uint32) *Verdict

	// CheckValues checks the values that a Bind gives to the parameters of v, from $1 on; NULL is nil. v was allowed. It
	// returns v, a verdict with the same Text and with Values, or a refusal. The proxy calls it if
	// [Rewritten.NeedsValueCheck] is true.
	CheckValues(v *Verdict, values [][]byte) *Verdict

	// Recheck decides again on v's text if the versions that v was decided under are no longer active. It returns v if
	// nothing changed, and a verdict with the same Text if the change does not affect the statement. Otherwise it returns
	// a refusal (0A000, "cached plan must not change result type"), after which drivers prepare the statement again.
	Recheck(ctx context.Context, v *Verdict) *Verdict

	// ClientOrigin returns the column that the client's RowDescription names in place of o. The proxy calls it for each
	// column that the server describes.
	ClientOrigin(o Origin) Origin

	// Record writes the audit record of the decision on one execution of v (a Query, or an Execute), allowed or refused,
	// and returns at once. The proxy must call the ticket's Release before it sends anything of the execution to the
	// server. runs are the verdicts on what v runs by name: prepared statements, and the queries of cursors.
	Record(v *Verdict, runs ...*Verdict) Ticket

	// Snapshot returns a snapshot of the database as it is now. The proxy calls it before it sends a statement that makes
	// a transaction or cursor use one snapshot for longer than a statement. The error refuses that statement. Statements
	// that read a [Verdict.UntrackedRelation] in such a snapshot are refused by the proxy.
	Snapshot(ctx context.Context) (Snapshot, *sqlstate.Error)

	// CheckSnapshot returns nil if no change of who may see a row was committed after that snapshot. Otherwise it returns
	// the refusal (40001) of a statement that would show rows of the snapshot. portal is true if such rows may be waiting
	// in a portal.
	CheckSnapshot(ctx context.Context, since Snapshot, portal bool) *sqlstate.Error

	// CheckCatalogs returns nil if nothing in the catalogs that concerns agents has changed since v was decided, as far as
	// the database records such changes. Otherwise it returns the refusal (40001): v could call another function than the
	// one that was checked.
	CheckCatalogs(ctx context.Context, v *Verdict) *sqlstate.Error

	// Close ends the session for package enforce; no other method may be called after it.
	Close()
}

// Ticket is the handle of the audit record of one execution.
type Ticket interface {
	// Release returns nil once the record is as durable as the audit mode asks. Otherwise it returns the refusal (58030)
	// that the client gets in place of the answer. It does not block longer than the audit's own deadline.
	Release() *sqlstate.Error

	// ResultBound returns how much of the result the proxy may relay. The proxy calls it after Release has returned nil.
	ResultBound() ResultBound

	// RowsReturned reports how many rows were relayed, so that reserved rows that were not used are given back. The proxy
	// calls it when it will relay no more rows, and before the client gets the end of the answer, since the client's next
	// statement may need these rows. The proxy then calls RecordOutcome; for an execution without an answer it calls only
	// RecordOutcome.
	RowsReturned(rows int64)

	// RecordOutcome writes the audit record of the outcome. The proxy calls it once, after it has relayed the last message
	// of the answer.
	RecordOutcome(Outcome)
}

// ResultBound says how large the result of a message may be. If the result is larger, the client gets an error in place
// of the first row beyond the bound, and the statement fails on the server as well.
type ResultBound struct {
	Rows, Bytes int64 // how many rows and bytes may be relayed; 0: any number

	// MoreRows reserves rows of the limits per minute and returns how many; 0: none are left now. The reserved rows that
	// were not relayed are given back by [Ticket.RowsReturned]. Nil: no limit per minute bounds the rows.
	MoreRows func() int64

	Exceeded func(ExceededBound) *sqlstate.Error // returns the error that ends the result; nil: there is no bound

	MustRollBack bool // the execution may have side effects, which the server must roll back
}

// ExceededBound says which bound a result exceeds.
type ExceededBound int

// The bounds of a result.
const (
	TooManyRows ExceededBound = iota
	TooManyBytes
	RateExhausted // [ResultBound.MoreRows] returned 0
)

// Outcome is the result of an execution.
type Outcome struct {
	Rows     int64         // number of rows relayed, as DataRow messages or by COPY
	Bytes    int64         // bytes of these rows
	Code     sqlstate.Code // "00000", or the SQLSTATE that the client received
	Upstream time.Duration // time spent waiting for the server
}

// Backend identifies the server process on which a session runs.
type Backend struct{ PID uint32 }

// Seal tells the database, signed, which attributes and rights a session has; see package seal. Its times are by the
// proxy's clock.
type Seal struct {
	Setting         string    // name of the setting whose value it is: "pgconsent.seal"
	Value           string    // signed text of the seal; it is secret and must never be logged
	RepresentedUser *string   // value for [RepresentedUserSetting] that is set together with the seal; nil: none
	RenewAfter      time.Time // after this time the proxy renews the seal before the next transaction
	Expires         time.Time // a transaction that starts after this time must not be answered

	RightsEpoch uint64 // verdicts with a lower RightsEpoch must not run under this seal
	// IsStale reports whether the proxy must renew the seal before the next transaction, even before RenewAfter; nil:
	// never.
	IsStale func() bool
	// The proxy calls ReportExpired when the database has found the seal expired. Then IsStale returns true. Nil: there is
	// nothing to call.
	ReportExpired func()

	Identity any // whom the seal is for; only a [SealSharer] uses it
}

// SealSharer is a [Decider] whose session can run under a seal that was made for another session.
type SealSharer interface {
	// CanShareSeal reports whether the seal is also valid for this session, which then uses it.
	CanShareSeal(Seal) bool
}

// Protocol says in which message a text was sent.
type Protocol int

// The simple and the extended query protocol, and a mixture of both.
const (
	Simple   Protocol = iota // the text of a Query
	Extended                 // the text of a Parse

	// Bindable is the text of a Query that the proxy may send as a Parse and a Bind: the verdict may have parameters in
	// Text, and the Values for them.
	Bindable
)

// Path says how the policy's rules are applied to a statement: by row security, or by signed views that the rewritten
// text names.
type Path string

// The paths. PathSigned is only for signed texts that read no other relations than signed views.
const (
	PathRowSecurity Path = "rls"
	PathSigned      Path = "signed"
)

// Versions are the versions of the policy and the catalogs under which a verdict was decided.
type Versions struct{ Policy, Catalog string }

// Verdict is the decision on the text of one message. It is immutable; sessions of equal rights may share it.
type Verdict struct {
	Original string          // the client's text
	Text     string          // the text that is sent upstream in place of the original; empty for a refusal
	Refusal  *sqlstate.Error // error for the client; nil: the text is allowed
	Versions Versions
	Rewritten

	// HardenedText is Text with the settings of a hardened plan in front (see [WithHardenedPlan]), for a Query of one
	// signed statement. The proxy cannot insert the settings itself, since they must be signed too. It is empty if the
	// text is not signed.
	HardenedText string

	// Parts returns the statements of Text, in order, if there are several. Each means the same when it is sent alone.
	// Parts is nil if there is one statement, and returns nil if the text cannot be divided.
	Parts func() []Part

	RightsEpoch uint64 // the number of the rights under which the text was decided; later rights have higher numbers

	// PartialResult says that an execution may return only a part of the result. The rest stays in the portal for later
	// executions.
	PartialResult bool

	// UntrackedRelation names a relation that the statement reads and whose changes no trigger records, or a function that
	// may read such a relation. The statement must not run in a snapshot that lasts longer than the statement. It is empty
	// if the statement reads none.
	UntrackedRelation string

	// CallsUncheckedFunctions says that the statement calls functions of the owner and reads no table of the policy. Then
	// the database does not check that the functions are unchanged since the decision; see [Decider.CheckCatalogs].
	CallsUncheckedFunctions bool

	// OneStatementPerMessage says that the proxy must send each statement of the text in a message of its own. Otherwise a
	// statement might show a row that expires while the statements before it run.
	OneStatementPerMessage bool

	// ForeignReads is how many statements of the text read from a foreign server. They do so in the snapshot of their
	// transaction's first query there. For a statement that PREPARE names, see Effect.Body.
	ForeignReads int

	// KeepsSessionState says that the text uses state of the server process that lasts until the process ends and that is
	// no setting: advisory locks of the session, or the seed of random().
	KeepsSessionState bool

	// MayLeaveState says that the text writes rows or calls volatile functions of the owner. These may leave state in the
	// server process: numbers drawn from sequences, settings and locks.
	MayLeaveState bool

	RecordsKeys bool // the audit records the keys of the returned rows; see [KeyReader]

	// Values are the values of parameters that the proxy sends in place of those of a Bind; nil: it sends the Bind's own.
	// For a Query, they are the literals that parameters replace in Text; nil: Text has no parameters.
	Values [][]byte

	// NeedsPlan says that the server must plan a Query with Values for these values, as it would plan the text with the
	// literals. So no plan of the statement is kept.
	NeedsPlan bool

	// EnforcerDetail is what package enforce itself stores about the text. The proxy does not use it.
	EnforcerDetail any
}

// Rewritten describes a text that the rewriter has made.
type Rewritten struct {
	Path    Path
	Effects []Effect // the effects of the statements in the text, in order

	// Forms are the forms that the values of parameters must have, by the parameters' numbers. If a value has another
	// form, the proxy calls [Decider.UseRowSecurity].
	Forms map[int32]ValueForm

	// ExpectsForms says that Text requires forms, or would require them on the signed path; the choice of the path depends
	// on the sizes of tables. The statement must not run by EXECUTE: then the server computes the values and the proxy
	// does not see them.
	ExpectsForms bool

	// NeedsValueCheck says that Text sets settings to the values of parameters, so the proxy must call
	// [Decider.CheckValues] for each Bind.
	NeedsValueCheck bool

	CallsSetConfig bool // the text changes settings by calling set_config

	// Position converts a character position in Text, counted from 1, to the position in Original; 0 stays 0.
	Position func(int) int

	// RenamedRelations are the relations that have another name in Text than in Original, the longest name first.
	RenamedRelations []RenamedRelation

	// HardenBeforeParse says that functions of other roles may run when the server parses the text, to convert its
	// constants. So the settings of a hardened plan must apply before the text is parsed.
	HardenBeforeParse bool

	// MultiWriteCTE says that one statement has several parts that write and do not see each other's rows.
	MultiWriteCTE bool
}

// Part is one statement of a text with several statements.
type Part struct {
	Text   string
	Offset int // number of characters of the whole text before the part
}

// RenamedRelation is a relation under two names: ServerName is in the server's messages, ClientName is the one that the
// client used. View and Relation are these names without a schema, as in messages about written rows. Columns are the
// columns that agents see, if the table hides some.
type RenamedRelation struct {
	ServerName, ClientName string
	View, Relation         string
	Columns                []string
}

// IsAllowed reports whether the proxy may send the text to the server.
func (v *Verdict) IsAllowed() bool { return v.Refusal == nil }

// Effect is what a statement does to the session. The proxy applies it when the statement's CommandComplete arrives.
type Effect struct {
	Kind       EffectKind
	Name       string // name of the setting, or the client's name of the prepared statement or cursor; "": all
	ReadsRows  bool   // the statement reads rows: SELECT, COPY TO, or a statement that also writes
	WritesRows bool   // the statement changes rows, or its WITH queries do

	ReturnsRows bool // the statement, or one that it runs by name, may send rows

	// CommandTag is the command tag that the client gets. If it is empty, the client gets the server's tag.
	CommandTag string

	// Notices are the notices that the statement may raise and that the proxy passes on to the client, each once. The
	// proxy passes on no other notice that a function raises.
	Notices []Notice

	// Body is the verdict on the query in a PREPARE or DECLARE, with Effects of its own. Recheck accepts it like any other
	// verdict; its Text is that of the whole message.
	Body     *Verdict
	BodyTag  string // the command tag of the query in Body
	WithHold bool   // the cursor of DECLARE outlives its transaction (WITH HOLD)
	Binary   bool   // the cursor of DECLARE is BINARY: FETCH in a Query returns binary values

	SnapshotHold SnapshotHold // which transactions use one snapshot for all their statements from now on

	HardenedPlan HardenedPlan // when the settings of a hardened plan must apply; see docs/decisions/0073

	// Claim is the new value of the setting Name, if the policy maps this setting to an attribute, or if the setting names
	// the user for whom the session acts. SET, RESET, RESET ALL and a SELECT of set_config change it.
	Claim      *Claim
	IsRollback bool // an EffectEnd is that of a ROLLBACK
}

// Notice is a notice with the message that PostgreSQL gives it.
type Notice struct {
	Code    sqlstate.Code
	Message string
}

// Claim is the new value of a setting that the policy maps to an attribute.
type Claim struct {
	Value                string // value of the setting; it is not logged
	IsReset              bool   // the setting returns to the value that the connection began with
	IsLocal              bool   // the value applies until the transaction ends
	NamesRepresentedUser bool   // the setting is [RepresentedUserSetting]
}

// RepresentedUserSetting is the name of the setting whose value names the user for whom a session acts.
const RepresentedUserSetting = "pgconsent.acting"

// Claims are the values of the settings that the policy maps to attributes, by the settings' names in lower case. A
// setting that is missing in Values has the value that the connection began with. If Known is false, the proxy does not
// know the values, and the attributes count as missing. Then Expected has the values that apply if everything sent
// before succeeds (otherwise the server skips the present message); nil: they are not known either.
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
	EffectFetch                 // the effect of FETCH and MOVE: see the verdict on the cursor's query
	EffectClose                 // the effect of CLOSE
	EffectExecute               // the effect of EXECUTE: see the verdict on the statement of that name
	EffectResetAll              // the effect of RESET ALL, which does not remove the session's seal: see [ResetSettings]
	EffectCopyIn                // the effect of COPY FROM STDIN: rows come from the client
	EffectListen                // the effect of LISTEN: Name is the channel whose notifications the client gets
	EffectExplain               // the effect of EXPLAIN EXECUTE: the statement of that name must exist
	// the effect of DISCARD ALL: it removes the seal, all settings, prepared statements and portals
	EffectDiscard
)

// SnapshotHold says whether a statement makes transactions use one snapshot for more than a statement.
type SnapshotHold int

// The values of SnapshotHold.
const (
	NoSnapshotHold     SnapshotHold = iota
	HoldForTransaction              // the current transaction uses one snapshot until it ends
	// every later transaction of the session does so, unless it sets another isolation level
	HoldForSession
)

// Snapshot is a snapshot of the database, taken by [Decider.Snapshot].
type Snapshot struct {
	Value        string    // the snapshot, as PostgreSQL writes a pg_snapshot
	RulesVersion string    // version of the rules that decide who sees a row
	TakenAt      time.Time // when the snapshot was taken, by the proxy's clock
}

// IsRunnable reports whether v is on a query or an empty text, which the client may run by EXECUTE. EXECUTE can name
// any statement that was prepared by Parse, and the proxy would not notice what another statement does to the session.
func (v *Verdict) IsRunnable() bool {
	return len(v.Effects) == 0 || len(v.Effects) == 1 && v.Effects[0].Kind == EffectNone && v.Effects[0].ReadsRows
}

// The names of prepared statements and portals on the server. No client's name becomes SealStatement there.
const (
	SealStatement = "pgconsent_seal" // the proxy's own prepared statement, which sets the seal

	namePrefix   = "c:"
	hashPrefix   = "h:"
	maxNameBytes = 60 // longest name in bytes; PostgreSQL compares the first 63 bytes
)

// UpstreamName returns the server's name for a client's prepared statement or portal; rewritten SQL must use this name,
// quoted. It has at most 62 bytes and differs for different names. The unnamed statement or portal stays unnamed.
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
// recovered, as after the hashing of a long name.
func ClientName(upstream string) (name string, ok bool) {
	return strings.CutPrefix(upstream, namePrefix)
}
