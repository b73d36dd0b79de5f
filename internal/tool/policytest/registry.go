package policytest

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// registryTable is the name that test files use for the records of the consent registry, unless the schema has a table
// of that name.
const registryTable = "registry"

func (b *templateDatabase) isRegistry(c Change) bool {
	if c.Table != registryTable {
		return false
	}
	_, isTable := b.snapshot.ResolveRelation("", registryTable)
	return !isTable
}

// writeRegistry writes, as the administrator, the registry rows of a test: the current consent of each subject, grantee
// and scope.
func (b *templateDatabase) writeRegistry(ctx context.Context, conn *pgx.Conn, changes []Change) error {
	for _, c := range changes {
		if !b.isRegistry(c) {
			continue
		}
		for _, row := range c.Rows {
			sql, err := upsertSQL(row)
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

// relativeTime matches a time relative to now, such as "3 days ago".
var relativeTime = regexp.MustCompile(`^(\d{1,6}) (second|minute|hour|day)s? (ago|ahead)$`)

// upsertSQL returns the SQL that writes a row of the registry. Defaults are grantee and scope '*' (everybody,
// everything), state given, and the categories of the stream.
func upsertSQL(row *node) (string, error) {
	relation := predicate.RegistryRelation()
	valueSQL := map[string]string{
		"grantee": "'*'", "scope": "'*'", "state": "'given'", "purposes": "'{}'", "categories": "'{}'",
		"number": "(SELECT COALESCE(max(c.number), 0) + 1 FROM " + relation.Name.SQL() + " AS c)",
	}
	var namedFields []string
	for i, name := range row.Keys {
		column, err := findColumn(relation, row.KeyPlaces[i], name)
		if err != nil {
			return "", err
		}
		value := literalOf(column.Type, row.Values[i])
		if m := relativeTime.FindStringSubmatch(row.Values[i].Value); m != nil && column.TypeOID == 1184 {
			sign := map[string]string{"ago": "-", "ahead": "+"}[m[3]]
			value = "statement_timestamp() " + sign + " " + m[1] + " * " +
				map[string]string{"second": "interval '1 second'", "minute": "interval '1 minute'",
					"hour": "interval '1 hour'", "day": "interval '24 hours'"}[m[2]]
		}
		valueSQL[name], namedFields = value, append(namedFields, name)
	}
	if !slices.Contains(namedFields, "subject") {
		return "", policy.Errors{row.Place.Errorf("write { subject: ID, stream: TEMPORARY }", "a record is of a subject")}
	}
	if stream := strings.Trim(valueSQL["stream"], "'"); !slices.Contains(namedFields, "categories") && stream != "" {
		valueSQL["categories"] = map[string]string{predicate.Temporary: "'{ESSENTIAL}'",
			predicate.Partnered: "'{ESSENTIAL,BEHAVIORAL,IMPROVEMENT}'", predicate.Anonymous: "'{STATISTICAL}'"}[stream]
		if valueSQL["categories"] == "" {
			valueSQL["categories"] = "'{}'"
		}
		namedFields = append(namedFields, "categories")
	}
	var columns, values, assignments []string
	for _, c := range relation.Columns {
		value, ok := valueSQL[c.Name]
		if !ok {
			continue
		}
		columns, values = append(columns, catalog.QuoteIdent(c.Name)), append(values, value)
		if slices.Contains(namedFields, c.Name) || c.Name == "number" {
			assignments = append(assignments, catalog.QuoteIdent(c.Name)+" = excluded."+catalog.QuoteIdent(c.Name))
		}
	}
	return "INSERT INTO " + relation.Name.SQL() + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") +
		") ON CONFLICT (subject, grantee, scope) DO UPDATE SET " + strings.Join(assignments, ", "), nil
}
