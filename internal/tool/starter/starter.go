// Package starter proposes a configuration and a policy for a database from its catalogs alone: names, types, keys,
// enums, checks, and row policies for hints. It reads no row and no statistics.
//
// Guarantee: the proposal shows rows of a table only for one of three reasons. A column says whose the rows are, a
// foreign key leads to a table with such a column, or the table looks like reference data by name and shape. The
// proposal denies everything else, with a reason. A row policy makes it show more only in a comment. A name proves
// nothing, so each proposal states its evidence, for a person to check.
package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Proposal is the policy that the starter proposes for a database.
type Proposal struct {
	Attributes      []Attribute `json:"attributes"`
	SpareAttributes []Attribute `json:"spare_attributes"` // attributes that are needed only by rules written as comments
	Tables          []*Table    `json:"tables"`           // the tables that agents would read, sorted by name
	// relations and functions that the starter does not understand, sorted by name
	Denied []Denied `json:"denied"`
}

// Attribute is an attribute of an agent that the proposed rules need.
type Attribute struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Evidence string `json:"evidence"`
}

// Table is a table with its proposed rule.
type Table struct {
	Relation *catalog.Relation `json:"-"`
	Name     string            `json:"table"`  // the name as the policy file has it
	Blocks   []Block           `json:"rows"`   // conditions that must all hold for a row to be visible
	Hidden   []string          `json:"hidden"` // columns that agents do not see
	// hidden columns with addresses or phone numbers of people; the other hidden columns look like secrets
	ContactColumns []string `json:"contacts"`
	Notes          []string `json:"notes"`    // what a person should check
	IsOpen         bool     `json:"open"`     // agents read all rows, since the table looks like reference data
	Evidence       string   `json:"evidence"` // the evidence for IsOpen
	OpenReasons    []string `json:"open_by"`  // why rows: open is proposed as a comment
}

// Block is a block of a rule, as YAML, and the evidence for it.
type Block struct {
	YAML     string `json:"block"`
	Evidence string `json:"evidence"`
	// blocks that a person may choose instead of this one, written as comments
	Alternatives []Block `json:"instead,omitempty"`
}

// Denied is a relation or function that the policy does not list.
type Denied struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

// Propose makes a proposal from a catalog snapshot, with the row policies as hints. It denies the tables in
// rejectionReasons, for the reasons given there.
func Propose(snap *catalog.Snapshot, policies []RowPolicy, rejectionReasons map[string]string) *Proposal {
	s := &schemaSurvey{snap: snap, policies: policies, rejectionReasons: rejectionReasons,
		relationsByName: map[catalog.Name]*catalog.Relation{}, policyHints: map[*catalog.Relation]*policyHints{},
		columnRoles: map[*catalog.Relation]*tableColumnRoles{}, listingRound: map[*catalog.Relation]int{},
		denialReasons: map[*catalog.Relation]string{},
		parentLinks:   map[*catalog.Relation][]parentLink{}, circleLinks: map[*catalog.Relation][]tableLink{},
		usedAttributes: map[string]bool{}, commentedAttributes: map[string]bool{}}
	s.collectTables()
	s.findAccounts()
	s.chooseAttributes()
	s.chooseTables()
	return s.makeProposal()
}

// schemaSurvey collects what the starter learns about the database.
type schemaSurvey struct {
	snap             *catalog.Snapshot
	policies         []RowPolicy
	policyHints      map[*catalog.Relation]*policyHints
	rejectionReasons map[string]string
	tables           []*catalog.Relation                // tables that could be listed, sorted by name
	relationsByName  map[catalog.Name]*catalog.Relation // relations as [schemaSurvey.findRelation] returns them

	userTables, tenantTables []*catalog.Relation // tables of accounts, and of tenants
	columnRoles              map[*catalog.Relation]*tableColumnRoles
	userAttribute            *Attribute
	tenantAttributes         map[string]*Attribute // attributes of tenants, by the stem of the column's name
	// for a tenant that columns call by several names: the common name, by each of these names
	tenantNames map[string]string

	// the round in which each table was listed; 1: by its own columns; -1: as reference data
	listingRound  map[*catalog.Relation]int
	parentLinks   map[*catalog.Relation][]parentLink
	circleLinks   map[*catalog.Relation][]tableLink // links that would make rules read each other in a circle
	denialReasons map[*catalog.Relation]string
	otherDenied   []Denied

	usedAttributes, commentedAttributes map[string]bool // names of attributes that rules use, and that commented rules use
}

