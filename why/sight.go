package why

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/dsar"
	"github.com/pgconsent/pgconsent/dsar/pgrows"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/predicate"
)

// Sight is how much of a subject's data an agent can see now.
type Sight struct {
	Agent      string
	Attributes map[string]string // of its credential, and what follows from it
	Missing    []string          // attributes that a session may have besides, by which it may see more
	Tables     []SightTable      // in which there are rows of the subject
}

// SightTable is one table of it.
type SightTable struct {
	Table    string
	Rows     int64 // of the subject
	Visible  int64 // of them, one by one
	Counted  int64 // of the others, in groups only: whether a group is large enough is not looked at
	Observed bool  // the policy is not enforced here yet: agents read every row
	Columns  []SightColumn
}

// SightColumn is a column, and in how many of the visible rows its value comes out.
type SightColumn struct {
	Name    string
	Mask    string // how it is changed; "": it is not
	Visible int64
}

// Sees counts what each agent can see of a subject's rows, as the owner of the tables, in one snapshot. The rules are those of
// row security, with what each agent's credential says; what a contract or a limit refuses of a statement is not looked at, so
// that an agent may see less. Agents are named with the attributes of their credentials.
func Sees(ctx context.Context, conn *pgx.Conn, p *policy.Policy, subject string, agents map[string]map[string]string) ([]Sight, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// Where row security would hide rows from the owner as well, it is an error and not a wrong answer.
	if _, err := tx.Exec(ctx, "SET LOCAL row_security = off; SET LOCAL jit = off"); err != nil {
		return nil, err
	}
	type place struct {
		table *policy.Table
		where string
	}
	var places []place
	for _, t := range dsar.Tables(p) {
		table, ok := p.Table(t.Relation.Name)
		if !ok {
			continue
		}
		where, err := pgrows.Condition(ctx, tx, t, subject)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Relation.Name, err)
		}
		if where != "" {
			places = append(places, place{table, where})
		}
	}
	var out []Sight
	for _, agent := range slices.Sorted(maps.Keys(agents)) {
		one := Sight{Agent: agent}
		if one.Attributes, err = sealed(ctx, tx, p, agents[agent]); err != nil {
			return nil, err
		}
		for _, a := range p.Attributes() {
			if _, ok := one.Attributes[a.Name]; !ok {
				one.Missing = append(one.Missing, a.Name)
			}
		}
		same := slices.IndexFunc(out, func(s Sight) bool { return maps.Equal(s.Attributes, one.Attributes) })
		if same >= 0 {
			one.Tables = out[same].Tables
			out = append(out, one)
			continue
		}
		for _, at := range places {
			t, err := count(ctx, tx, at.table, at.where, subject, one.Attributes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at.table.Relation.Name, err)
			}
			if t.Rows > 0 {
				one.Tables = append(one.Tables, t)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// sealed are the attributes of one agent. The seal ends with the look, so that the next agent has its own.
func sealed(ctx context.Context, tx pgx.Tx, p *policy.Policy, credential map[string]string) (map[string]string, error) {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	// Attributes that are asked of the database are read as the reader of pgconsent, whom a policy shows every row: not past row
	// security, which would be an error of a table that has it.
	values, err := map[string]string(nil), error(nil)
	if _, err = inner.Exec(ctx, "SET LOCAL row_security = on"); err == nil {
		values, err = Values(ctx, inner, p, credential, nil)
	}
	if e := inner.Rollback(ctx); err == nil {
		err = e
	}
	return values, err
}

func count(ctx context.Context, tx pgx.Tx, t *policy.Table, where, subject string, attributes map[string]string) (SightTable, error) {
	out := SightTable{Table: t.Relation.Name.String(), Observed: t.Observed != nil}
	direct := func(n predicate.Node) string {
		if n == nil {
			return "true"
		}
		return predicate.Direct(n, "r", attributes)
	}
	counted := "false"
	if t.Aggregate != nil {
		counted = direct(t.Aggregate.Rows)
	}
	shows := []string{direct(t.Rows) + " AS visible", counted + " AS counted"}
	selected := []string{"count(*)", "count(*) FILTER (WHERE visible)", "count(*) FILTER (WHERE counted AND NOT visible)"}
	into := []any{&out.Rows, &out.Visible, &out.Counted}
	if t.Columns == nil {
		for _, c := range t.Relation.Columns {
			out.Columns = append(out.Columns, SightColumn{Name: c.Name})
		}
	} else {
		for _, c := range t.Columns.Columns {
			out.Columns = append(out.Columns, SightColumn{Name: c.Name, Mask: c.Masked()})
		}
		if k := t.Columns.ByKey; k != nil {
			for _, c := range k.All {
				if !slices.ContainsFunc(out.Columns, func(s SightColumn) bool { return s.Name == c.Name }) {
					out.Columns = append(out.Columns, SightColumn{Name: c.Name, Mask: "only in a row that is fetched by its key"})
				}
			}
		}
		for i, c := range t.Columns.Columns {
			if c.When == nil {
				continue
			}
			name := catalog.QuoteIdent(fmt.Sprintf("column %d", i))
			shows = append(shows, direct(c.When)+" AS "+name)
			selected = append(selected, "count(*) FILTER (WHERE visible AND "+name+")")
			into = append(into, &out.Columns[i].Visible)
		}
	}
	sql := "SELECT " + strings.Join(selected, ", ") + " FROM (SELECT " + strings.Join(shows, ", ") + " FROM " + t.Relation.Name.SQL() + " AS r WHERE " + where + ") AS s"
	if err := tx.QueryRow(ctx, sql, subject).Scan(into...); err != nil {
		return out, err
	}
	for i := range out.Columns {
		if t.Columns == nil || i >= len(t.Columns.Columns) || t.Columns.Columns[i].When == nil {
			out.Columns[i].Visible = out.Visible
		}
	}
	return out, nil
}
