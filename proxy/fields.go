package proxy

import (
	"strconv"

	"github.com/jackc/pgproto3/v2"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// errorFields are the fields of a server's ErrorResponse or NoticeResponse that the proxy looks at. All other fields
// name relations, columns, constraints, data types, queries or source files, and are dropped unread. Only the number of
// a COPY line is relayed from the context.
type errorFields struct {
	severity, nonlocalizedSeverity, sqlstate string
	message, detail, hint, context           string
	position                                 int
	truncated                                bool // the message did not fit into the buffer
}

// parseFields decodes the fields that have arrived whole.
func parseFields(body []byte) errorFields {
	f := errorFields{truncated: true}
	for len(body) > 0 {
		key := body[0]
		if key == 0 {
			f.truncated = false
			break
		}
		value, rest, ok := readCString(body[1:])
		if !ok {
			break
		}
		body = rest
		switch key {
		case 'S':
			f.severity = value
		case 'V':
			f.nonlocalizedSeverity = value
		case 'C':
			f.sqlstate = value
		case 'M':
			f.message = value
		case 'D':
			f.detail = value
		case 'H':
			f.hint = value
		case 'W':
			f.context += value + "\n"
		case 'P':
			if n, err := strconv.ParseInt(value, 10, 32); err == nil && n > 0 {
				f.position = int(n)
			}
		}
	}
	return f
}

// code returns the SQLSTATE; one that is not valid counts as an internal error.
func (f *errorFields) code() sqlstate.Code {
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

// fatal reports whether the server ends the session with this message.
func (f *errorFields) fatal() bool {
	return f.level() == "FATAL" || f.level() == "PANIC"
}

// level returns the severity of the message.
func (f *errorFields) level() string {
	if f.nonlocalizedSeverity != "" {
		return f.nonlocalizedSeverity
	}
	return f.severity
}

// notice returns the NoticeResponse for the client, or nothing if the notice does not pass.
func (f *errorFields) notice() []byte {
	code := f.code()
	if !passingNotices[code] || f.truncated || f.context != "" || namesPgconsent(f.message) {
		return nil
	}
	return f.plainNotice()
}

// plainNotice returns the notice without its position and its other fields.
func (f *errorFields) plainNotice() []byte {
	b, err := (&pgproto3.NoticeResponse{
		Severity:            f.severity,
		SeverityUnlocalized: f.nonlocalizedSeverity,
		Code:                string(f.code()),
		Message:             f.message,
	}).Encode(nil)
	if err != nil {
		return nil
	}
	return b
}
