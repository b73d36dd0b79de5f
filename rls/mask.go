package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// maskedColumn returns the expression whose value agents see in place of a column. The expression never raises an
// error, since an error would reveal something about the value. It depends on no setting: the month of a time, read in
// several time zones, would reveal the day.
func maskedColumn(c policy.VisibleColumn, column string) string {
	switch c.Mask {
	case policy.Plain:
		return column
	case policy.Hash:
		return fmt.Sprintf("pgconsent.mask(%s::pg_catalog.text)::%s", column, c.Type)
	case policy.Truncate:
		return truncateMask(c, column)
	case policy.Prefix:
		return fmt.Sprintf("pg_catalog.left(%s::pg_catalog.text, %d)::%s", column, c.Amount, c.Type)
	case policy.Step:
		return stepMask(c, column)
	case policy.Keys:
		return keysMask(c, column)
	default: // the mask is Null, or one that is not known
		return "NULL::" + c.Type
	}
}

// conditionalValue returns an expression whose result is value if the row meets the column's condition, and NULL if
// not.
func conditionalValue(condition predicate.Node, r *catalog.Relation, c policy.VisibleColumn, value string) string {
	if condition == nil {
		return value
	}
	cast := ""
	// CASE loses the type's length; the result of the mask Step may exceed it
	if strings.Contains(c.Type, "(") && c.Mask != policy.Step {
		cast = "::" + c.Type
	}
	return "(CASE WHEN " + predicate.CheckSQL(condition, r) + " THEN " + value + " END)" + cast
}

// truncateMask returns the expression of the mask Truncate. Its value is NULL outside the years 1 to 9999, for which
// date_trunc and casts could raise errors.
func truncateMask(c policy.VisibleColumn, column string) string {
	truncated := fmt.Sprintf("pg_catalog.date_trunc('%s', %s::pg_catalog.timestamp)", c.Unit, column)
	if strings.HasSuffix(c.Type, "with time zone") {
		truncated = fmt.Sprintf("pg_catalog.date_trunc('%s', %s, 'UTC')", c.Unit, column)
	}
	boundType, low, high := "pg_catalog.date", "0001-01-02", "9999-12-30"
	switch {
	case strings.HasSuffix(c.Type, "with time zone"):
		boundType, low, high = "pg_catalog.timestamptz", low+" 00:00:00+00", high+" 00:00:00+00"
	case strings.HasPrefix(c.Type, "timestamp"):
		boundType = "pg_catalog.timestamp"
	}
	return fmt.Sprintf("CASE WHEN %[1]s OPERATOR(pg_catalog.>=) '%[2]s'::%[4]s AND %[1]s OPERATOR(pg_catalog.<) "+
		"'%[3]s'::%[4]s THEN %[5]s::%[6]s END",
		column, low, high, boundType, truncated, c.Type)
}

// stepMask returns the expression of the mask Step, which rounds down to a multiple of the step. NaN, infinities and
// very large values become NULL. A result below the minimum of an integer type becomes that minimum.
func stepMask(c policy.VisibleColumn, column string) string {
	number := column + "::pg_catalog.numeric"
	floor, step := "pg_catalog.floor("+number+")", fmt.Sprintf("%d::pg_catalog.numeric", c.Amount)
	// The expression uses mod, which is exact, since a numeric quotient would be rounded.
	roundedDown := fmt.Sprintf("%[1]s OPERATOR(pg_catalog.-) pg_catalog.mod(pg_catalog.mod(%[1]s, %[2]s) "+
		"OPERATOR(pg_catalog.+) %[2]s, %[2]s)", floor, step)
	minimum, cast := "", c.Type
	switch {
	case c.Type == "smallint":
		minimum = "-32768"
	case c.Type == "integer":
		minimum = "-2147483648"
	case c.Type == "bigint":
		minimum = "-9223372036854775808"
	case strings.HasPrefix(c.Type, "numeric"):
		cast = "pg_catalog.numeric" // without the type's precision and scale, which the result may exceed
	}
	if minimum != "" {
		roundedDown = fmt.Sprintf("GREATEST(%s, '%s'::pg_catalog.numeric)", roundedDown, minimum)
	}
	return fmt.Sprintf("CASE WHEN pg_catalog.abs(%s) OPERATOR(pg_catalog.<) '1e30'::pg_catalog.numeric THEN "+
		"(%s)::%s END", number, roundedDown, cast)
}

