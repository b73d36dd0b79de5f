package policy

// shape describes the form of a value in a policy. The JSON Schema for editors is generated from the shapes. The
// decoder has its own functions for the same keys, and a test compares the two by decoding an example of every shape.
type shape struct {
	doc            string
	definitionName string // the name of a shape that is used in several places or contains itself
	resolve        func() *shape
	kind           shapeKind

	keys         []shapeKey // the keys of a mapping with fixed keys
	requiredKeys []string   // keys that a mapping must have
	eitherKeys   [][]string // lists of keys; a mapping must have all keys of at least one list
	hasOneKey    bool       // a mapping must have exactly one key
	keyPattern   string     // the pattern of the keys of a mapping with free keys; "": any key
	values       *shape     // the shape of the values of a mapping with free keys, or of the items of a list
	isNonEmpty   bool       // the list or mapping has at least one entry
	hasOneEntry  bool       // the mapping has exactly one entry
	words        []string   // the permitted words
	alternatives []*shape   // the value has one of these shapes
	example      string     // an example of the word
	minimum      int        // the smallest number; 0 means 1
	maximum      int        // the largest number, or the largest number of entries of a mapping; 0: no bound
	pattern      string     // a pattern that the text must match
}

type shapeKey struct {
	name  string
	shape *shape
}

// shapeKind is the kind of value that a shape describes.
type shapeKind int

const (
	wordKind    shapeKind = iota // a scalar: text, number or boolean
	textKind                     // a text
	numberKind                   // a whole number
	decimalKind                  // a decimal number
	boolKind
	trueKind    // the word true
	nullKind    // an empty value
	mappingKind // a mapping with fixed keys
	tableKind   // a mapping with free keys
	listKind
	anyOf
	referenceKind // a reference to the shape with the same definitionName
)

func wordShape(doc string) *shape { return &shape{kind: wordKind, doc: doc, example: "name"} }
func wordsShape(doc string, allowedWords ...string) *shape {
	return &shape{kind: wordKind, doc: doc, words: allowedWords}
}
func textShape(doc, example string) *shape { return &shape{kind: textKind, doc: doc, example: example} }
func numberShape(doc string) *shape        { return &shape{kind: numberKind, doc: doc} }
func listShape(doc string, element *shape) *shape {
	return &shape{kind: listKind, doc: doc, values: element}
}
func nonEmptyListShape(doc string, element *shape) *shape {
	return &shape{kind: listKind, doc: doc, values: element, isNonEmpty: true}
}
func namesShape(doc, names string, element *shape) *shape {
	return &shape{kind: tableKind, doc: doc, keyPattern: names, values: element}
}
func eitherShape(doc string, alternatives ...*shape) *shape {
	return &shape{kind: anyOf, doc: doc, alternatives: alternatives}
}
func keysShape(doc string, keys ...shapeKey) *shape {
	return &shape{kind: mappingKind, doc: doc, keys: keys}
}
func sharedShape(def string, resolve func() *shape) *shape {
	return &shape{kind: referenceKind, definitionName: def, resolve: resolve}
}

// withRequired sets the keys that a mapping must have.
func (s *shape) withRequired(keys ...string) *shape {
	s.requiredKeys = keys
	return s
}

// withEither sets lists of keys: a mapping must have all keys of one of the lists.
func (s *shape) withEither(lists ...[]string) *shape {
	s.eitherKeys = lists
	return s
}

// withExactlyOne requires a mapping to have exactly one of the keys.
func (s *shape) withExactlyOne() *shape {
	s.hasOneKey = true
	return s
}

// withNonEmpty makes the shape require at least one entry.
func (s *shape) withNonEmpty() *shape {
	s.isNonEmpty = true
	return s
}

// policyShape returns the shape of a whole policy.
func policyShape() *shape {
	return keysShape("What agents may read and write. What is not listed does not exist for them.",
		shapeKey{"version", &shape{kind: numberKind, doc: "The version of this language.", words: []string{"1"}}},
		shapeKey{"mode", wordsShape(
			"observe: no table is protected but those that say observe: false, and what the policy would do is "+
				"counted.", "enforce", "observe")},
		shapeKey{"include", listShape("Other files of this policy, beneath this file's folder: paths and patterns.",
			textShape("", "more/*.yaml"))},
		shapeKey{"attributes", namesShape("Facts about the session.", attributeName.String(), attributeShape())},
		shapeKey{"tables", namesShape("The tables that agents may read, as name or schema.name.", "", tableShape())},
		shapeKey{"functions", namesShape("The functions that agents may call; SECURITY INVOKER only.",
			"", eitherShape("", &shape{kind: nullKind}, functionShape()))},
		shapeKey{"operators",
			listShape("Extensions that pgconsent does not know, whose operators agents may use: none of them "+
				"acts, or reads rows.", wordShape("postgis"))},
		shapeKey{"channels",
			listShape("Channels that agents may LISTEN to and NOTIFY: what is sent on them passes as it is.",
				wordShape("news"))},
		shapeKey{"objects", namesShape("Names for tables, by which contracts speak of them.", attributeName.String(), objectShape())},
		shapeKey{"contracts", namesShape("What the value of an attribute allows.", attributeName.String(), contractShape())},
		shapeKey{"views", namesShape("The views that agents may read.", "",
			eitherShape("", &shape{kind: nullKind}, keysShape("")))},
		shapeKey{"privacy", privacyShape()},
		shapeKey{"sources", keysShape("Under which path of the HTTP API the full text of one row is fetched.",
			shapeKey{"path", &shape{kind: textKind, doc: "A path whose last part is a name in braces: the id.",
				example: "/api/v1/sources/{id}", pattern: sourcesPath.String()}},
			shapeKey{"table", wordShape("The table.")}, shapeKey{"key", wordShape("The column of its primary key.")}, shapeKey{
				"body", wordShape("The text; its first line, the title, is left out.")},
			shapeKey{"fields", namesShape("What else the answer has: a column, or column.key of a JSON column.",
				attributeName.String(), wordShape("A column."))},
		).withRequired("path", "table", "key", "fields", "body")},
		shapeKey{"limits", eitherShape("How much agents may ask for.", limitShape(), nonEmptyListShape("", limitShape()))},
		shapeKey{"air",
			keysShape("Which attributes name the user and the channel of a session, so that a reminder of that "+
				"user in that channel comes as a notice.",
				shapeKey{"user", wordShape("The attribute that is the user.")}, shapeKey{
					"channel", wordShape("The attribute that is the channel.")}).withRequired("user", "channel")},
	).withRequired("version")
}
