package policy

// shape describes a value of a policy. The shapes are the one description of all keys; the JSON Schema for editors is
// made from them. The decoder has functions for the same keys: a test sends an example of every shape through it, and
// compares.
type shape struct {
	doc  string
	def  string // a name, for a shape that is used in several places or contains itself
	of   func() *shape
	kind shapeKind

	keys    []key      // the keys of a mapping with fixed keys
	must    []string   // keys that a mapping must have
	either  [][]string // lists of keys; a mapping must have all keys of one of the lists
	one     bool       // a mapping must have exactly one key
	names   string     // the pattern of the keys of a mapping with free keys; "": any key
	values  *shape     // the shape of the values of a mapping with free keys, or of the items of a list
	some    bool       // the list or mapping has at least one entry
	single  bool       // the mapping has exactly one entry
	words   []string   // the word is one of these
	any     []*shape   // the value has one of these shapes
	example string     // an example of the word
	least   int        // the smallest number; 0 means 1
	most    int        // the largest number, or the largest number of entries of a mapping; 0: any
	pattern string     // the pattern of a text
}

type key struct {
	name string
	is   *shape
}

type shapeKind int

const (
	aWord    shapeKind = iota // a scalar: text, number or boolean
	aText                     // a text
	aNumber                   // a whole number
	aDecimal                  // a number
	aBool
	aTrue    // true
	aNull    // nothing
	aMapping // a mapping with fixed keys
	aTable   // a mapping with free keys
	aList
	anyOf
	aName // a reference to another shape, by def
)

func wordShape(doc string) *shape { return &shape{kind: aWord, doc: doc, example: "name"} }
func wordsShape(doc string, known ...string) *shape {
	return &shape{kind: aWord, doc: doc, words: known}
}
func textShape(doc, example string) *shape   { return &shape{kind: aText, doc: doc, example: example} }
func numberShape(doc string) *shape          { return &shape{kind: aNumber, doc: doc} }
func listShape(doc string, of *shape) *shape { return &shape{kind: aList, doc: doc, values: of} }
func nonEmptyListShape(doc string, of *shape) *shape {
	return &shape{kind: aList, doc: doc, values: of, some: true}
}
func namesShape(doc, names string, of *shape) *shape {
	return &shape{kind: aTable, doc: doc, names: names, values: of}
}
func eitherShape(doc string, of ...*shape) *shape { return &shape{kind: anyOf, doc: doc, any: of} }
func keysShape(doc string, keys ...key) *shape    { return &shape{kind: aMapping, doc: doc, keys: keys} }
func sharedShape(def string, of func() *shape) *shape {
	return &shape{kind: aName, def: def, of: of}
}

// needs names keys that must be there.
func (s *shape) needs(keys ...string) *shape {
	s.must = keys
	return s
}

// needsEither names lists of keys. All keys of one list must be there.
func (s *shape) needsEither(lists ...[]string) *shape {
	s.either = lists
	return s
}

// exactlyOne makes each key exclude the others.
func (s *shape) exactlyOne() *shape {
	s.one = true
	return s
}

// filled requires an entry.
func (s *shape) filled() *shape {
	s.some = true
	return s
}

// policyShape is the shape of a whole policy.
func policyShape() *shape {
	return keysShape("What agents may read and write. What is not listed does not exist for them.",
		key{"version", &shape{kind: aNumber, doc: "The version of this language.", words: []string{"1"}}},
		key{"mode", wordsShape(
			"observe: no table is protected but those that say observe: false, and what the policy would do is "+
				"counted.", "enforce", "observe")},
		key{"include", listShape("Other files of this policy, beneath this file's folder: paths and patterns.",
			textShape("", "more/*.yaml"))},
		key{"attributes", namesShape("Facts about the session.", attributeName.String(), attributeShape())},
		key{"tables", namesShape("The tables that agents may read, as name or schema.name.", "", tableShape())},
		key{"functions", namesShape("The functions that agents may call; SECURITY INVOKER only.",
			"", eitherShape("", &shape{kind: aNull}, functionShape()))},
		key{"operators",
			listShape("Extensions that pgconsent does not know, whose operators agents may use: none of them "+
				"acts, or reads rows.", wordShape("postgis"))},
		key{"channels",
			listShape("Channels that agents may LISTEN to and NOTIFY: what is sent on them passes as it is.",
				wordShape("news"))},
		key{"objects", namesShape("Names for tables, by which contracts speak of them.", attributeName.String(), objectShape())},
		key{"contracts", namesShape("What the value of an attribute allows.", attributeName.String(), contractShape())},
		key{"views", namesShape("The views that agents may read.", "", eitherShape("", &shape{kind: aNull}, keysShape("")))},
		key{"privacy", privacyShape()},
		key{"sources", keysShape("Under which path of the HTTP API the full text of one row is fetched.",
			key{"path", &shape{kind: aText, doc: "A path whose last part is a name in braces: the id.",
				example: "/api/v1/sources/{id}", pattern: sourcesPath.String()}},
			key{"table", wordShape("The table.")}, key{"key", wordShape("The column of its primary key.")}, key{
				"body", wordShape("The text; its first line, the title, is left out.")},
			key{"fields", namesShape("What else the answer has: a column, or column.key of a JSON column.",
				attributeName.String(), wordShape("A column."))},
		).needs("path", "table", "key", "fields", "body")},
		key{"limits", eitherShape("How much agents may ask for.", limitShape(), nonEmptyListShape("", limitShape()))},
		key{"air",
			keysShape("Which attributes name the user and the channel of a session, so that a reminder of that "+
				"user in that channel comes as a notice.",
				key{"user", wordShape("The attribute that is the user.")}, key{
					"channel", wordShape("The attribute that is the channel.")}).needs("user", "channel")},
	).needs("version")
}
