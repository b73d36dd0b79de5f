package pgcatalog

import (
	"regexp"
	"slices"
)

// ownSchemasSQL lists the schemas of the objects that pgconsent migrate makes. Names in these schemas do not count as
// names of other roles, since functions that are older than pgconsent cannot mean them.
const ownSchemasSQL = "('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')"

const (
	// textExecutingFunctions matches functions that execute a text, make a value of a type that a text names, or call
	// functions that compare a table's keys. set_config is among them, since it changes settings.
	textExecutingFunctions = `\w+_to_xml\w*|ts_stat|ts_rewrite|(?:domain|array|record|range|multirange)_(?:in|recv)|pg_input_\w+|` +
		`satisfies_hash_partition|set_config`
	// spacePattern matches a character that PostgreSQL takes for white space; \s lacks \v.
	spacePattern = `[\t\n\v\f\r ]`
)

// These regular expressions are for texts in lower case. Bytes beyond ASCII belong to no word, so that names end where
// PostgreSQL ends them, whatever the database's locale is.
var (
	stringLiteral     = regexp.MustCompile(`'[^']*'`)
	escapeStringStart = regexp.MustCompile(`\be'`)
	ambiguousText     = regexp.MustCompile(`["\\]|[^\x01-\x7f]|\$(?:[^0-9]|$)|\w\$|--|/\*`)
	singleSelect      = regexp.MustCompile(`^` + spacePattern + `*select\b[^;]*;?` + spacePattern + `*$`)
	subSelectStart    = regexp.MustCompile(`\(` + spacePattern + `*select\b`)
	readingKeyword    = regexp.MustCompile(`\b(?:from|into|table|with|execute|` + textExecutingFunctions + `)\b`)
	unusualName       = regexp.MustCompile(`"|[^\x01-\x7f]|\w\$`)
	textExecutingName = regexp.MustCompile(`^(?:` + textExecutingFunctions + `)$`)
	nonWordCharacters = regexp.MustCompile(`\W+`)
	operatorPattern   = regexp.MustCompile("[-+*/<>=~!@#%^&|`?]+")
	relationInTree    = regexp.MustCompile(`:relid [1-9]`)
)

// keywordOperators are the operators that a text may contain as keywords, such as LIKE or BETWEEN, without their names.
var keywordOperators = []string{"=", "<>", "<", "<=", ">", ">=", "~", "!~", "~~", "~~*", "!~~", "!~~*"}

// isHarmlessSQL tells whether an SQL function certainly runs no code of other roles, neither when it is planned nor
// when it runs. Its text must be a single SELECT that reads no table and executes no text. It may name only
// PostgreSQL's own functions, types and operators, and C functions of known extensions. Typical examples are an
// immutable wrapper of unaccent, or a regular expression that checks an e-mail address.
//
// Functions whose arguments or results have user-defined or polymorphic types are not harmless: PostgreSQL could run a
// cast or comparison that the text does not name. Neither are functions with argument defaults, or with settings other
// than search_path. No function is harmless once another role has made a cast or an operator class for PostgreSQL's own
// types.
func (k *objectFacts) isHarmlessSQL(f *function) bool {
	if f.language != "sql" || f.hasParsedBody || !isUnambiguous(f.source) || f.hasDefaults || f.hasOtherSettings ||
		slices.ContainsFunc(f.types, k.isForeignOrPseudoType) || !k.hasOnlyNativeOrder() {
		return false
	}
	text := withoutStrings(f.source)
	return singleSelect.MatchString(text) && !readingKeyword.MatchString(text) && !k.mayRunOperator(text) &&
		!slices.ContainsFunc(splitWords(text), func(word string) bool {
			return len(k.typeNames[word]) > 0 ||
				slices.ContainsFunc(k.functionNames[word], func(named *function) bool { return named != f && k.isForeign(named) })
		})
}

// isForeignOrPseudoType tells whether a type is not PostgreSQL's own, or is a pseudo-type such as anyelement, for which
// any type may stand.
func (k *objectFacts) isForeignOrPseudoType(oid uint32) bool {
	t := k.types[oid]
	return t == nil || oid >= firstNormalOID || t.kind == 'p'
}

// isHarmlessExtensionBody tells whether the body of an extension's SQL function reads no table and executes no text. It
// may name only functions, types and operators of PostgreSQL and of known extensions. PostgreSQL stores the body as a
// text or as a parsed tree.
func (k *objectFacts) isHarmlessExtensionBody(f *function) bool {
	otherType := func(t *typeFacts) bool {
		return t != nil && t.oid >= firstNormalOID && !t.inOwnSchema && !k.isOfKnownExtension("pg_type", t.oid)
	}
	otherFunction := func(named *function) bool {
		return named.oid >= firstNormalOID && !k.isOfKnownExtension("pg_proc", named.oid)
	}
	if f.hasDefaults {
		return false
	}
	if !f.hasParsedBody {
		text := lowerASCII(f.source)
		return !unusualName.MatchString(text) && !readingKeyword.MatchString(text) && !k.mayRunOperator(text) &&
			!slices.ContainsFunc(splitWords(text), func(word string) bool {
				return slices.ContainsFunc(k.typeNames[word], otherType) || slices.ContainsFunc(k.functionNames[word], otherFunction)
			})
	}
	return f.body != nil && !relationInTree.MatchString(f.body.text) &&
		!slices.ContainsFunc(f.body.functions, func(oid uint32) bool {
			called := k.functions[oid]
			return called == nil || textExecutingName.MatchString(called.name) || otherFunction(called)
		}) &&
		!slices.ContainsFunc(f.body.types, func(oid uint32) bool { return otherType(k.types[oid]) })
}

// lowerASCII returns the text with ASCII letters in lower case and all other bytes unchanged, as PostgreSQL folds
// names.
func lowerASCII(text string) string {
	bytes := []byte(text)
	for i, b := range bytes {
		if 'A' <= b && b <= 'Z' {
			bytes[i] = b + 'a' - 'A'
		}
	}
	return string(bytes)
}

// splitWords returns the words of a text in lower case, each cut to 63 bytes, as PostgreSQL cuts names.
func splitWords(text string) []string {
	words := nonWordCharacters.Split(text, -1)
	for i, word := range words {
		words[i] = word[:min(len(word), 63)]
	}
	return words
}

// withoutStrings returns the text of an SQL function in lower case, with a space in place of each string literal. The
// result is reliable only if isUnambiguous holds.
func withoutStrings(source string) string {
	return stringLiteral.ReplaceAllString(lowerASCII(source), " ")
}

// isUnambiguous tells whether the string literals and names in a function's text can be found with certainty. No string
// may have escapes. Outside of strings the text may have no quoted name, no dollar quote and no comment. Nor may it
// have a character that only some readers take for part of a name.
func isUnambiguous(source string) bool {
	return !escapeStringStart.MatchString(lowerASCII(source)) && !ambiguousText.MatchString(withoutStrings(source))
}