// findRelation returns a relation in which each column of a domain has the domain's base type, for comparing types.
func (s *schemaSurvey) findRelation(name catalog.Name) (*catalog.Relation, bool) {
	if relation := s.relationsByName[name]; relation != nil {
		return relation, true
	}
	relation, ok := s.snap.Relation(name)
	if !ok {
		return nil, false
	}
	domain := func(c catalog.Column) bool {
		t := s.snap.TypeByOID(c.TypeOID)
		return t != nil && t.Kind == 'd' && typeFamily(t.BaseName) != ""
	}
	if slices.ContainsFunc(relation.Columns, domain) {
		relationCopy := *relation
		relationCopy.Columns = slices.Clone(relation.Columns)
		for i, c := range relationCopy.Columns {
			if domain(c) {
				relationCopy.Columns[i].Type = s.snap.TypeByOID(c.TypeOID).BaseName
			}
		}
		relation = &relationCopy
	}
	s.relationsByName[name] = relation
	return relation, true
}

// collectTables sorts the relations into tables that the policy could list and relations that it cannot.
func (s *schemaSurvey) collectTables() {
	for _, relation := range s.snap.Relations() {
		relation, _ := s.findRelation(relation.Name)
		if isSystemSchema(relation.Name.Schema) || relation.IsPartition {
			continue
		}
		deny := func(kind, reason string) {
			s.otherDenied = append(s.otherDenied, Denied{s.policyName(relation.Name), kind, reason})
		}
		switch relation.Kind {
		case catalog.Table, catalog.PartitionedTable:
			switch {
			case relation.Extension != "":
				deny("table", "it belongs to the extension "+relation.Extension)
			case !isWritableName(relation.Name):
				deny("table", "a policy cannot write a name with a dot or a line break in it")
			case len(relation.Parents) > 0:
				deny("table",
					"it inherits from "+relation.Parents[0].String()+": under that table's rule it can be read by its own name")
			case s.rejectionReasons[relation.Name.String()] != "":
				deny("table", s.rejectionReasons[relation.Name.String()])
			default:
				s.tables = append(s.tables, relation)
			}
		case catalog.View:
			deny("view", s.viewReason(relation))
		case catalog.MaterializedView:
			deny("materialised view", "its rows are results: who may see them is not known from the tables beneath it")
		case catalog.ForeignTable:
			deny("foreign table", "its rows are on another server, whose rules are not known here")
		}
	}
	for _, f := range s.snap.Functions() {
		if isSystemSchema(f.Name.Schema) || f.Extension != "" || f.Kind != 'f' || f.RangeType != 0 {
			continue
		}
		reason := "what it does is not known: list it under functions once somebody has read it"
		if f.SecurityDefiner {
			reason = "it is SECURITY DEFINER and would run past row security"
		}
		s.otherDenied = append(s.otherDenied, Denied{s.policyName(f.Name) + "(" + strings.Join(f.ArgTypes, ", ") + ")", "function",
			reason})
	}
}

func (s *schemaSurvey) viewReason(relation *catalog.Relation) string {
	var names []string
	for _, viewRead := range relation.Reads {
		names = append(names, s.policyName(viewRead.Relation))
	}
	if relation.Extension != "" {
		return "it belongs to the extension " + relation.Extension
	}
	if len(names) == 0 {
		return "list it under views once somebody has read it"
	}
	return "it reads " + strings.Join(names, ", ") +
		": list it under views once somebody has read it, and those tables under tables"
}

// policyName returns a name as the policy file has it: without its schema if the search path finds it.
func (s *schemaSurvey) policyName(n catalog.Name) string {
	if found, ok := s.snap.ResolveRelation("", n.Name); ok && found == n {
		return n.Name
	}
	return n.String()
}

func isSystemSchema(schema string) bool {
	return strings.HasPrefix(schema, "pg_") || schema == "information_schema" || strings.HasPrefix(schema, "pgconsent")
}

func isWritableName(n catalog.Name) bool {
	return !strings.ContainsAny(n.Schema+n.Name, ".\n\r\x00") && n.Name != ""
}

