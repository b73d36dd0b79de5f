package policy

// shape describes what may stand at a place of a policy: the one description of its keys, from which the JSON Schema
// for editors is made. The decoder reads what it describes; a test sends an example of every shape through it and
// compares the keys that it knows there.
type shape struct {
	doc  string
	def  string // a name, where a shape is used in more than one place or within itself
	of   func() *shape
	kind shapeKind

	keys    []key      // of a mapping with keys of ours
	must    []string   // those that must be there
	either  [][]string // instead: all of one of these lists
	one     bool       // exactly one of them
	names   string     // of a mapping whose keys are names of the application: what they must match, "" for any
	values  *shape     // of such a mapping, and of a list
	some    bool       // a list or mapping that has at least one entry
	single  bool       // such a mapping has exactly one entry
	words   []string   // a word must be one of these
	any     []*shape   // one of several shapes
	example string     // of a word
	least   int        // of a number; 0: 1
	most    int        // of a number, or of the entries of such a mapping; 0: any
	pattern string     // of a text
}

type key struct {
	name string
	is   *shape
}

type shapeKind int

const (
	aWord    shapeKind = iota // a single value: text, number or boolean
	aText                     // a text
	aNumber                   // a whole number
	aDecimal                  // a number
	aBool
	aTrue    // true
	aNull    // nothing
	aMapping // with keys of ours
	aTable   // a mapping with names of the application
	aList
	anyOf
	aName // another shape by its def
)

func wordShape(doc string) *shape { return &shape{kind: aWord, doc: doc, example: "name"} }
func wordsShape(doc string, known ...string) *shape {
	return &shape{kind: aWord, doc: doc, words: known}
}
func textShape(doc, example string) *shape   { return &shape{kind: aText, doc: doc, example: example} }
func numberShape(doc string) *shape          { return &shape{kind: aNumber, doc: doc} }
func listShape(doc string, of *shape) *shape { return &shape{kind: aList, doc: doc, values: of} }
func someShape(doc string, of *shape) *shape {
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

// needs names the keys that must be there.
func (s *shape) needs(keys ...string) *shape {
	s.must = keys
	return s
}

// needsEither names lists of keys, of which all of one must be there.
func (s *shape) needsEither(lists ...[]string) *shape {
	s.either = lists
	return s
}

// exactlyOne makes each key exclude the others.
func (s *shape) exactlyOne() *shape {
	s.one = true
	return s
}

// filled asks for an entry.
func (s *shape) filled() *shape {
	s.some = true
	return s
}

// policyShape is a whole policy.
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
		key{"limits", eitherShape("How much agents may ask for.", limitShape(), someShape("", limitShape()))},
		key{"air",
			keysShape("Which attributes name the user and the channel of a session, so that a reminder of that "+
				"user in that channel comes as a notice.",
				key{"user", wordShape("The attribute that is the user.")}, key{
					"channel", wordShape("The attribute that is the channel.")}).needs("user", "channel")},
	).needs("version")
}

