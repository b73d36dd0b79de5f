package catalog

import "strings"

// SQL returns the name for use in a statement, with quotes if it needs them.
func (n Name) SQL() string { return QuoteIdent(n.Schema) + "." + QuoteIdent(n.Name) }

// QuoteIdent quotes an identifier if some version of PostgreSQL needs the quotes to read it as a name, wherever the
// grammar expects a ColId.
func QuoteIdent(name string) string {
	if needsNoQuotes(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func needsNoQuotes(name string) bool {
	if name == "" || reservedWords[name] {
		return false
	}
	for i, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c == '_':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return true
}

// QuoteLiteral returns a string constant with the same meaning under both values of standard_conforming_strings.
func QuoteLiteral(value string) string {
	quoted := "'" + strings.ReplaceAll(value, "'", "''") + "'"
	if strings.Contains(value, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// reservedWords are the words that need quotes as some kinds of names in PostgreSQL's grammar or in PL/pgSQL. For
// example, PL/pgSQL does not read NEW.by as a field of NEW. Quoting a word that needs no quotes does no harm.
var reservedWords = func() map[string]bool {
	words := `all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case
cast char character check coalesce collate collation column concurrently constraint create cross current_catalog
current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable desc
distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group grouping
having ilike in initially inner inout int integer intersect interval into is isnull join json json_array json_arrayagg
json_exists json_object json_objectagg json_query json_scalar json_serialize json_table json_value lateral leading least
left like limit localtime localtimestamp merge_action national natural nchar none normalize not notnull null nullif
numeric offset on only or order out outer overlaps overlay placing position precision primary real references returning
right row select session_user setof similar smallint some substring symmetric system_user table tablesample then time
timestamp to trailing treat trim true union unique user using values varchar variadic verbose when where window with
xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
begin by declare execute foreach if loop strict while`
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}()
