package proxy

import (
	"regexp"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// errorRule says which fields of a server's error a client gets. A fixed text replaces a message that may not pass; the
// SQLSTATE always passes. The table [errorRules] has all rules, and docs/reference/errors.md shows them.
//
// A message may pass if it is about the statement itself, or about values that the client sent or may read. Under row
// security no expression of the client runs on a row that the client cannot see. But messages that come from triggers,
// functions, constraints, keys, statistics or files may quote any row.
type errorRule struct {
	codes string // SQLSTATEs, or two characters for the rest of a class; "": all other codes

	// messages restricts the rule to these messages; a * at the end stands for any rest.
	messages []string

	passedFields string // letters of the fields that pass: M (message), D (detail), H (hint), P (position)
	text, hint   string // the message and hint that the client gets if the server's message does not pass
	reason       string // why the rule exists, for the documentation
}

const (
	withheldText = "the statement failed on the server; its message is withheld"
	withheldHint = "Only messages that cannot tell about hidden rows are passed on; the server's log has the full text."

	computedText = "a value that the statement computes does not fit"
	computedHint = "What PostgreSQL computes as a row is written may be of columns and rows that you cannot see. " +
		"A SELECT of the same expression says which value of yours is at fault."

	constraintText = "the statement violates a constraint of the database"
	resourcesText  = "the server has run out of a resource"
	resourcesHint  = "Ask for less at a time, or try again later; the server's log says what is missing."
	rowText        = "the new row is not one that you may write"
	multiWriteHint = " No part of a statement sees the rows that its other parts make: where this row needs one " +
		"of them, send two statements in one transaction, that row first."

	// the message of the error that the SQL function pgconsent_signed.row_is_current raises
	changedWhileWaiting = "pgconsent: consent has changed while the statement waited"

	// the message of the error that the SQL function pgconsent_signed.lock_key raises
	tooManyLocks = "pgconsent: too many advisory locks"

	// the message of the error that the SQL function pgconsent_signed.number_or_error raises
	noSequenceValue = "pgconsent: the session has drawn no number"

	// the message of an error that the SQL function pgconsent_signed.current_catalog raises
	identityOutdated = "pgconsent: the session's identity is of another time than its transaction"
)

// errorRules are in order: the first rule that covers the error's SQLSTATE and message applies.
var errorRules = []errorRule{
	{codes: "08P01", passedFields: "M", reason: "a message of the protocol that the client sent wrongly"},
	{codes: "0A000", passedFields: "MHP", reason: "a form of the statement that PostgreSQL does not support"},
	{codes: "21000", passedFields: "MHP",
		reason: "a subquery, or a set of new rows, that has more rows than it may; only visible rows count"},

	{codes: "22000", text: "the server cannot handle a value", hint: withheldHint,
		reason: "used for many things, some of which name files and relations"},
	{codes: "2200H", text: "a sequence has reached its limit", hint: "Only the owner can change it.",
		reason: "tells a sequence's value, which counts hidden rows"},
	{codes: "22P04", passedFields: "M", reason: "the form of the client's own COPY data"},
	{codes: "22023", messages: []string{"not a list of ids"}, text: "a list of ids is not one",
		hint:   "Write a JSON array of strings, or an array of the column's type; [] where there is nobody.",
		reason: "the trigger of ours that holds lists to the policy"},
	{codes: "22", passedFields: "MDHP",
		reason: "a value of the client's own, or of a row that it can see, which does not fit: literals, parameters, " +
			"casts, arithmetic, patterns, JSON"},

	{codes: "23502", text: "a column that must have a value would have none",
		hint:   "information_schema.columns tells which columns need a value (is_nullable).",
		reason: "the detail shows the whole row, with columns that the client may not see"},
	{codes: "23503 23001", text: "a foreign key would be violated",
		hint: "The row that a key points to must exist, and a row that others point to must stay. Which row is " +
			"not told, since you may not see it.",
		reason: "tells that a hidden row exists, or shows a key of one"},
	{codes: "23505 23P01", text: "the row collides with another one",
		hint:   "A key has this value already. Which one is not told, since the other row may be one that you cannot see.",
		reason: "shows a key of a row that may be hidden"},
	{codes: "23514", text: "the row violates a check of the database",
		hint: "The owner of the table knows which values it allows.", reason: "the detail shows the whole row"},
	{codes: "23", text: constraintText,
		hint: "Which values are at fault is not told, since they may belong to rows you cannot see.", reason: "shows rows"},

	{codes: "24000", passedFields: "MH", reason: "the state of the client's own cursor"},
	{codes: "25", passedFields: "MH", reason: "the state of the client's own transaction"},
	{codes: "26000", passedFields: "M", reason: "names of the client's own prepared statements"},
	{codes: "34000", passedFields: "M", reason: "names of the client's own cursors and portals"},
	{codes: "3B001", passedFields: "M", reason: "names of the client's own savepoints"},
	{codes: "3F000", passedFields: "MP", reason: "the name of a schema that the client wrote"},

	{codes: "40001", passedFields: "MH", messages: []string{
		"could not serialize access due to concurrent update", "could not serialize access due to concurrent delete",
		"could not serialize access due to read/write dependencies among transactions",
		"tuple to be locked was already moved to another partition due to concurrent update",
	}, reason: "the transaction may be tried again; without the detail, which tells of other transactions"},
	{codes: "40001", messages: []string{identityOutdated},
		text:   "could not serialize access: a clock was moved, the database's or the proxy's",
		hint:   "The statement has shown nothing. Try it again.",
		reason: "ours, of a session's identity that is of another time"},
	{codes: "40001", messages: []string{changedWhileWaiting},
		text:   "could not serialize access: consent has changed while the statement waited for another transaction",
		hint:   "The statement has shown and changed nothing. Try it again.",
		reason: "ours, of what would have gone on with a row by older consents"},
	{codes: "40001", text: "could not serialize access", hint: "The transaction might succeed if retried.",
		reason: "the same, in other words"},
	{codes: "40P01", text: "deadlock detected", hint: "The transaction might succeed if retried.",
		reason: "the detail names processes and transactions"},
	{codes: "40", text: "the transaction was rolled back", hint: "The transaction might succeed if retried.",
		reason: "tells of other transactions"},

	{codes: "42501", messages: []string{"new row violates row-level security policy*",
		"target row violates row-level security policy*"}, text: rowText,
		hint:   "The policy allows only rows that you could read afterwards, with the values it prescribes.",
		reason: "names a policy"},
	{codes: "42501", messages: []string{"a list that is wider than it may be"}, text: "a list of ids is wider than it may be",
		hint: "Leave the column out of an INSERT to get the list that the policy gives; in an UPDATE take ids " +
			"out. More needs the consent of those whom the row is about, and of who told it.",
		reason: "the trigger of ours that holds lists to the policy"},
	{codes: "42501", text: "permission denied",
		hint: "The database does not give agents the right to it. If the policy allows it, the operator finds the " +
			"cause with `pgconsent doctor`.",
		reason: "names what the statement did not, such as tables that a function reads"},
	{codes: "42601 42602 42622 42939", passedFields: "MDHP", reason: "the client's own text: syntax and names"},
	{codes: "42703 42702 42P01 42P09 42P10 42712 42701", passedFields: "MDHP",
		reason: "names of columns and items in the client's own text; a suggestion can only name columns of what the " +
			"statement reads"},
	{codes: "42883 42725 42704 42P02 42P08 42P18", passedFields: "MDHP",
		reason: "functions, operators, types and parameters that the client's text names"},
	{codes: "42803 42P20 42P19 42804 42846 42P21 42P22 42611 42809 428C9", passedFields: "MDHP",
		reason: "grouping, windows, recursion, types and collations in the client's own text"},
	{codes: "42P03 42P05 42P11", passedFields: "M", reason: "names of the client's own cursors and prepared statements"},
	{codes: "42P17", text: "a definition in the database is not valid",
		hint: "The operator finds the cause with `pgconsent doctor`.", reason: "names policies and rules"},
	{codes: "42", text: withheldText, hint: withheldHint,
		reason: "definitions of objects, which no agent makes: another's statement, inside a function"},
	{codes: "44000", text: rowText, hint: "The view allows only rows that it would show afterwards.",
		reason: "the detail shows the whole row"},

	{codes: "53", text: resourcesText, hint: resourcesHint, reason: "names files, sizes and roles"},
	{codes: "54001 54011 54023", passedFields: "M", reason: "the client's own statement is too complex"},
	{codes: "54000", passedFields: "M", messages: []string{"string is too long for tsvector*", "word is too long*",
		"lexeme array may not contain*", "array size exceeds the maximum allowed*", "total size of jsonb*", "number of jsonb*"},
		reason: "the size of a value that the client built"},
	{codes: "54000", messages: []string{tooManyLocks}, text: "too many advisory locks",
		hint:   "A session of an agent holds 64 at most: release some with pg_advisory_unlock.",
		reason: "ours, of a session that would fill the server's table of locks"},
	{codes: "54", text: "a limit of the server is exceeded", hint: "Ask for less at a time, or for smaller values.",
		reason: "may tell the size of a row, or its place"},
	{codes: "55000", messages: []string{noSequenceValue}, text: "no number of a sequence has been drawn in this session",
		hint:   "currval and lastval tell the number that an INSERT of this session got in a column that you see. RETURNING tells it, too.",
		reason: "ours, where PostgreSQL would name the sequence, which may number a hidden table"},
	{codes: "55000", passedFields: "MH", messages: []string{`portal "*`, `cursor "*`, "cursor can only scan forward"},
		reason: "the state of the client's own cursor or portal"},
	{codes: "55000", messages: []string{"ON CONFLICT does not support deferrable unique constraints*"},
		text: "ON CONFLICT does not support deferrable unique constraints",
		hint: "A key of the table is DEFERRABLE, which only its owner can change. Name the columns of another key " +
			"behind ON CONFLICT, or leave it out.",
		reason: "a form of the statement that a key of the table does not allow; the key's name stays out"},
	{codes: "55P03", passedFields: "M", messages: []string{"canceling statement due to lock timeout"},
		reason: "the client's own lock_timeout"},
	{codes: "55P03", text: "could not obtain a lock", hint: "Try again later.",
		reason: "names the relation, and so tells that a row of it is there"},
	{codes: "57014", passedFields: "M", messages: []string{"canceling statement due to statement timeout",
		"canceling statement due to user request", "COPY from stdin failed: *"},
		reason: "the client's own timeout or request, or what it says when it gives up a COPY"},
	{codes: "57014", text: "canceling statement", hint: "Try again later.", reason: "the reason is the server's"},
	{codes: "57P01 57P02 57P03 57P05", passedFields: "MH", messages: []string{
		"terminating connection due to administrator command",
		"terminating connection because of crash of another server process",
		"the database system is starting up", "the database system is shutting down", "the database system is in recovery mode",
		"the database system is not yet accepting connections", "terminating connection due to idle-session timeout",
	}, reason: "the server stops or starts"},
	{codes: "57", text: "the server ends the statement or the session", hint: "Try again later.",
		reason: "names databases and roles"},

	{codes: "", text: withheldText, hint: withheldHint,
		reason: "written by functions (P0, 38, 39, 09, 27, 2F), foreign servers (HV), or about the server's inside " +
			"(58, 72, F0, XX)"},
}

// errorRuleFor returns the rule for a server's error.
func errorRuleFor(code sqlstate.Code, message string) *errorRule {
	for i := range errorRules {
		if p := &errorRules[i]; p.covers(code) && p.matchesMessage(message) {
			return p
		}
	}
	return &errorRules[len(errorRules)-1] // The last rule covers all codes.
}

// covers reports whether the rule applies to a SQLSTATE.
func (p *errorRule) covers(code sqlstate.Code) bool {
	if p.codes == "" {
		return true
	}
	for c := range strings.FieldsSeq(p.codes) {
		if c == string(code) || len(c) == 2 && c == string(code[:2]) {
			return true
		}
	}
	return false
}

// matchesMessage reports whether the rule applies to errors with this message.
func (p *errorRule) matchesMessage(message string) bool {
	for _, text := range p.messages {
		if prefix, isPrefix := strings.CutSuffix(text, "*"); message == text || isPrefix &&
			strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return p.messages == nil
}

// passes reports whether the client gets this field of the server's error.
func (p *errorRule) passes(field byte) bool { return strings.IndexByte(p.passedFields, field) >= 0 }

// substitute returns the message and hint that the client gets if the server's message does not pass.
func (p *errorRule) substitute() (text, hint string) {
	if p.text == "" {
		return withheldText, withheldHint
	}
	return p.text, p.hint
}

// passingNotices are the SQLSTATEs of the notices that the client gets. They are about its own transaction commands and
// names. The proxy drops other notices, since a function can raise any text.
var passingNotices = map[sqlstate.Code]bool{
	"25001": true, // PostgreSQL's message is: there is already a transaction in progress.
	"25P01": true, // PostgreSQL's message is: there is no transaction in progress.
	"42622": true, // PostgreSQL's message is: identifier will be truncated.
}

// clientContexts are beginnings of context lines that point into the client's own message. Any other context line means
// that a function, a trigger, a key's check or a foreign server raised the error, and these may quote rows.
var clientContexts = []string{
	"unnamed portal parameter $", "unnamed portal with parameters: ", `portal "`, "extended query with parameters: ",
	"JSON data, line ",
}

// parallelWorker is the context line that PostgreSQL adds if a parallel worker fails. The proxy ignores the line, since
// whether PostgreSQL uses workers depends on the size of tables, hidden rows included.
const parallelWorker = "parallel worker"

var copyContext = regexp.MustCompile(`^COPY [^\n]*?, line ([0-9]{1,19})[,:\n]`)

// copyColumn matches the context of an error about one value in a line of COPY input.
var copyColumn = regexp.MustCompile(`(?m)^COPY [^\n]*?, line [0-9]{1,19}, column `)

// copyRaw matches the context of an error about a whole line of COPY input, such as bytes in a wrong encoding.
var copyRaw = regexp.MustCompile(`(?m)^COPY [^\n]*?, line [0-9]{1,19}$`)

// copyLine returns the part of a context that the client gets: the number of the line of its COPY input that is at
// fault.
func copyLine(context string) string {
	if m := copyContext.FindStringSubmatch(context); m != nil {
		return "COPY, line " + m[1]
	}
	return ""
}

// isOwnContext reports whether the context field of an error is about the client's own message. A line "COPY …" is only
// if the client runs a COPY FROM STDIN (copies): file_fdw also reads foreign tables by COPY, and these rows may be
// hidden from the client.
func isOwnContext(context string, copies bool) bool {
	for line := range strings.SplitSeq(context, "\n") {
		isOwn := line == "" || line == parallelWorker
		for _, prefix := range clientContexts {
			isOwn = isOwn || strings.HasPrefix(line, prefix)
		}
		if strings.HasPrefix(line, "COPY ") { // Only one such line is the client's own COPY.
			isOwn, copies = copies, false
		}
		if !isOwn {
			return false
		}
	}
	return true
}
