package policy

// rowsShape returns the shape of a rule: one block, or a list of blocks that must all hold.
func rowsShape() *shape {
	return sharedShape("rows", func() *shape {
		return eitherShape("Which rows: blocks that must all hold.", nonEmptyListShape("", blockShape()), blockShape())
	})
}

func blockShape() *shape {
	return sharedShape("block", func() *shape {
		return eitherShape("", wordsShape("All rows.", "open"), keysShape("A building block.", blockShapes()...).withExactlyOne())
	})
}

// blockShapes returns the keys of all blocks, with the shapes of their values.
func blockShapes() []shapeKey {
	column := wordShape("A column of this table.")
	return []shapeKey{
		{"open", &shape{kind: trueKind, doc: "All rows."}},
		{"all", nonEmptyListShape("Every one of these must hold.", blockShape())},
		{"any", nonEmptyListShape("One of these must hold.", blockShape())},
		{"not", blockShape()},
		{"own", keysShape("The column equals the attribute, or one of its elements.",
			shapeKey{"column", column}, shapeKey{"is", wordShape("An attribute.")}).withRequired("column", "is")},
		{"tenant", keysShape("The column equals the attribute, or the value that everybody shares.",
			shapeKey{"column", column}, shapeKey{"is", wordShape("An attribute.")},
			shapeKey{"shared", eitherShape("The value of rows that are everybody's; null for those without one.",
				&shape{kind: nullKind}, wordShape(""))}).withRequired("column", "is")},
		{"status", keysShape("The column, as text, is the word.",
			shapeKey{"column", column}, shapeKey{"is", wordShape("The word.")}).withRequired("column", "is")},
		{"grant", keysShape("The column is a list of ids and holds one of the session's.",
			shapeKey{"column", column}, shapeKey{"to", granteesShape()}, shapeKey{
				"all", wordShape("The word that stands for everybody.")}).withRequired("column", "to")},
		{"sql", textShape("A boolean expression over the row's own columns and attribute('name').", "deleted_at IS NULL")},
		{"consent", consentShape()},
		{"visible", visibleShape()},
		{"derived", derivedShape()},
		{"shared", keysShape("A record of consent, or each of several, is granted and not revoked.",
			shapeKey{"record", eitherShape("The link to the record.", linkShape(""), nonEmptyListShape("", linkShape("")))},
			shapeKey{"granted", keysShape("Its column that says so, and the word.", shapeKey{"column", wordShape("")},
				shapeKey{"is", wordShape("")}).withRequired("column", "is")},
			shapeKey{"revoked", wordShape("Its column with the time of withdrawal, or a boolean.")},
			shapeKey{"active", wordShape("A boolean column of the row itself.")},
		).withRequired("record", "granted")},
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
		"", wordShape("The column that it equals.")).withNonEmpty()
}

func visibleShape() *shape {
	// The name of a table is a key beside where or rows. A JSON Schema cannot say which of the keys is the name, so the
	// decoder checks this.
	return &shape{kind: tableKind,
		doc: "The row that it points to shows by that table's own rule. { table: { its column: the column that " +
			"it equals } }, and where: what that row must be besides, or rows: what it must be instead.",
		isNonEmpty: true, maximum: 2, values: eitherShape("", pairsShape(), nonEmptyListShape("where", blockShape()))}
}

func derivedShape() *shape {
	return keysShape("The row was made from other rows, each of which is there and is what its own rule asks, but "+
		"for whose it is.",
		shapeKey{"from", eitherShape("The link to the row's source, or the links through tables of links to its sources.",
			linkShape(""), nonEmptyListShape("", linkShape("")))},
		shapeKey{"sources", wordShape("Instead: the column with the list of the sources' keys.")},
		shapeKey{"of", wordShape("The table that the keys in sources are of.")},
		shapeKey{"unless", nonEmptyListShape("Rows that were made from no other.", blockShape())},
		shapeKey{"where", nonEmptyListShape("What a source must be besides.", blockShape())},
		shapeKey{"inherit", wordsShape("What of the sources' rules is asked: consents leaves out whose they are.",
			inheritConsents, inheritEverything)},
		shapeKey{"on_erase", wordsShape("What becomes of the row when a source is erased.", "erase", "keep")},
	).withEither([]string{"from"}, []string{"sources", "of"})
}

