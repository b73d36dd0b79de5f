package starter

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// chooseAttributes decides which attributes of agents the rules need. An attribute has the type that most of its
// columns have.
func (s *schemaSurvey) chooseAttributes() {
	var owners []*catalog.Column
	names := map[string]int{}
	refer := 0
	for _, relation := range s.tables {
		roles := s.columnRoles[relation]
		if column := roles.ownerColumn; column != nil {
			owners = append(owners, column)
			names[column.Name]++
			if s.referencedTable(relation, column.Name) != nil {
				refer++
			}
		}
	}
	for _, relation := range s.userTables {
		owners = append(owners, relation.Column(relation.PrimaryKey[0]))
	}
	if len(owners) == 0 { // No column says to whom rows belong, only who wrote them.
		for _, relation := range s.tables {
			if column := s.columnRoles[relation].authorColumn; column != nil && len(s.columnRoles[relation].tenants) == 0 {
				owners = append(owners, column)
				names[column.Name]++
			}
		}
	}
	if len(owners) == 0 {
		s.userAttribute = s.grantAttribute()
	}
	if len(owners) > 0 {
		s.userAttribute = &Attribute{Name: "user", Type: commonType(owners), Evidence: tenantEvidence(names, refer,
			s.userTables, s)}
	}
	s.findSameTenants()
	byStem := map[string][]*catalog.Column{}
	byName := map[string]map[string]int{}
	for _, relation := range s.tables {
		for _, column := range s.columnRoles[relation].tenants {
			key := s.tenantKey(relation, column)
			byStem[key] = append(byStem[key], column)
			if byName[key] == nil {
				byName[key] = map[string]int{}
			}
			byName[key][column.Name]++
		}
	}
	s.tenantAttributes = map[string]*Attribute{}
	for _, key := range sortedKeys(byStem) {
		if !attributeName.MatchString(key) || key == "user" {
			continue
		}
		s.tenantAttributes[key] = &Attribute{Name: key, Type: commonType(byStem[key]),
			Evidence: tenantEvidence(byName[key], 0, nil, s)}
	}
}

var attributeName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

// grantAttribute returns the attribute user for a database whose rows list to whom they are shown, but do not say to
// whom they belong.
func (s *schemaSurvey) grantAttribute() *Attribute {
	var lists []string
	element := ""
	for _, relation := range s.tables {
		for _, column := range s.columnRoles[relation].grants {
			elementType := typeFamily(strings.TrimSuffix(column.Type, "[]"))
			if column.Type == strings.TrimSuffix(column.Type, "[]") {
				elementType = "text"
			}
			if elementType == "integer" {
				elementType = "bigint"
			}
			if element == "" || element == "text" {
				element = elementType
			}
			lists = append(lists, s.policyName(relation.Name)+"."+column.Name)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	return &Attribute{Name: "user", Type: element,
		Evidence: strings.Join(lists, ", ") + " look like lists of those whom a row is shown to"}
}

// tenantKey returns the name of the attribute with which a tenant column is compared.
func (s *schemaSurvey) tenantKey(r *catalog.Relation, c *catalog.Column) string {
	if target := s.referencedTable(r, c.Name); target != nil {
		return s.tenantName(lastWord(singularWord(target.Name.Name)))
	}
	return s.tenantName(columnStem(c.Name))
}

// tenantName returns the common name of a tenant that columns call by different names.
func (s *schemaSurvey) tenantName(name string) string {
	if commonName := s.tenantNames[name]; commonName != "" {
		return commonName
	}
	return name
}

// findSameTenants finds different names for the same tenant. If some column org_id refers to the table of
// organizations, then a table org, and columns org_id without a foreign key, mean the organization as well. Names with
// different types stay separate.
func (s *schemaSurvey) findSameTenants() {
	types, commonNames := map[string]string{}, map[string]string{}
	for _, relation := range s.tenantTables {
		types[lastWord(singularWord(relation.Name.Name))] = typeFamily(relation.Column(relation.PrimaryKey[0]).Type)
	}
	merge := func(name, into string) {
		if name != into && types[name] == types[into] && commonNames[into] == "" {
			commonNames[name] = into
		}
	}
	for _, relation := range s.tables {
		for _, column := range s.columnRoles[relation].tenants {
			if s.referencedTable(relation, column.Name) != nil {
				continue
			}
			name := columnStem(column.Name)
			if otherType, ok := types[name]; ok && otherType != typeFamily(column.Type) {
				types[name] = "several"
			} else if !ok {
				types[name] = typeFamily(column.Type)
			}
		}
	}
	for _, relation := range s.tables {
		for _, column := range s.columnRoles[relation].tenants {
			if target := s.referencedTable(relation, column.Name); target != nil && types[columnStem(column.Name)] != "" {
				merge(columnStem(column.Name), lastWord(singularWord(target.Name.Name)))
			}
		}
	}
	into := ""
	for _, name := range []string{"organization", "organisation", "org"} {
		switch {
		case types[name] == "" || commonNames[name] != "":
		case into == "":
			into = name
		default:
			merge(name, into)
		}
	}
	s.tenantNames = commonNames
}

func commonType(columns []*catalog.Column) string {
	count := map[string]int{}
	isBigInt := false
	for _, column := range columns {
		count[typeFamily(column.Type)]++
		isBigInt = isBigInt || column.Type == "bigint"
	}
	bestType := ""
	for _, f := range sortedKeys(count) {
		if count[f] > count[bestType] {
			bestType = f
		}
	}
	if bestType == "integer" && isBigInt {
		return "bigint"
	}
	return bestType
}

func tenantEvidence(names map[string]int, refer int, tables []*catalog.Relation, s *schemaSurvey) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if names[a] != names[b] {
			return names[b] - names[a]
		}
		return strings.Compare(a, b)
	}) {
		parts = append(parts, fmt.Sprintf("%s in %s", name, tableCountText(names[name])))
	}
	out := strings.Join(parts, ", ")
	if refer > 0 {
		out += fmt.Sprintf("; %d of them by a foreign key", refer)
	}
	for _, relation := range tables {
		if out != "" {
			out += "; "
		}
		out += "the table " + s.policyName(relation.Name)
	}
	return out
}

func tableCountText(n int) string {
	if n == 1 {
		return "1 table"
	}
	return fmt.Sprintf("%d tables", n)
}

// comparesWith reports whether the types allow comparing a column with an attribute.
func (a *Attribute) comparesWith(c *catalog.Column) bool {
	return a != nil && typeFamily(a.Type) == typeFamily(c.Type)
}
