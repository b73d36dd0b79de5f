package starter

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// attributes decides which facts about an agent the rules need, and of which type: that of most columns.
func (s *survey) attributes() {
	var owners []*catalog.Column
	names := map[string]int{}
	refer := 0
	for _, r := range s.tables {
		roles := s.columns[r]
		if c := roles.owner; c != nil {
			owners = append(owners, c)
			names[c.Name]++
			if s.target(r, c.Name) != nil {
				refer++
			}
		}
	}
	for _, r := range s.users {
		owners = append(owners, r.Column(r.PrimaryKey[0]))
	}
	if len(owners) == 0 { // nobody but authors
		for _, r := range s.tables {
			if c := s.columns[r].author; c != nil && len(s.columns[r].tenants) == 0 {
				owners = append(owners, c)
				names[c.Name]++
			}
		}
	}
	if len(owners) == 0 {
		s.user = s.grantAttribute()
	}
	if len(owners) > 0 {
		s.user = &Attribute{Name: "user", Type: commonType(owners), Evidence: evidence(names, refer, s.users, s)}
	}
	s.sameTenants()
	byStem := map[string][]*catalog.Column{}
	byName := map[string]map[string]int{}
	for _, r := range s.tables {
		for _, c := range s.columns[r].tenants {
			key := s.tenantKey(r, c)
			byStem[key] = append(byStem[key], c)
			if byName[key] == nil {
				byName[key] = map[string]int{}
			}
			byName[key][c.Name]++
		}
	}
	s.tenantAttrs = map[string]*Attribute{}
	for _, key := range sortedKeys(byStem) {
		if !attributeName.MatchString(key) || key == "user" {
			continue
		}
		s.tenantAttrs[key] = &Attribute{Name: key, Type: commonType(byStem[key]), Evidence: evidence(byName[key], 0, nil, s)}
	}
}

var attributeName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

// grantAttribute is the attribute for a database whose rows say to whom they are shown, and not to whom they belong.
func (s *survey) grantAttribute() *Attribute {
	var lists []string
	element := ""
	for _, r := range s.tables {
		for _, c := range s.columns[r].grants {
			of := family(strings.TrimSuffix(c.Type, "[]"))
			if c.Type == strings.TrimSuffix(c.Type, "[]") {
				of = "text"
			}
			if of == "integer" {
				of = "bigint"
			}
			if element == "" || element == "text" {
				element = of
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

// tenantKey is the attribute with which a tenant's column is compared.
func (s *survey) tenantKey(r *catalog.Relation, c *catalog.Column) string {
	if to := s.target(r, c.Name); to != nil {
		return s.tenantName(lastWord(singular(to.Name.Name)))
	}
	return s.tenantName(stem(c.Name))
}

// tenantName is one name for tenants that have several.
func (s *survey) tenantName(name string) string {
	if same := s.sameTenant[name]; same != "" {
		return same
	}
	return name
}

// sameTenants finds the names of one tenant: org_id is the organization where some org_id refers to that table, and
// where a column or table has that name as well. Names with different types stay separate.
func (s *survey) sameTenants() {
	types, same := map[string]string{}, map[string]string{}
	for _, r := range s.tenants {
		types[lastWord(singular(r.Name.Name))] = family(r.Column(r.PrimaryKey[0]).Type)
	}
	merge := func(name, into string) {
		if name != into && types[name] == types[into] && same[into] == "" {
			same[name] = into
		}
	}
	for _, r := range s.tables {
		for _, c := range s.columns[r].tenants {
			if s.target(r, c.Name) != nil {
				continue
			}
			name := stem(c.Name)
			if of, ok := types[name]; ok && of != family(c.Type) {
				types[name] = "several"
			} else if !ok {
				types[name] = family(c.Type)
			}
		}
	}
	for _, r := range s.tables {
		for _, c := range s.columns[r].tenants {
			if to := s.target(r, c.Name); to != nil && types[stem(c.Name)] != "" {
				merge(stem(c.Name), lastWord(singular(to.Name.Name)))
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
	s.sameTenant = same
}

func commonType(columns []*catalog.Column) string {
	count := map[string]int{}
	big := false
	for _, c := range columns {
		count[family(c.Type)]++
		big = big || c.Type == "bigint"
	}
	best := ""
	for _, f := range sortedKeys(count) {
		if count[f] > count[best] {
			best = f
		}
	}
	if best == "integer" && big {
		return "bigint"
	}
	return best
}

func evidence(names map[string]int, refer int, tables []*catalog.Relation, s *survey) string {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		if names[a] != names[b] {
			return names[b] - names[a]
		}
		return strings.Compare(a, b)
	}) {
		parts = append(parts, fmt.Sprintf("%s in %s", name, tablesOf(names[name])))
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

func tablesOf(n int) string {
	if n == 1 {
		return "1 table"
	}
	return fmt.Sprintf("%d tables", n)
}

// fits tells whether a column compares with an attribute.
func (a *Attribute) fits(c *catalog.Column) bool { return a != nil && family(a.Type) == family(c.Type) }
