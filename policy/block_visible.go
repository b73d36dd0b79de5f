package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// decodeVisible reads a visible block: a link to another table, and with the keys where or rows also conditions on the
// row there.
func (d *blockDecoder) decodeVisible(position place, n *node) block {
	b := visibleBlock{place: position}
	link := *n
	for _, key := range []string{"where", "rows"} {
		i := slices.Index(n.Keys, key)
		if n.Kind != yamlfile.MappingNode || len(n.Keys) != 2 || i < 0 {
			continue
		}
		if blocks := d.decodeBlocks(n.Values[i], key); key == "where" {
			b.where = blocks
		} else {
			b.rows = blocks
		}
		link.Keys, link.KeyPlaces, link.Values = n.Keys[1-i:2-i], n.KeyPlaces[1-i:2-i], n.Values[1-i:2-i]
		break
	}
	b.link = d.decodeLink(&link, "visible")
	return b
}

// decodeLink reads a link to another table: `{ table: { its column: column } }`.
func (d *blockDecoder) decodeLink(n *node, label string) linkDecl {
	shape := "write { table: { its column: the column it equals } }, one pair for each column of the key"
	if n.Kind != yamlfile.MappingNode || len(n.Keys) != 1 || n.Values[0].Kind != yamlfile.MappingNode ||
		len(n.Values[0].Keys) == 0 {
		d.fail(n.Place, shape, "%s needs one table with its columns", label)
		return linkDecl{place: n.Place}
	}
	out := linkDecl{place: n.KeyPlaces[0], table: n.Keys[0]}
	for i, valueNode := range n.Values[0].Values {
		if valueNode.Kind != yamlfile.ScalarNode || valueNode.Value == "" {
			d.fail(valueNode.Place, shape, "a column is a single name")
		}
		out.pairs = append(out.pairs, predicate.ColumnPair{Column: n.Values[0].Keys[i], FromColumn: valueNode.Value})
		out.pairsAt = append(out.pairsAt, n.Values[0].KeyPlaces[i])
	}
	return out
}

// compileVisible compiles a visible block, which shows a row only if rows of other tables are visible.
func (c *ruleCompiler) compileVisible(b visibleBlock, row *catalog.Relation) predicate.Node {
	target := c.followLink(b.link, row)
	if target == nil {
		return predicate.Any{}
	}
	if _, ok := c.tables[target.Name]; !ok {
		c.fail(b.link.place, "list it under tables", "no row of %s is visible, since the policy does not list it", target.Name)
		return predicate.Any{}
	}
	firstPair := b.link.pairs[0]
	if b.rows != nil {
		return predicate.Visible{Relation: target, Column: firstPair.Column, FromColumn: firstPair.FromColumn,
			MorePairs: b.link.otherPairs(),
			Rows:      c.compileWhereOfKey("rows", b.rows, target)}
	}
	if i := slices.Index(c.tablePath, target.Name); i >= 0 {
		var circle []string
		for _, n := range append(slices.Clone(c.tablePath[i:]), target.Name) {
			circle = append(circle, n.String())
		}
		c.fail(b.link.place,
			"let one of them stand on its own columns, or say under rows what the row that it points to must be "+
				"instead", "visible goes round in a circle: %s", strings.Join(circle, " → "))
		return predicate.Any{}
	}
	if !b.link.coversKey(target.PrimaryKey) && len(b.where) == 0 {
		c.warn(b.link.place, "%s.%s is not its primary key: one visible row of several is enough", target.Name,
			firstPair.Column)
	}
	rows := c.tableRule(target.Name)
	if condition := c.compileWhere(b.where, target); condition != nil {
		rows = predicate.All{condition, rows}
	}
	return predicate.Visible{Relation: target, Column: firstPair.Column, FromColumn: firstPair.FromColumn,
		MorePairs: b.link.otherPairs(),
		Rows:      rows}
}
