package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// A hash keeps agents from testing guesses, because they have no key. If PostgreSQL hashes a value of their choice,
// they need none. So agents do not write what reaches a hashed column.

// hashedColumn returns a hashed column that receives what agents write into a column: the column itself, one that is
// computed from it, or, on UPDATE, a column that follows by a foreign key. "": there is none.
func (c *writeLeaks) hashedColumn(r *catalog.Relation, column string, update bool, seen map[string]bool) string {
	if seen[r.Name.String()+" "+column] {
		return ""
	}
	seen[r.Name.String()+" "+column] = true
	targets := append(c.graph.withParts(r), c.graph.partitionedParents(r)...)
	for _, part := range targets {
		for _, name := range withComputed(part, []string{column}) {
			for _, listed := range targets {
				if t := c.tables[listed.Name]; t != nil && t.decl.showsHash(name) {
					return listed.Name.String() + "." + name
				}
			}
			for _, from := range c.snap.Relations() {
				for _, key := range from.ForeignKeys {
					if i := slices.Index(key.TargetCols, name); update && key.OnUpdate == catalog.Cascade &&
						key.Target == part.Name && i >= 0 {
						if hash := c.hashedColumn(from, key.Columns[i], true, seen); hash != "" {
							return hash
						}
					}
				}
			}
		}
	}
	return ""
}

// whyHashed says why agents must not write a column because of a hashed one; "": they may.
func (c *writeLeaks) whyHashed(r *catalog.Relation, column string, update bool) string {
	hash := c.hashedColumn(r, column, update, map[string]bool{})
	if hash == "" {
		return ""
	}
	return hash + " gets what is written there and comes out as a hash, to which agents could hold the other hashes"
}

// whyStampHashed says why agents must not insert rows: a stamp may be a value of the agent's choice, and a hashed
// column receives it. A stamp from the credential is no choice, and neither is one from a setting, whose values the
// policy permits. "": they may insert.
func (c *writeLeaks) whyStampHashed(decl *writeDecl, t *policyTable) string {
	for _, s := range decl.stamps {
		if s.unless != nil && t.decl.showsPlain(s.column) {
			if why := c.whyHashed(t.relation, s.column, false); why != "" {
				return why
			}
		}
	}
	return ""
}
