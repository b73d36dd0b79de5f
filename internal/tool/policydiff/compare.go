package policydiff

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// PolicyVersion is one of the two policies that are compared.
type PolicyVersion struct {
	Path   string
	Policy *policy.Policy
}

// Options say what to compare. Old, New and Agents are required.
type Options struct {
	Old, New PolicyVersion
	Agents   map[string]map[string]string // attributes of each agent's credential, by the name of the agent
	// values that every agent gets for attributes which its credential does not give
	AttributeValues map[string]string
	// attributes that the database computes for each agent, by the name of the agent
	LiveAttributes map[string]map[string]string
	SampleSize     int // how many keys of rows are shown of each kind of difference
	ReportProgress func(what string, done, total int64)
}

// Compare compares both policies over the rows that exist now. conn must be a connection of the owner of the tables.
func Compare(ctx context.Context, conn *pgx.Conn, o Options) (*Report, error) {
	if o.ReportProgress == nil {
		o.ReportProgress = func(string, int64, int64) {}
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// With row_security off, PostgreSQL raises an error if it would have to hide rows from the owner, so no count is
	// wrong. Compiling a plan (jit) would take longer than running it.
	if _, err := tx.Exec(ctx, "SET LOCAL row_security = off; SET LOCAL jit = off"); err != nil {
		return nil, err
	}
	r := &Report{Old: o.Old.Path, New: o.New.Path, OldVersion: o.Old.Policy.Version(),
		NewVersion: o.New.Policy.Version(), Tables: []Table{},
		Functions: functionChanges(o.Old.Policy, o.New.Policy), Operators: operatorChanges(o.Old.Policy,
			o.New.Policy), Views: compareViews(o.Old.Policy, o.New.Policy),
		Restrictions: boundChanges(o.Old.Policy, o.New.Policy), Notes: []string{}}
	groups := o.agentGroups(r)
	for _, relation := range relationsOf(o.Old.Policy, o.New.Policy) {
		before, hasExisted := o.Old.Policy.Table(relation.Name)
		after, existsNow := o.New.Policy.Table(relation.Name)
		t := Table{Name: relation.Name.String(), WasListed: hasExisted, IsListed: existsNow, Columns: compareColumns(before,
			after),
			Write: compareWrites(before, after), Rows: []Rows{}, SameRule: true}
		if t.Rows, err = o.compareRows(ctx, tx, relation,
			groups, func(g agentGroup) (string, string) { return ruleText(before, g.old), ruleText(after, g.new) }); err != nil {
			return nil, err
		}
		t.SameRule = len(t.Rows) == 0
		if t.Groups, err = o.compareRows(ctx, tx, relation, groups,
			func(g agentGroup) (string, string) {
				return groupRowsCondition(before, g.old), groupRowsCondition(after, g.new)
			}); err != nil {
			return nil, err
		}
		hasDifferences := func(r Rows) bool { return r.Appear+r.Disappear > 0 }
		if hasExisted != existsNow || !t.Columns.isEmpty() || !t.Write.isEmpty() ||
			slices.ContainsFunc(t.Rows, hasDifferences) ||
			slices.ContainsFunc(t.Groups, hasDifferences) {
			r.Tables = append(r.Tables, t)
		}
	}
	return r, nil
}

// compareRows counts the rows that either policy shows, for the groups of agents for which the two rules differ.
func (o Options) compareRows(ctx context.Context, tx pgx.Tx, relation *catalog.Relation, groups []agentGroup,
	rules func(agentGroup) (old, now string)) ([]Rows, error) {
	type pair struct{ old, now string }
	var pairs []pair
	agents := map[pair][]string{}
	for _, g := range groups {
		var p pair
		if p.old, p.now = rules(g); p.old == p.now {
			continue
		}
		if agents[p] == nil {
			pairs = append(pairs, p)
		}
		agents[p] = append(agents[p], g.agents...)
	}
	out := []Rows{}
	for _, p := range pairs {
		slices.Sort(agents[p])
		rows, err := countRows(ctx, tx, relation, p.old, p.now, o, agents[p])
		if err != nil {
			return nil, explainError(relation, err)
		}
		out = append(out, rows)
	}
	return out, nil
}

// explainError replaces two errors that have their cause in the policy or the table, not in the server.
func explainError(relation *catalog.Relation, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "3F000" || pg.Code == "42883") &&
		strings.Contains(pg.Message, predicate.SignedSchema) {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"the rule of %s looks into lists by a function that is not in the database", relation.Name).
			WithHint("Run pgconsent migrate first, with either policy.")
	}
	if errors.As(err, &pg) && pg.Code == "42501" {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream,
			"not all rows of %s can be read: %s", relation.Name, pg.Message).
			WithHint("roles.migrate must own the table, or be a superuser; a table that FORCEs row security shows " +
				"its owner a part only.")
	}
	return fmt.Errorf("%s: %w", relation.Name, err)
}

// agentGroup is a group of agents with equal attributes.
type agentGroup struct {
	agents   []string
	old, new map[string]string
}

