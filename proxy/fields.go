package proxy

import (
	"strconv"

	"github.com/jackc/pgproto3/v2"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// errorFields are the fields of a server's ErrorResponse or NoticeResponse that the proxy uses. The proxy drops all
// other fields, which name relations, columns, constraints, data types, queries or source files. Of the context it
// relays only the number of a COPY line.
type errorFields struct {
	severity, nonlocalizedSeverity, sqlstate string
	message, detail, hint, context           string
	position                                 int
	truncated                                bool // the message did not fit into the buffer
}

// parseFields decodes the fields of an ErrorResponse or NoticeResponse that body has completely.
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

// code returns the SQLSTATE, or that of an internal error if the server's is malformed.
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

// fatal reports whether the severity is FATAL or PANIC, with which the server ends the session.
func (f *errorFields) fatal() bool {
	return f.level() == "FATAL" || f.level() == "PANIC"
}

// level returns the severity in English, if the server has sent it so.
func (f *errorFields) level() string {
	if f.nonlocalizedSeverity != "" {
		return f.nonlocalizedSeverity
	}
	return f.severity
}

// notice returns the NoticeResponse for the client, or nil if the client must not get the notice.
func (f *errorFields) notice() []byte {
	code := f.code()
	if !passingNotices[code] || f.truncated || f.context != "" || namesPgconsent(f.message) {
		return nil
	}
	return f.plainNotice()
}

// plainNotice returns a NoticeResponse with only the severity, SQLSTATE and message.
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
