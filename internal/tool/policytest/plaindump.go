package policytest

import (
	"context"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// An SQL file may be output of pg_dump for psql. It then has psql commands, rows after COPY, settings of another
// version of PostgreSQL, and roles and a database that this server lacks. These patterns match such lines.
var (
	psqlLine     = regexp.MustCompile(`^\\(un)?(restrict|connect|c|encoding|echo)\b`)
	copyLine     = regexp.MustCompile(`(?i)^COPY .* FROM stdin( WITH .*)?;$`)
	setLine      = regexp.MustCompile(`(?i)^SET (?:SESSION )?([a-z_]+) *(?:=| TO ).*;$`)
	ownerLine    = regexp.MustCompile(`^ALTER .* OWNER TO ` + identifier + `;$`)
	defaultLine  = regexp.MustCompile(`^ALTER DEFAULT PRIVILEGES FOR ROLE ` + identifier + ` .* (?:TO|FROM) ` + identifier + `(?: WITH .*)?;$`)
	grantLine    = regexp.MustCompile(`^(?:GRANT|REVOKE) .* (?:TO|FROM) ` + identifier + `(?: WITH .*)?(?: GRANTED BY .*)?;$`)
	databaseLine = regexp.MustCompile(`^((CREATE|ALTER|DROP|COMMENT ON) DATABASE |(GRANT|REVOKE) .* ON DATABASE |CREATE SCHEMA public;$)`)
)

// identifier matches the name of a role or a schema.
const identifier = `("(?:[^"]|"")+"|[^\s";]+)`

// serverNames has the roles and settings that a server knows, for comparing them with those that a dump names.
type serverNames struct {
	roles    map[string]bool // each role, and whether the session may set objects' owner to it
	settings map[string]bool
}

func readServerNames(ctx context.Context, conn *pgx.Conn) (serverNames, error) {
	h := serverNames{map[string]bool{}, map[string]bool{}}
	rows, err := conn.Query(ctx, `SELECT r.rolname::text, pg_catalog.pg_has_role(r.oid, 'MEMBER'), true FROM pg_catalog.pg_roles AS r
		UNION ALL SELECT s.name, true, false FROM pg_catalog.pg_settings AS s`)
	if err != nil {
		return h, err
	}
	var name string
	var member, role bool
	_, err = pgx.ForEachRow(rows, []any{&name, &member, &role}, func() error {
		if role {
			h.roles[name] = member
		} else {
			h.settings[name] = true
		}
		return nil
	})
	return h, err
}

// namesUnknownRoleOrSetting reports whether a line, which is a complete statement, names a role or setting that the
// server lacks. splitPieces leaves such a line out.
func (h serverNames) namesUnknownRoleOrSetting(line string) bool {
	if m := setLine.FindStringSubmatch(line); m != nil {
		return !h.settings[strings.ToLower(m[1])]
	}
	if m := ownerLine.FindStringSubmatch(line); m != nil {
		return !h.mayActFor(m[1])
	}
	if m := defaultLine.FindStringSubmatch(line); m != nil {
		return !h.mayActFor(m[1]) || !h.hasRole(m[2])
	}
	if m := grantLine.FindStringSubmatch(line); m != nil && !h.hasRole(m[1]) {
		return true
	}
	return databaseLine.MatchString(line)
}

// keyRole matches the keywords that SQL allows in place of a role's name.
var keyRole = regexp.MustCompile(`^(?i:PUBLIC|CURRENT_ROLE|CURRENT_USER|SESSION_USER)$`)

// hasRole reports whether the server has a role. The name is written as in SQL.
func (h serverNames) hasRole(role string) bool {
	_, ok := h.roles[unquote(role)]
	return ok || keyRole.MatchString(role)
}

// mayActFor reports whether the session may make a role the owner of an object.
func (h serverNames) mayActFor(role string) bool {
	return h.roles[unquote(role)] || keyRole.MatchString(role)
}

// unquote returns the name that an SQL identifier stands for.
func unquote(name string) string {
	if quotedRest, ok := strings.CutPrefix(name, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quotedRest, `"`), `""`, `"`)
	}
	return strings.ToLower(name)
}

// scriptPiece is SQL that is sent as one message. If it is a COPY, rows are the rows to send after it.
type scriptPiece struct {
	offset int // the position in the file, in bytes
	sql    string
	rows   *string
}

