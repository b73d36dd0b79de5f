package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// refusal is an error that the proxy gives the client for a message that it refuses. In place of the message the proxy
// sends the server its refused form: a message that contains the token and is certain to fail without effect. So the
// transaction, the pipeline and portals end up as PostgreSQL leaves them after an error. The client gets err in place
// of the server's error, which quotes the token.
type refusal struct {
	err   *sqlstate.Error
	token string
	retry bool // the proxy may decide on the message once more, and then allow it
}

func newRefusal(err *sqlstate.Error) *refusal {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never returns an error.
	return &refusal{err: err, token: tokenPrefix + hex.EncodeToString(b[:])}
}

// tokenPrefix is the beginning of every refusal's token.
const tokenPrefix = "denied_"

// matches reports whether the server's error message comes from the refused form. Other errors, such as 25P02 in a
// failed transaction, are the server's own.
func (r *refusal) matches(message string) bool { return strings.Contains(message, r.token) }

// text returns a statement that fails in the stage in which PostgreSQL would report this error. For most refusals that
// is parse analysis, which comes after PostgreSQL's check for a failed transaction.
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

// isEarly reports whether PostgreSQL reports this error for a Bind, Describe or Execute before it checks for a failed
// transaction.
func (r *refusal) isEarly() bool {
	switch r.err.Code {
	case invalidStatementName, invalidCursorName, sqlstate.ProtocolViolation:
		return true
	}
	return false
}

// noParameterTypes is the part of a Parse behind its text, if it declares no parameter types.
var noParameterTypes = []byte{0, 0}

// noParameters is the part of a Bind behind its names, without parameters. inBinary is the same, but requests all
// result columns in binary.
var (
	noParameters = []byte{0, 0, 0, 0, 0, 0}
	inBinary     = []byte{0, 0, 0, 0, 0, 1, 0, 1}
)

// The methods below append the refused forms, which fail on the server. PostgreSQL reports some errors only after its
// check for a failed transaction (25P02). For these a failing Parse replaces the Bind, Describe or Execute; see
// isEarly.

func (r *refusal) query(dst []byte) []byte { return appendQuery(dst, r.text()) }

// parse appends a Parse that fails, with the name of the refused Parse: even a failed Parse without a name removes the
// unnamed statement.
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

// The errors below have PostgreSQL's own SQLSTATEs and texts, for names that do not exist and for malformed messages.

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
