package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// refusal is the error that the client gets in place of the server's error with the same token. ⏎ ⏎ A refused message
// is replaced by a form of it that is certain to fail on the server, early and without effect, so ⏎ that transaction
// state, pipeline, Sync and portals end up exactly as PostgreSQL leaves them after an error.
type refusal struct {
	err   *sqlstate.Error
	token string
	retry bool // the message may be allowed if it is decided once more
}

func newRefusal(err *sqlstate.Error) *refusal {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never returns an error.
	return &refusal{err: err, token: tokenPrefix + hex.EncodeToString(b[:])}
}

// tokenPrefix begins the token of every refusal.
const tokenPrefix = "denied_"

// matches reports whether the server's message is the one that the refused form causes. Another message (25P02 in a
// transaction that has failed) is the server's own answer.
func (r *refusal) matches(message string) bool { return strings.Contains(message, r.token) }

// text returns a statement that fails where the client's own text fails: in the parser, or as it runs. For most
// refusals that is parse analysis, which comes after the server has looked at the transaction's state.
func (r *refusal) text() string {
	switch r.err.Code {
	case sqlstate.SyntaxError:
		return r.token
	case invalidStatementName:
		return `EXECUTE "` + r.token + `"`
	case invalidCursorName:
		return `FETCH "` + r.token + `"`
	}
	return `SELECT "` + r.token + `"`
}

// isEarly reports whether the server finds this fault of a Bind, Describe or Execute before it looks for a failed
// transaction.
func (r *refusal) isEarly() bool {
	switch r.err.Code {
	case invalidStatementName, invalidCursorName, sqlstate.ProtocolViolation:
		return true
	}
	return false
}

// noParameterTypes is the end of a Parse that declares no parameter types.
var noParameterTypes = []byte{0, 0}

// noParameters is the end of a Bind without parameters. inBinary is the end of a Bind that asks for all values of the
// result in binary.
var (
	noParameters = []byte{0, 0, 0, 0, 0, 0}
	inBinary     = []byte{0, 0, 0, 0, 0, 1, 0, 1}
)

// The methods below append messages that go to the server in place of refused ones and cause an error there. Some
// faults are reported only after the server has looked for a failed transaction (25P02). For these a failing Parse is
// sent in place of the Bind, Describe or Execute; see isEarly.

func (r *refusal) query(dst []byte) []byte { return appendQuery(dst, r.text()) }

// parse appends a Parse that fails, with the name of the refused one. A Parse without a name removes the statement
// without a name even when it fails.
func (r *refusal) parse(dst []byte, name string) []byte {
	return appendParse(dst, name, r.text(), noParameterTypes)
}

func (r *refusal) bind(dst []byte) []byte {
	if !r.isEarly() {
		return r.parse(dst, r.token)
	}
	return appendBind(dst, "", r.token, noParameters)
}

func (r *refusal) describe(dst []byte) []byte {
	if !r.isEarly() {
		return r.parse(dst, r.token)
	}
	return appendDescribe(dst, 'S', r.token)
}

func (r *refusal) execute(dst []byte) []byte {
	if !r.isEarly() {
		return r.parse(dst, r.token)
	}
	return appendExecute(dst, r.token, 0)
}

// The errors below are the server's own, for names that do not exist and for messages that it cannot read.

const (
	invalidStatementName sqlstate.Code = "26000"
	invalidCursorName    sqlstate.Code = "34000"
)

func noStatementError(name string) *sqlstate.Error {
	if name == "" {
		return sqlstate.New(invalidStatementName, sqlstate.ReasonNone, "unnamed prepared statement does not exist")
	}
	return sqlstate.New(invalidStatementName, sqlstate.ReasonNone, "prepared statement \"%s\" does not exist", name)
}

func noPortalError(name string) *sqlstate.Error {
	return sqlstate.New(invalidCursorName, sqlstate.ReasonNone, "portal \"%s\" does not exist", name)
}

func invalidMessageError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message format")
}

func planChanged() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStale, "cached plan must not change result type").
		WithHint("The policy or the schema has changed since the statement was prepared; prepare it again.")
}