// splitPieces divides an SQL file into pieces. It replaces skipped lines by blanks, so that positions in errors stay
// right.
func splitPieces(text string, isSkipped func(string) bool) []scriptPiece {
	var out []scriptPiece
	var sql strings.Builder
	from := 0
	var state scriptLexer
	for place := 0; place < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[place:], '\n'); i >= 0 {
			end = place + i + 1
		}
		line := text[place:end]
		trimmedLine := strings.TrimRight(line, "\r\n")
		switch {
		case state.isBetweenStatements() && copyLine.MatchString(trimmedLine):
			out = append(out, scriptPiece{offset: from, sql: sql.String()})
			sql.Reset()
			rows, rest := text[end:], len(text)
			if i := strings.Index("\n"+rows, "\n\\."); i >= 0 {
				rest = end + i
				rows = rows[:i]
			}
			out = append(out, scriptPiece{offset: place, sql: strings.TrimSuffix(trimmedLine, ";"), rows: &rows})
			end = rest
			if i := strings.IndexByte(text[rest:], '\n'); i >= 0 {
				end = rest + i + 1
			} else {
				end = len(text)
			}
			from = end
		case state.isBetweenStatements() && (psqlLine.MatchString(trimmedLine) || isSkipped(trimmedLine)):
			sql.WriteString(strings.Repeat(" ", utf8.RuneCountInString(trimmedLine)) + line[len(trimmedLine):])
		default:
			state.readLine(line)
			sql.WriteString(line)
		}
		place = end
	}
	return append(out, scriptPiece{offset: from, sql: sql.String()})
}

// scriptLexer tracks, line by line, whether the next line begins a new statement.
type scriptLexer struct {
	insideStatement     bool   // the next line begins inside a statement
	closingQuote        string // the text that ends the open quote or comment; "": nothing is open
	hasBackslashEscapes bool   // in the open quote, a backslash escapes the next character
	depth               int    // how deep comments are nested
}

func (l *scriptLexer) isBetweenStatements() bool { return !l.insideStatement && l.closingQuote == "" }

var dollarQuote = regexp.MustCompile(`^\$([\pL_][\pL\pN_]*)?\$`)

func (l *scriptLexer) readLine(line string) {
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		switch {
		case l.closingQuote == "*/" && strings.HasPrefix(rest, "/*"):
			l.depth++
			i++
		case l.closingQuote != "" && l.hasBackslashEscapes && line[i] == '\\':
			i++
		case l.closingQuote != "" && strings.HasPrefix(rest, l.closingQuote):
			i += len(l.closingQuote) - 1
			if l.depth--; l.depth <= 0 {
				l.closingQuote, l.hasBackslashEscapes, l.depth = "", false, 0
			}
		case l.closingQuote != "":
		case strings.HasPrefix(rest, "--"):
			return
		case strings.HasPrefix(rest, "/*"):
			l.closingQuote, l.depth = "*/", 1
			i++
		case line[i] == '\'' || line[i] == '"':
			l.insideStatement, l.closingQuote = true, line[i:i+1]
			l.hasBackslashEscapes = line[i] == '\'' && i > 0 && (line[i-1] == 'E' || line[i-1] == 'e') && (i < 2 ||
				!isWord(line[i-2]))
		case line[i] == '$' && (i == 0 || !isWord(line[i-1])) && dollarQuote.MatchString(rest):
			l.insideStatement, l.closingQuote = true, dollarQuote.FindString(rest)
			i += len(l.closingQuote) - 1
		case line[i] == ';':
			l.insideStatement = false
		case line[i] > ' ':
			l.insideStatement = true
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// runPieces runs an SQL file until the first error. The error's position is the position in the file.
func runPieces(ctx context.Context, conn *pgx.Conn, text string) error {
	h, err := readServerNames(ctx, conn)
	if err != nil {
		return err
	}
	for _, p := range splitPieces(text, h.namesUnknownRoleOrSetting) {
		if p.rows != nil {
			_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader(*p.rows), p.sql)
		} else {
			_, err = conn.PgConn().Exec(ctx, p.sql).ReadAll()
		}
		if refused, ok := err.(*pgconn.PgError); ok && (refused.Position > 0 || p.rows != nil) {
			refused.Position = max(refused.Position, 1) + int32(utf8.RuneCountInString(text[:p.offset]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
