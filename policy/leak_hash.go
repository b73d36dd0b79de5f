package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Agents cannot test guesses of a hashed value, because they do not have the key of the hash. But if they could write a
// value and see its hash, they could test guesses without the key. So agents may not write a value that reaches a
// hashed column.

// hashedColumn returns a hashed column that gets the value which agents write into a column; "": there is none. It is
// the column itself, a column computed from it, or, on UPDATE, a column to which ON UPDATE CASCADE passes the value.
func (c *writeLeakChecker) hashedColumn(r *catalog.Relation, column string, update bool, seen map[string]bool) string {
	if seen[r.Name.String()+" "+column] {
		return ""
	}
	seen[r.Name.String()+" "+column] = true
	targets := append(c.graph.withParts(r), c.graph.partitionedParents(r)...)
	for _, partition := range targets {
		for _, name := range withComputed(partition, []string{column}) {
			for _, target := range targets {
				if t := c.tables[target.Name]; t != nil && t.decl.isHashedColumn(name) {
					return target.Name.String() + "." + name
				}
			}
			for _, source := range c.snap.Relations() {
				for _, key := range source.ForeignKeys {
					if i := slices.Index(key.TargetColumns, name); update && key.OnUpdate == catalog.Cascade &&
						key.Target == partition.Name && i >= 0 {
						if hash := c.hashedColumn(source, key.Columns[i], true, seen); hash != "" {
							return hash
						}
					}
				}
			}
		}
	}
	return ""
}

// whyHashed says why agents may not write a column, because its value reaches a hashed column; "": they may.
func (c *writeLeakChecker) whyHashed(r *catalog.Relation, column string, update bool) string {
	hash := c.hashedColumn(r, column, update, map[string]bool{})
	if hash == "" {
		return ""
	}
	return hash + " gets what is written there and comes out as a hash, to which agents could hold the other hashes"
}

// whyStampHashed says why agents may not insert rows: a stamp may let through a value of the agent's choice, and a
// hashed column gets that value. Stamps from the credential, or from a setting with permitted values, let no such value
// through. "": they may insert.
func (c *writeLeakChecker) whyStampHashed(decl *writeDecl, t *policyTable) string {
	for _, s := range decl.stamps {
		if s.unless != nil && t.decl.isPlainColumn(s.column) {
			if reason := c.whyHashed(t.relation, s.column, false); reason != "" {
				return reason
			}
		}
	}
	return ""
}
