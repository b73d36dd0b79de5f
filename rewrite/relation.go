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

// reference is one mention of a relation in the text.
type reference struct {
	name       catalog.Name
	relation   *catalog.Relation // the relation; nil for a catalog that the snapshot does not describe
	fragment   *fragment         // the subquery or view that can replace the relation; nil for a catalog
	shadowView catalog.Name      // the shadow view that replaces the catalog

	node       *sqltext.Node // the node that contains the RangeVar; nil in COPY
	rangeVar   *sqltext.RangeVar
	copyStmt   *sqltext.CopyStmt
	start, end int32 // where the name begins and ends, in bytes
	starEnd    int32 // the end of the * in "t *"; without a *, the same as end
	tableToken int   // the index of the token TABLE in "TABLE t", else -1
	columnsEnd int32 // in COPY, the end of the column list

	notInjectedBecause notInjectedReason
	sharesName         bool // another item of the same FROM has the same name
	allColumns         bool // the statement reads all columns of the relation
	rowType            bool // the statement reads all columns as a row value, and not only by a * in a target list
	starCount          int  // how many stars in target lists include the relation's columns
	isCopyFrom         bool // the relation is the target of COPY FROM
	isTarget           bool // the relation is the target of a statement that writes
	// set if the statement fixes the relation's key, so that the relation also has the columns that exist by key only
	keyLookup *keyLookup
	repeated  bool // the parser repeats this mention in the tree, so that edits of it change only the tree

	qualifiedColumns []*sqltext.ColumnRef // column references that name the relation with its schema
}

// doNotInject makes the text name the relation itself instead of a subquery. The first reason is recorded.
func (r *reference) doNotInject(reason notInjectedReason) {
	if r.notInjectedBecause == mayInject {
		r.notInjectedBecause = reason
	}
}

// unavailableRelationRefusal is the refusal of a relation that agents may not read. It is the same whether or not the
// relation exists.
func unavailableRelationRefusal(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
		"relation %q is not available to agents", name).
		WithHint("Agents can read what the policy lists. A table of yours must be listed under tables: in the " +
			"policy, a view of yours under views:.")
}

// resolveRelation returns the reference to the relation that a RangeVar means, or refuses the statement. The caller has
// checked that the RangeVar means no WITH query.
func (w *walker) resolveRelation(rv *sqltext.RangeVar) *reference {
	w.countNode("RangeVar")
	nameText := rv.GetRelname()
	if rv.GetSchemaname() != "" {
		nameText = rv.GetSchemaname() + "." + nameText
	}
	if rv.GetCatalogname() != "" {
		w.refuseAt(refusalOf("RangeVar.catalogname"), rv.GetLocation())
		return nil
	}
	if rv.GetRelpersistence() != "p" {
		w.refuseAt(refusalOf("RangeVar.relpersistence"), rv.GetLocation())
		return nil
	}
	name, found := w.snap.ResolveRelation(rv.GetSchemaname(), rv.GetRelname())
	if !found {
		w.refuseAt(unavailableRelationRefusal(nameText), rv.GetLocation())
		return nil
	}
	ref := &reference{name: name, rangeVar: rv, tableToken: -1, repeated: w.repeated}
	ref.relation, _ = w.snap.Relation(name)
	if name.Schema == "pg_catalog" || name.Schema == "information_schema" {
		shadow, ok := catalog.ShadowRelation(name)
		if !ok {
			w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
				"relation %q is not available to agents", nameText).
				WithHint("It tells about rows or sessions that are not visible. pg_class, pg_attribute, pg_type, "+
					"pg_constraint and information_schema describe the tables you can read."), rv.GetLocation())
			return nil
		}
		ref.shadowView = shadow
	} else if f := w.fragments[name]; f != nil && (f.visible.Kind == catalog.View || len(f.visible.Parents) > 0) {
		ref.fragment, ref.relation = f, f.visible
	} else if reason := childRefusalHint(w.pol, name); reason != "" {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
			"relation %q is not available to agents", nameText).
			WithHint("%s", reason), rv.GetLocation())
		return nil
	} else if table, ok := w.pol.Table(name); !ok {
		w.refuseAt(unavailableRelationRefusal(nameText), rv.GetLocation())
		return nil
	} else if reason := unreadableHint(table.Relation); reason != "" {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation,
			"relation %q is not available to agents", nameText).
			WithHint("%s", reason), rv.GetLocation())
		return nil
	} else {
		ref.fragment = w.fragments[name]
		ref.relation = ref.fragment.visible
		if ref.fragment.isView() && !rv.GetInh() && ref.relation.HasChildren {
			w.refuseAt(refusalOf("RangeVar.inh"), rv.GetLocation())
			return nil
		}
	}
	if !w.locateName(ref) {
		w.refuseAt(refusalOf("RangeVar.location"), rv.GetLocation())
		return nil
	}
	w.references = append(w.references, ref)
	w.noteSingleRowRead(ref)
	return ref
}

// childRefusalHint says why a statement may not name a partition or inheritance child of a table in the policy; "": the
// relation is not such a child.
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

