package predicate

import (
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// SetFunction is a function in SQL that returns the rows with the values of a set of the hashed form. Its rows have the
// type of the lookup view from which they come.
type SetFunction struct {
	Name       catalog.Name
	LookupView string // the SQL name of the view
	Query      string
}

// WithSetFunctions returns a row policy's expression of this package in a form that calls functions for the sets of the
// hashed form. PostgreSQL copies and walks a policy's whole expression for each plan, and drops the form that the
// statement does not use. It opens such a function only where it plans the hashed form, and then as the query itself.
// table is the table of the policy, after which the functions are named.
func WithSetFunctions(sql string, table catalog.Name) (string, []SetFunction) {
	var functions []SetFunction
	withFunction := func(rest string) (string, int) {
		set, found := strings.CutPrefix(rest, "ANY (SELECT ")
		if !found {
			return "", 0
		}
		set = "SELECT " + set[:closingParenthesis(set)]
		length := len("ANY (") + len(set) + len(")")
		columns, from, _ := cutUnquoted(set, " FROM ")
		view, behind, _ := cutUnquoted(from, " AS ")
		alias, _, _ := strings.Cut(behind, " ")
		if !strings.HasPrefix(strings.Replace(view, `"`, "", 1), OwnSchema+"."+lookupViewPrefix) {
			return rest[:length], length
		}
		prefix := "set" + strconv.Itoa(len(functions)+1) + "_"
		f := SetFunction{catalog.Name{Schema: OwnSchema, Name: objectName(prefix, table)}, view, "SELECT " + alias + ".* FROM " + from}
		functions = append(functions, f)
		return "ANY (" + columns + " FROM " + f.Name.SQL() + "() AS " + alias + ")", length
	}
	out := replaceUnquoted(sql, func(rest string) (string, int) {
		if !strings.HasPrefix(rest, useHashBranchSQL) {
			return "", 0
		}
		length := len(useHashBranchSQL) + hashedLength(rest[len(useHashBranchSQL):])
		return replaceUnquoted(rest[:length], withFunction), length
	})
	return out, functions
}

// closingParenthesis returns the index of the parenthesis that closes one before sql.
func closingParenthesis(sql string) int {
	depth, index := 0, -1
	replaceUnquoted(sql, func(rest string) (string, int) {
		switch {
		case index >= 0:
		case rest[0] == '(':
			depth++
		case rest[0] == ')' && depth == 0:
			index = len(sql) - len(rest)
		case rest[0] == ')':
			depth--
		}
		return "", 0
	})
	return index
}

// cutUnquoted is like [strings.Cut], but finds separator only outside of quotes.
func cutUnquoted(sql, separator string) (before, after string, found bool) {
	index := -1
	replaceUnquoted(sql, func(rest string) (string, int) {
		if index < 0 && strings.HasPrefix(rest, separator) {
			index = len(sql) - len(rest)
		}
		return "", 0
	})
	if index < 0 {
		return sql, "", false
	}
	return sql[:index], sql[index+len(separator):], true
}
