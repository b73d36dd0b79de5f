package adminconsole

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Limits of a session.
const (
	maxMessage  = 64 << 10 // length of the longest message, in bytes
	maxPrepared = 1000     // number of prepared statements, and number of portals
)

// session is one operator's connection.
type session struct {
	console            *Console
	operator           string
	backend            *pgproto3.Backend
	types              *pgtype.Map
	preparedStatements map[string]*preparedStatement
	portals            map[string]*portal
	skipsUntilSync     bool // after an error in the extended protocol, messages are skipped up to Sync
}

// preparedStatement is a prepared statement. Its command is nil if the text was empty.
type preparedStatement struct{ command *command }

// portal is a bound command. Its rows are computed at the first Execute.
type portal struct {
	command  *command
	formats  []int16
	rows     []row
	hasRun   bool
	sentRows int // how many rows have been sent to the client
}

// errClientGone ends a session without an error message, because the client has disconnected.
var errClientGone = errors.New("the session is over")

// Serve serves an operator whose login has succeeded; its first message is AuthenticationOk. It returns nil when the
// client has disconnected, and otherwise the error that is to be sent to the client.
func (c *Console) Serve(_ context.Context, client net.Conn, operator string) error {
	if err := c.Record(audit.Call{Interface: "admin", CallerName: operator, Role: "operator", Operation: "console.login",
		Outcome: audit.OutcomeDone}); err != nil {
		c.Log.Error("admin console: a login cannot be recorded", "operator", operator, "error", err)
	}
	c.Log.Info("admin console: an operator logged in", "operator", operator, "client", client.RemoteAddr().String())
	s := &session{console: c, operator: operator, backend: pgproto3.NewBackend(client, client), types: pgtype.NewMap(),
		preparedStatements: map[string]*preparedStatement{}, portals: map[string]*portal{}}
	s.backend.SetMaxBodyLen(maxMessage)
	s.sendStartup()
	for {
		if err := s.backend.Flush(); err != nil {
			return nil
		}
		err := s.answerNext()
		var sentError *sqlstate.Error
		switch {
		case err == nil:
		case errors.As(err, &sentError):
			return sentError
		default:
			return nil
		}
	}
}

// startupParameters are the settings that the console reports to a client after its login. The version is chosen so
// that drivers do not refuse it as too old, and psql does not warn that it is newer than psql.
var startupParameters = [][2]string{
	{"client_encoding", "UTF8"}, {"DateStyle", "ISO, MDY"}, {"default_transaction_read_only", "off"},
	{"in_hot_standby", "off"}, {"integer_datetimes", "on"}, {"IntervalStyle", "postgres"}, {"is_superuser", "off"},
	{"server_encoding", "UTF8"}, {"server_version", "14.0 (pgconsent)"}, {"standard_conforming_strings", "on"},
	{"TimeZone", "UTC"},
}

// sendStartup sends the messages that end the login. The cancel key is random and has no effect, since no command runs
// for long.
func (s *session) sendStartup() {
	s.backend.Send(&pgproto3.AuthenticationOk{})
	for _, p := range startupParameters {
		s.backend.Send(&pgproto3.ParameterStatus{Name: p[0], Value: p[1]})
	}
	s.backend.Send(&pgproto3.ParameterStatus{Name: "session_authorization", Value: s.operator})
	var key [8]byte
	_, _ = rand.Read(key[:]) // rand.Read never returns an error.
	s.backend.Send(&pgproto3.BackendKeyData{ProcessID: 1<<30 | binary.BigEndian.Uint32(key[:4])>>2, SecretKey: key[4:]})
	s.sendReady()
}

