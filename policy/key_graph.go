package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// keyGraph finds the partitions, inheritance children, unique keys and foreign keys of tables, and how they depend on
// each other. A partition may have keys of its own, and foreign keys may refer to a partition directly.
type keyGraph struct{ snap *catalog.Snapshot }

// withParts returns a table and all its partitions and inheritance children, at any depth.
func (c *keyGraph) withParts(r *catalog.Relation) []*catalog.Relation {
	out := []*catalog.Relation{r}
	for i := 0; i < len(out); i++ {
		if !out[i].HasChildren {
			continue
		}
		for _, partition := range c.snap.Relations() {
			if slices.Contains(partition.Parents, out[i].Name) && !slices.Contains(out, partition) {
				out = append(out, partition)
			}
		}
	}
	return out
}

// partitionedParents returns the tables of which a table is a partition, at any depth. A foreign key to one of them may
// refer to a row in the partition.
func (c *keyGraph) partitionedParents(r *catalog.Relation) []*catalog.Relation {
	var out []*catalog.Relation
	for partition := r; partition != nil && partition.IsPartition && len(partition.Parents) > 0; {
		parent, ok := c.snap.Relation(partition.Parents[0])
		if !ok {
			break
		}
		out, partition = append(out, parent), parent
	}
	return out
}

// withSources adds to the named columns those from which their generated columns are computed.
func withSources(r *catalog.Relation, names []string) []string {
	out := slices.Clone(names)
	for _, name := range names {
		if column := r.Column(name); column != nil {
			out = append(out, column.ComputedFrom...)
		}
	}
	return out
}

// withComputed adds to the named columns the generated columns that are computed from them.
func withComputed(r *catalog.Relation, names []string) []string {
	out := slices.Clone(names)
	for _, column := range r.Columns {
		if haveCommonElement(column.ComputedFrom, names) {
			out = append(out, column.Name)
		}
	}
	return out
}

// uniqueKeys returns the unique keys of a table and its partitions. If a key contains a generated column, the columns
// from which it is computed count as columns of the key.
func (c *keyGraph) uniqueKeys(r *catalog.Relation) []catalog.Key {
	var out []catalog.Key
	for _, partition := range c.withParts(r) {
		for _, key := range partition.UniqueKeys {
			key.Columns = withSources(partition, key.Columns)
			out = append(out, key)
		}
	}
	return out
}

// partForeignKeys returns the foreign keys that partitions of a table have and the table itself lacks.
func (c *keyGraph) partForeignKeys(r *catalog.Relation) []referringKey {
	var out []referringKey
	for _, partition := range c.withParts(r)[1:] {
		for _, key := range partition.ForeignKeys {
			if !slices.ContainsFunc(r.ForeignKeys, func(k catalog.ForeignKey) bool { return sameForeignKey(k, key) }) {
				out = append(out, referringKey{partition, key})
			}
		}
	}
	return out
}

// referringKey is a foreign key, with the table that has it.
type referringKey struct {
	table *catalog.Relation
	key   catalog.ForeignKey
}

// sameForeignKey tells whether two foreign keys have the same columns and target.
func sameForeignKey(a, b catalog.ForeignKey) bool {
	return a.Target == b.Target && slices.Equal(a.Columns, b.Columns) && slices.Equal(a.TargetColumns, b.TargetColumns)
}

// isInheritedKey tells whether a partition has a foreign key only because its parent table has the key.
func (c *keyGraph) isInheritedKey(r *catalog.Relation, key catalog.ForeignKey) bool {
	return slices.ContainsFunc(c.partitionedParents(r), func(parent *catalog.Relation) bool {
		return slices.ContainsFunc(parent.ForeignKeys, func(k catalog.ForeignKey) bool { return sameForeignKey(k, key) })
	})
}

// referringKeys returns the foreign keys that refer to the given columns of a table or its partitions. Rows with these
// foreign keys depend on a row whose columns change. If keys is nil, the row is deleted, and all foreign keys to the
// table count.
func (c *keyGraph) referringKeys(r *catalog.Relation, keys []string) []referringKey {
	var out []referringKey
	targets := append(c.withParts(r), c.partitionedParents(r)...)
	for _, source := range c.snap.Relations() {
		for _, key := range source.ForeignKeys {
			i := slices.IndexFunc(targets, func(target *catalog.Relation) bool { return target.Name == key.Target })
			if i < 0 || keys != nil && !haveCommonElement(key.TargetColumns, withComputed(targets[i], keys)) ||
				c.isInheritedKey(source, key) {
				continue
			}
			out = append(out, referringKey{source, key})
		}
	}
	return out
}

// keyAction returns what a foreign key does to the referring rows when the columns keys of the referenced row change.
// changedColumns are the columns of the referring rows that it sets. keys is nil if the referenced row is deleted.
func (c *keyGraph) keyAction(key catalog.ForeignKey, keys []string) (action catalog.Action, changedColumns []string) {
	action, changedColumns = key.OnUpdate, key.Columns
	if keys == nil {
		if action = key.OnDelete; (action == catalog.SetNull || action == catalog.SetDefault) && len(key.SetNullColumns) > 0 {
			changedColumns = key.SetNullColumns
		}
	} else if action == catalog.Cascade {
		target, _ := c.snap.Relation(key.Target)
		changedColumns = slices.DeleteFunc(slices.Clone(changedColumns), func(name string) bool {
			return !slices.Contains(withComputed(target, keys), key.TargetColumns[slices.Index(key.Columns, name)])
		})
	}
	return action, changedColumns
}

// isReferredTo tells whether a foreign key refers to a column, or to a generated column that is computed from it.
func (c *keyGraph) isReferredTo(r *catalog.Relation, column string) bool {
	targets := append(c.withParts(r), c.partitionedParents(r)...)
	return slices.ContainsFunc(c.snap.Relations(), func(source *catalog.Relation) bool {
		return slices.ContainsFunc(source.ForeignKeys, func(key catalog.ForeignKey) bool {
			return slices.ContainsFunc(targets, func(target *catalog.Relation) bool {
				return target.Name == key.Target && haveCommonElement(key.TargetColumns, withComputed(target, []string{column}))
			})
		})
	})
}
