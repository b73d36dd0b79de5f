package predicate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// LiveAttribute is an attribute whose value no credential gives: the database computes it for each statement. It has
// one of three sources. With Setting, the session claims a value in a setting, which counts only if the other fields
// confirm it. With Column and without Setting, the value is looked up. With Expr, it is an expression over other
// attributes.
//
// The attribute has no value if its source has none, or if the value is malformed, not confirmed or ambiguous.
// Computing the value never raises an error, since row policies need it.
type LiveAttribute struct {
	Name     string
	Type     string // the qualified name of the type; lists are not possible
	Optional bool   // rules treat the attribute as optional, as it may have no value

	Setting       string      // the setting in which the session claims the value
	MustEqual     []Attribute // the claim must equal the value, or a list's element, of one of these attributes
	AllowedValues []string    // the values that may be claimed

	// A claim counts only if a row that meets Rows has the claimed value in Column; in Rows, the attribute [ClaimedValue]
	// means the claim. For a look-up, the value is the Column of the only row that meets Rows.
	Table  *catalog.Relation
	Column string
	Rows   Node

	Expr Expr
	Kind Kind // the kind of Expr; the values of kind Bool are the texts true and false
}

// ClaimedValue is the reserved name of an attribute. In LiveAttribute.Rows it means the value that the session claims.
const ClaimedValue = ""

// LiveFunction is the name of the SQL function live(name, claims, settings), which computes live attributes. The
// argument claims has the session's attributes as fields of a seal, name=value. The argument settings has the claimed
// values, in the form name=value with the names of attributes; NULL means the session's own settings.
const LiveFunction = OwnSchema + ".live"

// liveBlockLabel is the label of the PL/pgSQL block in the function. It qualifies the function's variables, so that a
// column of the same name cannot hide them.
const liveBlockLabel = "pgconsent_live"

// Node returns a predicate that reads the tables from which the attribute is computed. [LookupTables] and similar
// functions find the tables in it.
func (l LiveAttribute) Node() Node {
	switch {
	case l.Table != nil:
		return Visible{Relation: l.Table, Column: l.Column, FromColumn: l.Column, Rows: l.Rows}
	case l.Expr != nil:
		return SQL{Expr: l.Expr}
	default:
		return Any{}
	}
}

// NeededAttributes returns the names of the attributes from which a live attribute is computed, sorted.
func (l LiveAttribute) NeededAttributes() []string {
	found := usedAttributes(l.Node())
	for _, a := range l.MustEqual {
		found[a.Name] = true
	}
	delete(found, ClaimedValue)
	return sortedKeys(found)
}

// IsFromOneRow reports whether at most one row can have the value, whatever rows are inserted into the table.
func (l LiveAttribute) IsFromOneRow() bool {
	if l.Table == nil || l.Setting != "" {
		return true
	}
	key := l.Table.PrimaryKey
	for _, part := range Conjuncts(l.Rows) {
		if own, ok := part.(Own); ok && !isListType(own.Type) {
			key = slices.DeleteFunc(slices.Clone(key), func(c string) bool { return c == own.Column })
		}
	}
	return len(key) == 0 && len(l.Table.PrimaryKey) > 0
}

// LiveFunctionBody returns the body of [LiveFunction] in PL/pgSQL. In lives, an attribute must come after all
// attributes that it is computed from.
func LiveFunctionBody(lives []LiveAttribute) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<<%s>>\nDECLARE\n", liveBlockLabel)
	declared := map[string]bool{}
	for _, l := range lives {
		declared[l.Name] = true
	}
	assigned := map[string]bool{}
	for _, l := range lives {
		for _, n := range l.NeededAttributes() {
			if !declared[n] {
				assigned[n] = true
			}
		}
	}
	for _, n := range sortedKeys(assigned) {
		fmt.Fprintf(&b, "  a_%s pg_catalog.text := pgconsent.claim(%s, claims);\n", n, catalog.QuoteLiteral(n))
	}
	for _, l := range lives {
		fmt.Fprintf(&b, "  a_%s pg_catalog.text;\n", l.Name)
	}
	b.WriteString("  claim pg_catalog.text;\n  number pg_catalog.numeric;\nBEGIN\n")
	for _, l := range lives {
		fmt.Fprintf(&b, "  IF %s.name OPERATOR(pg_catalog.=) ANY (%s) THEN\n", liveFunctionName,
			textArray(withDependents(l.Name, lives)))
		b.WriteString(l.sql())
		fmt.Fprintf(&b, "    IF %s.name OPERATOR(pg_catalog.=) %s THEN RETURN a_%s; END IF;\n  END IF;\n",
			liveFunctionName, catalog.QuoteLiteral(l.Name), l.Name)
	}
	b.WriteString("  RETURN NULL;\nEND")
	return b.String()
}

const liveFunctionName = "live" // the function's name, which qualifies its parameters

