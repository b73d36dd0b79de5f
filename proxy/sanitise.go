package proxy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// internalName occurs in the names of all schemas, roles and settings of pgconsent, which clients must not see.
const internalName = "pgconsent"

// forClient returns the ErrorResponse that the client gets in answer to e, and its SQLSTATE.
func (f *errorFields) forClient(e entry) ([]byte, sqlstate.Code) {
	if r := e.base().refusal; r != nil && r.matches(f.message) {
		return encodeError(nil, "ERROR", r.err), r.err.Code
	}
	return f.sanitisedMessage(e)
}

// sanitisedMessage returns the server's error without the fields that the client may not see, and its SQLSTATE. e is
// the entry that the error answers, or nil.
func (f *errorFields) sanitisedMessage(e entry) ([]byte, sqlstate.Code) {
	code := f.code()
	var v *verdict.Verdict
	if e != nil {
		f.message = clientNames(e, code, f.message)
		if v = e.base().verdict; v != nil {
			f.restoreNames(v)
		}
	}
	rule := errorRuleFor(code, f.message)
	relayed := f.forwardedFields(e, rule, code)
	isOwn := f.isOwn(e)
	if relayed.message == rowText && isOwn && v != nil && v.MultiWriteCTE {
		relayed.hint += multiWriteHint
	}
	if code == sqlstate.UndefinedColumn && relayed.hint == "" && relayed.message == f.message && v != nil {
		relayed.hint = columnsHint(v)
	}
	if rule.passes('P') && isOwn && f.position > 0 && v != nil && v.Position != nil && e.base().refusal == nil {
		relayed.position = v.Position(originalPosition(e, f.position))
	}
	if isOwn {
		relayed.context = copyLine(f.context)
	}
	b, err := (&pgproto3.ErrorResponse{
		Severity:            relayed.severity,
		SeverityUnlocalized: relayed.nonlocalizedSeverity,
		Code:                string(code),
		Message:             relayed.message,
		Detail:              relayed.detail,
		Hint:                relayed.hint,
		Position:            int32(relayed.position),
		Where:               relayed.context,
	}).Encode(nil)
	if err != nil { // This cannot happen: the message is no longer than the server's.
		return nil, code
	}
	return b, code
}

// forwardedFields returns the severity, message, detail and hint that the client gets by the rule.
func (f *errorFields) forwardedFields(e entry, rule *errorRule, code sqlstate.Code) errorFields {
	relayed := errorFields{severity: f.severity, nonlocalizedSeverity: f.nonlocalizedSeverity}
	mayPass := rule.passes('M') && f.isOwn(e)
	switch {
	case mayPass && f.quotesOthers(e, code):
		relayed.message, relayed.hint = computedText, computedHint
	case mayPass && f.message != "" && !namesPgconsent(f.message) && !f.quotesRefusal(e):
		relayed.message = f.message
		if rule.passes('D') && !namesPgconsent(f.detail) {
			relayed.detail = f.detail
		}
		if rule.passes('H') && !namesPgconsent(f.hint) {
			relayed.hint = f.hint
		}
	default:
		relayed.message, relayed.hint = rule.substitute()
	}
	return relayed
}

// originalPosition converts an error position in the text that the server got into a position in the verdict's text,
// without what the proxy has inserted.
func originalPosition(e entry, position int) int {
	if q, ok := e.(*queryEntry); ok {
		return q.withoutSettings(position) + q.stepOffset()
	}
	return position
}

// namedColumns is how many columns of a table a hint names at most.
const namedColumns = 40

