package rewrite

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// explainStmt visits EXPLAIN. Only the plan of a query that reads no relation and calls only functions of pg_catalog is
// shown. Any other plan would show statistics of hidden rows. Without ANALYZE, the client gets a fixed plan instead:
// see [Rewriter.explainStandIn].
func (w *walker) explainStmt(e *sqltext.ExplainStmt, isAlone bool) {
	w.countNode("ExplainStmt")
	executes := false
	for _, n := range e.Options {
		d := n.GetDefElem()
		if d == nil || d.Defnamespace != "" || !isAllowedExplainOption(d) {
			w.refuse(refusalOf("ExplainStmt.options"))
			return
		}
		executes = executes || d.Defname == "analyze"
		w.countNode("DefElem")
	}
	query := e.GetQuery().GetSelectStmt()
	if query == nil {
		w.explainOther(executes || !isAlone)
		return
	}
	edits := len(w.edits)
	outer := w.functions
	w.functions = map[string]bool{}
	w.selectStmt(query, nil)
	isPlain := len(w.references) == w.firstReference
	for name := range w.functions {
		outer[name] = true
		isPlain = isPlain && strings.HasPrefix(name, "pg_catalog.")
	}
	w.functions = outer
	for _, edit := range w.edits[edits:] {
		isPlain = isPlain && !strings.Contains(edit.Text, "pgconsent")
	}
	if !isPlain {
		w.explainOther(executes || !isAlone)
	}
}

// explainOther handles an EXPLAIN whose plan is not shown to agents. If refused is set, it refuses the statement.
// Otherwise the client gets the plan of planStandIn.
func (w *walker) explainOther(refused bool) {
	if refused {
		w.refuse(refusalOf("ExplainStmt(relations)"))
	}
	w.needsPlanStandIn = true
}

// planStandIn is the query whose plan agents get in place of a plan that they may not see. The alias in the query says
// so.
const planStandIn = `SELECT %s FROM pg_catalog.generate_series(1, 1) AS "plan not shown to agents"`

// explainStandIn answers EXPLAIN of a statement that agents may run with the plan of planStandIn, which depends only on
// the options and the parameters. If agents may not run the statement, the refusal is the same as without EXPLAIN.
func (r *Rewriter) explainStandIn(source *sqltext.Source, tree *sqltext.ParseResult, extended bool) (*Result, *sqlstate.Error) {
	explain := tree.Stmts[0].GetStmt().GetExplainStmt()
	start := source.Tokens[explainedToken(source, explain)].Start
	inner, refusal := r.checkExplained(source.Text[start:], explain.Query, tree.Version, extended)
	if refusal != nil {
		if refusal.Position > 0 {
			refusal = refusal.WithPosition(refusal.Position + utf8.RuneCountInString(source.Text[:start]))
		}
		return &Result{Tag: "EXPLAIN", Rewritten: verdict.Rewritten{Path: verdict.PathRowSecurity,
			Position: func(p int) int { return p }}, Fingerprint: fingerprint(source)}, refusal
	}
	parameters := make([]string, parameterCount(tree))
	if len(parameters) > maxResultColumns {
		return &Result{Tag: "EXPLAIN"}, refusalOf("ExplainStmt(relations)")
	}
	for i := range parameters {
		parameters[i] = "$" + strconv.Itoa(i+1)
	}
	text := source.Text[:start] + fmt.Sprintf(planStandIn, strings.Join(parameters, ", "))
	result, refusal := r.rewriteAs(text, extended, allowedForms{})
	if refusal != nil {
		return result, refusal
	}
	result.Fingerprint, result.Position = fingerprint(source), func(int) int { return 0 }
	result.Effects[0].Kind, result.Effects[0].Name = inner.Kind, inner.Name
	return result, nil
}

// checkExplained checks the statement inside EXPLAIN as if the client had sent it alone; text is its text, and query
// its tree. If the statement is an EXECUTE, the effect names the prepared statement.
func (r *Rewriter) checkExplained(text string, query *sqltext.Node, version int32, extended bool) (
	verdict.Effect, *sqlstate.Error) {
	switch query.GetNode().(type) {
	case *sqltext.Node_SelectStmt, *sqltext.Node_InsertStmt, *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt,
		*sqltext.Node_MergeStmt, *sqltext.Node_ExecuteStmt:
	default:
		return verdict.Effect{}, refusalOf("ExplainStmt(relations)")
	}
	queryTree := &sqltext.ParseResult{Version: version, Stmts: []*sqltext.RawStmt{{Stmt: query}}}
	if refusal := sqltext.ProveSameTree(queryTree, text); refusal != nil {
		return verdict.Effect{}, refusal
	}
	result, refusal := r.Rewrite(text, extended)
	if refusal != nil {
		return verdict.Effect{}, refusal
	}
	if e := query.GetExecuteStmt(); e != nil {
		return verdict.Effect{Kind: verdict.EffectExplain, Name: result.Effects[0].Name}, nil
	}
	return verdict.Effect{}, nil
}

// parameterCount returns the highest number of all parameters in a tree, 0 without parameters.
func parameterCount(tree *sqltext.ParseResult) (highest int) {
	sqltext.Walk(tree, func(m proto.Message) bool {
		if p, ok := m.(*sqltext.ParamRef); ok {
			highest = max(highest, int(p.Number))
		}
		return true
	})
	return highest
}

// maxResultColumns is the largest number of columns that a result of PostgreSQL can have: MaxTupleAttributeNumber of
// htup_details.h.
const maxResultColumns = 1664

// explainedToken returns the index of the token at which the statement inside EXPLAIN begins.
func explainedToken(source *sqltext.Source, e *sqltext.ExplainStmt) int {
	if len(e.Options) > 0 && source.KindAt(1) == sqltext.OpenParen {
		return source.ClosingParen(1) + 1
	}
	return 1 + len(e.Options) // the options are words without parentheses, such as ANALYZE and VERBOSE
}

// isAllowedExplainOption tells whether an option of EXPLAIN is on the list of allowed names and values.
func isAllowedExplainOption(d *sqltext.DefElem) bool {
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
