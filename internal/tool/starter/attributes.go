package starter

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// chooseAttributes decides which facts about an agent the rules need, and their types: the type of most columns.
func (s *schemaSurvey) chooseAttributes() {
	var owners []*catalog.Column
	names := map[string]int{}
	refer := 0
	for _, r := range s.tables {
		roles := s.columnRoles[r]
		if c := roles.ownerColumn; c != nil {
			owners = append(owners, c)
			names[c.Name]++
			if s.referencedTable(r, c.Name) != nil {
				refer++
			}
		}
	}
	for _, r := range s.userTables {
		owners = append(owners, r.Column(r.PrimaryKey[0]))
	}
	if len(owners) == 0 { // Only authors are known.
		for _, r := range s.tables {
			if c := s.columnRoles[r].authorColumn; c != nil && len(s.columnRoles[r].tenants) == 0 {
				owners = append(owners, c)
				names[c.Name]++
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
	for _, r := range s.tables {
		for _, c := range s.columnRoles[r].tenants {
			key := s.tenantKey(r, c)
			byStem[key] = append(byStem[key], c)
			if byName[key] == nil {
				byName[key] = map[string]int{}
			}
			byName[key][c.Name]++
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

// grantAttribute returns the attribute for a database whose rows say to whom they are shown, and not to whom they
// belong.
func (s *schemaSurvey) grantAttribute() *Attribute {
	var lists []string
	element := ""
	for _, r := range s.tables {
		for _, c := range s.columnRoles[r].grants {
			elementType := typeFamily(strings.TrimSuffix(c.Type, "[]"))
			if c.Type == strings.TrimSuffix(c.Type, "[]") {
				elementType = "text"
			}
			if elementType == "integer" {
				elementType = "bigint"
			}
			if element == "" || element == "text" {
				element = elementType
			}
			lists = append(lists, s.policyName(r.Name)+"."+c.Name)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	return &Attribute{Name: "user", Type: element,
		Evidence: strings.Join(lists, ", ") + " look like lists of those whom a row is shown to"}
}

// tenantKey returns the attribute with which a tenant's column is compared.
func (s *schemaSurvey) tenantKey(r *catalog.Relation, c *catalog.Column) string {
	if to := s.referencedTable(r, c.Name); to != nil {
		return s.tenantName(lastWord(singularWord(to.Name.Name)))
	}
	return s.tenantName(columnStem(c.Name))
}

// tenantName returns one name for tenants that have several.
func (s *schemaSurvey) tenantName(name string) string {
	if same := s.tenantNames[name]; same != "" {
		return same
	}
	return name
}

// findSameTenants finds names that stand for the same tenant: org_id is the organization where some org_id refers to
// that table, and where a column or table has that name as well. Names with different types stay separate.
func (s *schemaSurvey) findSameTenants() {
	types, same := map[string]string{}, map[string]string{}
	for _, r := range s.tenantTables {
		types[lastWord(singularWord(r.Name.Name))] = typeFamily(r.Column(r.PrimaryKey[0]).Type)
	}
	merge := func(name, into string) {
		if name != into && types[name] == types[into] && same[into] == "" {
			same[name] = into
		}
	}
	for _, r := range s.tables {
		for _, c := range s.columnRoles[r].tenants {
			if s.referencedTable(r, c.Name) != nil {
				continue
			}
			name := columnStem(c.Name)
			if otherType, ok := types[name]; ok && otherType != typeFamily(c.Type) {
				types[name] = "several"
			} else if !ok {
				types[name] = typeFamily(c.Type)
			}
		}
	}
	for _, r := range s.tables {
		for _, c := range s.columnRoles[r].tenants {
			if to := s.referencedTable(r, c.Name); to != nil && types[columnStem(c.Name)] != "" {
				merge(columnStem(c.Name), lastWord(singularWord(to.Name.Name)))
			}
		}
	}
	into := ""
	for _, name := range []string{"organization", "organisation", "org"} {
		switch {
		case types[name] == "" || same[name] != "":
		case into == "":
			into = name
		default:
			merge(name, into)
		}
	}
	s.tenantNames = same
}

func commonType(columns []*catalog.Column) string {
	count := map[string]int{}
	isBigInt := false
	for _, c := range columns {
		count[typeFamily(c.Type)]++
		isBigInt = isBigInt || c.Type == "bigint"
	}
	best := ""
	for _, f := range sortedKeys(count) {
		if count[f] > count[best] {
			best = f
		}
	}
	if best == "integer" && isBigInt {
		return "bigint"
	}
	return best
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
	for _, r := range tables {
		if out != "" {
			out += "; "
		}
		out += "the table " + s.policyName(r.Name)
	}
	return out
}

func tableCountText(n int) string {
	if n == 1 {
		return "1 table"
	}
	return fmt.Sprintf("%d tables", n)
}

// comparesWith reports whether a column compares with an attribute.
func (a *Attribute) comparesWith(c *catalog.Column) bool {
	return a != nil && typeFamily(a.Type) == typeFamily(c.Type)
}
