package proxy

import (
	"strconv"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/verdict"
)

// fields are those of a server's ErrorResponse or NoticeResponse that may be of use. All others name relations, columns,
// constraints, data types, queries, contexts or source files, and are dropped unread.
type fields struct {
	severity, unlocalised, sqlstate string
	message, detail, hint           string
	position                        int
}

// parseFields decodes what there is; a message that was cut short gives the fields that are whole.
func parseFields(body []byte) fields {
	var f fields
	for len(body) > 0 && body[0] != 0 {
		key := body[0]
		value, rest, ok := cString(body[1:])
		if !ok {
			break
		}
		body = rest
		switch key {
		case 'S':
			f.severity = value
		case 'V':
			f.unlocalised = value
		case 'C':
			f.sqlstate = value
		case 'M':
			f.message = value
		case 'D':
			f.detail = value
		case 'H':
			f.hint = value
		case 'P':
			if n, err := strconv.ParseInt(value, 10, 32); err == nil && n > 0 {
				f.position = int(n)
			}
		}
	}
	return f
}

// code is the SQLSTATE; one that is none counts as an internal error.
func (f *fields) code() sqlstate.Code {
	if len(f.sqlstate) != 5 {
		return sqlstate.InternalError
	}
	for i := range 5 {
		if b := f.sqlstate[i]; (b < '0' || b > '9') && (b < 'A' || b > 'Z') {
			return sqlstate.InternalError
		}
	}
	return sqlstate.Code(f.sqlstate)
}

// fatal tells whether the server ends the session with this message.
func (f *fields) fatal() bool {
	return f.level() == "FATAL" || f.level() == "PANIC"
}

func (f *fields) level() string {
	if f.unlocalised != "" {
		return f.unlocalised
	}
	return f.severity
}

// passingClasses are the classes of SQLSTATEs whose messages speak of the statement, of values that it was given or may
// read, or of the server's state. The rest can speak of rows the client cannot see (23: keys; P0, 38, 39: whatever a
// function says) or of the server's inside (58, XX), and becomes a fixed text.
var passingClasses = map[string]bool{
	"08": true, // connection
	"0A": true, // feature not supported
	"21": true, // cardinality violation
	"22": true, // data exception
	"24": true, // cursor state
	"25": true, // transaction state
	"26": true, // statement name
	"28": true, // authorization
	"34": true, // cursor name
	"3B": true, // savepoint
	"3D": true, // catalog name
	"3F": true, // schema name
	"40": true, // rollback
	"42": true, // syntax and access rules
	"53": true, // resources
	"54": true, // limits
	"57": true, // operator intervention
}

// detailedClasses are those whose details pass as well: they quote the statement or the value at fault.
var detailedClasses = map[string]bool{"22": true, "42": true}

// ours marks what a client has no business with: our schemas, roles and settings.
const ours = "pgconsent"

func withheld(code sqlstate.Code) (message, hint string) {
	if strings.HasPrefix(string(code), "23") {
		return "the statement violates a constraint of the database",
			"Which values collide is not told, since they may belong to rows you cannot see."
	}
	return "the statement failed on the server; its message is withheld",
		"Only messages that cannot tell about hidden rows are passed on; the server's log has the full text."
}

// sanitised is the message as the client gets it, as an answer to e or, if e is nil, to nothing, and its SQLSTATE.
func (f *fields) sanitised(e *entry) ([]byte, sqlstate.Code) {
	code := f.code()
	class := string(code[:2])
	if e != nil {
		f.message = e.clientNames(code, f.message)
	}
	pass := passingClasses[class] || code == "55000" && strings.HasPrefix(f.message, "portal \"")
	if !pass || f.message == "" || f.names(ours) || f.names("denied_") && e != nil && e.refusal != nil {
		f.message, f.hint = withheld(code)
		f.detail = ""
	}
	if !detailedClasses[class] {
		f.detail = ""
	}
	position := 0
	if e != nil && e.verdict != nil && e.refusal == nil && e.verdict.Position != nil && f.position > 0 {
		position = e.verdict.Position(f.position)
	}
	b, err := (&pgproto3.ErrorResponse{
		Severity:            f.severity,
		SeverityUnlocalized: f.unlocalised,
		Code:                string(code),
		Message:             f.message,
		Detail:              f.detail,
		Hint:                f.hint,
		Position:            int32(position),
	}).Encode(nil)
	if err != nil { // cannot be longer than what came
		return nil, code
	}
	return b, code
}

// names tells whether a part of the message names what.
func (f *fields) names(what string) bool {
	return strings.Contains(f.message, what) || strings.Contains(f.detail, what) || strings.Contains(f.hint, what)
}

// clientNames puts the client's names of statements and portals in the place of ours.
func (e *entry) clientNames(code sqlstate.Code, message string) string {
	for _, name := range []string{e.name, e.source} {
		message = clientName(message, name)
	}
	if code != invalidStatementName || e.kind != query && e.kind != execute || e.verdict == nil {
		return message
	}
	// DEALLOCATE names statements in its text.
	if before, rest, ok := strings.Cut(message, `"`); ok {
		if name, ok := verdict.ClientName(rest); ok {
			return before + `"` + name
		}
	}
	for _, effect := range e.verdict.Effects {
		if effect.Kind == verdict.Deallocates {
			message = clientName(message, effect.Name)
		}
	}
	return message
}

func clientName(message, name string) string {
	if name == "" {
		return message
	}
	return strings.ReplaceAll(message, `"`+verdict.UpstreamName(name)+`"`, `"`+name+`"`)
}

// passingNotices are the SQLSTATEs of notices that speak of the client's own transaction commands and names. All others
// are dropped: a function raises what it likes.
var passingNotices = map[sqlstate.Code]bool{
	"25001": true, // there is already a transaction in progress
	"25P01": true, // there is no transaction in progress
	"42622": true, // identifier will be truncated
}

// notice is the NoticeResponse for the client, or nothing.
func (f *fields) notice() []byte {
	code := f.code()
	if !passingNotices[code] || f.names(ours) {
		return nil
	}
	b, err := (&pgproto3.NoticeResponse{
		Severity:            f.severity,
		SeverityUnlocalized: f.unlocalised,
		Code:                string(code),
		Message:             f.message,
	}).Encode(nil)
	if err != nil {
		return nil
	}
	return b
}
