package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// derivedBlock is `derived: { from: [ links ], unless: [ blocks ] … }`: the row was made from other rows, its sources,
// and shows only if they show.
type derivedBlock struct {
	place
	from []linkDecl
	// in place of from: a column that lists keys, and the table to which these keys belong
	sourcesColumn, sourceTable string
	sourcesAt, ofAt            place
	unless, where              []block
	inherit, onErase           string
}

// How much of a source's rule applies to a row that was made from the source.
const (
	inheritConsents   = "consents"   // the default: the whole rule except the blocks that say to whom the source belongs
	inheritEverything = "everything" // the whole rule
)

func (d *blockDecoder) decodeDerived(position place, n *node) block {
	b := derivedBlock{place: position, onErase: "erase"}
	one := func(target *string, label string, allowedWords ...string) func(*node) {
		return func(v *node) {
			d.decodeWord(target, label)(v)
			if *target != "" && !slices.Contains(allowedWords, *target) {
				d.fail(v.Place, closestOrAll(*target, allowedWords), "unknown word %q for %s", *target, label)
			}
		}
	}
	d.decodeFields(n, "derived", map[string]func(*node){
		"from": func(v *node) {
			if v.Kind == yamlfile.MappingNode {
				b.from = []linkDecl{d.decodeLink(v, "from")}
				return
			}
			if !d.requireKind(v, yamlfile.ListNode, "from") {
				return
			}
			for _, item := range v.Items {
				b.from = append(b.from, d.decodeLink(item, "from"))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name the table of the sources, and the link table before it if there is one", "from is empty")
			}
		},
		"sources":  d.decodeWordAt(&b.sourcesColumn, &b.sourcesAt, "sources"),
		"of":       d.decodeWordAt(&b.sourceTable, &b.ofAt, "of"),
		"unless":   func(v *node) { b.unless = d.decodeBlocks(v, "unless") },
		"where":    func(v *node) { b.where = d.decodeBlocks(v, "where") },
		"inherit":  one(&b.inherit, "inherit", inheritConsents, inheritEverything),
		"on_erase": one(&b.onErase, "on_erase", "erase", "keep"),
	})
	isList := b.sourcesColumn != "" || b.sourceTable != ""
	switch {
	case n.Kind != yamlfile.MappingNode:
	case len(b.from) == 0 && !isList && !slices.Contains(n.Keys, "from"):
		d.fail(n.Place, "write from: { table: { its column: the column it equals } }, or sources: a column with a "+
			"list of keys, and of: their table", "derived needs to know what a row is made from")
	case isList && slices.Contains(n.Keys, "from"):
		d.fail(n.Place, "write two blocks if rows are made from both", "derived goes by links or by a list, not both")
	case isList:
		d.requireFields(n, "derived", "sources", "of")
	}
	return b
}

// derivedNode compiles a derived block of a table's rule.
func (c *ruleCompiler) derivedNode(b derivedBlock, row *catalog.Relation) predicate.Node {
	return c.compileDerived(b, row, b.inherit == inheritEverything)
}

func (c *ruleCompiler) compileDerived(b derivedBlock, row *catalog.Relation, inheritsAll bool) predicate.Node {
	origin, ok := c.compileOrigin(b, row)
	if !ok {
		return predicate.Any{}
	}
	source, errorsBefore := origin.SourceTable(), len(c.errs)
	position := b.ofAt.OrElse(b.place)
	if len(b.from) > 0 {
		position = b.from[len(b.from)-1].place
	}
	sourceTable := c.tables[source.Name]
	isOwnTable := source.Name == row.Name
	switch {
	case sourceTable == nil && (len(b.where) == 0 || isOwnTable):
		c.fail(position, "list it under tables, or say under where what is asked of its rows",
			"the policy does not list %s, so nothing says what its people consented to", source.Name)
		return predicate.Any{}
	case isOwnTable && !slices.ContainsFunc(flatten(sourceTable.decl.rows, false),
		func(other block) bool { return other != nil && other.At() == b.place }):
		c.fail(b.place, "write it in the list of rows itself, and unless for rows that were made from no other",
			"rows of %s are made from each other: derived cannot stand within another block there", row.Name)
		return predicate.Any{}
	}
	out := predicate.Derived{Origin: origin}
	var rows predicate.All
	if sourceTable != nil {
		rows, out.SourceOrigins = c.inheritedRule(position, sourceTable, row, inheritsAll)
	}
	if len(out.SourceOrigins) > 0 {
		switch {
		case len(b.where) > 0:
			c.fail(b.place, "say it in the rule of the table itself",
				"rows of %s are made from each other: where would speak of some of them only", source.Name)
		case len(source.PrimaryKey) == 0:
			c.fail(position, "give it one",
				"rows of %s are made from each other, and it has no primary key to follow them by", source.Name)
		}
		for _, name := range source.PrimaryKey {
			key := source.Column(name)
			// triggers write the key as text, so equal keys must have the same text
			if baseType := c.comparedType(key); typeFamily(key.Type) == "" && typeFamily(baseType) != "text" &&
				!isBlankPadded(baseType) {
				c.fail(position,
					"follow rows by a key of uuid, integer, text, varchar, char or date columns, or of domains "+
						"over texts", "rows of %s are made from each other, and %s of its primary key is a %s", source.Name, name, key.Type)
			}
		}
	}
	if len(b.where) > 0 {
		rows = append(rows, c.compileOtherRows(b.where, source)...)
	}
	if len(rows) == 0 {
		rows = predicate.All{predicate.Open{}}
		c.warn(b.place, "%s asks for nothing but whose a row is: what was made from it shows wherever its sources "+
			"are there", source.Name)
	}
	if len(c.errs) > errorsBefore {
		return predicate.Any{}
	}
	out.Rows = rows
	return out
}

