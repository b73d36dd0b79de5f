package enforce

import (
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
)

// hasSideEffects reports whether a text may do more than show rows: change something that a commit makes permanent and
// an error rolls back. It returns true if this is not certain.
func hasSideEffects(snap *catalog.Snapshot, res *rewrite.Result) bool {
	for _, e := range res.Effects {
		if e.WritesRows || e.Body != nil && e.Body.Effects[0].WritesRows {
			return true
		}
	}
	for _, name := range res.Functions {
		schema, function, _ := strings.Cut(name, ".")
		if schema == "pg_catalog" {
			continue // Functions of pg_catalog that agents may call have no side effects.
		}
		found := snap.FunctionsNamed(schema, function)
		for _, f := range found {
			if f.Volatility != 'i' && f.Volatility != 's' {
				return true
			}
		}
		if len(found) == 0 {
			return true
		}
	}
	for _, a := range res.Accesses {
		if schema := a.Relation.Schema; schema == "pg_catalog" || schema == "information_schema" {
			continue
		}
		// A view may call functions, and the effects of a foreign table are not known.
		if relation, ok := snap.Relation(a.Relation); !ok || relation.Kind != catalog.Table &&
			relation.Kind != catalog.PartitionedTable {
			return true
		}
	}
	return false
}

// anySideEffects reports whether an execution, including the statements that it runs by name, may have side effects.
func anySideEffects(v *verdict.Verdict, executed []*verdict.Verdict) bool {
	if j, ok := v.EnforcerDetail.(*judgement); !ok || j.hasSideEffects {
		return true
	}
	for _, run := range executed {
		if j, ok := run.EnforcerDetail.(*judgement); !ok || j.hasSideEffects {
			return true
		}
	}
	return false
}

// splitStatements divides a text into its statements.
func splitStatements(text string) []verdict.Part {
	var out []verdict.Part
	for _, p := range sqltext.SplitStatements(text) {
		out = append(out, verdict.Part{Text: text[p[0]:p[1]], Offset: utf8.RuneCountInString(text[:p[0]])})
	}
	return out
}
