package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// chooseTables decides which tables can be listed: first those with columns of their own that say who sees a row, then
// those that refer to a listed one, to any depth, and last those of which only the author is known.
func (s *schemaSurvey) chooseTables() {
	for _, r := range s.tables {
		if !s.denyUnlistable(r) && s.hasOwnColumns(r) {
			s.listingRound[r] = 1
		}
	}
	s.listReferring()
	rank := 1 + len(s.tables)
	for _, r := range s.tables {
		if c := s.columnRoles[r].authorColumn; c != nil && s.listingRound[r] == 0 && s.denialReasons[r] == "" &&
			s.userAttribute.comparesWith(c) {
			s.listingRound[r] = rank
		}
	}
	s.listReferring()
	for _, r := range s.tables {
		if s.listingRound[r] == 0 && s.denialReasons[r] == "" && s.whyReferenceData(r) != "" && !s.hasRestrictivePolicy(r) {
			s.listingRound[r] = -1
		}
	}
	s.addVisibleLinks()
}

// listReferring lists the tables that refer to a listed one.
func (s *schemaSurvey) listReferring() {
	for changed := true; changed; {
		changed = false
		rank := 0
		for _, r := range s.tables {
			rank = max(rank, s.listingRound[r])
		}
		for _, r := range s.tables {
			if s.listingRound[r] != 0 || s.denialReasons[r] != "" {
				continue
			}
			base := s.requiredLinks(r, rank)
			if len(base) == 0 {
				continue
			}
			s.listingRound[r], changed = rank+1, true
			s.parentLinks[r] = base
		}
	}
}

// requiredLinks returns the links to listed tables that decide for a table without such columns of its own: the links
// that are NOT NULL, or all if none is. Tables of accounts and tenants do not count: a row that refers to an account
// need not belong to it.
func (s *schemaSurvey) requiredLinks(r *catalog.Relation, rank int) []parentLink {
	var required, optional []parentLink
	for _, l := range s.linksOf(r) {
		switch {
		case s.listingRound[l.target] <= 0 || s.listingRound[l.target] > rank || l.target == r || s.isIdentityTable(l.target):
		case l.notNull:
			required = append(required, parentLink{l, false})
		default:
			optional = append(optional, parentLink{l, false})
		}
	}
	if len(required) > 0 {
		return required
	}
	return optional
}

// parentLink is a link to a table whose rule also holds for the rows that refer to it.
type parentLink struct {
	tableLink
	isOptional bool // a row shows also if its link is NULL
}

// addVisibleLinks adds to every listed table links to the other listed tables to which it refers, so that a row does
// not show while the row that it refers to is hidden. It leaves out links that would close a circle.
func (s *schemaSurvey) addVisibleLinks() {
	for _, r := range s.tables {
		if s.listingRound[r] <= 0 {
			continue
		}
		for _, l := range s.linksOf(r) {
			if s.listingRound[l.target] <= 0 || s.isIdentityTable(l.target) ||
				slices.ContainsFunc(s.parentLinks[r], func(p parentLink) bool {
					return slices.Equal(p.columns, l.columns) &&
						p.target == l.target
				}) {
				continue
			}
			if l.target == r || s.dependsOn(l.target, r, map[*catalog.Relation]bool{}) {
				s.circleLinks[r] = append(s.circleLinks[r], l)
				continue
			}
			s.parentLinks[r] = append(s.parentLinks[r], parentLink{l, !l.notNull})
		}
	}
}

// dependsOn reports whether the rule of one table reads another table.
func (s *schemaSurvey) dependsOn(from, to *catalog.Relation, seen map[*catalog.Relation]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(s.parentLinks[from],
		func(p parentLink) bool { return p.target == to || s.dependsOn(p.target, to, seen) })
}

// isConsentRegister reports whether a table looks like a register of consents.
func isConsentRegister(r *catalog.Relation) bool {
	name := singularWord(r.Name.Name)
	return isOneOf(name, consentTables) || slices.Contains(strings.Split(name, "_"), "consent")
}

