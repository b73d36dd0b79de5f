package rewrite

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// reference is one mention of a relation.
type reference struct {
	name       catalog.Name
	relation   *catalog.Relation // nil for a catalog that the snapshot does not describe
	fragment   *fragment         // nil for a catalog
	shadowView catalog.Name      // the shadow view that replaces a catalog

	node       *sqltext.Node // holds the RangeVar; nil in COPY
	rangeVar   *sqltext.RangeVar
	copyStmt   *sqltext.CopyStmt
	start, end int32 // the bytes of the name
	starEnd    int32 // behind the * of "t *", else end
	tableToken int   // the token TABLE of "TABLE t", else -1
	columnsEnd int32 // in COPY, behind the column list

	notInjectedBecause notInjectedReason
	sharesName         bool       // another item of its FROM has the same name
	allColumns         bool       // all columns are read
	rowType            bool       // they are, but not only by a * in a target list
	starCount          int        // how many such stars read it
	copyFrom           bool       // it is the target of COPY FROM
	isTarget           bool       // it is the target of a statement that writes
	keyLookup          *keyLookup // the statement fixes its key: it has columns that lists do not show
	repeated           bool       // the tree holds this mention more often than the text

	qualifiedColumns []*sqltext.ColumnRef // columns that name it with its schema
}

// doNotInject keeps the relation's name in the text. The first reason stays.
func (r *reference) doNotInject(why notInjectedReason) {
	if r.notInjectedBecause == mayInject {
		r.notInjectedBecause = why
	}
}

// unavailableRelationRefusal is the refusal of a relation: the same whether or not it exists.
func unavailableRelationRefusal(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
		"relation %q is not available to agents", name).
		WithHint("Agents can read what the policy lists. A table of yours must be listed under tables: in the " +
			"policy, a view of yours under views:.")
}

// resolve finds the relation that a RangeVar means, or refuses. The caller has looked for WITH queries.
func (w *walker) resolve(rv *sqltext.RangeVar) *reference {
	w.saw("RangeVar")
	written := rv.GetRelname()
	if rv.GetSchemaname() != "" {
		written = rv.GetSchemaname() + "." + written
	}
	if rv.GetCatalogname() != "" {
		w.refuseAt(refusal("RangeVar.catalogname"), rv.GetLocation())
		return nil
	}
	if rv.GetRelpersistence() != "p" {
		w.refuseAt(refusal("RangeVar.relpersistence"), rv.GetLocation())
		return nil
	}
	name, found := w.snap.ResolveRelation(rv.GetSchemaname(), rv.GetRelname())
	if !found {
		w.refuseAt(unavailableRelationRefusal(written), rv.GetLocation())
		return nil
	}
	ref := &reference{name: name, rangeVar: rv, tableToken: -1, repeated: w.repeated}
	ref.relation, _ = w.snap.Relation(name)
	if name.Schema == "pg_catalog" || name.Schema == "information_schema" {
		shadow, ok := catalog.ShadowRelation(name)
		if !ok {
			w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
				"relation %q is not available to agents", written).
				WithHint("It tells about rows or sessions that are not visible. pg_class, pg_attribute, pg_type, "+
					"pg_constraint and information_schema describe the tables you can read."), rv.GetLocation())
			return nil
		}
		ref.shadowView = shadow
	} else if f := w.fragments[name]; f != nil && (f.visible.Kind == catalog.View || len(f.visible.Parents) > 0) {
		ref.fragment, ref.relation = f, f.visible
	} else if why := childRefusalHint(w.pol, name); why != "" {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
			"relation %q is not available to agents", written).
			WithHint("%s", why), rv.GetLocation())
		return nil
	} else if table, ok := w.pol.Table(name); !ok {
		w.refuseAt(unavailableRelationRefusal(written), rv.GetLocation())
		return nil
	} else if why := unreadableHint(table.Relation); why != "" {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
			"relation %q is not available to agents", written).
			WithHint("%s", why), rv.GetLocation())
		return nil
	} else {
		ref.fragment = w.fragments[name]
		ref.relation = ref.fragment.visible
		if ref.fragment.isView() && !rv.GetInh() && ref.relation.HasChildren {
			w.refuseAt(refusal("RangeVar.inh"), rv.GetLocation())
			return nil
		}
	}
	if !w.locate(ref) {
		w.refuseAt(refusal("RangeVar.location"), rv.GetLocation())
		return nil
	}
	w.references = append(w.references, ref)
	w.noteSingleRowRead(ref)
	return ref
}

