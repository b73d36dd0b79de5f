package policytest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// change does what the owner does: the rows of a table, or SQL. An error is of type policy.Errors where the file is at
// fault.
func (b *built) change(ctx context.Context, conn *pgx.Conn, changes []Change) error {
	for _, c := range changes {
		if c.Table == "" {
			if _, err := conn.PgConn().Exec(ctx, c.SQL).ReadAll(); err != nil {
				return at(c.Place, err)
			}
			continue
		}
		if b.ofRegistry(c) { // see register
			continue
		}
		relation, err := b.relation(c.Place, c.Table)
		if err != nil {
			return err
		}
		for _, row := range c.Rows {
			sql, err := insert(relation, row)
			if err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, sql); err != nil {
				return at(row.Place, err)
			}
		}
	}
	return nil
}

// at is an error of the server's, with the place in the file that it is about.
func at(place Place, err error) error {
	p := sqlProblem(place.File, "", err)
	p.Line, p.Column = place.Line, place.Column
	return policy.Errors{p}
}

// relation finds a table by its name as written.
func (b *built) relation(at Place, name string) (*catalog.Relation, error) {
	schema, table := "", name
	if before, after, ok := strings.Cut(name, "."); ok {
		schema, table = before, after
	}
	if resolved, ok := b.snapshot.ResolveRelation(schema, table); ok {
		r, _ := b.snapshot.Relation(resolved)
		return r, nil
	}
	var names []string
	for _, r := range b.snapshot.Relations() {
		if r.Name.Schema != "pg_catalog" && r.Name.Schema != "information_schema" &&
			!strings.HasPrefix(r.Name.Schema, "pgconsent") {
			names = append(names, r.Name.Name, r.Name.String())
		}
	}
	return nil, policy.Errors{problem(at, policy.Suggest(name, names), "the schema has no table %q", name)}
}

func column(r *catalog.Relation, at Place, name string) (*catalog.Column, error) {
	if c := r.Column(name); c != nil {
		return c, nil
	}
	var names []string
	for _, c := range r.Columns {
		names = append(names, c.Name)
	}
	return nil, policy.Errors{problem(at, policy.Suggest(name, names), "%s has no column %q", r.Name, name)}
}

func insert(r *catalog.Relation, row *node) (string, error) {
	if len(row.keys) == 0 {
		return "INSERT INTO " + r.Name.SQL() + " DEFAULT VALUES", nil
	}
	var columns, values []string
	for i, name := range row.keys {
		c, err := column(r, row.keyAt[i], name)
		if err != nil {
			return "", err
		}
		columns = append(columns, catalog.QuoteIdent(name))
		values = append(values, literal(c.Type, row.values[i]))
	}
	return "INSERT INTO " + r.Name.SQL() + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") + ")", nil
}

// literal is a value as the input function of its column's type takes it: a list is an array, a mapping or a list in a
// JSON column JSON.
func literal(sqlType string, n *node) string {
	array := strings.HasSuffix(sqlType, "[]")
	switch {
	case n.kind == null:
		return "NULL"
	case n.kind == scalar:
		return catalog.QuoteLiteral(n.value)
	case n.kind == list && array:
		var elements []string
		for _, e := range n.values {
			elements = append(elements, e.value)
		}
		return catalog.QuoteLiteral(predicate.WriteArray(elements))
	default:
		text, err := json.Marshal(n.json())
		if err != nil {
			return "NULL"
		}
		if strings.HasSuffix(sqlType, "cube") {
			text = []byte("(" + strings.Trim(string(text), "[]") + ")")
		}
		return catalog.QuoteLiteral(string(text))
	}
}

// json is the value that a node stands for.
func (n *node) json() any {
	switch n.kind {
	case mapping:
		out := map[string]any{}
		for i, key := range n.keys {
			out[key] = n.values[i].json()
		}
		return out
	case list:
		out := []any{}
		for _, v := range n.values {
			out = append(out, v.json())
		}
		return out
	case scalar:
		if n.number || n.truth {
			return json.RawMessage(n.value)
		}
		return n.value
	default:
		return nil
	}
}