func (s *session) sendReady() { s.backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'}) }

// answerNext reads a message and buffers the answer to it. If it returns an error, the session ends.
func (s *session) answerNext() error {
	message, err := s.backend.Receive()
	if err != nil {
		var network net.Error
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
			return errClientGone
		}
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"invalid message, or one of more than %d bytes", maxMessage)
	}
	switch m := message.(type) {
	case *pgproto3.Terminate:
		return errClientGone
	case *pgproto3.Query:
		s.skipsUntilSync = false
		err = s.query(m.String)
		s.sendReady()
		return err
	case *pgproto3.Sync:
		s.skipsUntilSync = false
		clear(s.portals)
		s.sendReady()
		return nil
	case *pgproto3.Flush, *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return nil
	case *pgproto3.FunctionCall:
		s.sendError(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProtocol, "the admin console has no functions"))
		s.sendReady()
		return nil
	}
	if s.skipsUntilSync {
		return nil
	}
	failure, err := s.answerExtended(message)
	if failure != nil {
		s.sendError(failure)
		s.skipsUntilSync = true
	}
	return err
}

// query answers a Query message.
func (s *session) query(text string) error {
	delete(s.portals, "")
	commands, failure := parseCommands(text)
	switch {
	case failure != nil:
		s.sendError(failure)
		return nil
	case len(commands) == 0:
		s.backend.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	for i := range commands {
		p := &portal{command: &commands[i]}
		if commands[i].columns != nil {
			s.backend.Send(description(commands[i].columns, nil))
		}
		failure, err := s.execute(p, 0)
		if err != nil {
			return err
		}
		if failure != nil {
			s.sendError(failure)
			return nil
		}
	}
	return nil
}

// answerExtended answers a message of the extended protocol. It returns failure if the answer is an error, and err if
// the session must end.
func (s *session) answerExtended(message pgproto3.FrontendMessage) (failure *sqlstate.Error, err error) {
	switch m := message.(type) {
	case *pgproto3.Parse:
		return s.parse(m), nil
	case *pgproto3.Bind:
		return s.bind(m), nil
	case *pgproto3.Describe:
		return s.describe(m), nil
	case *pgproto3.Execute:
		p, ok := s.portals[m.Portal]
		if !ok {
			return notFoundError("portal", m.Portal, "34000"), nil
		}
		return s.execute(p, int(m.MaxRows))
	case *pgproto3.Close:
		if m.ObjectType == 'S' {
			delete(s.preparedStatements, m.Name)
		} else {
			delete(s.portals, m.Name)
		}
		s.backend.Send(&pgproto3.CloseComplete{})
		return nil, nil
	default:
		return nil, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "unexpected message")
	}
}

func (s *session) parse(m *pgproto3.Parse) *sqlstate.Error {
	commands, failure := parseCommands(m.Query)
	switch {
	case failure != nil:
		return failure
	case len(commands) > 1:
		return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonNone,
			"cannot insert multiple commands into a prepared statement").
			WithHint("Send them one by one, or as one simple query.")
	case len(s.preparedStatements) >= maxPrepared:
		return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonNone, "too many prepared statements").
			WithHint("Close some: commands of the admin console gain nothing from being prepared.")
	case m.Name != "" && s.preparedStatements[m.Name] != nil:
		return sqlstate.New("42P05", sqlstate.ReasonNone, "prepared statement \"%s\" already exists", m.Name)
	}
	p := &preparedStatement{}
	if len(commands) == 1 {
		p.command = &commands[0]
	}
	s.preparedStatements[m.Name] = p
	s.backend.Send(&pgproto3.ParseComplete{})
	return nil
}

func (s *session) bind(m *pgproto3.Bind) *sqlstate.Error {
	statement, ok := s.preparedStatements[m.PreparedStatement]
	columns := 0
	if ok && statement.command != nil {
		columns = len(statement.command.columns)
	}
	formats := append([]int16(nil), m.ResultFormatCodes...)
	switch {
	case !ok:
		return notFoundError("prepared statement", m.PreparedStatement, "26000")
	case len(m.Parameters) > 0:
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"bind message supplies %d parameters, but a command of the admin console requires 0", len(m.Parameters)).
			WithHint("Write the name into the command.")
	case len(formats) > 1 && len(formats) != columns:
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"bind message has %d result formats but query has %d columns", len(formats), columns)
	case len(s.portals) >= maxPrepared:
		return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonNone, "too many portals")
	}
	for _, f := range formats {
		if f != 0 && f != 1 {
			return sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonProtocol, "unsupported format code: %d", f)
		}
	}
	s.portals[m.DestinationPortal] = &portal{command: statement.command, formats: formats}
	s.backend.Send(&pgproto3.BindComplete{})
	return nil
}

