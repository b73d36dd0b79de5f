package operations

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// SourceRecord is the full text of a row. A value that is NULL, or that is not text, is nil.
type SourceRecord struct {
	Names  []string // names of the fields, in the order of the policy
	Values []*string
	Body   string
}

// ReadSource reads a row by its id, as the agent, through the proxy. If the id is invalid, does not exist or is not
// visible to the agent, ReadSource still sends one statement of the same form and always returns the same error. The
// statement counts for the agent's limits.
func (d *Service) ReadSource(ctx context.Context, caller identity.Caller, s *policy.Sources, id string) (*SourceRecord,
	error) {
	if err := RequireRole(caller, identity.Agent); err != nil {
		return nil, err
	}
	relation := s.Table.Relation
	key, isValid := keyValue(relation.Column(s.Key).Type, id)
	conn, err := d.Connect(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	out := &SourceRecord{}
	columns, into := []string{catalog.QuoteIdent(s.Body) + "::pg_catalog.text"}, []any{new(*string)}
	for _, f := range s.Fields {
		column := catalog.QuoteIdent(f.Column)
		if f.JSON != "" {
			column += " ->> " + catalog.QuoteLiteral(f.JSON)
		} else {
			column += "::pg_catalog.text"
		}
		columns, into, out.Names = append(columns, column), append(into, new(*string)), append(out.Names, f.Name)
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM " + relation.Name.SQL() + " WHERE " +
		catalog.QuoteIdent(s.Key) + " = $1"
	rows, err := conn.Query(ctx, sql, key)
	if err != nil {
		return nil, translateError(err)
	}
	found := rows.Next()
	if found {
		err = rows.Scan(into...)
	}
	rows.Close()
	if err = errors.Join(err, rows.Err()); err != nil {
		return nil, translateError(err)
	}
	if !found || !isValid {
		return nil, NewNoSourceError()
	}
	for i, v := range into {
		value := *v.(**string)
		if i > 0 {
			out.Values = append(out.Values, value)
		} else if value != nil {
			_, body, _ := strings.Cut(*value, "\n")
			out.Body = strings.TrimLeft(body, "\r\n")
		}
	}
	return out, nil
}

// NewNoSourceError returns the error for a source that does not exist or that the caller may not see.
func NewNoSourceError() error {
	return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonRelation, "there is no such source")
}

var uuidPattern = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// keyValue converts an id to a value of the key's type. If the id is invalid, it returns false and a placeholder with
// which the statement can run.
func keyValue(sqlType, id string) (any, bool) {
	switch {
	case sqlType == "uuid":
		if !uuidPattern.MatchString(id) {
			return "00000000-0000-0000-0000-000000000000", false
		}
		return id, true
	case strings.Contains(sqlType, "int"):
		bits := map[string]int{"smallint": 16, "integer": 32}[sqlType]
		if bits == 0 {
			bits = 64
		}
		n, err := strconv.ParseInt(id, 10, bits)
		return n, err == nil && strconv.FormatInt(n, 10) == id
	}
	if id == "" || len(id) > 1024 || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return "", false
	}
	return id, true
}

// translateError translates an error of the proxy. It reports a limit that is used up, and replaces a refusal by the
// policy with the error of [NewNoSourceError].
func translateError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch sqlstate.Code(pg.Code) {
	case sqlstate.InsufficientPrivilege:
		return NewNoSourceError()
	case sqlstate.LimitExceeded, sqlstate.IOError, sqlstate.AdminShutdown, sqlstate.CannotConnectNow,
		sqlstate.ConnectionFailure:
		return sqlstate.New(sqlstate.Code(pg.Code), sqlstate.ReasonLimit, "%s", pg.Message).WithHint("%s", pg.Hint)
	}
	return sqlstate.AsError(err)
}