// childRefusalHint tells why the statement cannot name a partition or child of a table of the policy; "" if it is none.
func childRefusalHint(p *policy.Policy, name catalog.Name) string {
	for _, c := range p.Children() {
		switch {
		case c.Relation.Name != name:
		case !c.ReadableByName:
			return "It is a part of a table that the policy lists, and has columns that agents do not see. Read " +
				"the table; the policy can also list the part with a rule of its own."
		default:
			return "It is a new part of a table that the policy lists. Read the table; after pgconsent migrate " +
				"its parts can be read by name."
		}
	}
	return ""
}

// unreadableHint tells why agents cannot read a relation although the policy lists it.
func unreadableHint(r *catalog.Relation) string {
	switch {
	case r.Kind == catalog.Table, r.Kind == catalog.PartitionedTable, r.Kind == catalog.MatView,
		r.Kind == catalog.ForeignTable:
		return ""
	case r.Kind == catalog.View:
		return "It is a view, which reads with its owner's rights. Read the tables behind it."
	case r.Kind == catalog.Sequence:
		return "It is a sequence: its value counts rows that are not visible."
	}
	return "Relations of this kind cannot be read."
}

// locate finds the tokens of the name.
func (w *walker) locate(ref *reference) bool {
	i := w.source.At(ref.rangeVar.GetLocation())
	last := i
	if ref.rangeVar.GetSchemaname() != "" {
		last = i + 2
		if w.source.Kind(i+1) != sqltext.Dot {
			return false
		}
	}
	if i < 0 || last >= len(w.source.Tokens) || !w.source.Tokens[i].IsName() || !w.source.Tokens[last].IsName() ||
		w.source.Kind(last+1) == sqltext.Dot {
		return false
	}
	ref.start, ref.end = w.source.Tokens[i].Start, w.source.Tokens[last].End
	ref.starEnd = ref.end
	before := i - 1
	for w.source.Kind(before) == sqltext.Only || w.source.Kind(before) == sqltext.OpenParen &&
		w.source.Kind(before-1) == sqltext.Only {
		before--
	}
	if w.source.Kind(before) == sqltext.Table {
		ref.tableToken = before
	}
	if w.source.Kind(last+1) == sqltext.Star {
		ref.starEnd = w.source.Tokens[last+1].End
		ref.doNotInject(starTable)
	}
	if !ref.rangeVar.GetInh() {
		ref.doNotInject(onlyTable)
	}
	return true
}

// editReference makes the edits of a reference.
func (w *walker) editReference(ref *reference, signable bool) {
	w.repeated = ref.repeated
	if ref.fragment == nil {
		w.substituteView(ref, ref.shadowView)
		return
	}
	if ref.copyFrom && w.mode != AlwaysInjected {
		w.editCopyFrom(ref)
		return
	}
	if ref.fragment.isView() {
		if ref.sharesName && ref.rangeVar.GetAlias() == nil {
			w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
				"relation %q needs an alias here", ref.name.String()).
				WithHint("Agents do not see all of its columns, and another table of that name stands beside it: "+
					"write %s AS t, and t.column.", ref.name.SQL()), ref.start)
			return
		}
		if w.lacksPredicate = w.lacksPredicate ||
			ref.fragment.lacksPredicate; ref.fragment.lacksPredicate && w.mode == AlwaysInjected {
			w.refuseAt(noPredicateRefusal(ref, "a view"), ref.start)
			return
		}
		if ref.copyStmt != nil {
			w.injectCopy(ref)
			return
		}
		if ref.isTarget { // a subquery with the predicate is not updatable
			if w.mode == AlwaysInjected {
				w.refuseAt(noPredicateRefusal(ref, ref.notInjectedBecause.String()), ref.start)
				return
			}
			w.lacksPredicate = true
			w.substituteView(ref, predicate.RowView(ref.name))
			return
		}
		if w.readsKeyOnlyColumn(ref) {
			w.fetchByKey(ref)
			return
		}
		if w.mustFence(ref) {
			w.relationOfView[ref.fragment.view] = ref.name
			w.fence(ref, ref.fragment.view.SQL())
			return
		}
		w.substituteView(ref, ref.fragment.view)
		return
	}
	inject := (w.mode == Both || w.mode == AlwaysInjected) && !ref.fragment.showsAllRows
	if inject && ref.notInjectedBecause == mayInject && ref.fragment.needsSignature && !signable {
		ref.doNotInject(unsignedText)
	}
	if inject && ref.notInjectedBecause != mayInject {
		if w.mode == AlwaysInjected {
			w.refuseAt(noPredicateRefusal(ref, ref.notInjectedBecause.String()), ref.start)
			return
		}
		inject, w.lacksPredicate = false, true
	}
	if w.readsWaitingColumn(ref) {
		inner := ref.name.SQL()
		if inject {
			inner, w.needsSignature = ref.fragment.sql, w.needsSignature || ref.fragment.needsSignature
		}
		w.hideWaiting(ref, inner)
		return
	}
	if !inject {
		if ref.copyStmt != nil && len(ref.copyStmt.Attlist) == 0 && hasGenerated(ref.relation) {
			w.listColumns(ref)
			return
		}
		if w.mustFence(ref) {
			w.fence(ref, ref.name.SQL())
			return
		}
		w.qualifyRelation(ref)
		return
	}
	if ref.fragment.subquery == nil || ref.fragment.subquery() == nil {
		w.refuse(sqlstate.From(errPolicyExpression))
		return
	}
	w.needsSignature = w.needsSignature || ref.fragment.needsSignature
	if ref.copyStmt != nil {
		w.injectCopy(ref)
		return
	}
	if w.mustFence(ref) {
		w.fence(ref, ref.fragment.sql)
		return
	}
	w.inject(ref)
}

