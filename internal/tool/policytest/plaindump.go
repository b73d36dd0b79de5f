package policytest

import (
	"context"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A file of SQL may be what pg_dump writes for psql: with lines that psql itself understands, rows after COPY, settings
// of another version, and names of roles and of a database that are not here.
var (
	psqlLine    = regexp.MustCompile(`^\\(un)?(restrict|connect|c|encoding|echo)\b`)
	copyLine    = regexp.MustCompile(`(?i)^COPY .* FROM stdin( WITH .*)?;$`)
	setLine     = regexp.MustCompile(`(?i)^SET (?:SESSION )?([a-z_]+) *(?:=| TO ).*;$`)
	ownerLine   = regexp.MustCompile(`^ALTER .* OWNER TO ` + identifier + `;$`)
	defaultLine = regexp.MustCompile(`^ALTER DEFAULT PRIVILEGES FOR ROLE ` + identifier + ` .* (?:TO|FROM) ` + identifier + `(?: WITH .*)?;$`)
	grantLine   = regexp.MustCompile(`^(?:GRANT|REVOKE) .* (?:TO|FROM) ` + identifier + `(?: WITH .*)?(?: GRANTED BY .*)?;$`)
	elsewhere   = regexp.MustCompile(`^((CREATE|ALTER|DROP|COMMENT ON) DATABASE |(GRANT|REVOKE) .* ON DATABASE |CREATE SCHEMA public;$)`)
)

// identifier matches the name of a role or a schema.
const identifier = `("(?:[^"]|"")+"|[^\s";]+)`

// here is what a server has of what a dump names.
type here struct {
	roles    map[string]bool // whether the session may act for it
	settings map[string]bool
}

func readHere(ctx context.Context, conn *pgx.Conn) (here, error) {
	h := here{map[string]bool{}, map[string]bool{}}
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

// lacks tells whether a line, a statement of its own, is about what is not here and is left out.
func (h here) lacks(line string) bool {
	if m := setLine.FindStringSubmatch(line); m != nil {
		return !h.settings[strings.ToLower(m[1])]
	}
	if m := ownerLine.FindStringSubmatch(line); m != nil {
		return !h.acts(m[1])
	}
	if m := defaultLine.FindStringSubmatch(line); m != nil {
		return !h.acts(m[1]) || !h.has(m[2])
	}
	if m := grantLine.FindStringSubmatch(line); m != nil && !h.has(m[1]) {
		return true
	}
	return elsewhere.MatchString(line)
}

// keyRole matches what stands for a role without being a name.
var keyRole = regexp.MustCompile(`^(?i:PUBLIC|CURRENT_ROLE|CURRENT_USER|SESSION_USER)$`)

// has tells whether a role is here, named as in SQL.
func (h here) has(role string) bool {
	_, ok := h.roles[unquote(role)]
	return ok || keyRole.MatchString(role)
}

// acts tells whether the session may make a role the owner of something.
func (h here) acts(role string) bool { return h.roles[unquote(role)] || keyRole.MatchString(role) }

// unquote returns an identifier's name.
func unquote(name string) string {
	if quoted, ok := strings.CutPrefix(name, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, `"`), `""`, `"`)
	}
	return strings.ToLower(name)
}

// piece is SQL that is sent at once; of a COPY the rows follow.
type piece struct {
	at   int // the position in the file, in bytes
	sql  string
	rows *string
}

// pieces takes a file of SQL apart. What is left out is blank, so that places stay what they are.
func pieces(text string, lacks func(string) bool) []piece {
	var out []piece
	var sql strings.Builder
	from := 0
	var state lexer
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := text[at:end]
		trimmed := strings.TrimRight(line, "\r\n")
		switch {
		case state.between() && copyLine.MatchString(trimmed):
			out = append(out, piece{at: from, sql: sql.String()})
			sql.Reset()
			rows, rest := text[end:], len(text)
			if i := strings.Index("\n"+rows, "\n\\."); i >= 0 {
				rest = end + i
				rows = rows[:i]
			}
			out = append(out, piece{at: at, sql: strings.TrimSuffix(trimmed, ";"), rows: &rows})
			end = rest
			if i := strings.IndexByte(text[rest:], '\n'); i >= 0 {
				end = rest + i + 1
			} else {
				end = len(text)
			}
			from = end
		case state.between() && (psqlLine.MatchString(trimmed) || lacks(trimmed)):
			sql.WriteString(strings.Repeat(" ", utf8.RuneCountInString(trimmed)) + line[len(trimmed):])
		default:
			state.read(line)
			sql.WriteString(line)
		}
		at = end
	}
	return append(out, piece{at: from, sql: sql.String()})
}

// lexer knows whether a line begins between two statements.
type lexer struct {
	inside  bool   // a statement
	closing string // what ends a quoted text or a comment
	escapes bool   // a backslash quotes the next character
	depth   int    // how deep comments are nested
}

func (l *lexer) between() bool { return !l.inside && l.closing == "" }

var dollarQuote = regexp.MustCompile(`^\$([\pL_][\pL\pN_]*)?\$`)

func (l *lexer) read(line string) {
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		switch {
		case l.closing == "*/" && strings.HasPrefix(rest, "/*"):
			l.depth++
			i++
		case l.closing != "" && l.escapes && line[i] == '\\':
			i++
		case l.closing != "" && strings.HasPrefix(rest, l.closing):
			i += len(l.closing) - 1
			if l.depth--; l.depth <= 0 {
				l.closing, l.escapes, l.depth = "", false, 0
			}
		case l.closing != "":
		case strings.HasPrefix(rest, "--"):
			return
		case strings.HasPrefix(rest, "/*"):
			l.closing, l.depth = "*/", 1
			i++
		case line[i] == '\'' || line[i] == '"':
			l.inside, l.closing = true, line[i:i+1]
			l.escapes = line[i] == '\'' && i > 0 && (line[i-1] == 'E' || line[i-1] == 'e') && (i < 2 || !isWord(line[i-2]))
		case line[i] == '$' && (i == 0 || !isWord(line[i-1])) && dollarQuote.MatchString(rest):
			l.inside, l.closing = true, dollarQuote.FindString(rest)
			i += len(l.closing) - 1
		case line[i] == ';':
			l.inside = false
		case line[i] > ' ':
			l.inside = true
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// runPieces runs a file of SQL, up to the first error, whose position is that in the file.
func runPieces(ctx context.Context, conn *pgx.Conn, text string) error {
	h, err := readHere(ctx, conn)
	if err != nil {
		return err
	}
	for _, p := range pieces(text, h.lacks) {
		if p.rows != nil {
			_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader(*p.rows), p.sql)
		} else {
			_, err = conn.PgConn().Exec(ctx, p.sql).ReadAll()
		}
		if refused, ok := err.(*pgconn.PgError); ok && (refused.Position > 0 || p.rows != nil) {
			refused.Position = max(refused.Position, 1) + int32(utf8.RuneCountInString(text[:p.at]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