func (s *session) describe(m *pgproto3.Describe) *sqlstate.Error {
	var c *command
	var formats []int16
	if m.ObjectType == 'S' {
		p, ok := s.preparedStatements[m.Name]
		if !ok {
			return notFoundError("prepared statement", m.Name, "26000")
		}
		c = p.command
		s.backend.Send(&pgproto3.ParameterDescription{})
	} else {
		p, ok := s.portals[m.Name]
		if !ok {
			return notFoundError("portal", m.Name, "34000")
		}
		c, formats = p.command, p.formats
	}
	if c == nil || c.columns == nil {
		s.backend.Send(&pgproto3.NoData{})
	} else {
		s.backend.Send(description(c.columns, formats))
	}
	return nil
}

// execute runs the command of a portal, and buffers up to maxRows of its rows; 0 means all. It returns failure if the
// answer is an error, and err if the session must end.
func (s *session) execute(p *portal, maxRows int) (failure *sqlstate.Error, err error) {
	if !s.console.IsOperator(s.operator) {
		return nil, sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
			"%q is no longer an operator", s.operator)
	}
	if p.command == nil {
		s.backend.Send(&pgproto3.EmptyQueryResponse{})
		return nil, nil
	}
	if !p.hasRun {
		p.hasRun = true
		if failure := s.run(p); failure != nil {
			return failure, nil
		}
	}
	end := len(p.rows)
	if maxRows > 0 {
		end = min(end, p.sentRows+maxRows)
	}
	count := end - p.sentRows
	for ; p.sentRows < end; p.sentRows++ {
		r, err := dataRow(s.types, p.command.columns, p.rows[p.sentRows], p.formats)
		if err != nil {
			return sqlstate.AsError(err), nil
		}
		s.backend.Send(r)
	}
	switch {
	case maxRows > 0 && p.sentRows < len(p.rows):
		s.backend.Send(&pgproto3.PortalSuspended{})
	case p.command.columns != nil:
		s.backend.Send(&pgproto3.CommandComplete{CommandTag: fmt.Appendf(nil, "%s %d", p.command.tag, count)})
	default:
		s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(p.command.tag)})
	}
	return nil, nil
}

// run runs the command of a portal at its first Execute, and stores the rows in the portal.
func (s *session) run(p *portal) *sqlstate.Error {
	switch c := p.command; {
	case c.rows != nil:
		rows, err := c.rows(s.console)
		if err != nil {
			return operatorError(err)
		}
		p.rows = rows
	case c.action != nil:
		notice, isWarning, err := s.console.runAction(s.operator, *c.action, c.argument)
		if err != nil {
			return operatorError(err)
		}
		if notice != "" {
			severity, code := "NOTICE", string(sqlstate.SuccessfulCompletion)
			if isWarning {
				severity, code = "WARNING", "01000"
			}
			s.backend.Send(&pgproto3.NoticeResponse{Severity: severity, SeverityUnlocalized: severity, Code: code,
				Message: notice})
		}
	}
	return nil
}

func (s *session) sendError(e *sqlstate.Error) {
	s.backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: string(e.Code),
		Message: e.Message, Detail: e.Detail, Hint: e.Hint, Position: int32(e.Position)})
}

func notFoundError(kind, name string, code sqlstate.Code) *sqlstate.Error {
	return sqlstate.New(code, sqlstate.ReasonProtocol, "%s \"%s\" does not exist", kind, name)
}
