package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// chooseTables decides which tables the policy lists. First come tables whose own columns say who sees a row, then
// tables that refer to a listed one, at any depth. Then come tables of which only the author is known, and reference
// data.
func (s *schemaSurvey) chooseTables() {
	for _, relation := range s.tables {
		if !s.denyUnlistable(relation) && s.hasOwnColumns(relation) {
			s.listingRound[relation] = 1
		}
	}
	s.listReferring()
	rank := 1 + len(s.tables)
	for _, relation := range s.tables {
		if column := s.columnRoles[relation].authorColumn; column != nil && s.listingRound[relation] == 0 &&
			s.denialReasons[relation] == "" &&
			s.userAttribute.comparesWith(column) {
			s.listingRound[relation] = rank
		}
	}
	s.listReferring()
	for _, relation := range s.tables {
		if s.listingRound[relation] == 0 && s.denialReasons[relation] == "" && s.whyReferenceData(relation) != "" &&
			!s.policiesLimitRows(relation) {
			s.listingRound[relation] = -1
		}
	}
	s.addVisibleLinks()
}

// listReferring lists, round by round, the tables that refer to a table listed in an earlier round.
func (s *schemaSurvey) listReferring() {
	for hasChanged := true; hasChanged; {
		hasChanged = false
		rank := 0
		for _, relation := range s.tables {
			rank = max(rank, s.listingRound[relation])
		}
		for _, relation := range s.tables {
			if s.listingRound[relation] != 0 || s.denialReasons[relation] != "" {
				continue
			}
			base := s.requiredLinks(relation, rank)
			if len(base) == 0 {
				continue
			}
			s.listingRound[relation], hasChanged = rank+1, true
			s.parentLinks[relation] = base
		}
	}
}

// requiredLinks returns the links to listed tables by which a row of this table is visible, for a table whose own
// columns do not say who sees a row. These are its NOT NULL links, or all links if none is NOT NULL. Links to tables of
// accounts and tenants do not count: a row that refers to an account need not belong to it.
func (s *schemaSurvey) requiredLinks(relation *catalog.Relation, rank int) []parentLink {
	var requiredParents, optionalParents []parentLink
	for _, l := range s.linksOf(relation) {
		switch {
		case s.listingRound[l.target] <= 0 || s.listingRound[l.target] > rank || l.target == relation ||
			s.isIdentityTable(l.target):
		case l.notNull:
			requiredParents = append(requiredParents, parentLink{l, false})
		default:
			optionalParents = append(optionalParents, parentLink{l, false})
		}
	}
	if len(requiredParents) > 0 {
		return requiredParents
	}
	return optionalParents
}

// parentLink is a link to a table whose rows must be visible for the rows that refer to them to be visible.
type parentLink struct {
	tableLink
	isOptional bool // a row is also visible if its link is NULL
}

// addVisibleLinks adds, for every listed table, links to the other listed tables to which it refers. Then a row is
// hidden if the row that it refers to is hidden. Links that would make rules read each other in a circle go to
// circleLinks.
func (s *schemaSurvey) addVisibleLinks() {
	for _, relation := range s.tables {
		if s.listingRound[relation] <= 0 {
			continue
		}
		for _, l := range s.linksOf(relation) {
			if s.listingRound[l.target] <= 0 || s.isIdentityTable(l.target) ||
				slices.ContainsFunc(s.parentLinks[relation], func(p parentLink) bool {
					return slices.Equal(p.columns, l.columns) &&
						p.target == l.target
				}) {
				continue
			}
			if l.target == relation || s.dependsOn(l.target, relation, map[*catalog.Relation]bool{}) {
				s.circleLinks[relation] = append(s.circleLinks[relation], l)
				continue
			}
			s.parentLinks[relation] = append(s.parentLinks[relation], parentLink{l, !l.notNull})
		}
	}
}

// dependsOn reports whether the rule of one table reads another table, directly or through other tables.
func (s *schemaSurvey) dependsOn(table, target *catalog.Relation, visitedTables map[*catalog.Relation]bool) bool {
	if visitedTables[table] {
		return false
	}
	visitedTables[table] = true
	return slices.ContainsFunc(s.parentLinks[table],
		func(p parentLink) bool { return p.target == target || s.dependsOn(p.target, target, visitedTables) })
}

