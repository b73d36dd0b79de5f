package pgcatalog

import (
	"regexp"
	"slices"
)

// ours are the schemas of what migrate makes. A name in them is nobody's: it says nothing of a text that was there
// before.
const ours = "('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')"

const (
	// running are functions of PostgreSQL's that run a text, make a value of a type that they are told in one, or call
	// what compares a table's keys; and one that undoes settings.
	running = `\w+_to_xml\w*|ts_stat|ts_rewrite|(?:domain|array|record|range|multirange)_(?:in|recv)|pg_input_\w+|` +
		`satisfies_hash_partition|set_config`
	// space is what PostgreSQL takes for it, in the place of \s, which lacks one.
	space = `[\t\n\v\f\r ]`
)

// These are for texts in lower case, whose bytes beyond ASCII belong to no word: names are read as PostgreSQL reads
// them, whatever the database's language.
var (
	aString      = regexp.MustCompile(`'[^']*'`)
	escaped      = regexp.MustCompile(`\be'`)
	unclear      = regexp.MustCompile(`["\\]|[^\x01-\x7f]|\$(?:[^0-9]|$)|\w\$|--|/\*`)
	oneSelect    = regexp.MustCompile(`^` + space + `*select\b[^;]*;?` + space + `*$`)
	subSelect    = regexp.MustCompile(`\(` + space + `*select\b`)
	reading      = regexp.MustCompile(`\b(?:from|into|table|with|execute|` + running + `)\b`)
	unreadable   = regexp.MustCompile(`"|[^\x01-\x7f]|\w\$`)
	runningName  = regexp.MustCompile(`^(?:` + running + `)$`)
	notWord      = regexp.MustCompile(`\W+`)
	operatorText = regexp.MustCompile("[-+*/<>=~!@#%^&|`?]+")
	treeRelation = regexp.MustCompile(`:relid [1-9]`)
)

// unwritten are the operators that a text may have without their names.
var unwritten = []string{"=", "<>", "<", "<=", ">", ">=", "~", "!~", "~~", "~~*", "!~~", "!~~*"}

// plainSQL tells of a function that it is in SQL, and that its text is one SELECT that reads no table, runs no text,
// and has no name of a function, a type or an operator but PostgreSQL's and those of functions that are not of others:
// neither it nor what PostgreSQL makes of it as it plans runs anything else. So are those that are made to call
// unaccent immutable, or to tell an address by its look. Values of others' types, which it may take for any, could be
// cast or compared by what the text does not name; so could PostgreSQL's own, where somebody has made a cast or an
// order of these.
func (k *known) plainSQL(f *function) bool {
	if f.language != "sql" || f.parsed || !isClear(f.source) || f.defaults || f.unsettled ||
		slices.ContainsFunc(f.types, k.ofAnyType) || !k.nobodysOrder() {
		return false
	}
	text := withoutStrings(f.source)
	return oneSelect.MatchString(text) && !reading.MatchString(text) && !k.mayRunOperator(text) &&
		!slices.ContainsFunc(words(text), func(word string) bool {
			return len(k.typeNames[word]) > 0 ||
				slices.ContainsFunc(k.functionNames[word], func(named *function) bool { return named != f && k.ofOthers(named) })
		})
}

// ofAnyType tells of a type that it is not PostgreSQL's own, or stands for any.
func (k *known) ofAnyType(oid uint32) bool {
	t := k.types[oid]
	return t == nil || oid >= firstOfOthers || t.kind == 'p'
}

// asMade tells of an extension's function in SQL that its body reads nothing, runs no text, and names no function, no
// type and no operator but those of PostgreSQL and of extensions that are known: its text, or what PostgreSQL keeps
// parsed.
func (k *known) asMade(f *function) bool {
	otherType := func(t *typeFacts) bool {
		return t != nil && t.oid >= firstOfOthers && !t.ours && !k.ofHonest("pg_type", t.oid)
	}
	otherFunction := func(named *function) bool {
		return named.oid >= firstOfOthers && !k.ofHonest("pg_proc", named.oid)
	}
	if f.defaults {
		return false
	}
	if !f.parsed {
		text := lower(f.source)
		return !unreadable.MatchString(text) && !reading.MatchString(text) && !k.mayRunOperator(text) &&
			!slices.ContainsFunc(words(text), func(word string) bool {
				return slices.ContainsFunc(k.typeNames[word], otherType) || slices.ContainsFunc(k.functionNames[word], otherFunction)
			})
	}
	return f.body != nil && !treeRelation.MatchString(f.body.text) &&
		!slices.ContainsFunc(f.body.functions, func(oid uint32) bool {
			called := k.functions[oid]
			return called == nil || runningName.MatchString(called.name) || otherFunction(called)
		}) &&
		!slices.ContainsFunc(f.body.types, func(oid uint32) bool { return otherType(k.types[oid]) })
}

// lower is a text with the letters of ASCII in lower case, as PostgreSQL reads names.
func lower(text string) string {
	bytes := []byte(text)
	for i, b := range bytes {
		if 'A' <= b && b <= 'Z' {
			bytes[i] = b + 'a' - 'A'
		}
	}
	return string(bytes)
}

// words are those of a text in lower case, cut as PostgreSQL cuts names.
func words(text string) []string {
	found := notWord.Split(text, -1)
	for i, word := range found {
		found[i] = word[:min(len(word), 63)]
	}
	return found
}

// withoutStrings is the text of a function in SQL in lower case with a space in the place of each string, if it is clear.
func withoutStrings(source string) string { return aString.ReplaceAllString(lower(source), " ") }

// isClear tells of the text of a function that what is taken for its strings are these, and what is taken for its
// names: none has escapes, and outside of them is no quoted name, dollar quote and comment, and no letter or dollar in
// a name that is none to all.
func isClear(source string) bool {
	return !escaped.MatchString(lower(source)) && !unclear.MatchString(withoutStrings(source))
}
