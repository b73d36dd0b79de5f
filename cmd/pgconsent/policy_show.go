package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

type policyShowCmd struct {
	Database string `placeholder:"NAME" help:"Only this database. Default: all."`
	Table    string `arg:"" optional:"" help:"Only this table, as name or schema.name. Default: everything."`
}

func (policyShowCmd) Help() string {
	return `Prints the policy as compiled for the database, with its includes: for each table its rule in words and in the SQL from
which row security and rewriting are made, its columns, and what agents may write; functions, views, attributes and their
sources, and what is not listed. In the SQL, attr('name') is the value of an attribute; the schema of built-in names is left out.

  pgconsent policy show
  pgconsent policy show notes
  pgconsent policy show --json | jq '.[].tables[] | {table, sql}'`
}

// policyJSON is a policy in JSON output.
type policyJSON struct {
	Database   string          `json:"database"`
	Version    string          `json:"version"`
	Attributes []attributeJSON `json:"attributes"`
	Tables     []tableJSON     `json:"tables"`
	Views      []string        `json:"views"`
	Functions  []functionJSON  `json:"functions"`
	Operators  []string        `json:"operators"` // the extensions whose operators agents may use
	Contracts  []string        `json:"contracts"`
	// the names of tables that the policy does not list, which agents therefore cannot read
	Unlisted []string `json:"unlisted"`
}