func privacyShape() *shape {
	column := func(name, doc string) key { return key{name, wordShape(doc)} }
	store := column("store", "The column with the id of the store.")
	table := column("table", "The table.")
	return keysShape("Where memories, grants, contexts and consents stand, for those who grant and look at grants "+
		"by HTTP, MCP or the command line.",
		column("entity", "The attribute that says who the caller is."),
		key{"roles", listShape("Attributes whose values are ids of the caller as well.", wordShape(""))},
		column("context", "The attribute, of source: set, of the context that the caller has entered."),
		column("all", "The word for everybody."),
		key{"memories", someShape("Tables of memories.", keysShape("",
			key{"tables", namesShape("Tables that have these columns, each by the kind of memories in it.",
				attributeName.String(), wordShape("")).filled()},
			store,
			column("content", "The text."),
			column("source", "Who told it."),
			column("told", "The key of the memory that it was told from."),
			column("subjects", "A list: whom it is about."),
			column("grants", "A list: who is to see it."),
			column("evidence", "A list: who is said to have agreed."),
		).needs("tables", "store", "content", "subjects", "grants"))},
		key{"stores", keysShape("Whose memories a store holds. Without it, the store is the owner's id.", table,
			column("id", "The column with its id."), column("owner", "The column with its owner's."),
		).needs("table", "id", "owner")},
		key{"contexts", keysShape("Contexts and who takes part in them.", table, store,
			column("name", "The column with the name by which it is entered."),
			column("participants", "A list: who takes part."),
			column("defaults", "A list: what new memories are granted to."),
		).needs("table", "store", "name", "participants")},
		key{"consents", keysShape("Records of consent.", table, store,
			column("grantor", "Who consented."), column("grantee", "To whom."), column("scope", "About what."),
			column("given", "When."), column("revoked", "When it was revoked."), column("expires", "Until when it counts."),
		).needs("table", "store", "grantor", "grantee")},
		key{"guardians", keysShape("Who speaks for whom.", table, store,
			column("subject", "For whom."), column("guardian", "Who."),
		).needs("table", "store", "subject", "guardian")},
		key{"generalize", keysShape("Where a belief goes that is drawn from a private memory, and where it is noted from which.",
			column("into", "The kind of memories that beliefs are."),
			key{"link",
				keysShape("The table that has which memory was made from which. Only the owner of the store "+
					"should see it.", table, store,
					column("made", "The belief."), column("source", "The memory that it was drawn from."), column("kind",
						"The kind of that memory: needed where memories of two kinds can have one id."),
					column("note", "How it was abstracted."), column("at", "When."),
				).needs("table", "store", "made", "source")},
			key{"aliases", keysShape("What else those are called whom memories are about.", table, store,
				column("subject", "Who."), column("alias", "Another name."),
			).needs("table", "store", "subject", "alias")},
		).needs("into", "link")},
	).needs("entity", "memories")
}

func limitShape() *shape {
	return keysShape("Bounds: rates per minute, and sizes of one result.",
		key{"per", wordShape("What the rates are counted by: agent, or an attribute.")},
		key{"statements", numberShape("Executions in a minute.")},
		key{"rows", numberShape("Rows in a minute that are sent to agents.")},
		key{"by_key", numberShape("Keys in a minute by which columns are fetched that exist by key only.")},
		key{"result_rows", numberShape("Rows of one result.")},
		key{"result_bytes", eitherShape("Bytes of one result.", numberShape(""), textShape("", "16MiB"))},
		key{"statement_timeout", textShape("How long a statement may take.", "30s")},
		key{"transaction_timeout", textShape("How long a transaction may last.", "5m")},
	)
}

func attributeShape() *shape {
	return keysShape("A fact about the session.",
		key{"type", wordsShape("Its type.", keys(attributeTypes)...)},
		key{"source", wordsShape(
			"Where its value comes from. credential: the configuration gives each agent one; set: the agent's own "+
				"setting, within what is permitted; query: a table; expression: other attributes.", attributeSources...)},
		key{"optional", &shape{kind: aBool, doc: "A session may be without it: what compares with it hides the row."}},
		key{"audit", eitherShape(
			"How the records of the audit have it. true: as it is; reference: by a reference that can be "+
				"forgotten; subject: as a reference to the person on whose behalf the session reads; purpose: as "+
				"it is, what the session reads for.",
			&shape{kind: aBool}, wordsShape("", string(AsReference), string(AsSubject), string(AsPurpose)))},
		key{"setting", &shape{kind: aText, doc: "Of source: set, the setting that the agent's session has.",
			example: "app.name", pattern: `^[^.]+\.[^.]+$`}},
		key{"within", eitherShape("Of source: set, the values that count.",
			keysShape("", key{"attribute", oneOrMore("An attribute whose value, or one of whose elements, it is.")},
				key{"values", someShape("These values.", wordShape("A value."))}).exactlyOne(),
			lookedShape())},
		key{"query", lookedShape()},
		key{"sql", textShape("Of source: expression.", "upper(attribute('name'))")},
	).needs("type", "source")
}

// lookedShape is where a value is looked up.
func lookedShape() *shape {
	return keysShape("Where it is looked up.",
		key{"table", wordShape("The table.")},
		key{"column", wordShape("Its column with the value.")},
		key{"rows", rowsShape()},
		key{"match", namesShape("Its columns, and the attributes that they equal.", "", wordShape("An attribute.")).filled()},
	).needsEither([]string{"table", "column", "rows"}, []string{"table", "column", "match"})
}