func (o Options) agentGroups(r *Report) []agentGroup {
	var out []agentGroup
	var missingValues missingAttributeValues
	values := func(side PolicyVersion, agent string) map[string]string {
		out := map[string]string{}
		for _, a := range side.Policy.Attributes() {
			value, ok := o.Agents[agent][a.Name]
			if a.Source != "credential" {
				if value, ok = o.AttributeValues[a.Name]; !ok {
					value, ok = o.LiveAttributes[agent][a.Name]
				}
			}
			if ok {
				out[a.Name] = value
			} else {
				missingValues.add(side.Path, agent, attributeSource{a.Name, a.Source == "credential"})
			}
		}
		return out
	}
	for _, agent := range slices.Sorted(maps.Keys(o.Agents)) {
		g := agentGroup{[]string{agent}, values(o.Old, agent), values(o.New, agent)}
		if i := slices.IndexFunc(out, func(h agentGroup) bool {
			return maps.Equal(g.old, h.old) && maps.Equal(g.new, h.new)
		}); i >= 0 {
			out[i].agents = append(out[i].agents, agent)
		} else {
			out = append(out, g)
		}
	}
	r.Notes = append(r.Notes, missingValues.noteTexts()...)
	return out
}

// relationsOf returns the relations that either policy lists, sorted by name.
func relationsOf(oldPolicy, newPolicy *policy.Policy) []*catalog.Relation {
	found := map[string]*catalog.Relation{}
	for _, p := range []*policy.Policy{oldPolicy, newPolicy} {
		for _, table := range p.Tables() {
			found[table.Relation.Name.String()] = table.Relation
		}
	}
	var out []*catalog.Relation
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

func ruleText(t *policy.Table, attributes map[string]string) string {
	if t == nil {
		return "false"
	}
	return predicate.DirectCondition(t.Rows, "r", attributes)
}

// groupRowsCondition returns the condition on rows that aggregates count, whether or not their group is large enough.
func groupRowsCondition(t *policy.Table, attributes map[string]string) string {
	if t == nil || t.Aggregate == nil {
		return "false"
	}
	return predicate.DirectCondition(t.Aggregate.Rows, "r", attributes)
}

// pagesPerPart is how many pages countRows reads between two reports of progress.
var pagesPerPart int64 = 4096

// countRows evaluates both rules on every row of a table.
func countRows(ctx context.Context, tx pgx.Tx, relation *catalog.Relation, oldCondition, newCondition string, o Options,
	agents []string) (Rows,
	error) {
	out := Rows{Agents: agents}
	from := "FROM " + relation.Name.SQL() + " AS r"
	innerSQL := "(SELECT (" + oldCondition + ") AS o, (" + newCondition + ") AS n " + from
	sql := "SELECT count(*) FILTER (WHERE o), count(*) FILTER (WHERE n), count(*) FILTER (WHERE n AND NOT o), " +
		"count(*) FILTER (WHERE o AND NOT n) FROM "
	pages, err := pagesToRead(ctx, tx, relation)
	if err != nil {
		return out, err
	}
	progressText := relation.Name.String() + " for " + strings.Join(agents, ", ")
	for page := int64(0); ; page += pagesPerPart {
		o.ReportProgress(progressText, min(page, pages), pages)
		pageRange := innerSQL
		isLast := page+pagesPerPart >= pages
		switch {
		case pages > pagesPerPart && isLast:
			pageRange += fmt.Sprintf(" WHERE r.ctid >= '(%d,0)'", page)
		case pages > pagesPerPart:
			pageRange += fmt.Sprintf(" WHERE r.ctid >= '(%d,0)' AND r.ctid < '(%d,0)'", page, page+pagesPerPart)
		}
		var a, b, c, d int64
		if err := tx.QueryRow(ctx, sql+pageRange+") AS t").Scan(&a, &b, &c, &d); err != nil {
			return out, err
		}
		out.Old, out.New, out.Appear, out.Disappear = out.Old+a, out.New+b, out.Appear+c, out.Disappear+d
		if isLast {
			break
		}
	}
	o.ReportProgress(progressText, pages, pages)
	if o.SampleSize > 0 && len(relation.PrimaryKey) > 0 {
		out.Key = relation.PrimaryKey
		if out.Appear > 0 {
			if out.Appearing, err = readSampleKeys(ctx, tx, relation,
				from+" WHERE ("+newCondition+") AND NOT ("+oldCondition+")",
				o.SampleSize); err != nil {
				return out, err
			}
		}
		if out.Disappear > 0 {
			if out.Vanishing, err = readSampleKeys(ctx, tx, relation,
				from+" WHERE ("+oldCondition+") AND NOT ("+newCondition+")",
				o.SampleSize); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// pagesToRead returns the number of pages of the table's largest partition, or 0 if the table cannot be read in parts.
func pagesToRead(ctx context.Context, tx pgx.Tx, r *catalog.Relation) (pages int64, err error) {
	if r.Kind == catalog.ForeignTable {
		return 0, nil
	}
	err = tx.QueryRow(ctx, `WITH RECURSIVE parts (oid) AS (
			SELECT $1::pg_catalog.oid UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN parts AS p ON p.oid = i.inhparent)
		SELECT COALESCE(pg_catalog.max(pg_catalog.pg_relation_size(p.oid)
			/ pg_catalog.current_setting('block_size')::pg_catalog.int8), 0)::pg_catalog.int8
		FROM parts AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.oid WHERE c.relkind IN ('r', 'm')`, r.OID).Scan(&pages)
	return pages, err
}

// readSampleKeys reads the primary keys of up to limit rows of a query.
func readSampleKeys(ctx context.Context, tx pgx.Tx, relation *catalog.Relation, from string, limit int) ([][]string,
	error) {
	var key, text []string
	for _, c := range relation.PrimaryKey {
		key = append(key, "r."+catalog.QuoteIdent(c))
		text = append(text, "r."+catalog.QuoteIdent(c)+"::pg_catalog.text")
	}
	rows, err := tx.Query(ctx, fmt.Sprintf("SELECT ARRAY[%s] %s ORDER BY %s LIMIT %d", strings.Join(text, ", "),
		from, strings.Join(key, ", "), limit))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]string])
}