type attributeJSON struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Source   string `json:"source"`
	Setting  string `json:"setting,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	// the query that permits a claimed value, or the expression that computes the attribute
	Origin string `json:"origin,omitempty"`
}

type tableJSON struct {
	Table string `json:"table"`
	Kind  string `json:"kind"`
	// the policy only observes the table; the other members show what it would enforce
	Observed  bool              `json:"observed,omitempty"`
	Words     []policy.RuleLine `json:"words"`
	SQL       string            `json:"sql"`
	Columns   []columnJSON      `json:"columns"` // the columns that agents see; null: all of them
	ByKey     []string          `json:"by_key,omitempty"`
	Write     *writeJSON        `json:"write"` // what agents may write; null: nothing
	Aggregate string            `json:"aggregate,omitempty"`
	Object    string            `json:"object,omitempty"`
	Children  []string          `json:"children,omitempty"` // the partitions that agents can read by name
}

type columnJSON struct {
	Name string `json:"name"`
	As   string `json:"as,omitempty"`
}

type writeJSON struct {
	Commands      []string          `json:"commands"`
	Insert        []string          `json:"insert,omitempty"`
	Update        []string          `json:"update,omitempty"`
	Stamps        map[string]string `json:"stamps,omitempty"`
	NewRows       string            `json:"new_rows,omitempty"`
	Changed       string            `json:"changed_rows,omitempty"`
	UpdatableRows string            `json:"updatable_rows,omitempty"` // the visible rows that agents may update
	DeletableRows string            `json:"deletable_rows,omitempty"`
	LostSight     bool              `json:"new_rows_are_hidden,omitempty"`
}

type functionJSON struct {
	Function string            `json:"function"`
	Pins     map[string]string `json:"pins"`
}

func (c policyShowCmd) Run(s *session) error {
	config, err := s.loadConfig()
	if err != nil {
		return err
	}
	policies := []policyJSON{}
	err = s.forEachDatabase(config, c.Database, asMigrate, func(t targetDatabase) error {
		policyBuild, err := s.compile(t)
		if err != nil {
			return err
		}
		policies = append(policies, describePolicy(t.name, policyBuild))
		return nil
	})
	if err != nil {
		return err
	}
	if c.Table != "" {
		isFound := false
		for i := range policies {
			policies[i].Tables = slices.DeleteFunc(policies[i].Tables, func(t tableJSON) bool {
				_, name, _ := strings.Cut(t.Table, ".")
				return t.Table != c.Table && name != c.Table
			})
			isFound = isFound || len(policies[i].Tables) > 0
		}
		if !isFound {
			return fmt.Errorf("the policy lists no table %q", c.Table)
		}
	}
	if s.jsonOutput {
		return s.printJSON(policies)
	}
	for i, p := range policies {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		p.write(s, c.Table != "")
	}
	return nil
}

func describePolicy(database string, policyBuild compiledPolicy) policyJSON {
	p := policyBuild.policy
	out := policyJSON{Database: database, Version: p.Version(), Attributes: []attributeJSON{},
		Tables: []tableJSON{}, Views: []string{}, Functions: []functionJSON{}, Operators: append([]string{},
			p.OperatorExtensions()...), Contracts: []string{}, Unlisted: []string{}}
	for _, a := range p.Attributes() {
		out.Attributes = append(out.Attributes, attributeJSON{a.Name, a.Type, a.Source, a.Setting, a.Optional, p.AttributeOrigin(a.Name)})
	}
	for _, t := range p.Tables() {
		out.Tables = append(out.Tables, describeTable(p, t))
	}
	for _, v := range p.Views() {
		if v.Listed {
			out.Views = append(out.Views, v.Relation.Name.String())
		}
	}
	for _, f := range p.Functions() {
		for _, o := range f.Overloads {
			function := functionJSON{o.Name.String() + "(" + strings.Join(o.ArgTypes, ", ") + ")", map[string]string{}}
			for _, pinnedArgument := range f.Pins {
				function.Pins[pinnedArgument.Arg] = policy.ReadableSQL(pinnedArgument.Value)
			}
			out.Functions = append(out.Functions, function)
		}
	}
	for _, c := range p.Contracts() {
		out.Contracts = append(out.Contracts, c.Name)
	}
	for _, r := range policyBuild.snapshot.Relations() {
		table := r.Kind == catalog.Table || r.Kind == catalog.PartitionedTable || r.Kind == catalog.MaterializedView ||
			r.Kind == catalog.ForeignTable
		if _, isListed := p.Table(r.Name); isListed || !table || r.IsPartition || r.Extension != "" ||
			strings.HasPrefix(r.Name.Schema, "pg_") || r.Name.Schema == "information_schema" ||
			strings.HasPrefix(r.Name.Schema, "pgconsent") {
			continue
		}
		out.Unlisted = append(out.Unlisted, r.Name.String())
	}
	return out
}

func describeTable(p *policy.Policy, t *policy.Table) tableJSON {
	out := tableJSON{Table: t.Relation.Name.String(), Kind: "table", Words: p.RuleInWords(t),
		SQL: policy.ReadableSQL(predicate.CheckSQL(t.Rows, t.Relation))}
	if t.LacksRowSecurity() {
		out.Kind = "stored rows, read through a view"
	}
	if t.Observed != nil {
		out.Observed = true
		t = t.Observed // show the table with the rule that the policy would enforce
		out.SQL = policy.ReadableSQL(predicate.CheckSQL(t.Rows, t.Relation))
	}
	if t.Columns != nil {
		out.Columns = []columnJSON{}
		for _, c := range t.Columns.Columns {
			out.Columns = append(out.Columns, columnJSON{c.Name, c.Describe()})
		}
		if k := t.Columns.ByKey; k != nil {
			for _, c := range k.Columns {
				out.ByKey = append(out.ByKey, c.Name)
			}
		}
	}
	if w := t.Write; w != nil {
		write := &writeJSON{Commands: []string{}, Stamps: map[string]string{}, LostSight: w.InsertsAreHidden}
		for _, command := range []string{"INSERT", "UPDATE", "DELETE"} {
			if w.Allows(command) {
				write.Commands = append(write.Commands, command)
			}
		}
		for _, s := range w.Stamps {
			if write.Stamps[s.Column] = s.Value; s.Attribute != "" {
				write.Stamps[s.Column] = "the agent's " + s.Attribute
			}
		}
		if w.Insert {
			write.Insert, write.NewRows = w.Insertable, policy.ReadableSQL(predicate.CheckSQL(w.InsertCheck, t.Relation))
		}
		if w.Update {
			write.Update, write.Changed = w.Updatable, policy.ReadableSQL(predicate.CheckSQL(w.UpdateCheck, t.Relation))
		}
		if w.Update && w.UpdatableRows != nil {
			write.UpdatableRows = policy.ReadableSQL(predicate.CheckSQL(w.UpdatableRows, t.Relation))
		}
		if w.Delete && w.DeletableRows != nil {
			write.DeletableRows = policy.ReadableSQL(predicate.CheckSQL(w.DeletableRows, t.Relation))
		}
		out.Write = write
	}
	if a := t.Aggregate; a != nil {
		out.Aggregate = fmt.Sprintf("in groups of at least %d different %s", a.MinSubjects, a.Subject)
	}
	if o := p.Object(t.Relation.Name); o != nil {
		out.Object = o.Name
	}
	for _, child := range p.Children() {
		if child.ReadableByName && slices.Contains(child.Relation.Parents, t.Relation.Name) {
			out.Children = append(out.Children, child.Relation.Name.String())
		}
	}
	return out
}

func (p policyJSON) write(s *session, tableOnly bool) {
	w := func(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
	w("database %s, policy %s", p.Database, shortVersion(p.Version))
	if !tableOnly {
		w("\nattributes")
		for _, a := range p.Attributes {
			sourceTexts := map[string]string{"credential": "the configuration gives each agent one",
				"set":   "the agent's own setting " + a.Setting + ", the claim, if it is among",
				"query": "looked up in the database, if it is one value", "expression": "follows from others"}[a.Source]
			if a.Optional {
				sourceTexts += "; may be missing"
			}
			w("  %s  %s: %s", a.Name, a.Type, sourceTexts)
			if a.Origin != "" {
				w("    %s", a.Origin)
			}
		}
		printNoneIfZero(w, len(p.Attributes))
	}
	for _, t := range p.Tables {
		t.write(s, w)
	}
	if tableOnly {
		return
	}
	for _, section := range []struct {
		name  string
		lines []string
	}{{"views", p.Views}, {"operators of extensions", p.Operators}, {"contracts", p.Contracts}, {
		"not listed, and so not there for agents", p.Unlisted}} {
		w("\n%s", section.name)
		for _, line := range section.lines {
			w("  %s", line)
		}
		printNoneIfZero(w, len(section.lines))
	}
	w("\nfunctions")
	for _, f := range p.Functions {
		w("  %s%s", f.Function, pinsText(f.Pins))
	}
	printNoneIfZero(w, len(p.Functions))
}

func printNoneIfZero(w func(string, ...any), n int) {
	if n == 0 {
		w("  none")
	}
}

func pinsText(pins map[string]string) string {
	var out []string
	for _, name := range sortedNames(pins) {
		out = append(out, name+" = "+pins[name])
	}
	if len(out) == 0 {
		return ""
	}
	return ", always with " + strings.Join(out, ", ")
}

func sortedNames(m map[string]string) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (t tableJSON) write(s *session, w func(string, ...any)) {
	w("\n%s", s.paint("1", t.Kind+" "+t.Table))
	if t.Observed {
		w("  %s", s.paint("33", "OBSERVED ONLY: agents read every row and column of it; enforced, it would be so:"))
	}
	w("  shows a row where")
	for _, line := range t.Words {
		w("    %s%s%s", strings.Repeat("  ", line.Depth), line.Text, s.paint("2", "   "+filepath.Base(line.Place)))
	}
	w("  as SQL")
	w("    %s", t.SQL)
	switch {
	case t.Columns == nil:
		w("  columns: all, as they are")
	default:
		var columns []string
		for _, c := range t.Columns {
			if c.As != "" {
				c.Name += " (" + c.As + ")"
			}
			columns = append(columns, c.Name)
		}
		w("  columns: %s, and no other", strings.Join(columns, ", "))
	}
	if len(t.ByKey) > 0 {
		w("  by key only: %s", strings.Join(t.ByKey, ", "))
	}
	if t.Aggregate != "" {
		w("  counts %s", t.Aggregate)
	}
	if t.Object != "" {
		w("  contracts speak of it as %s", t.Object)
	}
	if len(t.Children) > 0 {
		w("  under the same rule: %s", strings.Join(t.Children, ", "))
	}
	switch writeRule := t.Write; {
	case writeRule == nil:
		w("  agents write nothing")
	default:
		w("  agents may %s", strings.Join(writeRule.Commands, ", "))
		if writeRule.Insert != nil {
			w("    INSERT names %s", strings.Join(writeRule.Insert, ", "))
		}
		if writeRule.Update != nil {
			w("    UPDATE sets %s", strings.Join(writeRule.Update, ", "))
		}
		if writeRule.UpdatableRows != "" {
			w("    UPDATE changes, of the rows that show, those where")
			w("      %s", writeRule.UpdatableRows)
		}
		if writeRule.DeletableRows != "" {
			w("    DELETE takes, of the rows that show, those where")
			w("      %s", writeRule.DeletableRows)
		}
		for _, column := range sortedNames(writeRule.Stamps) {
			w("    a new row's %s is %s, whatever they send", column, writeRule.Stamps[column])
		}
		if writeRule.LostSight {
			w("    new rows are hidden from them")
		}
	}
}
