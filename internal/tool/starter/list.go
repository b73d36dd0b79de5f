package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// list decides which tables can be listed: first those with columns of their own that say who sees a row, then those
// that refer to a listed one, to any depth, and last those of which only the author is known.
func (s *survey) list() {
	for _, r := range s.tables {
		if !s.denyUnlistable(r) && s.ownColumns(r) {
			s.rank[r] = 1
		}
	}
	s.listReferring()
	rank := 1 + len(s.tables)
	for _, r := range s.tables {
		if c := s.columns[r].author; c != nil && s.rank[r] == 0 && s.denied[r] == "" && s.user.fits(c) {
			s.rank[r] = rank
		}
	}
	s.listReferring()
	for _, r := range s.tables {
		if s.rank[r] == 0 && s.denied[r] == "" && s.whyReferenceData(r) != "" && !s.showsSome(r) {
			s.rank[r] = -1
		}
	}
	s.addVisibleLinks()
}

// listReferring lists the tables that refer to a listed one.
func (s *survey) listReferring() {
	for again := true; again; {
		again = false
		rank := 0
		for _, r := range s.tables {
			rank = max(rank, s.rank[r])
		}
		for _, r := range s.tables {
			if s.rank[r] != 0 || s.denied[r] != "" {
				continue
			}
			base := s.requiredLinks(r, rank)
			if len(base) == 0 {
				continue
			}
			s.rank[r], again = rank+1, true
			s.parents[r] = base
		}
	}
}

// requiredLinks are the links to listed tables that decide for a table without such columns of its own: the links that
// are NOT NULL, or all if there is none. Tables of accounts and tenants do not count: a row that refers to an account
// need not belong to it.
func (s *survey) requiredLinks(r *catalog.Relation, rank int) []parent {
	var must, may []parent
	for _, l := range s.links(r) {
		switch {
		case s.rank[l.to] <= 0 || s.rank[l.to] > rank || l.to == r || s.isIdentityTable(l.to):
		case l.notNull:
			must = append(must, parent{l, false})
		default:
			may = append(may, parent{l, false})
		}
	}
	if len(must) > 0 {
		return must
	}
	return may
}

// parent is a link to a table whose rule holds for the rows that refer to it as well.
type parent struct {
	link
	optional bool // a row that refers to none shows
}

// addVisibleLinks adds to every listed table links to the other listed tables to which it refers, so that a row does
// not show while the row that it refers to is hidden. It leaves out links that would close a circle.
func (s *survey) addVisibleLinks() {
	for _, r := range s.tables {
		if s.rank[r] <= 0 {
			continue
		}
		for _, l := range s.links(r) {
			if s.rank[l.to] <= 0 || s.isIdentityTable(l.to) ||
				slices.ContainsFunc(s.parents[r], func(p parent) bool { return slices.Equal(p.columns, l.columns) && p.to == l.to }) {
				continue
			}
			if l.to == r || s.dependsOn(l.to, r, map[*catalog.Relation]bool{}) {
				s.circles[r] = append(s.circles[r], l)
				continue
			}
			s.parents[r] = append(s.parents[r], parent{l, !l.notNull})
		}
	}
}

// dependsOn tells whether the rule of one table reads another.
func (s *survey) dependsOn(from, to *catalog.Relation, seen map[*catalog.Relation]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(s.parents[from], func(p parent) bool { return p.to == to || s.dependsOn(p.to, to, seen) })
}

// isConsentRegister tells whether a table looks like a register of consents.
func isConsentRegister(r *catalog.Relation) bool {
	name := singular(r.Name.Name)
	return oneOf(name, consentTables) || slices.Contains(strings.Split(name, "_"), "consent")
}

// denyUnlistable denies a table that cannot be listed whatever its columns are, with the reason.
func (s *survey) denyUnlistable(r *catalog.Relation) bool {
	name := singular(r.Name.Name)
	switch {
	case isConsentRegister(r):
		s.denied[r] = "it looks like a register of consents; agents need not read it, and which of its records " +
			"counts is for a person to say"
	case oneOf(lastWord(name), "session token migration secret credential") && len(s.columns[r].secrets) > 0 ||
		oneOf(name, keyTables) || oneOf(name, bookkeeping):
		s.denied[r] = "it looks like the application's own bookkeeping or secrets"
	case len(r.Columns) == 0:
		s.denied[r] = "it has no columns"
	}
	for _, c := range s.columns[r].consent {
		if s.denied[r] != "" {
			break
		}
		if _, why := s.consentBlock(r, c); why != "" {
			s.denied[r] = why
		}
	}
	return s.denied[r] != ""
}

// ownColumns tells whether a table's own columns say who may see a row.
func (s *survey) ownColumns(r *catalog.Relation) bool {
	roles := s.columns[r]
	if roles.owner != nil && !s.user.fits(roles.owner) {
		s.denied[r] = fmt.Sprintf("%s is a %s and the attribute user a %s: they do not compare", roles.owner.Name,
			roles.owner.Type, s.user.Type)
		return false
	}
	for _, c := range roles.tenants {
		if a := s.tenantAttrs[s.tenantKey(r, c)]; !a.fits(c) {
			s.denied[r] = fmt.Sprintf("%s is a %s, and other tables have another type for it", c.Name, c.Type)
			return false
		}
	}
	if s.isIdentityTable(r) {
		return slices.Contains(s.users, r) && s.user.fits(r.Column(r.PrimaryKey[0])) ||
			s.tenantOf(r).fits(r.Column(r.PrimaryKey[0]))
	}
	return roles.owner != nil || len(roles.tenants) > 0 || s.user.grants(roles) != nil || s.isPersonTable(r) &&
		s.consents(r)
}

// tenantOf is the attribute whose values are the keys of a table of tenants.
func (s *survey) tenantOf(r *catalog.Relation) *Attribute {
	if !slices.Contains(s.tenants, r) {
		return nil
	}
	return s.tenantAttrs[s.tenantName(lastWord(singular(r.Name.Name)))]
}

// grants is the column that lists to whom a row is shown.
func (a *Attribute) grants(roles *roles) *catalog.Column {
	if a == nil {
		return nil
	}
	for _, c := range roles.grants {
		element := strings.TrimSuffix(c.Type, "[]")
		if element == c.Type || family(element) == "text" || family(element) == family(a.Type) {
			return c
		}
	}
	return nil
}

// isPersonTable tells whether a table has persons as rows.
func (s *survey) isPersonTable(r *catalog.Relation) bool {
	return oneOf(lastWord(singular(r.Name.Name)), personTables)
}

func (s *survey) consents(r *catalog.Relation) bool { return len(s.columns[r].consent) > 0 }

// whyReferenceData returns why a table looks like reference data; "" if it does not.
func (s *survey) whyReferenceData(r *catalog.Relation) string {
	name := singular(r.Name.Name)
	if !oneOf(name, referenceTables) && !oneOf(lastWord(name), referenceEnds) {
		return ""
	}
	roles := s.columns[r]
	if roles.author != nil || slices.ContainsFunc(r.ForeignKeys,
		func(k catalog.ForeignKey) bool { return k.Target != r.Name }) {
		return ""
	}
	for _, c := range r.Columns {
		word := snake(c.Name)
		if !oneOf(word, plainColumns) && word != name && !strings.HasPrefix(word, lastWord(name)+"_") {
			return ""
		}
	}
	return "its name, its few plain columns and its lack of foreign keys to others look like reference data"
}