func tableShape() *shape {
	return keysShape("A table: which rows show, which columns, what agents may change.",
		key{"rows", rowsShape()},
		key{"columns", namesShape("The columns that exist for agents; without it all do.", "", columnShape()).filled()},
		key{"write", writeShape()},
		key{"observe", &shape{kind: aBool,
			doc: "true: the table is not protected, and what the policy would do is counted. false: it is " +
				"enforced although the policy observes."}},
		key{"aggregate", aggregateShape()},
		key{"approximate", wordsShape(
			"Searches for the nearest rows may use an approximate index: which of the visible rows they find then "+
				"depends on hidden ones. Without it they are exact.", "accept")},
		key{"audit", keysShape("What records say of its rows.",
			key{"keys", &shape{kind: aBool, doc: "true: of what is read of it, which rows: commitments to their keys."}})},
		key{"consent", consentShape()},
		key{"lifecycle", lifecycleShape()},
	).needs("rows")
}

func lifecycleShape() *shape {
	return keysShape("What becomes of rows when the consent of their subject has ended, and of columns when they "+
		"have decayed.",
		key{"subject", wordShape("The column that says, in the registry's words, whom a row is about.")},
		key{"at", wordShape("The column that says how old a row is.")},
		key{"ended", wordsShape("What becomes of rows whose subject's consent has ended. Default: delete.", "delete",
			"anonymise")},
		key{"columns", namesShape("What columns become when a row is anonymous, or before.", "", keysShape("",
			key{"becomes", eitherShape("What stands in its place.",
				&shape{kind: aNull, doc: "NULL"},
				wordsShape("NULL, or what stands for the value: equal values of one subject have equal ones.", "null", "hash"),
				keysShape("", key{"generalise",
					eitherShape("A unit for dates, leading characters for text, a step for numbers.",
						wordsShape("", "year", "month", "day"), numberShape(""))}).needs("generalise"),
				keysShape("", key{"value", wordShape("A fixed value.")}).needs("value"))},
			key{"after",
				textShape("The last full day of a countdown on which the column is as it was. Default: 89 days.", "60 days")},
		).needs("becomes"))},
		key{"counts",
			keysShape("Columns that go on counting in groups in rows that are anonymous already, of which no subject is known.",
				key{"where", someShape("Over the columns of the row: where they hold it is anonymous.", blockShape())},
				key{"columns", listShape("Dimensions and measures with a category.", wordShape(""))},
			).needs("where", "columns")},
	).needs("subject")
}

func functionShape() *shape {
	return keysShape("",
		key{"pin", namesShape("Arguments that are fixed, whatever agents pass.", "",
			wordShape("The value, as a boolean, a number or a text."))},
		key{"reads", eitherShape("What it reads, for contracts.", wordsShape("", "nothing"),
			namesShape("Objects with their sources.", "", oneOrMore("A source.", sources[:3]...)))},
		key{"tool", keysShape("It is published as a tool of MCP.",
			key{"name", &shape{kind: aText, doc: "The tool's name. Default: the function's.", example: "search_notes",
				pattern: toolName.String()}},
			key{"description", textShape("What it is for, in words that a model acts on.", "Finds notes by what they are about.")},
			key{"arguments", eitherShape("What it takes. Default: all that is not pinned.",
				namesShape("Arguments, each with what it is.", "", textShape("", "what to look for")),
				listShape("", wordShape("An argument.")))},
		).needs("description")},
	)
}

func columnShape() *shape {
	return eitherShape("What comes out.",
		wordsShape("As it is, or only to who names the row's key.", "allow", "by_key"),
		keysShape("Changed.",
			key{"mask", eitherShape("What stands in its place.",
				&shape{kind: aNull, doc: "NULL"},
				wordsShape("NULL, or a keyed hash: equal values have equal ones.", "null", "hash"),
				keysShape("",
					key{"generalise", eitherShape(
						"A unit for dates, leading characters for text, a step for numbers.", wordsShape("",
							"year", "month", "day"), numberShape(""))},
				).needs("generalise"))},
			key{"by_key", eitherShape("Only to who names the row's key.", &shape{kind: aNull}, keysShape("",
				key{"key", oneOrMore("Columns of the key, if it is not the primary key.")},
				key{"at_most", numberShape("How many keys a statement may name.")}))},
			key{"keys", namesShape("Of a JSON object: its keys that exist for agents, with their types.", "",
				wordsShape("", "string", "number", "boolean")).filled()},
			key{"category", oneOrMore("It is NULL unless the subject of the row consents to these categories.")},
			key{"until", keysShape("The last day of a countdown to anonymity on which it shows, and counts in groups.",
				key{"decay", textShape("", "30 days")}, key{"groups", textShape("", "60 days")}).needs("decay")},
		))
}

