package policy

// rowsShape returns the shape of a rule: one block, or a list of blocks that must all hold.
func rowsShape() *shape {
	return sharedShape("rows", func() *shape {
		return eitherShape("Which rows: blocks that must all hold.", nonEmptyListShape("", blockShape()), blockShape())
	})
}

func blockShape() *shape {
	return sharedShape("block", func() *shape {
		return eitherShape("", wordsShape("All rows.", "open"), keysShape("A building block.", blockShapes()...).exactlyOne())
	})
}

// blockShapes returns the keys of all blocks, with the shapes of their values.
func blockShapes() []key {
	column := wordShape("A column of this table.")
	return []key{
		{"open", &shape{kind: trueKind, doc: "All rows."}},
		{"all", nonEmptyListShape("Every one of these must hold.", blockShape())},
		{"any", nonEmptyListShape("One of these must hold.", blockShape())},
		{"not", blockShape()},
		{"own", keysShape("The column equals the attribute, or one of its elements.",
			key{"column", column}, key{"is", wordShape("An attribute.")}).needs("column", "is")},
		{"tenant", keysShape("The column equals the attribute, or the value that everybody shares.",
			key{"column", column}, key{"is", wordShape("An attribute.")},
			key{"shared", eitherShape("The value of rows that are everybody's; null for those without one.",
				&shape{kind: nullKind}, wordShape(""))}).needs("column", "is")},
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
			key{"record", eitherShape("The link to the record.", linkShape(""), nonEmptyListShape("", linkShape("")))},
			key{"granted", keysShape("Its column that says so, and the word.", key{"column", wordShape("")},
				key{"is", wordShape("")}).needs("column", "is")},
			key{"revoked", wordShape("Its column with the time of withdrawal, or a boolean.")},
			key{"active", wordShape("A boolean column of the row itself.")},
		).needs("record", "granted")},
	}
}

func granteesShape() *shape {
	return eitherShape("Attributes whose values are ids.", wordShape("An attribute."),
		nonEmptyListShape("", wordShape("An attribute.")))
}

func linkShape(doc string) *shape {
	return &shape{kind: tableKind, doc: doc + " { table: { its column: the column that it equals } }", hasOneEntry: true,
		values: pairsShape()}
}

func pairsShape() *shape {
	return namesShape("Pairs of columns: its own, and the one that it equals.",
		"", wordShape("The column that it equals.")).nonEmpty()
}

func visibleShape() *shape {
	// The name of a table is a key beside where or rows. A schema cannot say which key is the name; the decoder can.
	return &shape{kind: tableKind,
		doc: "The row that it points to shows by that table's own rule. { table: { its column: the column that " +
			"it equals } }, and where: what that row must be besides, or rows: what it must be instead.",
		isNonEmpty: true, maximum: 2, values: eitherShape("", pairsShape(), nonEmptyListShape("where", blockShape()))}
}

func derivedShape() *shape {
	return keysShape("The row was made from other rows, each of which is there and is what its own rule asks, but "+
		"for whose it is.",
		key{"from", eitherShape("The link to the row's source, or the links through tables of links to its sources.",
			linkShape(""), nonEmptyListShape("", linkShape("")))},
		key{"sources", wordShape("Instead: the column with the list of the sources' keys.")},
		key{"of", wordShape("The table that the keys in sources are of.")},
		key{"unless", nonEmptyListShape("Rows that were made from no other.", blockShape())},
		key{"where", nonEmptyListShape("What a source must be besides.", blockShape())},
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
		key{"every", nonEmptyListShape("The links from the row to its subjects.", linkShape(""))},
		key{"status", wordShape("The column of the last table that says what a subject consented to.")},
		key{"is", wordShape("The word that means consent.")},
		key{"expires", wordShape("The column of the last table that says until when.")},
		key{"materialize", &shape{kind: boolKind, doc: "Until when everybody has agreed is stored beside each row."}},
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
				"guardian", wordShape("")}, key{"where", nonEmptyListShape("", blockShape())}).needs("table", "subject", "guardian")},
		key{"scope", keysShape("What of the row a record is about.",
			key{"column", wordShape("")}, key{"is", listShape("", wordShape(""))}, key{
				"in", listShape("", wordShape(""))}, key{"all", wordShape("")}).needs("column")},
		key{"revoked", wordShape("Its column with the time of withdrawal.")},
		key{"expires", wordShape("Its column with the time at which it ends.")},
		key{"where", nonEmptyListShape("What a record must be besides.", blockShape())},
	).needs("table", "grantor", "grantee")
}

// oneOrMore returns the shape of a word, or of a list of words.
func oneOrMore(doc string, known ...string) *shape {
	one := wordShape("")
	if known != nil {
		one = wordsShape("", known...)
	}
	return eitherShape(doc, one, nonEmptyListShape("", one))
}