// inheritedRule returns the conditions that a row must meet because of its source. They are the rule of the source, and
// the conditions on how rows of the source's table are made from each other.
func (c *ruleCompiler) inheritedRule(position place, source *policyTable, row *catalog.Relation,
	inheritsAll bool) (rows predicate.All,
	ownOrigins []predicate.Origin) {
	name := source.relation.Name
	if i := slices.Index(c.tablePath, name); i >= 0 && (i < len(c.tablePath)-1 || row.Name != name) {
		var circle []string
		for _, n := range append(slices.Clone(c.tablePath[i:]), name) {
			circle = append(circle, n.String())
		}
		c.fail(position,
			"let one of them be made from rows outside the circle; only within one table may rows be made from each other",
			"derived goes round in a circle: %s", strings.Join(circle, " → "))
		return nil, nil
	}
	// The source's rule gives its warnings when the source's own table is compiled, so they are dropped here.
	defer func(path []catalog.Name, warnings []*Error) { c.tablePath, c.warnings = path, warnings }(c.tablePath, c.warnings)
	c.tablePath = append(slices.Clone(c.tablePath), name)
	for _, part := range flatten(source.decl.rows, false) {
		switch b := part.(type) {
		case openBlock, nil:
			continue
		case ownBlock, tenantBlock:
			if !inheritsAll {
				continue
			}
		case visibleBlock:
			if !inheritsAll {
				rows = append(rows, c.inheritedVisible(b, source.relation))
				continue
			}
		case derivedBlock:
			origin, ok := c.compileOrigin(b, source.relation)
			switch {
			case !ok:
				rows = append(rows, predicate.Any{})
			case origin.SourceTable().Name == name:
				ownOrigins = append(ownOrigins, origin)
			default:
				rows = append(rows, c.compileDerived(b, source.relation, inheritsAll && b.inherit == inheritEverything))
			}
			continue
		}
		rows = append(rows, c.compileOtherRows([]block{part}, source.relation)...)
	}
	return rows, ownOrigins
}

// inheritedVisible compiles a visible block of a source's rule. The result is the rule of the row to which the source
// refers, without the blocks that say to whom that row belongs.
func (c *ruleCompiler) inheritedVisible(b visibleBlock, row *catalog.Relation) predicate.Node {
	target := c.followLink(b.link, row)
	if target == nil || c.tables[target.Name] == nil {
		return predicate.Any{} // the error of that table's rule is reported at that table
	}
	firstPair := b.link.pairs[0]
	if b.rows != nil {
		otherBlocks := slices.DeleteFunc(flatten(allBlock{place: b.place, parts: b.rows}, false), func(part block) bool {
			switch part.(type) {
			case ownBlock, tenantBlock:
				return true
			}
			return false
		})
		rows := c.compileWhereOfKey("rows", otherBlocks, target)
		if rows == nil {
			rows = predicate.All{predicate.Open{}}
		}
		return predicate.Visible{Relation: target, Column: firstPair.Column, FromColumn: firstPair.FromColumn,
			MorePairs: b.link.otherPairs(),
			Rows:      rows}
	}
	rows, ownOrigins := c.inheritedRule(b.link.place, c.tables[target.Name], row, false)
	for _, origin := range ownOrigins {
		rows = append(rows, predicate.Derived{Origin: origin, Rows: conditionsOr(rows, predicate.All{predicate.Open{}}),
			SourceOrigins: ownOrigins})
	}
	if condition := c.compileWhere(b.where, target); condition != nil {
		rows = append(predicate.All{condition}, rows...)
	}
	return predicate.Visible{Relation: target, Column: firstPair.Column, FromColumn: firstPair.FromColumn,
		MorePairs: b.link.otherPairs(),
		Rows:      conditionsOr(rows, predicate.All{predicate.Open{}})}
}

// conditionsOr returns a copy of the conditions in rows, or, if rows is empty, of exceptions.
func conditionsOr(rows, exceptions predicate.All) predicate.All {
	if len(rows) == 0 {
		return exceptions
	}
	return slices.Clone(rows)
}