func writeShape() *shape {
	return keysShape("What agents may change, of rows that they see.",
		key{"commands", listShape("", wordsShape("", "insert", "update", "delete"))},
		key{"columns", listShape("The columns that they may set.", wordShape("A column."))},
		key{"immutable", listShape("Columns that they may set in a new row and not change.", wordShape("A column."))},
		key{"accept", listShape("What agents may learn of hidden rows and columns.",
			wordsShape("", acceptConflicts, acceptReferences, acceptSequences, acceptValues))},
		key{"check", rowsShape()},
		key{"stamp", namesShape("Columns that an INSERT sets whatever agents send.", "", keysShape("",
			key{"attribute", wordShape("The attribute whose value it gets.")},
			key{"value", wordShape("A fixed value.")},
			key{"unless", rowsShape()},
		).needsEither([]string{"attribute"}, []string{"value"}))},
		key{"lists", namesShape("Columns that hold lists of ids.", "", listsShape())},
	).needs("commands")
}

func listsShape() *shape {
	return keysShape("How far a list of ids may reach.",
		key{"from", listShape("Where the list of a new row comes from: the first of these that is not empty.",
			keysShape("Columns of the new row, or of the one row of a table that matches it.",
				key{"table", wordShape("The table.")}, key{"match", pairsShape()}, key{"where", someShape("", blockShape())},
				key{"lists", listShape("Columns of several ids.", wordShape(""))}, key{
					"ids", listShape("Columns of one.", wordShape(""))}, key{"when", rowsShape()}))},
		key{"narrow", &shape{kind: aTrue, doc: "An UPDATE adds no element."}},
		key{"wider", rowsShape()},
		key{"chain",
			keysShape("The row of this table that a row was told from: it may hold no id more than the lists "+
				"along the chain.", key{"match", pairsShape()}, key{
				"all", wordShape("The word for everybody: a list that holds it bounds nobody.")}).needs("match")},
	)
}

// rowsShape is a rule: a list of blocks that must all hold, or one.
func rowsShape() *shape {
	return sharedShape("rows", func() *shape {
		return eitherShape("Which rows: blocks that must all hold.", someShape("", blockShape()), blockShape())
	})
}

func blockShape() *shape {
	return sharedShape("block", func() *shape {
		return eitherShape("", wordsShape("All rows.", "open"), keysShape("A building block.", blockShapes()...).exactlyOne())
	})
}

// blockShapes has a shape for each block.
func blockShapes() []key {
	column := wordShape("A column of this table.")
	return []key{
		{"open", &shape{kind: aTrue, doc: "All rows."}},
		{"all", someShape("Every one of these must hold.", blockShape())},
		{"any", someShape("One of these must hold.", blockShape())},
		{"not", blockShape()},
		{"own", keysShape("The column equals the attribute, or one of its elements.",
			key{"column", column}, key{"is", wordShape("An attribute.")}).needs("column", "is")},
		{"tenant", keysShape("The column equals the attribute, or the value that everybody shares.",
			key{"column", column}, key{"is", wordShape("An attribute.")},
			key{"shared", eitherShape("The value of rows that are everybody's; null for those without one.",
				&shape{kind: aNull}, wordShape(""))}).needs("column", "is")},
		{"status", keysShape("The column, as text, is the word.",
			key{"column", column}, key{"is", wordShape("The word.")}).needs("column", "is")},
		{"grant", keysShape("The column is a list of ids and holds one of the session's.",
			key{"column", column}, key{"to", granteesShape()}, key{
				"all", wordShape("The word that stands for everybody.")}).needs("column", "to")},
		{"sql", textShape("A boolean expression over the row's own columns and attribute('name').", "deleted_at IS NULL")},
		{"consent", consentShape()},
		{"visible", visibleShape()},
		{"derived", derivedShape()},
		{"shared", keysShape("A record of consent, or each of several, is granted and not revoked.",
			key{"record", eitherShape("The link to the record.", linkShape(""), someShape("", linkShape("")))},
			key{"granted", keysShape("Its column that says so, and the word.", key{"column", wordShape("")},
				key{"is", wordShape("")}).needs("column", "is")},
			key{"revoked", wordShape("Its column with the time of withdrawal, or a boolean.")},
			key{"active", wordShape("A boolean column of the row itself.")},
		).needs("record", "granted")},
	}
}