// isConsentRegister reports whether a table looks like a register of consents.
func isConsentRegister(r *catalog.Relation) bool {
	name := singularWord(r.Name.Name)
	return isOneOf(name, consentTables) || slices.Contains(strings.Split(name, "_"), "consent")
}

// denyUnlistable denies, with the reason, a table that no column could make listable.
func (s *schemaSurvey) denyUnlistable(relation *catalog.Relation) bool {
	name := singularWord(relation.Name.Name)
	switch {
	case isConsentRegister(relation):
		s.denialReasons[relation] = "it looks like a register of consents; agents need not read it, and which of its records " +
			"counts is for a person to say"
	case isOneOf(lastWord(name), "session token migration secret credential") &&
		len(s.columnRoles[relation].secrets) > 0 ||
		isOneOf(name, keyTables) || isOneOf(name, bookkeepingTables):
		s.denialReasons[relation] = "it looks like the application's own bookkeeping or secrets"
	case len(relation.Columns) == 0:
		s.denialReasons[relation] = "it has no columns"
	}
	for _, column := range s.columnRoles[relation].consent {
		if s.denialReasons[relation] != "" {
			break
		}
		if _, reason := s.consentBlock(relation, column); reason != "" {
			s.denialReasons[relation] = reason
		}
	}
	return s.denialReasons[relation] != ""
}

// hasOwnColumns reports whether a table's own columns say who may see a row.
func (s *schemaSurvey) hasOwnColumns(relation *catalog.Relation) bool {
	roles := s.columnRoles[relation]
	if roles.ownerColumn != nil && !s.userAttribute.comparesWith(roles.ownerColumn) {
		s.denialReasons[relation] = fmt.Sprintf("%s is a %s and the attribute user a %s: they do not compare",
			roles.ownerColumn.Name,
			roles.ownerColumn.Type, s.userAttribute.Type)
		return false
	}
	for _, column := range roles.tenants {
		if a := s.tenantAttributes[s.tenantKey(relation, column)]; !a.comparesWith(column) {
			s.denialReasons[relation] = fmt.Sprintf("%s is a %s, and other tables have another type for it", column.Name,
				column.Type)
			return false
		}
	}
	if s.isIdentityTable(relation) {
		return slices.Contains(s.userTables, relation) &&
			s.userAttribute.comparesWith(relation.Column(relation.PrimaryKey[0])) ||
			s.tenantAttribute(relation).comparesWith(relation.Column(relation.PrimaryKey[0]))
	}
	return roles.ownerColumn != nil || len(roles.tenants) > 0 || s.userAttribute.grantColumn(roles) != nil ||
		s.isPersonTable(relation) &&
			s.hasConsentColumn(relation)
}

// tenantAttribute returns the attribute that holds keys of this table of tenants, or nil for other tables.
func (s *schemaSurvey) tenantAttribute(r *catalog.Relation) *Attribute {
	if !slices.Contains(s.tenantTables, r) {
		return nil
	}
	return s.tenantAttributes[s.tenantName(lastWord(singularWord(r.Name.Name)))]
}

// grantColumn returns the table's column that lists to whom a row is shown, if its type fits the attribute.
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

// isPersonTable reports whether a table's name says that its rows are persons.
func (s *schemaSurvey) isPersonTable(r *catalog.Relation) bool {
	return isOneOf(lastWord(singularWord(r.Name.Name)), personTables)
}

// hasConsentColumn reports whether a table has columns about consent.
func (s *schemaSurvey) hasConsentColumn(r *catalog.Relation) bool {
	return len(s.columnRoles[r].consent) > 0
}

// whyReferenceData returns the reason why a table looks like reference data, or "" if it does not.
func (s *schemaSurvey) whyReferenceData(relation *catalog.Relation) string {
	name := singularWord(relation.Name.Name)
	if !isOneOf(name, referenceTables) && !isOneOf(lastWord(name), referenceEndings) {
		return ""
	}
	roles := s.columnRoles[relation]
	if roles.authorColumn != nil || slices.ContainsFunc(relation.ForeignKeys,
		func(k catalog.ForeignKey) bool { return k.Target != relation.Name }) {
		return ""
	}
	for _, c := range relation.Columns {
		word := snakeCase(c.Name)
		if !isOneOf(word, plainColumns) && word != name && !strings.HasPrefix(word, lastWord(name)+"_") {
			return ""
		}
	}
	return "its name, its few plain columns and its lack of foreign keys to others look like reference data"
}
