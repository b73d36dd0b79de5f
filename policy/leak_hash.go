package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// hashedColumn names a column that comes out as a hash and gets what agents write into a column: that itself, what is
// computed from it, or, as they update it, what follows by a foreign key. "": there is none.
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

// whyHashed tells why agents do not write a column: what they write comes out as a hash.
func (c *writeLeaks) whyHashed(r *catalog.Relation, column string, update bool) string {
	hash := c.hashedColumn(r, column, update, map[string]bool{})
	if hash == "" {
		return ""
	}
	return hash + " gets what is written there and comes out as a hash, to which agents could hold the other hashes"
}

// whyStampHashed tells why agents insert no rows: a stamp may be what they send, and comes out as a hash. One of their
// credential is theirs, and no guess; nor is one of a setting, which is held to what the policy lets through.
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