// qualifyRelation writes the schema in front of the name.
func (w *walker) qualifyRelation(ref *reference) {
	rv, name := ref.rangeVar, ref.name
	w.replace(ref.start, ref.end, name.SQL(), func() { rv.Schemaname, rv.Relname = name.Schema, name.Name })
}

// noPredicateRefusal refuses a reference that only row security would filter, where the mode does not allow that.
func noPredicateRefusal(ref *reference, why string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"relation %q cannot carry its predicate here (%s)", ref.name.String(), why).
		WithHint("Row security alone would have to hold, which the mode of this server excludes.")
}

// inject puts the subquery with the predicate in the place of the name.
func (w *walker) inject(ref *reference) {
	w.injectSubquery(ref, ref.fragment.sql, func() *sqltext.Node {
		return proto.Clone(ref.fragment.subquery()).(*sqltext.Node)
	})
}

func (w *walker) injectSubquery(ref *reference, text string, subquery func() *sqltext.Node) {
	alias := ref.rangeVar.GetAlias()
	if alias == nil {
		alias = &sqltext.Alias{Aliasname: ref.rangeVar.GetRelname()}
		text += " AS " + catalog.QuoteIdent(alias.Aliasname)
	}
	if ref.tableToken >= 0 {
		t := w.source.Tokens[ref.tableToken]
		w.replace(t.Start, t.End, "SELECT * FROM", func() {})
	}
	w.replace(ref.start, ref.end, text, func() {
		ref.node.Node = &sqltext.Node_RangeSubselect{RangeSubselect: &sqltext.RangeSubselect{
			Subquery: subquery(),
			Alias:    alias,
		}}
	})
}

// substituteView puts a view of pgconsent in the place of a relation, under the name that the statement gives it.
func (w *walker) substituteView(ref *reference, view catalog.Name) {
	w.relationOfView[view] = ref.name
	rv := ref.rangeVar
	if rv.GetAlias() != nil {
		w.replace(ref.start, ref.end, view.SQL(), func() { rv.Schemaname, rv.Relname = view.Schema, view.Name })
		return
	}
	if ref.tableToken >= 0 { // TABLE takes no alias
		t := w.source.Tokens[ref.tableToken]
		w.replace(t.Start, t.End, "SELECT * FROM", func() {})
	}
	alias := rv.GetRelname()
	w.replace(ref.start, ref.end, view.SQL(), func() {
		rv.Schemaname, rv.Relname, rv.Alias = view.Schema, view.Name, &sqltext.Alias{Aliasname: alias}
	})
	w.replace(ref.aliasPosition(w.source), ref.aliasPosition(w.source), " AS "+catalog.QuoteIdent(alias), func() {})
}