// withDependents returns this attribute's name and the names of the attributes that are computed from it.
func withDependents(name string, lives []LiveAttribute) []string {
	out := map[string]bool{name: true}
	for _, l := range lives {
		if slices.ContainsFunc(l.NeededAttributes(), func(n string) bool { return out[n] }) {
			out[l.Name] = true
		}
	}
	return sortedKeys(out)
}

func textArray(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = catalog.QuoteLiteral(v)
	}
	return "ARRAY[" + strings.Join(out, ", ") + "]::pg_catalog.text[]"
}

// replaceByVariables replaces each attribute in an SQL expression by the variable of the function that has its value.
func replaceByVariables(sql string) string {
	return replaceAttributes(sql, func(name string) string {
		if name == ClaimedValue {
			return liveBlockLabel + ".claim"
		}
		return liveBlockLabel + ".a_" + name
	})
}

func (l LiveAttribute) sql() string {
	set := fmt.Sprintf("a_%s := ", l.Name)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "    "+format+"\n", args...) }
	switch {
	case l.Setting != "":
		line("claim := CASE WHEN %s.settings IS NULL THEN pg_catalog.current_setting(%s, true) ELSE "+
			"pgconsent.claim(%s, %s.settings) END;",
			liveFunctionName, catalog.QuoteLiteral(l.Setting), catalog.QuoteLiteral(l.Name), liveFunctionName)
		ends := 1
		switch l.Type {
		case "pg_catalog.uuid":
			line("claim := pg_catalog.lower(claim COLLATE pg_catalog.\"C\");")
			line("IF claim OPERATOR(pg_catalog.~) '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN")
		case "pg_catalog.int4", "pg_catalog.int8":
			ends = 2
			line("IF claim OPERATOR(pg_catalog.~) '^(0|-?[1-9][0-9]{0,18})$' THEN")
			line("IF claim::pg_catalog.numeric BETWEEN %s THEN", integerBounds[l.Type])
		default:
			line("IF pg_catalog.octet_length(claim) BETWEEN 1 AND %d THEN", MaxClaimBytes)
		}
		line("IF %s THEN %sclaim; END IF;", l.claimConditionSQL(), set)
		line("%s", strings.TrimSpace(strings.Repeat("END IF; ", ends)))
	case l.Table != nil:
		w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: "r"}
		row := w.newAlias()
		parts := append(guardConditions(attributesToGuard(l.Rows)), w.nodeSQL(l.Rows, row))
		line(
			`SELECT CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) 1 `+
				`THEN pg_catalog.min(found.value COLLATE pg_catalog."C") END INTO a_%s`, l.Name)
		line("FROM (SELECT %s::pg_catalog.text FROM %s AS %s WHERE %s LIMIT 2) AS found (value);",
			columnSQL(row, l.Column), w.lookupName(l.Table), row,
			replaceByVariables(strings.Join(parts, " AND ")))
	case l.Expr != nil:
		condition := strings.Join(guardConditions(requiredAttributes(SQL{Expr: l.Expr})), " AND ")
		if condition == "" {
			condition = "true"
		}
		value := replaceByVariables(expressionSQL(l.Expr, "none"))
		line("IF %s THEN", replaceByVariables(condition))
		if limits, isNumber := integerBounds[l.Type]; isNumber {
			line("number := %s;", value)
			line("IF number BETWEEN %s AND number OPERATOR(pg_catalog.=) pg_catalog.trunc(number) THEN "+
				"%snumber::pg_catalog.int8; END IF;", limits, set)
		} else {
			line("%s(%s)::pg_catalog.text;", set, value)
		}
		line("END IF;")
	}
	return b.String()
}

// MaxClaimBytes is how many bytes a claimed text may have.
const MaxClaimBytes = 1024

var integerBounds = map[string]string{
	"pg_catalog.int4": "-2147483648 AND 2147483647",
	"pg_catalog.int8": "-9223372036854775808 AND 9223372036854775807",
}

// claimConditionSQL returns the SQL condition under which a claimed value counts.
func (l LiveAttribute) claimConditionSQL() string {
	if l.Table != nil {
		w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: "r"}
		row := w.newAlias()
		need := attributesToGuard(l.Rows)
		delete(need, ClaimedValue)
		parts := append(guardConditions(need), "EXISTS (SELECT 1 FROM "+w.lookupName(l.Table)+" AS "+row+" WHERE "+
			w.nodeSQL(l.Rows, row)+offsetZeroEnd)
		return replaceByVariables(strings.Join(parts, " AND "))
	}
	var parts []string
	if len(l.AllowedValues) > 0 {
		parts = append(parts, "claim OPERATOR(pg_catalog.=) ANY ("+textArray(l.AllowedValues)+")")
	}
	for _, a := range l.MustEqual {
		if isListType(a.Type) {
			parts = append(parts, "claim OPERATOR(pg_catalog.=) ANY (a_"+a.Name+"::pg_catalog.text[])")
		} else {
			parts = append(parts, "claim OPERATOR(pg_catalog.=) a_"+a.Name)
		}
	}
	if len(parts) == 0 {
		return "false"
	}
	return strings.Join(parts, " OR ")
}