func granteesShape() *shape {
	return eitherShape("Attributes whose values are ids.", wordShape("An attribute."),
		someShape("", wordShape("An attribute.")))
}

func linkShape(doc string) *shape {
	return &shape{kind: aTable, doc: doc + " { table: { its column: the column that it equals } }", single: true,
		values: pairsShape()}
}

func pairsShape() *shape {
	return namesShape("Pairs of columns: its own, and the one that it equals.",
		"", wordShape("The column that it equals.")).filled()
}

func visibleShape() *shape {
	// A table's name beside where or rows: the decoder tells them apart, and a schema cannot say which key is the name.
	return &shape{kind: aTable,
		doc: "The row that it points to shows by that table's own rule. { table: { its column: the column that " +
			"it equals } }, and where: what that row must be besides, or rows: what it must be instead.",
		some: true, most: 2, values: eitherShape("", pairsShape(), someShape("where", blockShape()))}
}

func derivedShape() *shape {
	return keysShape("The row was made from other rows, each of which is there and is what its own rule asks, but "+
		"for whose it is.",
		key{"from", eitherShape("The link to the row's source, or the links through tables of links to its sources.",
			linkShape(""), someShape("", linkShape("")))},
		key{"sources", wordShape("Instead: the column with the list of the sources' keys.")},
		key{"of", wordShape("The table that the keys in sources are of.")},
		key{"unless", someShape("Rows that were made from no other.", blockShape())},
		key{"where", someShape("What a source must be besides.", blockShape())},
		key{"inherit", wordsShape("What of the sources' rules is asked: consents leaves out whose they are.",
			inheritConsents, inheritEverything)},
		key{"on_erase", wordsShape("What becomes of the row when a source is erased.", "erase", "keep")},
	).needsEither([]string{"from"}, []string{"sources", "of"})
}

func consentShape() *shape {
	return sharedShape("consent", consentKeys)
}

func consentKeys() *shape {
	return keysShape("Every subject of the row has consented, by a status or by a record.",
		key{"every", someShape("The links from the row to its subjects.", linkShape(""))},
		key{"status", wordShape("The column of the last table that says what a subject consented to.")},
		key{"is", wordShape("The word that means consent.")},
		key{"expires", wordShape("The column of the last table that says until when.")},
		key{"materialize", &shape{kind: aBool, doc: "Until when everybody has agreed is kept beside each row."}},
		key{"subject", wordShape("The column with the row's one subject.")},
		key{"subjects", wordShape("The column with the list of the row's subjects.")},
		key{"but", granteesShape()},
		key{"record", recordShape()},
		key{"registry", registryShape()},
	).needsEither([]string{"every", "status", "is"}, []string{"record"}, []string{"registry"})
}

func registryShape() *shape {
	days := func(doc string) *shape { return textShape(doc, "30 days") }
	return keysShape("A record of the registry of pgconsent: given, not expired, and this.",
		key{"category", oneOrMore("It lists these categories.")},
		key{"categories", granteesShape()},
		key{"purpose", oneOrMore("It lists these purposes.")},
		key{"purposes", granteesShape()},
		key{"stream", oneOrMore("Its stream is one of these.", streams...)},
		key{"grantee", granteesShape()},
		key{"scope", keysShape("What it may be about besides everything and the table.",
			key{"row", wordShape("The column with the key of a row: row:<key>.")}, key{"context", granteesShape()})},
		key{"since", wordShape("The column that says how old a row is.")},
		key{"decay", keysShape("How long rows show that are older than a countdown to anonymity.",
			key{"less_than", days("")}).needs("less_than")},
	)
}