// columnsHint returns a hint that lists the visible columns of the statement's tables that hide some columns, or "" if
// there is no such table.
func columnsHint(v *verdict.Verdict) string {
	var parts []string
	for _, r := range v.RenamedRelations {
		if len(r.Columns) == 0 {
			continue
		}
		columns, ellipsis := r.Columns, ""
		if len(columns) > namedColumns {
			columns, ellipsis = columns[:namedColumns], ", …"
		}
		viewText := r.ClientName + ": " + strings.Join(columns, ", ") + ellipsis
		if !slices.Contains(parts, viewText) && len(parts) < 3 {
			parts = append(parts, viewText)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return "Columns that you can read of " + strings.Join(parts, "; of ") + "."
}

// isOwn reports whether the error arose in the client's own statement e itself, and not in a function, trigger or other
// code of the database.
func (f *errorFields) isOwn(e entry) bool {
	if f.truncated {
		return false
	}
	copies := false
	if e != nil {
		x := e.asExecution()
		copies = x != nil && x.copiesIn()
	}
	return isOwnContext(f.context, copies)
}

// quotesOthers reports whether an error of class 22 may quote a value that the agent may not see. While PostgreSQL
// writes rows, checks, indexes and conditions compute with hidden columns and rows. So for a statement that writes,
// only values that occur in its text may be quoted. Errors at a position of the text, in a value of COPY input, or at a
// parameter's binding are about the client's own values.
func (f *errorFields) quotesOthers(e entry, code sqlstate.Code) bool {
	if code[:2] != "22" || f.position > 0 || e == nil || copyColumn.MatchString(f.context) ||
		code == sqlstate.CharacterNotInRepertoire && copyRaw.MatchString(f.context) {
		return false
	}
	x := e.asExecution()
	if x == nil || x.verdict == nil || !writes(x.verdict) && !slices.ContainsFunc(x.namedVerdicts, writes) {
		return false
	}
	text := x.verdict.Original
	for _, run := range x.namedVerdicts {
		text += "\x00" + run.Original
	}
	return hasOtherQuotes(f.message, text) || hasOtherQuotes(f.detail, text)
}

func writes(v *verdict.Verdict) bool {
	return slices.ContainsFunc(v.Effects, func(effect verdict.Effect) bool { return effect.WritesRows })
}

// hasOtherQuotes reports whether a field quotes something that does not occur in text.
func hasOtherQuotes(field, text string) bool {
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

// quotesRefusal reports whether the error quotes the token of a refused form, which the client must not see.
func (f *errorFields) quotesRefusal(e entry) bool {
	return e != nil && e.base().refusal != nil && strings.Contains(f.message+f.detail+f.hint, tokenPrefix)
}

// namesPgconsent reports whether a field of an error names an internal object of pgconsent.
func namesPgconsent(field string) bool { return strings.Contains(field, internalName) }

// catalogNames replaces the names of pgconsent's catalog views, which rewritten statements read, by those of
// PostgreSQL's catalogs.
var catalogNames = strings.NewReplacer("pgconsent_catalog.is_", "information_schema.", "pgconsent_catalog.", "pg_catalog.")

var qualifiedName = regexp.MustCompile(`\bpg_catalog\.([a-z_0-9]+)`)

// grammarFunctions are functions that PostgreSQL itself names with pg_catalog when it parses constructs such as
// EXTRACT, so its errors name them so as well.
var grammarFunctions = map[string]bool{"extract": true, "position": true, "normalize": true, "overlaps": true, "xmlexists": true}

// restoreNames replaces names in the error that the rewriter has put into the text by those that the client wrote.
func (f *errorFields) restoreNames(v *verdict.Verdict) {
	original := strings.ToLower(v.Original)
	qualified := strings.Contains(original, "pg_catalog")
	for _, field := range []*string{&f.message, &f.detail, &f.hint} {
		for _, r := range v.RenamedRelations {
			*field = strings.ReplaceAll(*field, r.ServerName, r.ClientName)
			for _, kind := range []string{"relation", "table", "view"} {
				*field = strings.ReplaceAll(*field, kind+` "`+r.View+`"`, kind+` "`+r.Relation+`"`)
			}
		}
		*field = catalogNames.Replace(*field)
		if qualified {
			continue
		}
		*field = qualifiedName.ReplaceAllStringFunc(*field, func(name string) string {
			if bare := strings.TrimPrefix(name, "pg_catalog."); strings.Contains(original, bare) && !grammarFunctions[bare] {
				return bare
			}
			return name
		})
	}
}

// clientNames replaces the server's names of statements and portals with the client's names.
func clientNames(e entry, code sqlstate.Code, message string) string {
	message = clientName(message, e.base().name)
	if b, ok := e.(*bindEntry); ok {
		message = strings.ReplaceAll(message, `"`+b.serverName+`"`, `"`+b.statement+`"`)
	}
	x := e.asExecution()
	if x == nil || x.verdict == nil {
		return message
	}
	// PREPARE, EXECUTE, DEALLOCATE and cursor commands name statements and portals in their texts.
	if code == invalidStatementName || code == invalidCursorName {
		if situation, rest, ok := strings.Cut(message, `"`); ok {
			if name, ok := verdict.ClientName(rest); ok {
				return situation + `"` + name
			}
		}
	}
	for _, effect := range x.verdict.Effects {
		switch effect.Kind {
		case verdict.EffectNone, verdict.EffectPrepare, verdict.EffectExecute, verdict.EffectDeallocate,
			verdict.EffectDeclare,
			verdict.EffectFetch, verdict.EffectClose:
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