// makeProposal makes the proposal from what the survey found.
func (s *schemaSurvey) makeProposal() *Proposal {
	p := &Proposal{Attributes: []Attribute{}, SpareAttributes: []Attribute{}, Tables: []*Table{}, Denied: s.otherDenied}
	for _, relation := range s.tables {
		if s.listingRound[relation] != 0 {
			p.Tables = append(p.Tables, s.proposeTable(relation))
		}
	}
	for _, relation := range s.tables { // Attributes come last, since the rules above decide which are needed.
		if s.listingRound[relation] == 0 {
			p.Denied = append(p.Denied, Denied{s.policyName(relation.Name), "table", s.denialReason(relation)})
		}
	}
	addAttribute := func(a *Attribute) {
		switch {
		case s.usedAttributes[a.Name]:
			p.Attributes = append(p.Attributes, *a)
		case s.commentedAttributes[a.Name]:
			p.SpareAttributes = append(p.SpareAttributes, *a)
		}
	}
	if s.userAttribute != nil {
		addAttribute(s.userAttribute)
	}
	for _, stem := range sortedKeys(s.tenantAttributes) {
		addAttribute(s.tenantAttributes[stem])
	}
	slices.SortStableFunc(p.Denied, func(a, b Denied) int { return strings.Compare(a.Kind+" "+a.Name, b.Kind+" "+b.Name) })
	if p.Denied == nil {
		p.Denied = []Denied{}
	}
	return p
}

// denialReason returns why a table is denied.
func (s *schemaSurvey) denialReason(relation *catalog.Relation) string {
	if reason := s.denialReasons[relation]; reason != "" {
		return reason
	}
	var nearTables []string
	for _, l := range s.linksOf(relation) {
		nearTables = append(nearTables, s.policyName(l.target.Name))
	}
	if kind, id := polymorphicColumns(relation); kind != "" {
		return s.describePolymorphic(kind, id)
	}
	slices.Sort(nearTables)
	members := s.askAboutMembers(relation)
	more := members + s.askAboutPolicies(relation, members)
	if nearTables = slices.Compact(nearTables); len(nearTables) > 0 {
		return fmt.Sprintf(
			"no column says whose rows these are; it refers to %s, denied as well or open to everybody",
			strings.Join(nearTables, ", ")) + s.askAboutSharedColumn(relation) + more
	}
	return "no column says whose rows these are, and no foreign key leads to a table that does" + more
}

// askAboutMembers returns a question about a table that links a denied table with users: these may be the users who see
// its rows.
func (s *schemaSurvey) askAboutMembers(relation *catalog.Relation) string {
	for _, through := range s.tables {
		links := s.linksOf(through)
		index := slices.IndexFunc(links, func(l tableLink) bool {
			return l.target == relation && len(l.columns) == 1 &&
				len(l.targets) == 1
		})
		owner := s.columnRoles[through].ownerColumn
		if index < 0 || owner == nil || s.hasConsentColumn(relation) || !s.userAttribute.comparesWith(owner) ||
			s.listingRound[through] <= 0 {
			continue
		}
		if _, ok := s.isLinkTable(through, links); ok {
			return fmt.Sprintf("; %s ties its rows to users: if these may see them, write %s: { rows: [ %s ] }", s.policyName(through.Name),
				yamlFlow(s.policyName(relation.Name)), s.memberBlock(through, links[index].columns[0], links[index].targets[0],
					owner))
		}
	}
	return ""
}

// memberBlock returns the block that shows a row to the users whom a table of links names. In that table the users'
// column must be the caller, and the other column must equal one of the row.
func (s *schemaSurvey) memberBlock(through *catalog.Relation, column, from string, user *catalog.Column) string {
	return fmt.Sprintf("visible: { %s: { %s: %s }, rows: [ own: { column: %s, is: %s } ] }", yamlFlow(s.policyName(through.Name)),
		yamlFlow(column), yamlFlow(from), yamlFlow(user.Name), s.userAttribute.Name)
}

// minSharedTables is how many tables must refer to one table, by columns of the same name, before the starter asks
// about it.
const minSharedTables = 3

// askAboutSharedColumn returns a question about a column by which many tables refer to the same table: these tables may
// have rows of several tenants.
func (s *schemaSurvey) askAboutSharedColumn(relation *catalog.Relation) string {
	for _, k := range relation.ForeignKeys {
		target, ok := s.findRelation(k.Target)
		if !ok || len(k.Columns) != 1 || target == relation || slices.Contains(s.userTables, target) ||
			typeFamily(relation.Column(k.Columns[0]).Type) == "" && !strings.HasPrefix(relation.Column(k.Columns[0]).Type,
				"character(") {
			continue
		}
		name, n := k.Columns[0], 0
		for _, other := range s.tables {
			if s.referencedTable(other, name) == target {
				n++
			}
		}
		if attribute := snakeCase(name); n >= minSharedTables && attributeName.MatchString(attribute) {
			return fmt.Sprintf(
				"; %d tables refer to %s by %s: if that is a tenant, declare an attribute %s and say own: { "+
					"column: %s, is: %s }", n, s.policyName(target.Name), name, attribute, name, attribute)
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
