package enforce

import (
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
)

// acts tells whether a text may do more than show rows: something that stays once its transaction has ended well, and
// that an error takes back. What the proxy is not sure of does.
func acts(snap *catalog.Snapshot, res *rewrite.Result) bool {
	for _, e := range res.Effects {
		if e.Writes || e.Body != nil && e.Body.Effects[0].Writes {
			return true
		}
	}
	for _, name := range res.Functions {
		schema, function, _ := strings.Cut(name, ".")
		if schema == "pg_catalog" {
			continue // none that agents may call does
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
		// A view runs functions of its own, and what a foreign table does is not known.
		if r, ok := snap.Relation(a.Relation); !ok || r.Kind != catalog.Table && r.Kind != catalog.PartitionedTable {
			return true
		}
	}
	return false
}

// actsAny tells whether an execution acts, with what it runs by name.
func actsAny(v *verdict.Verdict, runs []*verdict.Verdict) bool {
	if j, ok := v.Detail.(*judgement); !ok || j.acts {
		return true
	}
	for _, run := range runs {
		if j, ok := run.Detail.(*judgement); !ok || j.acts {
			return true
		}
	}
	return false
}

// parts divides a text into its statements.
func parts(text string) []verdict.Part {
	var out []verdict.Part
	for _, p := range sqltext.Parts(text) {
		out = append(out, verdict.Part{Text: text[p[0]:p[1]], At: utf8.RuneCountInString(text[:p[0]])})
	}
	return out
}