// unreadableHint says why agents cannot read a relation although the policy lists it.
func unreadableHint(r *catalog.Relation) string {
	switch {
	case r.Kind == catalog.Table, r.Kind == catalog.PartitionedTable, r.Kind == catalog.MaterializedView,
		r.Kind == catalog.ForeignTable:
		return ""
	case r.Kind == catalog.View:
		return "It is a view, which reads with its owner's rights. Read the tables behind it."
	case r.Kind == catalog.Sequence:
		return "It is a sequence: its value counts rows that are not visible."
	}
	return "Relations of this kind cannot be read."
}

// locateName finds the tokens of the relation's name in the text, and tells whether it has found them.
func (w *walker) locateName(ref *reference) bool {
	i := w.source.TokenAt(ref.rangeVar.GetLocation())
	last := i
	if ref.rangeVar.GetSchemaname() != "" {
		last = i + 2
		if w.source.KindAt(i+1) != sqltext.Dot {
			return false
		}
	}
	if i < 0 || last >= len(w.source.Tokens) || !w.source.Tokens[i].IsName() || !w.source.Tokens[last].IsName() ||
		w.source.KindAt(last+1) == sqltext.Dot {
		return false
	}
	ref.start, ref.end = w.source.Tokens[i].Start, w.source.Tokens[last].End
	ref.starEnd = ref.end
	countBefore := i - 1
	for w.source.KindAt(countBefore) == sqltext.Only || w.source.KindAt(countBefore) == sqltext.OpenParen &&
		w.source.KindAt(countBefore-1) == sqltext.Only {
		countBefore--
	}
	if w.source.KindAt(countBefore) == sqltext.Table {
		ref.tableToken = countBefore
	}
	if w.source.KindAt(last+1) == sqltext.Star {
		ref.starEnd = w.source.Tokens[last+1].End
		ref.doNotInject(starTable)
	}
	if !ref.rangeVar.GetInh() {
		ref.doNotInject(onlyTable)
	}
	return true
}

