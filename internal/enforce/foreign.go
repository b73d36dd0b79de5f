package enforce

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// foreignRelations has the relations whose rows come from other servers, and the functions that may read such a
// relation although the text does not name it.
type foreignRelations struct {
	inAttributeRule bool // a rule of an attribute reads a foreign relation
	relations       map[catalog.Name]bool
	functions       map[string]bool
}

func newForeignRelations(snap *catalog.Snapshot, p *policy.Policy, plan *rls.Plan) foreignRelations {
	out := foreignRelations{relations: map[catalog.Name]bool{}}
	for _, relation := range snap.Relations() {
		if relation.Kind == catalog.ForeignTable {
			out.add(snap, relation)
		}
	}
	if len(out.relations) == 0 {
		return out
	}
	out.inAttributeRule = slices.ContainsFunc(plan.LookupTables(),
		func(name catalog.Name) bool { return out.relations[name] })
	for _, v := range p.Views() {
		if slices.ContainsFunc(v.Tables, func(name catalog.Name) bool { return out.relations[name] }) {
			out.relations[v.Relation.Name] = true
		}
	}
	listed := slices.ContainsFunc(p.Tables(), func(table *policy.Table) bool { return out.relations[table.Relation.Name] })
	// Functions may read a foreign relation, but no rule is about one.
	if !listed && !out.inAttributeRule {
		return out
	}
	out.functions = tableReadingFunctions(p)
	return out
}

// add adds a foreign relation, and its parents: a query of a parent reads the foreign relation too.
func (f foreignRelations) add(snap *catalog.Snapshot, r *catalog.Relation) {
	if f.relations[r.Name] {
		return
	}
	f.relations[r.Name] = true
	for _, name := range r.Parents {
		if parent, ok := snap.Relation(name); ok {
			f.add(snap, parent)
		}
	}
}

// countReads returns how many statements of a text read a foreign relation. For a PREPARE it sets ForeignReads in the
// prepared statement's verdict instead of counting it.
func (f foreignRelations) countReads(res *rewrite.Result) (n int) {
	if len(f.relations) == 0 {
		return 0
	}
	calls := slices.ContainsFunc(res.Functions, func(name string) bool { return f.functions[name] })
	for i, e := range res.Effects {
		readsForeign := calls && !takesLittleTime(e) && e.Kind != verdict.EffectEnd
		for _, a := range res.Statements[i].Accesses {
			readsForeign = readsForeign || f.inAttributeRule || f.relations[a.Relation]
		}
		switch {
		case !readsForeign:
		case e.Kind == verdict.EffectPrepare:
			e.Body.ForeignReads = 1
		default:
			n++
		}
	}
	return n
}