func consentShape() *shape {
	return sharedShape("consent", consentKeys)
}

func consentKeys() *shape {
	return keysShape("Every subject of the row has consented, by a status or by a record.",
		shapeKey{"every", nonEmptyListShape("The links from the row to its subjects.", linkShape(""))},
		shapeKey{"status", wordShape("The column of the last table that says what a subject consented to.")},
		shapeKey{"is", wordShape("The word that means consent.")},
		shapeKey{"expires", wordShape("The column of the last table that says until when.")},
		shapeKey{"materialize", &shape{kind: boolKind, doc: "Until when everybody has agreed is stored beside each row."}},
		shapeKey{"subject", wordShape("The column with the row's one subject.")},
		shapeKey{"subjects", wordShape("The column with the list of the row's subjects.")},
		shapeKey{"but", granteesShape()},
		shapeKey{"record", recordShape()},
		shapeKey{"registry", registryShape()},
	).withEither([]string{"every", "status", "is"}, []string{"record"}, []string{"registry"})
}

func registryShape() *shape {
	days := func(doc string) *shape { return textShape(doc, "30 days") }
	return keysShape("A record of the registry of pgconsent: given, not expired, and this.",
		shapeKey{"category", oneOrMore("It lists these categories.")},
		shapeKey{"categories", granteesShape()},
		shapeKey{"purpose", oneOrMore("It lists these purposes.")},
		shapeKey{"purposes", granteesShape()},
		shapeKey{"stream", oneOrMore("Its stream is one of these.", streams...)},
		shapeKey{"grantee", granteesShape()},
		shapeKey{"scope", keysShape("What it may be about besides everything and the table.",
			shapeKey{"row", wordShape("The column with the key of a row: row:<key>.")}, shapeKey{"context", granteesShape()})},
		shapeKey{"since", wordShape("The column that says how old a row is.")},
		shapeKey{"decay", keysShape("How long rows show that are older than a countdown to anonymity.",
			shapeKey{"less_than", days("")}).withRequired("less_than")},
	)
}

func recordShape() *shape {
	return keysShape("The table of records of consent.",
		shapeKey{"table", wordShape("The table.")},
		shapeKey{"match", pairsShape()},
		shapeKey{"grantor", wordShape("Its column that says who consents.")},
		shapeKey{"grantee", keysShape("To whom.",
			shapeKey{"column", wordShape("Its column.")}, shapeKey{"to", granteesShape()}, shapeKey{
				"all", wordShape("The word that stands for everybody.")}, shapeKey{"is", wordsShape("", "element")}).withRequired("column")},
		shapeKey{"guardians", keysShape("Who may consent for a subject.",
			shapeKey{"table", wordShape("")}, shapeKey{"match", pairsShape()}, shapeKey{"subject", wordShape("")}, shapeKey{
				"guardian", wordShape("")}, shapeKey{"where", nonEmptyListShape("", blockShape())}).withRequired("table", "subject", "guardian")},
		shapeKey{"scope", keysShape("What of the row a record is about.",
			shapeKey{"column", wordShape("")}, shapeKey{"is", listShape("", wordShape(""))}, shapeKey{
				"in", listShape("", wordShape(""))}, shapeKey{"all", wordShape("")}).withRequired("column")},
		shapeKey{"revoked", wordShape("Its column with the time of withdrawal.")},
		shapeKey{"expires", wordShape("Its column with the time at which it ends.")},
		shapeKey{"where", nonEmptyListShape("What a record must be besides.", blockShape())},
	).withRequired("table", "grantor", "grantee")
}

// oneOrMore returns the shape of a word, or of a list of words.
func oneOrMore(doc string, allowedWords ...string) *shape {
	alternative := wordShape("")
	if allowedWords != nil {
		alternative = wordsShape("", allowedWords...)
	}
	return eitherShape(doc, alternative, nonEmptyListShape("", alternative))
}