// keysMask returns the expression of the mask Keys: a JSON object with the listed keys only. A value of another type
// than the listed one becomes null. For anything but an object the result is NULL.
func keysMask(c policy.VisibleColumn, column string) string {
	jsonType := "json"
	if c.Type == "jsonb" {
		jsonType = "jsonb"
	}
	isObject := fmt.Sprintf("pg_catalog.%[1]s_typeof(%[2]s) OPERATOR(pg_catalog.=) 'object'", jsonType, column)
	if jsonType == "json" {
		// The type json allows escapes, such as \u0000, that raise an error when they are converted to text.
		isObject = fmt.Sprintf("CASE WHEN %s THEN pg_catalog.regexp_replace(%s::pg_catalog.text, "+
			`E'\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g') `+
			`OPERATOR(pg_catalog.!~) E'\\\\u(0000|[dD][89a-fA-F])' END`, isObject, column)
	}
	if slices.ContainsFunc(c.Keys, func(k policy.Key) bool { return !k.IsScalar() }) {
		return fmt.Sprintf("CASE WHEN %s THEN %s END", isObject, maskedKeys(jsonType, column, c.Keys, 1))
	}
	keyTypes := make([]string, len(c.Keys))
	for i, k := range c.Keys {
		keyTypes[i] = "(" + catalog.QuoteLiteral(k.Name) + "::pg_catalog.text, " + catalog.QuoteLiteral(k.Type) +
			"::pg_catalog.text)"
	}
	return fmt.Sprintf("CASE WHEN %[2]s THEN COALESCE((SELECT pg_catalog.%[1]s_object_agg(e.key, "+
		"CASE WHEN pg_catalog.%[1]s_typeof(e.value) OPERATOR(pg_catalog.=) k.type THEN e.value "+
		`ELSE 'null'::pg_catalog.%[1]s END)
    FROM pg_catalog.%[1]s_each(%[3]s) AS e (key, value) JOIN (VALUES %[4]s) AS k (key, type) `+
		"ON k.key OPERATOR(pg_catalog.=) e.key), '{}'::pg_catalog.%[1]s) END",
		jsonType, isObject, column, strings.Join(keyTypes, ", "))
}

// maskedKeys returns the expression of a JSON object that has only the listed keys of object. It also handles keys
// whose values are lists or objects. Aliases contain the depth, so that nested levels do not clash.
func maskedKeys(jsonType, object string, keys []policy.Key, depth int) string {
	level := fmt.Sprintf("e%d", depth)
	value := level + ".value"
	var names, branches []string
	for _, k := range keys {
		names = append(names, catalog.QuoteLiteral(k.Name))
		branches = append(branches, fmt.Sprintf("WHEN %s THEN %s", catalog.QuoteLiteral(k.Name),
			maskedValue(jsonType, value, k, depth)))
	}
	return fmt.Sprintf("COALESCE((SELECT pg_catalog.%[1]s_object_agg(%[2]s.key, "+
		"COALESCE(CASE %[2]s.key %[3]s END, 'null'::pg_catalog.%[1]s))\n"+
		"    FROM pg_catalog.%[1]s_each(%[4]s) AS %[2]s (key, value) WHERE %[2]s.key OPERATOR(pg_catalog.=) ANY "+
		"(ARRAY[%[5]s]::pg_catalog.text[])), '{}'::pg_catalog.%[1]s)",
		jsonType, level, strings.Join(branches, " "), object, strings.Join(names, ", "))
}

// maskedValue returns the expression of a key's value, which is NULL if the value does not have the key's type.
func maskedValue(jsonType, value string, k policy.Key, depth int) string {
	hasType := func(value, typeName string) string {
		return fmt.Sprintf("pg_catalog.%s_typeof(%s) OPERATOR(pg_catalog.=) '%s'", jsonType, value, typeName)
	}
	if k.Keys != nil {
		return fmt.Sprintf("CASE WHEN %s THEN %s END", hasType(value, "object"), maskedKeys(jsonType, value, k.Keys, depth+1))
	}
	// json_array_elements is called for arrays only, since it raises an error for other values
	if itemType, isList := k.ItemType(); isList {
		return fmt.Sprintf("CASE WHEN %[1]s THEN CASE WHEN NOT EXISTS "+
			"(SELECT FROM pg_catalog.%[2]s_array_elements(%[3]s) AS i%[4]d (item) WHERE NOT %[5]s) THEN %[3]s END END",
			hasType(value, "array"), jsonType, value, depth, hasType(fmt.Sprintf("i%d.item", depth), itemType))
	}
	return fmt.Sprintf("CASE WHEN %s THEN %s END", hasType(value, k.Type), value)
}
