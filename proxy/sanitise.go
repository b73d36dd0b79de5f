package proxy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// fields are those of a server's ErrorResponse or NoticeResponse that are of use. All others name relations, columns,
// constraints, data types, queries or source files, and are dropped unread. The context is read, and of it
// the number of a COPY line passes.
type fields struct {
	severity, unlocalised, sqlstate string
	message, detail, hint, context  string
	position                        int
	cut                             bool // the message was longer than what was kept of it
}

// parseFields decodes what there is; a message that was cut short gives the fields that are whole.
func parseFields(body []byte) fields {
	f := fields{cut: true}
	for len(body) > 0 {
		key := body[0]
		if key == 0 {
			f.cut = false
			break
		}
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

// ours marks what a client has no business with: our schemas, roles and settings.
const ours = "pgconsent"

// sanitised is the message as the client gets it, as an answer to e or, if e is nil, to nothing, and its SQLSTATE.
func (f *fields) sanitised(e *entry) ([]byte, sqlstate.Code) {
	code := f.code()
	if e != nil {
		f.message = e.clientNames(code, f.message)
		if e.verdict != nil {
			f.unwrite(e.verdict)
		}
	}
	p := passageFor(code, f.message)
	told := fields{severity: f.severity, unlocalised: f.unlocalised}
	if p.passes('M') && f.own(e) && f.quotesOthers(e, code) {
		told.message, told.hint = computedText, computedHint
	} else if f.message != "" && p.passes('M') && f.own(e) && !namesOurs(f.message) && !f.betrays(e) {
		told.message = f.message
		if p.passes('D') && !namesOurs(f.detail) {
			told.detail = f.detail
		}
		if p.passes('H') && !namesOurs(f.hint) {
			told.hint = f.hint
		}
	} else {
		told.message, told.hint = p.substitute()
	}
	if told.message == rowText && f.own(e) && e != nil && e.verdict != nil && e.verdict.MultiWriteCTE {
		told.hint += togetherHint
	}
	if code == sqlstate.UndefinedColumn && told.hint == "" && told.message == f.message && e != nil && e.verdict != nil {
		told.hint = columnsHint(e.verdict)
	}
	if p.passes('P') && f.own(e) && f.position > 0 && e != nil && e.verdict != nil && e.refusal == nil &&
		e.verdict.Position != nil {
		told.position = e.verdict.Position(e.without(f.position) + e.shift())
	}
	if f.own(e) {
		told.context = copyLine(f.context)
	}
	b, err := (&pgproto3.ErrorResponse{
		Severity:            told.severity,
		SeverityUnlocalized: told.unlocalised,
		Code:                string(code),
		Message:             told.message,
		Detail:              told.detail,
		Hint:                told.hint,
		Position:            int32(told.position),
		Where:               told.context,
	}).Encode(nil)
	if err != nil { // cannot be longer than what came
		return nil, code
	}
	return b, code
}

// namedColumns bounds how many columns a hint names.
const namedColumns = 40

// columnsHint says which columns agents see of the tables of a statement that hide some; "" if none does.
func columnsHint(v *verdict.Verdict) string {
	var parts []string
	for _, r := range v.Renamed {
		if len(r.Columns) == 0 {
			continue
		}
		columns, more := r.Columns, ""
		if len(columns) > namedColumns {
			columns, more = columns[:namedColumns], ", …"
		}
		part := r.Client + ": " + strings.Join(columns, ", ") + more
		if !slices.Contains(parts, part) && len(parts) < 3 {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return "Columns that you can read of " + strings.Join(parts, "; of ") + "."
}

// own tells whether the error arose in the client's own statement, which e is an answer to, and not in what others
// wrote.
func (f *fields) own(e *entry) bool { return !f.cut && isOwnContext(f.context, e.copiesIn()) }

// quotesOthers tells whether what a statement that writes says of a value quotes one that its text has not. PostgreSQL
// computes and compares then what agents may not see: what checks, indexes and conditions make of hidden columns, and
// of hidden rows. What is found at a place of the text, in a column of a line of a COPY, or as a parameter is bound, is
// the client's own.
func (f *fields) quotesOthers(e *entry, code sqlstate.Code) bool {
	if code[:2] != "22" || f.position > 0 || e == nil || e.verdict == nil || e.kind != query && e.kind != execute ||
		copyColumn.MatchString(f.context) ||
		!writes(e.verdict) && !slices.ContainsFunc(e.runs, writes) {
		return false
	}
	text := e.verdict.Original
	for _, run := range e.runs {
		text += "\x00" + run.Original
	}
	return quotesBeside(f.message, text) || quotesBeside(f.detail, text)
}

func writes(v *verdict.Verdict) bool {
	return slices.ContainsFunc(v.Effects, func(effect verdict.Effect) bool { return effect.Writes })
}

// quotesBeside tells whether a field has something in quotes that a text has not.
func quotesBeside(field, text string) bool {
	parts := strings.Split(field, `"`)
	if len(parts) < 3 || strings.Contains(text, strings.Join(parts[1:len(parts)-1], `"`)) {
		return false
	}
	for i := 1; i < len(parts); i += 2 {
		if !strings.Contains(text, parts[i]) {
			return true
		}
	}
	return false
}

// betrays tells whether the message quotes what a refused statement was sent as.
func (f *fields) betrays(e *entry) bool {
	return e != nil && e.refusal != nil && strings.Contains(f.message+f.detail+f.hint, "denied_")
}

// namesOurs tells whether a field names something of ours.
func namesOurs(field string) bool { return strings.Contains(field, ours) }

// unwritten puts the names of catalogs in the place of those that stand for them.
var unwritten = strings.NewReplacer("pgconsent_catalog.is_", "information_schema.", "pgconsent_catalog.", "pg_catalog.")

var catalogName = regexp.MustCompile(`\bpg_catalog\.([a-z_0-9]+)`)

// ofGrammar are functions that PostgreSQL's grammar calls, qualified, for constructs with the same keyword.
var ofGrammar = map[string]bool{"extract": true, "position": true, "normalize": true, "overlaps": true, "xmlexists": true}

// unwrite turns names that the rewriter has put into the text back into the client's.
func (f *fields) unwrite(v *verdict.Verdict) {
	original := strings.ToLower(v.Original)
	qualified := strings.Contains(original, "pg_catalog")
	for _, field := range []*string{&f.message, &f.detail, &f.hint} {
		for _, r := range v.Renamed {
			*field = strings.ReplaceAll(*field, r.Server, r.Client)
			for _, kind := range []string{"relation", "table", "view"} {
				*field = strings.ReplaceAll(*field, kind+` "`+r.View+`"`, kind+` "`+r.Relation+`"`)
			}
		}
		*field = unwritten.Replace(*field)
		if qualified {
			continue
		}
		*field = catalogName.ReplaceAllStringFunc(*field, func(name string) string {
			if bare := strings.TrimPrefix(name, "pg_catalog."); strings.Contains(original, bare) && !ofGrammar[bare] {
				return bare
			}
			return name
		})
	}
}

// clientNames puts the client's names of statements and portals in the place of ours.
func (e *entry) clientNames(code sqlstate.Code, message string) string {
	for _, name := range []string{e.name, e.source} {
		message = clientName(message, name)
	}
	if e.kind != query && e.kind != execute || e.verdict == nil {
		return message
	}
	// PREPARE, EXECUTE, DEALLOCATE and the statements about cursors name what they mean in their texts.
	if code == invalidStatementName || code == invalidCursorName {
		if before, rest, ok := strings.Cut(message, `"`); ok {
			if name, ok := verdict.ClientName(rest); ok {
				return before + `"` + name
			}
		}
	}
	for _, effect := range e.verdict.Effects {
		switch effect.Kind {
		case verdict.NoEffect, verdict.Prepares, verdict.Executes, verdict.Deallocates, verdict.Declares,
			verdict.Fetches, verdict.Closes:
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

// notice is the NoticeResponse for the client, or nothing.
func (f *fields) notice() []byte {
	code := f.code()
	if !passingNotices[code] || f.cut || f.context != "" || namesOurs(f.message) {
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
