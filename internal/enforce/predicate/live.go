package predicate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Live is an attribute that no credential gives: the database computes it at each statement. It is one of three: a
// claim that the session itself makes in a setting, and that counts only if the other fields confirm it (Setting); a
// value that is looked up (Column without Setting); an expression over other attributes (Expr).
//
// It is missing where a value is missing, malformed, not confirmed or ambiguous. It never raises an error, since row
// policies read it.
type Live struct {
	Name     string
	Type     string // qualified; not a list
	Optional bool   // rules that use it treat it as optional: it may be missing

	Setting string   // the setting whose value is the claim
	Equals  []Attr   // the claim is the value, or an element, of one of these
	Values  []string // the values that the claim may have

	// The claim is the Column of a row that shows by Rows, which compares it as the attribute [Claim]; or the value is the
	// Column of the one row that does.
	Table  *catalog.Relation
	Column string
	Rows   Node

	Expr Expr
	Kind Kind // the kind of Expr: a condition gives the texts true and false
}

// Claim is a reserved name of an attribute. Where the condition Live.Rows compares a column with it, the value is the
// one that the session claims.
const Claim = ""

// LiveFunction computes live attributes: live(name, claims, settings). The claims are fields of a seal, name=value.
// NULL as settings means the settings of the session itself; else they are name=value, with the names of the
// attributes.
const LiveFunction = Schema + ".live"

// liveLabel is the label of the function's block, which qualifies its variables so that no column hides them.
const liveLabel = "pgconsent_live"

// Node is a predicate that reads what the attribute is computed from: for [Helpers], [ShownWhileEmpty], [InsertCanHide]
// and [TimeCanHide].
func (l Live) Node() Node {
	switch {
	case l.Table != nil:
		return Visible{Relation: l.Table, Column: l.Column, From: l.Column, Rows: l.Rows}
	case l.Expr != nil:
		return SQL{Expr: l.Expr}
	default:
		return Any{}
	}
}

// Needs are the attributes that a live attribute is computed from, sorted.
func (l Live) Needs() []string {
	found := usedAttributes(l.Node())
	for _, a := range l.Equals {
		found[a.Name] = true
	}
	delete(found, Claim)
	return sortedKeys(found)
}

// AtMostOneRow tells whether the value is always that of at most one row, whatever rows are added.
func (l Live) AtMostOneRow() bool {
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

// LiveBody is the body of [LiveFunction], in PL/pgSQL, for attributes in an order in which none needs a later one.
func LiveBody(lives []Live) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<<%s>>\nDECLARE\n", liveLabel)
	declared := map[string]bool{}
	for _, l := range lives {
		declared[l.Name] = true
	}
	given := map[string]bool{}
	for _, l := range lives {
		for _, n := range l.Needs() {
			if !declared[n] {
				given[n] = true
			}
		}
	}
	for _, n := range sortedKeys(given) {
		fmt.Fprintf(&b, "  a_%s pg_catalog.text := pgconsent.claim(%s, claims);\n", n, catalog.QuoteLiteral(n))
	}
	for _, l := range lives {
		fmt.Fprintf(&b, "  a_%s pg_catalog.text;\n", l.Name)
	}
	b.WriteString("  claim pg_catalog.text;\n  number pg_catalog.numeric;\nBEGIN\n")
	for _, l := range lives {
		fmt.Fprintf(&b, "  IF %s.name OPERATOR(pg_catalog.=) ANY (%s) THEN\n", liveFunctionName,
			textArray(neededBy(l.Name, lives)))
		b.WriteString(l.sql())
		fmt.Fprintf(&b, "    IF %s.name OPERATOR(pg_catalog.=) %s THEN RETURN a_%s; END IF;\n  END IF;\n",
			liveFunctionName, catalog.QuoteLiteral(l.Name), l.Name)
	}
	b.WriteString("  RETURN NULL;\nEND")
	return b.String()
}

const liveFunctionName = "live" // the label of the function's parameters

// neededBy are the attributes that are computed from this one, and itself.
func neededBy(name string, lives []Live) []string {
	out := map[string]bool{name: true}
	for _, l := range lives {
		if slices.ContainsFunc(l.Needs(), func(n string) bool { return out[n] }) {
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

// variables replaces attributes by the variables of the function.
func variables(sql string) string {
	return replaceAttributes(sql, func(name string) string {
		if name == Claim {
			return liveLabel + ".claim"
		}
		return liveLabel + ".a_" + name
	})
}

func (l Live) sql() string {
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
			line("IF claim::pg_catalog.numeric BETWEEN %s THEN", bounds[l.Type])
		default:
			line("IF pg_catalog.octet_length(claim) BETWEEN 1 AND %d THEN", MaxClaim)
		}
		line("IF %s THEN %sclaim; END IF;", l.claimConditionSQL(), set)
		line("%s", strings.TrimSpace(strings.Repeat("END IF; ", ends)))
	case l.Table != nil:
		w := writer{policy: true, form: probe, prefix: "r"}
		row := w.alias()
		parts := append(guards(attributesToGuard(l.Rows)), w.write(l.Rows, row))
		line(
			`SELECT CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) 1 `+
				`THEN pg_catalog.min(found.value COLLATE pg_catalog."C") END INTO a_%s`, l.Name)
		line("FROM (SELECT %s::pg_catalog.text FROM %s AS %s WHERE %s LIMIT 2) AS found (value);",
			column(row, l.Column), w.helper(l.Table), row,
			variables(strings.Join(parts, " AND ")))
	case l.Expr != nil:
		condition := strings.Join(guards(requiredAttributes(SQL{Expr: l.Expr})), " AND ")
		if condition == "" {
			condition = "true"
		}
		value := variables(expressionSQL(l.Expr, "none"))
		line("IF %s THEN", variables(condition))
		if limits, isNumber := bounds[l.Type]; isNumber {
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

// MaxClaim bounds a claim that is a text, in bytes.
const MaxClaim = 1024

var bounds = map[string]string{
	"pg_catalog.int4": "-2147483648 AND 2147483647",
	"pg_catalog.int8": "-9223372036854775808 AND 9223372036854775807",
}

// claimConditionSQL is the condition under which a claim counts.
func (l Live) claimConditionSQL() string {
	if l.Table != nil {
		w := writer{policy: true, form: probe, prefix: "r"}
		row := w.alias()
		need := attributesToGuard(l.Rows)
		delete(need, Claim)
		parts := append(guards(need), "EXISTS (SELECT 1 FROM "+w.helper(l.Table)+" AS "+row+" WHERE "+w.write(l.Rows, row)+fence)
		return variables(strings.Join(parts, " AND "))
	}
	var parts []string
	if len(l.Values) > 0 {
		parts = append(parts, "claim OPERATOR(pg_catalog.=) ANY ("+textArray(l.Values)+")")
	}
	for _, a := range l.Equals {
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
