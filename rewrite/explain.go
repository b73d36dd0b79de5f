package rewrite

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// explainStmt visits EXPLAIN of a query that reads no relation. Any other plan would show statistics of hidden rows. So
// would a plan into which PostgreSQL inlines a function.
func (w *walker) explainStmt(e *sqltext.ExplainStmt) {
	w.saw("ExplainStmt")
	for _, n := range e.Options {
		d := n.GetDefElem()
		if d == nil || d.Defnamespace != "" || !explainOption(d) {
			w.refuse(refusal("ExplainStmt.options"))
			return
		}
		w.saw("DefElem")
	}
	query := e.GetQuery().GetSelectStmt()
	if query == nil {
		w.refuse(refusal("ExplainStmt(relations)"))
		return
	}
	edits := len(w.edits)
	outer := w.functions
	w.functions = map[string]bool{}
	w.selectStmt(query, nil)
	plain := len(w.references) == w.firstReference
	for name := range w.functions {
		outer[name] = true
		plain = plain && strings.HasPrefix(name, "pg_catalog.")
	}
	w.functions = outer
	for _, edit := range w.edits[edits:] {
		plain = plain && !strings.Contains(edit.Text, "pgconsent")
	}
	if !plain {
		w.refuse(refusal("ExplainStmt(relations)"))
	}
}

// explainOption checks an option by an allowlist of names and values.
func explainOption(d *sqltext.DefElem) bool {
	text := d.GetArg().GetString_()
	switch d.Defname {
	case "analyze", "verbose", "costs", "timing", "summary":
		return d.Arg == nil || d.Arg.GetNode() == nil || d.Arg.GetBoolean() != nil || d.Arg.GetInteger() != nil ||
			text != nil && isBoolean(strings.ToLower(text.Sval))
	case "format":
		return text != nil
	}
	return false
}
