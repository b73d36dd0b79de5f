package policy

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ByKey are the columns of a table that exist only in statements that compare all columns of a key of the table with
// constants.
type ByKey struct {
	Columns []VisibleColumn // the columns, in the order of the table
	// the columns that exist in such statements: those by key, and those that always exist, in the table's order
	AllColumns []VisibleColumn
	Key        []string // the statement compares each of these columns with a constant
	MaxKeys    int      // the largest number of keys that one mention of the table may name
}

// Has tells whether a column exists only in statements that name a whole key.
func (k *ByKey) Has(column string) bool {
	return k != nil && slices.ContainsFunc(k.Columns, func(c VisibleColumn) bool { return c.Name == column })
}

// maxKeys is the largest value of at_most. A statement that fetches more keys at once does not fetch known rows, but
// lists a table.
const maxKeys = 100

// byKeyDecl is the value of the key by_key of a column.
type byKeyDecl struct {
	place
	key     []string // the names of the key's columns; nil: the primary key
	maxKeys int      // the number in at_most; 0 means one
}

func (d *tableDecoder) decodeByKey(position place, label string, n *node) *byKeyDecl {
	decl := &byKeyDecl{place: position}
	if n.Kind == yamlfile.NullNode {
		return decl
	}
	d.decodeFields(n, "by_key of "+label, map[string]func(*node){
		"key": func(v *node) {
			if v.Kind == yamlfile.ScalarNode {
				decl.key = []string{v.Value}
				return
			}
			if !d.requireKind(v, yamlfile.ListNode, "key") {
				return
			}
			for _, item := range v.Items {
				if d.requireKind(item, yamlfile.ScalarNode, "a column of key") {
					decl.key = append(decl.key, item.Value)
				}
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "leave key out to mean the primary key", "key is empty")
			}
		},
		"at_most": func(v *node) {
			if !d.requireKind(v, yamlfile.ScalarNode, "at_most") {
				return
			}
			n, err := strconv.Atoi(v.Value)
			if err != nil || v.ScalarType != yamlfile.IntegerScalar || n < 1 || n > maxKeys {
				d.fail(v.Place, "", "at_most is a number of keys from 1 to %d", maxKeys)
				return
			}
			decl.maxKeys = n
		},
	})
	return decl
}

// compileByKey checks the columns with by_key. The result is nil if there are none.
func (c *columnCompiler) compileByKey(decl tableDecl, r *catalog.Relation, list *VisibleColumns, allColumns,
	columns []VisibleColumn) *ByKey {
	out := &ByKey{Columns: columns, AllColumns: allColumns}
	var first *byKeyDecl
	for _, d := range decl.columns {
		if d.byKey == nil {
			continue
		}
		key, atMost := d.byKey.key, max(d.byKey.maxKeys, 1)
		if key == nil {
			key = r.PrimaryKey
		}
		switch {
		case first == nil:
			first, out.Key, out.MaxKeys = d.byKey, key, atMost
		case !slices.Equal(key, out.Key) || atMost != out.MaxKeys:
			c.fail(d.byKey.place, "", "the columns of %s that exist by key must have one key and one at_most", r.Name)
			return nil
		}
	}
	switch {
	case first == nil:
		return nil
	case len(columns) == 0: // an error was reported for each of these columns
		return nil
	case lacksRowSecurity(r):
		c.fail(first.place, "", "%s is a %s: by_key needs a table, whose rows row security holds", r.Name, relationKind(r.Kind))
		return nil
	case len(out.Key) == 0:
		c.fail(first.place, "say which unique key is meant: { by_key: { key: [ ... ] } }", "%s has no primary key", r.Name)
		return nil
	case !c.checkUniqueKey(first.place, r, out.Key):
		return nil
	case out.MaxKeys > 1 && len(out.Key) > 1:
		c.fail(first.place, "leave at_most out",
			"the key of %s has %d columns: several keys at a time are for keys of one column", r.Name, len(out.Key))
		return nil
	}
	for _, name := range out.Key {
		if !list.IsPlain(name) {
			c.fail(first.place, "add it under columns: "+name+": allow",
				"%s.%s is part of the key by which columns are fetched, and must show as it is", r.Name, name)
			return nil
		}
		if column := r.Column(name); typeFamily(column.Type) == "" {
			c.fail(first.place, "keys are of uuid, integer, text and date columns",
				"%s.%s is a %s, which cannot be a key to fetch by", r.Name, name, column.Type)
			return nil
		}
	}
	return out
}