// denyUnlistable denies a table that cannot be listed whatever its columns are, with the reason.
func (s *schemaSurvey) denyUnlistable(r *catalog.Relation) bool {
	name := singularWord(r.Name.Name)
	switch {
	case isConsentRegister(r):
		s.denialReasons[r] = "it looks like a register of consents; agents need not read it, and which of its records " +
			"counts is for a person to say"
	case isOneOf(lastWord(name), "session token migration secret credential") && len(s.columnRoles[r].secrets) > 0 ||
		isOneOf(name, keyTables) || isOneOf(name, bookkeepingTables):
		s.denialReasons[r] = "it looks like the application's own bookkeeping or secrets"
	case len(r.Columns) == 0:
		s.denialReasons[r] = "it has no columns"
	}
	for _, c := range s.columnRoles[r].consent {
		if s.denialReasons[r] != "" {
			break
		}
		if _, reason := s.consentBlock(r, c); reason != "" {
			s.denialReasons[r] = reason
		}
	}
	return s.denialReasons[r] != ""
}

// hasOwnColumns reports whether a table's own columns say who may see a row.
func (s *schemaSurvey) hasOwnColumns(r *catalog.Relation) bool {
	roles := s.columnRoles[r]
	if roles.ownerColumn != nil && !s.userAttribute.comparesWith(roles.ownerColumn) {
		s.denialReasons[r] = fmt.Sprintf("%s is a %s and the attribute user a %s: they do not compare",
			roles.ownerColumn.Name,
			roles.ownerColumn.Type, s.userAttribute.Type)
		return false
	}
	for _, c := range roles.tenants {
		if a := s.tenantAttributes[s.tenantKey(r, c)]; !a.comparesWith(c) {
			s.denialReasons[r] = fmt.Sprintf("%s is a %s, and other tables have another type for it", c.Name, c.Type)
			return false
		}
	}
	if s.isIdentityTable(r) {
		return slices.Contains(s.userTables, r) && s.userAttribute.comparesWith(r.Column(r.PrimaryKey[0])) ||
			s.tenantAttribute(r).comparesWith(r.Column(r.PrimaryKey[0]))
	}
	return roles.ownerColumn != nil || len(roles.tenants) > 0 || s.userAttribute.grantColumn(roles) != nil ||
		s.isPersonTable(r) &&
			s.hasConsentColumn(r)
}

// tenantAttribute returns the attribute whose values are the keys of a table of tenants.
func (s *schemaSurvey) tenantAttribute(r *catalog.Relation) *Attribute {
	if !slices.Contains(s.tenantTables, r) {
		return nil
	}
	return s.tenantAttributes[s.tenantName(lastWord(singularWord(r.Name.Name)))]
}

// grantColumn returns the column that lists to whom a row is shown.
func (a *Attribute) grantColumn(roles *tableColumnRoles) *catalog.Column {
	if a == nil {
		return nil
	}
	for _, c := range roles.grants {
		element := strings.TrimSuffix(c.Type, "[]")
		if element == c.Type || typeFamily(element) == "text" || typeFamily(element) == typeFamily(a.Type) {
			return c
		}
	}
	return nil
}

// isPersonTable reports whether a table has persons as rows.
func (s *schemaSurvey) isPersonTable(r *catalog.Relation) bool {
	return isOneOf(lastWord(singularWord(r.Name.Name)), personTables)
}

// hasConsentColumn reports whether a table has columns about consent.
func (s *schemaSurvey) hasConsentColumn(r *catalog.Relation) bool {
	return len(s.columnRoles[r].consent) > 0
}

// whyReferenceData returns why a table looks like reference data; "" if it does not.
func (s *schemaSurvey) whyReferenceData(r *catalog.Relation) string {
	name := singularWord(r.Name.Name)
	if !isOneOf(name, referenceTables) && !isOneOf(lastWord(name), referenceEndings) {
		return ""
	}
	roles := s.columnRoles[r]
	if roles.authorColumn != nil || slices.ContainsFunc(r.ForeignKeys,
		func(k catalog.ForeignKey) bool { return k.Target != r.Name }) {
		return ""
	}
	for _, c := range r.Columns {
		word := snakeCase(c.Name)
		if !isOneOf(word, plainColumns) && word != name && !strings.HasPrefix(word, lastWord(name)+"_") {
			return ""
		}
	}
	return "its name, its few plain columns and its lack of foreign keys to others look like reference data"
}
