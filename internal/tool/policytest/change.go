package policytest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// applyChanges makes changes as the owner: it inserts rows of a table, or runs SQL. It returns policy.Errors if the
// test file is wrong.
func (b *templateDatabase) applyChanges(ctx context.Context, conn *pgx.Conn, changes []Change) error {
	for _, c := range changes {
		if c.Table == "" {
			if _, err := conn.PgConn().Exec(ctx, c.SQL).ReadAll(); err != nil {
				return withPlace(c.Place, err)
			}
			continue
		}
		if b.isRegistry(c) { // writeRegistry writes the rows of the consent registry.
			continue
		}
		relation, err := b.findRelation(c.Place, c.Table)
		if err != nil {
			return err
		}
		for _, row := range c.Rows {
			sql, err := insertSQL(relation, row)
			if err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, sql); err != nil {
				return withPlace(row.Place, err)
			}
		}
	}
	return nil
}

// withPlace adds the place in the test file to an error of PostgreSQL.
func withPlace(place Place, err error) error {
	p := sqlProblem(place.File, "", err)
	p.Line, p.Column = place.Line, place.Column
	return policy.Errors{p}
}

// findRelation finds a table by the name that the test file has, with or without a schema.
func (b *templateDatabase) findRelation(place Place, name string) (*catalog.Relation, error) {
	schema, table := "", name
	if before, after, ok := strings.Cut(name, "."); ok {
		schema, table = before, after
	}
	if resolvedName, ok := b.snapshot.ResolveRelation(schema, table); ok {
		relation, _ := b.snapshot.Relation(resolvedName)
		return relation, nil
	}
	var names []string
	for _, relation := range b.snapshot.Relations() {
		if relation.Name.Schema != "pg_catalog" && relation.Name.Schema != "information_schema" &&
			!strings.HasPrefix(relation.Name.Schema, "pgconsent") {
			names = append(names, relation.Name.Name, relation.Name.String())
		}
	}
	return nil, policy.Errors{place.Errorf(policy.Suggest(name, names), "the schema has no table %q", name)}
}

func findColumn(r *catalog.Relation, place Place, name string) (*catalog.Column, error) {
	if c := r.Column(name); c != nil {
		return c, nil
	}
	var names []string
	for _, c := range r.Columns {
		names = append(names, c.Name)
	}
	return nil, policy.Errors{place.Errorf(policy.Suggest(name, names), "%s has no column %q", r.Name, name)}
}

func insertSQL(relation *catalog.Relation, row *node) (string, error) {
	if len(row.Keys) == 0 {
		return "INSERT INTO " + relation.Name.SQL() + " DEFAULT VALUES", nil
	}
	var columns, values []string
	for i, name := range row.Keys {
		column, err := findColumn(relation, row.KeyPlaces[i], name)
		if err != nil {
			return "", err
		}
		columns = append(columns, catalog.QuoteIdent(name))
		values = append(values, literalOf(column.Type, row.Values[i]))
	}
	return "INSERT INTO " + relation.Name.SQL() + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") + ")", nil
}

// literalOf returns a YAML value as text that the column's type accepts. A list becomes an array; in a JSON column a
// mapping or a list becomes JSON.
func literalOf(sqlType string, n *node) string {
	array := strings.HasSuffix(sqlType, "[]")
	switch {
	case n.Kind == yamlfile.NullNode:
		return "NULL"
	case n.Kind == yamlfile.ScalarNode:
		return catalog.QuoteLiteral(n.Value)
	case n.Kind == yamlfile.ListNode && array:
		var elements []string
		for _, e := range n.Items {
			elements = append(elements, e.Value)
		}
		return catalog.QuoteLiteral(predicate.WriteArray(elements))
	default:
		text, err := json.Marshal(jsonValue(n))
		if err != nil {
			return "NULL"
		}
		if strings.HasSuffix(sqlType, "cube") {
			text = []byte("(" + strings.Trim(string(text), "[]") + ")")
		}
		return catalog.QuoteLiteral(string(text))
	}
}

// jsonValue returns a YAML node as a Go value for encoding as JSON.
func jsonValue(n *node) any {
	switch n.Kind {
	case yamlfile.MappingNode:
		out := map[string]any{}
		for i, key := range n.Keys {
			out[key] = jsonValue(n.Values[i])
		}
		return out
	case yamlfile.ListNode:
		out := []any{}
		for _, v := range n.Items {
			out = append(out, jsonValue(v))
		}
		return out
	case yamlfile.ScalarNode:
		if n.ScalarType != yamlfile.StringScalar {
			return json.RawMessage(n.Value)
		}
		return n.Value
	default:
		return nil
	}
}