// editReference adds the edits that replace a relation's name in the text.
func (w *walker) editReference(ref *reference, signable bool) {
	w.repeated = ref.repeated
	if ref.fragment == nil {
		if w.mustFenceCatalog(ref) {
			w.relationOfView[ref.shadowView] = ref.name
			w.addFence(ref, ref.shadowView.SQL())
			return
		}
		w.substituteView(ref, ref.shadowView)
		return
	}
	if ref.isCopyFrom && w.mode != AlwaysInjectedMode {
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
			ref.fragment.lacksPredicate; ref.fragment.lacksPredicate && w.mode == AlwaysInjectedMode {
			w.refuseAt(noPredicateRefusal(ref, "a view"), ref.start)
			return
		}
		if ref.copyStmt != nil {
			w.injectCopy(ref)
			return
		}
		if ref.isTarget { // a subquery with the predicate cannot be the target of a write
			if w.mode == AlwaysInjectedMode {
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
			w.addFence(ref, ref.fragment.view.SQL())
			return
		}
		w.substituteView(ref, ref.fragment.view)
		return
	}
	inject := (w.mode == InjectedMode || w.mode == AlwaysInjectedMode) && !ref.fragment.showsAllRows
	if inject && ref.notInjectedBecause == mayInject && ref.fragment.needsSignature && !signable {
		ref.doNotInject(unsignedText)
	}
	if inject && ref.notInjectedBecause != mayInject {
		if w.mode == AlwaysInjectedMode {
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
			w.listedColumns(ref)
			return
		}
		if w.mustFence(ref) {
			w.addFence(ref, ref.name.SQL())
			return
		}
		w.qualifyRelation(ref)
		return
	}
	if ref.fragment.subquery == nil || ref.fragment.subquery() == nil {
		w.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	w.needsSignature = w.needsSignature || ref.fragment.needsSignature
	if ref.copyStmt != nil {
		w.injectCopy(ref)
		return
	}
	if w.mustFence(ref) {
		w.addFence(ref, ref.fragment.sql)
		return
	}
	w.injectPredicate(ref)
}

// qualifyRelation writes the schema before the relation's name.
func (w *walker) qualifyRelation(ref *reference) {
	rv, name := ref.rangeVar, ref.name
	w.replace(ref.start, ref.end, name.SQL(), func() { rv.Schemaname, rv.Relname = name.Schema, name.Name })
}

// noPredicateRefusal refuses a relation whose predicate cannot be written into the text, for a mode in which row
// security alone is not enough.
func noPredicateRefusal(ref *reference, reason string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"relation %q cannot carry its predicate here (%s)", ref.name.String(), reason).
		WithHint("Row security alone would have to hold, which the mode of this server excludes.")
}

// injectPredicate replaces the name of a relation with the subquery that contains the predicate.
func (w *walker) injectPredicate(ref *reference) {
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

// substituteView replaces the name of a relation with a view of pgconsent. The view's alias is the name that the rest
// of the statement uses for the relation.
func (w *walker) substituteView(ref *reference, view catalog.Name) {
	w.relationOfView[view] = ref.name
	rv := ref.rangeVar
	if rv.GetAlias() != nil {
		w.replace(ref.start, ref.end, view.SQL(), func() { rv.Schemaname, rv.Relname = view.Schema, view.Name })
		return
	}
	if ref.tableToken >= 0 { // TABLE name cannot have an alias
		t := w.source.Tokens[ref.tableToken]
		w.replace(t.Start, t.End, "SELECT * FROM", func() {})
	}
	alias := rv.GetRelname()
	w.replace(ref.start, ref.end, view.SQL(), func() {
		rv.Schemaname, rv.Relname, rv.Alias = view.Schema, view.Name, &sqltext.Alias{Aliasname: alias}
	})
	w.replace(ref.aliasPosition(w.source), ref.aliasPosition(w.source), " AS "+catalog.QuoteIdent(alias), func() {})
}

// renamedViews returns for each view of pgconsent in the text the name that PostgreSQL's messages use, and the
// relation's name that the client used.
func (w *walker) renamedViews() []verdict.RenamedRelation {
	out := make([]verdict.RenamedRelation, 0, len(w.relationOfView))
	for view, relation := range w.relationOfView {
		client := relation.SQL()
		if relation.Schema == "pg_catalog" || slices.Contains(w.snap.SearchPath(), relation.Schema) {
			client = catalog.QuoteIdent(relation.Name)
		}
		r := verdict.RenamedRelation{ServerName: view.SQL(), ClientName: client, View: view.Name, Relation: relation.Name}
		if table, isListed := w.pol.Table(relation); isListed && table.Columns != nil {
			for _, c := range table.Columns.Columns {
				r.Columns = append(r.Columns, catalog.QuoteIdent(c.Name))
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b verdict.RenamedRelation) int {
		return cmp.Or(len(b.ServerName)-len(a.ServerName), strings.Compare(a.ServerName, b.ServerName))
	})
	return out
}

// aliasPosition returns the position at which the rewriter can add an alias: behind "t", "t *" or "ONLY (t)".
func (r *reference) aliasPosition(source *sqltext.Source) int32 {
	i := source.TokenAt(r.start)
	if source.KindAt(i-1) == sqltext.OpenParen && source.KindAt(i-2) == sqltext.Only {
		for ; i < len(source.Tokens); i++ {
			if source.Tokens[i].Kind == sqltext.CloseParen {
				return source.Tokens[i].End
			}
		}
	}
	return r.starEnd
}

// replace notes an edit: text takes the place of the part from start to end, and apply makes the same change in the
// tree.
func (w *walker) replace(start, end int32, text string, apply func()) {
	text = withSpaces(w.source.Text[:start], text, w.source.Text[end:])
	w.edits = append(w.edits,
		edit{Edit: sqltext.Edit{Start: start, End: end, Text: text}, apply: apply, treeOnly: w.repeated})
}

// withSpaces adds spaces around a text if PostgreSQL would otherwise read it as one token with its neighbours. This
// happens if an unquoted name takes the place of a quoted name, which needs no spaces.
func withSpaces(before, text, after string) string {
	if text == "" {
		return text
	}
	grow := func(a, b byte) bool { return isWordByte(a) && isWordByte(b) || a == '"' && b == '"' }
	if before != "" && grow(before[len(before)-1], text[0]) {
		text = " " + text
	}
	if after != "" && grow(text[len(text)-1], after[0]) {
		text += " "
	}
	return text
}

func isWordByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// newFragment returns the fragment of a table: what the rewriter can put in the table's place.
func newFragment(t *policy.Table, mode Mode) *fragment {
	f := &fragment{visible: t.VisibleRelation(), hashSets: predicate.HashedSets(t.Rows, t.Relation),
		attributeColumns:   attributeColumns(t),
		singleValueColumns: singleValueColumns(t), aggregate: t.Aggregate, runsUserCode: lookupTablesRunUserCode(t)}
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
	condition, needsSignature := predicate.InjectedCondition(t.Rows, rowAlias)
	f.needsSignature, f.showsAllRows = needsSignature, condition == "true"
	f.setSubquery(t, condition, rowAlias)
	return f
}

// lookupTablesRunUserCode tells whether PostgreSQL may run functions of an owner when it plans a query of the lookup
// tables in a table's rule, or searches them.
func lookupTablesRunUserCode(t *policy.Table) bool {
	return slices.ContainsFunc(t.LookupTables(),
		func(h predicate.LookupTable) bool { return h.Relation.PlannerRunsUserCode })
}

// parseExpression returns the tree of a single SQL expression, or nil if it does not parse.
func parseExpression(sql string) *sqltext.Node {
	tree, refusal := sqltext.Parse("SELECT " + sql)
	if refusal != nil || len(tree.Stmts) != 1 {
		return nil
	}
	targets := tree.Stmts[0].GetStmt().GetSelectStmt().GetTargetList()
	if len(targets) != 1 {
		return nil
	}
	return targets[0].GetResTarget().GetVal()
}

// parseStatement returns the tree of a statement that pgconsent has written.
func parseStatement(sql string) *sqltext.Node {
	tree, refusal := sqltext.Parse(sql)
	if refusal != nil || len(tree.Stmts) != 1 {
		return nil
	}
	return tree.Stmts[0].GetStmt()
}
