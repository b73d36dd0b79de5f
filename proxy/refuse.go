package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// refusal is what the client is told in place of the server's error that carries the token.
//
// A refused message is replaced by a form of it that is certain to fail on the server, early and without effect, so that
// transaction state, pipeline, Sync and portals end up exactly as PostgreSQL leaves them after an error.
type refusal struct {
	err   *sqlstate.Error
	token string
	again bool // decided once more it may be allowed
}

func newRefusal(err *sqlstate.Error) *refusal {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return &refusal{err: err, token: "denied_" + hex.EncodeToString(b[:])}
}

// matches tells whether the server's message is the one that the refused form provokes. Another one (25P02 in a
// transaction that has failed) is the server's own answer.
func (r *refusal) matches(message string) bool { return strings.Contains(message, r.token) }

// text is a statement that fails: in parse analysis, after the server has looked at the state of the transaction, or
// where the client's own text fails: in the parser before that, or as it runs.
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

// early tells whether the server finds the fault of a Bind, a Describe or an Execute before it looks at the state of
// the transaction.
func (r *refusal) early() bool {
	switch r.err.Code {
	case invalidStatementName, invalidCursorName, sqlstate.ProtocolViolation:
		return true
	}
	return false
}

var noParameters = []byte{0, 0, 0, 0, 0, 0}

// inBinary is the same for a Bind that asks for all values of the result in binary.
var inBinary = []byte{0, 0, 0, 0, 0, 1, 0, 1}

// append adds the refused form of a message of this kind. A Parse keeps its name: without one, it drops the statement
// without a name even when it fails.
func (r *refusal) append(dst []byte, kind message, name string) []byte {
	switch kind {
	case query:
		return appendQuery(dst, r.text())
	case parse:
		return appendParse(dst, name, r.text(), []byte{0, 0})
	}
	if !r.early() { // and fails as a statement does, which is asked in a transaction that has failed
		return appendParse(dst, r.token, r.text(), []byte{0, 0})
	}
	switch kind {
	case bind:
		return appendBind(dst, "", r.token, noParameters)
	case execute:
		return appendExecute(dst, r.token, 0)
	default:
		return appendDescribe(dst, 'S', r.token)
	}
}

// The server's own words for names that do not exist, and for messages it cannot read.

const (
	invalidStatementName sqlstate.Code = "26000"
	invalidCursorName    sqlstate.Code = "34000"
)

func noStatement(name string) *sqlstate.Error {
	if name == "" {
		return sqlstate.New(invalidStatementName, sqlstate.ReasonNone, "unnamed prepared statement does not exist")
	}
	return sqlstate.New(invalidStatementName, sqlstate.ReasonNone, "prepared statement \"%s\" does not exist", name)
}

func noPortal(name string) *sqlstate.Error {
	return sqlstate.New(invalidCursorName, sqlstate.ReasonNone, "portal \"%s\" does not exist", name)
}

func invalidMessage() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message format")
}

func planChanged() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStale, "cached plan must not change result type").
		WithHint("The policy or the schema has changed since the statement was prepared; prepare it again.")
}