// renamedViews tells how the server's messages name the views that were put in, and how the client knows the relations.
func (w *walker) renamedViews() []verdict.Renamed {
	out := make([]verdict.Renamed, 0, len(w.relationOfView))
	for view, relation := range w.relationOfView {
		client := relation.SQL()
		if relation.Schema == "pg_catalog" || slices.Contains(w.snap.SearchPath(), relation.Schema) {
			client = catalog.QuoteIdent(relation.Name)
		}
		r := verdict.Renamed{Server: view.SQL(), Client: client, View: view.Name, Relation: relation.Name}
		if table, listed := w.pol.Table(relation); listed && table.Columns != nil {
			for _, c := range table.Columns.Columns {
				r.Columns = append(r.Columns, catalog.QuoteIdent(c.Name))
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b verdict.Renamed) int {
		return cmp.Or(len(b.Server)-len(a.Server), strings.Compare(a.Server, b.Server))
	})
	return out
}

// aliasPosition is where an alias can be added: behind "t", "t *" or "ONLY (t)".
func (r *reference) aliasPosition(source *sqltext.Source) int32 {
	i := source.At(r.start)
	if source.Kind(i-1) == sqltext.OpenParen && source.Kind(i-2) == sqltext.Only {
		for ; i < len(source.Tokens); i++ {
			if source.Tokens[i].Kind == sqltext.CloseParen {
				return source.Tokens[i].End
			}
		}
	}
	return r.starEnd
}

func (w *walker) replace(start, end int32, text string, apply func()) {
	text = withSpaces(w.source.Text[:start], text, w.source.Text[end:])
	w.edits = append(w.edits,
		edit{Edit: sqltext.Edit{Start: start, End: end, Text: text}, apply: apply, treeOnly: w.repeated})
}

// withSpaces puts spaces around a text where it would grow together with its neighbours. Quoted names need no space in
// the client's text, and unquoted names may replace them.
func withSpaces(before, text, behind string) string {
	if text == "" {
		return text
	}
	grow := func(a, b byte) bool { return isWordByte(a) && isWordByte(b) || a == '"' && b == '"' }
	if before != "" && grow(before[len(before)-1], text[0]) {
		text = " " + text
	}
	if behind != "" && grow(text[len(text)-1], behind[0]) {
		text += " "
	}
	return text
}

func isWordByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// newFragment writes what replaces a table.
func newFragment(t *policy.Table, mode Mode) *fragment {
	f := &fragment{visible: t.VisibleRelation(), hashSets: predicate.Sets(t.Rows, t.Relation),
		attributeColumns:   attributeColumns(t),
		singleValueColumns: singleValueColumns(t), aggregate: t.Aggregate, runsUserCode: helpersRunUserCode(t)}
	f.hasSignedView, f.materialized = predicate.HasSignedView(t.Rows, t.Relation) && t.HasPlainColumns(),
		hasMaterializedConsent(t)
	f.hasHashedPart = f.hasSignedView && predicate.HasHashedPart(t.Rows, t.Relation)
	if t.Columns != nil {
		f.isPlain = t.Columns.IsPlain
		f.view, f.keyFunction = rowViewName(t.Relation.Name, mode), newKeyFunction(t, mode)
		f.sql = f.view.SQL()
		f.lacksRowSecurity = t.LacksRowSecurity()
		return f
	}
	condition, needsSignature := predicate.Inject(t.Rows, rowAlias)
	f.needsSignature, f.showsAllRows = needsSignature, condition == "true"
	f.setSubquery(t, condition, rowAlias)
	return f
}

// helpersRunUserCode tells whether PostgreSQL runs functions of an owner as it plans to read the helper tables of the
// rules, or finds rows there.
func helpersRunUserCode(t *policy.Table) bool {
	return slices.ContainsFunc(t.HelperTables(), func(h predicate.Helper) bool { return h.Relation.PlannerRunsUserCode })
}

// parseExpression returns the tree of one expression, or nil.
func parseExpression(sql string) *sqltext.Node {
	tree, refused := sqltext.Parse("SELECT " + sql)
	if refused != nil || len(tree.Stmts) != 1 {
		return nil
	}
	targets := tree.Stmts[0].GetStmt().GetSelectStmt().GetTargetList()
	if len(targets) != 1 {
		return nil
	}
	return targets[0].GetResTarget().GetVal()
}

// parseStatement returns the tree of a statement of pgconsent.
func parseStatement(sql string) *sqltext.Node {
	tree, refused := sqltext.Parse(sql)
	if refused != nil || len(tree.Stmts) != 1 {
		return nil
	}
	return tree.Stmts[0].GetStmt()
}