func recordShape() *shape {
	return keysShape("The table of records of consent.",
		key{"table", wordShape("The table.")},
		key{"match", pairsShape()},
		key{"grantor", wordShape("Its column that says who consents.")},
		key{"grantee", keysShape("To whom.",
			key{"column", wordShape("Its column.")}, key{"to", granteesShape()}, key{
				"all", wordShape("The word that stands for everybody.")}, key{"is", wordsShape("", "element")}).needs("column")},
		key{"guardians", keysShape("Who may consent for a subject.",
			key{"table", wordShape("")}, key{"match", pairsShape()}, key{"subject", wordShape("")}, key{
				"guardian", wordShape("")}, key{"where", someShape("", blockShape())}).needs("table", "subject", "guardian")},
		key{"scope", keysShape("What of the row a record is about.",
			key{"column", wordShape("")}, key{"is", listShape("", wordShape(""))}, key{
				"in", listShape("", wordShape(""))}, key{"all", wordShape("")}).needs("column")},
		key{"revoked", wordShape("Its column with the time of withdrawal.")},
		key{"expires", wordShape("Its column with the time at which it ends.")},
		key{"where", someShape("What a record must be besides.", blockShape())},
	).needs("table", "grantor", "grantee")
}

// oneOrMore is a word, or a list of them.
func oneOrMore(doc string, known ...string) *shape {
	one := wordShape("")
	if known != nil {
		one = wordsShape("", known...)
	}
	return eitherShape(doc, one, someShape("", one))
}

func aggregateShape() *shape {
	return keysShape("Rows that agents see in groups of at least so many subjects.",
		key{"subject", wordShape("The column that says whom a row is about.")},
		key{"rows", rowsShape()},
		key{"minimum", &shape{kind: aNumber, doc: "How many subjects a group has at least.", least: 2}},
		key{"share", &shape{kind: aNumber, doc: "How much of a sum one subject may be, in percent.", most: 99}},
		key{"dimensions", namesShape("Columns that groups are made by.",
			"", eitherShape("", wordsShape("", "allow"), keysShape("",
				key{"by", wordsShape("A time is cut down to it.", keys(coarser)...)},
				key{"closed", &shape{kind: aBool, doc: "Only periods that are over."}},
			).needs("by")))},
		key{"measures", namesShape("Columns that are summed, with their bounds.", "", keysShape("",
			key{"between", someShape("The lowest and the highest value; what lies outside counts as the bound.",
				&shape{kind: aDecimal})},
		).needs("between"))},
		key{"accept",
			listShape("What agents may learn: of single rows that show, what hidden and masked columns hold.",
				wordsShape("", acceptValues))},
	).needs("subject", "rows")
}

func objectShape() *shape {
	return keysShape("A table as contracts speak of it.",
		key{"table", wordShape("The table.")},
		key{"vessel", wordShape("What it is kept in; none: nothing.")},
		key{"metadata", oneOrMore("Columns that are metadata.")},
		key{"embedding", oneOrMore("Columns that are vectors.")},
		key{"join_only", &shape{kind: aBool, doc: "It may be joined on a key, and none of its columns is returned."}},
	).needs("table")
}

func contractShape() *shape {
	return keysShape("Which objects may be read, from which sources, under which conditions.", append(termShapes(),
		key{"by", wordShape("The attribute that decides.")},
		key{"values", namesShape("What each of its values allows.",
			"", eitherShape("", wordsShape("", "everything", "nothing"), keysShape("", termShapes()...).needs("allow"))).filled()},
		key{"governs", oneOrMore("The objects that it is about.")},
		key{"apart", eitherShape("Vessels that no statement reads together.", someShape("", wordShape("A vessel.")),
			someShape("", someShape("", wordShape("A vessel."))))},
	)...).needsEither([]string{"by", "values"}, []string{"allow"})
}

func termShapes() []key {
	condition := textShape("A condition on attributes.", "attribute('stage') > 3")
	return []key{
		{"allow", eitherShape("Objects with their sources.", wordsShape("", "everything", "nothing"),
			namesShape("", "", eitherShape("", oneOrMore("A source.", sources...), keysShape("",
				key{"sources", oneOrMore("", sources...)}, key{"columns", oneOrMore("The columns that may be read.")}).
				needs("sources"))).filled())},
		{"except", oneOrMore("Objects that are left out.")},
		{"requires", eitherShape("", condition, someShape("", condition))},
		{"plan", wordShape("The attribute with the plan.")},
		{"rows", eitherShape("How many rows a statement returns at most.", numberShape(""),
			keysShape("How many rows all statements of an agent return together.",
				key{"at_most", numberShape("So many.")}, key{"per", wordShape("An attribute: for each of its values.")}).
				needs("at_most", "per"))},
		{"statements", namesShape("The only statements that may be sent, by name.", "", wordShape("SQL.")).filled()},
	}
}
