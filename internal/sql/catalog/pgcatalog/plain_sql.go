package pgcatalog

import (
	"regexp"
	"slices"
)

// ownSchemasSQL are the schemas of the objects that migrate makes. A name in these schemas does not count as a foreign
// one: the text of an older function cannot mean it.
const ownSchemasSQL = "('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')"

const (
	// textExecutingFunctions are functions of PostgreSQL that execute a text, make a value of a type that a text names, or
	// call the functions that compare a table's keys. set_config is among them, since it undoes settings.
	textExecutingFunctions = `\w+_to_xml\w*|ts_stat|ts_rewrite|(?:domain|array|record|range|multirange)_(?:in|recv)|pg_input_\w+|` +
		`satisfies_hash_partition|set_config`
	// spacePattern is a character that PostgreSQL takes for white space; \s lacks one of them.
	spacePattern = `[\t\n\v\f\r ]`
)

// These expressions are for texts in lower case, whose bytes beyond ASCII belong to no word: names are read as
// PostgreSQL reads names, whatever the database's language.
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

// keywordOperators are the operators that a text may have without their names.
var keywordOperators = []string{"=", "<>", "<", "<=", ">", ">=", "~", "!~", "~~", "~~*", "!~~", "!~~*"}

// isHarmlessSQL tells whether an SQL function can be seen to run nobody else's code, neither when it is planned nor
// when it runs. Its text must be a single SELECT that reads no table and executes no text. It may name only
// PostgreSQL's own functions, types and operators, and C functions of known extensions. Typical ones: an immutable
// wrapper of unaccent, a regular expression that checks an e-mail address.
//
// Functions whose arguments or results have user-defined or polymorphic types are excluded: a cast or comparison that
// the text does not name could run. So are functions with default arguments, and functions with settings besides that
// of the search path. All functions are excluded once somebody has made a cast or an operator class for built-in types.
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

// isForeignOrPseudoType tells whether a type is not PostgreSQL's own, or is a pseudo-type, in whose place any type may
// be used.
func (k *objectFacts) isForeignOrPseudoType(oid uint32) bool {
	t := k.types[oid]
	return t == nil || oid >= firstNormalOID || t.kind == 'p'
}

// isHarmlessExtensionBody tells whether the body of an extension's SQL function reads no table, executes no text, and
// names only functions, types and operators of PostgreSQL and of known extensions. The body is a text, or a tree that
// PostgreSQL keeps parsed.
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

// lowerASCII is a text with the letters of ASCII in lower case, as PostgreSQL reads names.
func lowerASCII(text string) string {
	bytes := []byte(text)
	for i, b := range bytes {
		if 'A' <= b && b <= 'Z' {
			bytes[i] = b + 'a' - 'A'
		}
	}
	return string(bytes)
}

// splitWords are the words of a text in lower case, cut as PostgreSQL cuts names.
func splitWords(text string) []string {
	words := nonWordCharacters.Split(text, -1)
	for i, word := range words {
		words[i] = word[:min(len(word), 63)]
	}
	return words
}

// withoutStrings is the text of a function in SQL in lower case with a space in the place of each string, if it is
// clear.
func withoutStrings(source string) string {
	return stringLiteral.ReplaceAllString(lowerASCII(source), " ")
}

// isUnambiguous tells whether the strings and the names in a function's text are certain. No string may have escapes.
// Outside of strings the text may have no quoted name, no dollar quote, no comment, and no letter or dollar in a name
// that is not one to every reader.
func isUnambiguous(source string) bool {
	return !escapeStringStart.MatchString(lowerASCII(source)) && !ambiguousText.MatchString(withoutStrings(source))
}
