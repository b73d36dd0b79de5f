package policy

func tableShape() *shape {
	return keysShape("A table: which rows show, which columns, what agents may change.",
		shapeKey{"rows", eitherShape("Which rows show.", wordsShape(
			"No row shows one by one: agents read the table in groups. aggregate says which rows count.", "none"), rowsShape())},
		shapeKey{"columns", namesShape("The columns that exist for agents; without it all do.", "", columnShape()).withNonEmpty()},
		shapeKey{"write", writeShape()},
		shapeKey{"observe", &shape{kind: boolKind,
			doc: "true: the table is not protected, and what the policy would do is counted. false: it is " +
				"enforced although the policy observes."}},
		shapeKey{"aggregate", aggregateShape()},
		shapeKey{"approximate", wordsShape(
			"Searches for the nearest rows may use an approximate index: which of the visible rows they find then "+
				"depends on hidden ones. Without it they are exact.", "accept")},
		shapeKey{"audit", keysShape("What records say of its rows.",
			shapeKey{"keys", &shape{kind: boolKind, doc: "true: of what is read of it, which rows: commitments to their keys."}})},
		shapeKey{"consent", consentShape()},
		shapeKey{"lifecycle", lifecycleShape()},
	).withRequired("rows")
}

func lifecycleShape() *shape {
	return keysShape("What becomes of rows when the consent of their subject has ended, and of columns when they "+
		"have decayed.",
		shapeKey{"subject", wordShape("The column that says, in the registry's words, whom a row is about.")},
		shapeKey{"at", wordShape("The column that says how old a row is.")},
		shapeKey{"ended", wordsShape("What becomes of rows whose subject's consent has ended. Default: delete.", "delete",
			"anonymise")},
		shapeKey{"columns", namesShape("What columns become when a row is anonymous, or before.", "", keysShape("",
			shapeKey{"becomes", eitherShape("What stands in its place.",
				&shape{kind: nullKind, doc: "NULL"},
				wordsShape("NULL, or what stands for the value: equal values of one subject have equal ones.", "null", "hash"),
				keysShape("", shapeKey{"generalise",
					eitherShape("A unit for dates, leading characters for text, a step for numbers.",
						wordsShape("", "year", "month", "day"), numberShape(""))}).withRequired("generalise"),
				keysShape("", shapeKey{"value", wordShape("A fixed value.")}).withRequired("value"))},
			shapeKey{"after",
				textShape("The last full day of a countdown on which the column is as it was. Default: 89 days.", "60 days")},
		).withRequired("becomes"))},
		shapeKey{"counts",
			keysShape("Columns that go on counting in groups in rows that are anonymous already, of which no subject is known.",
				shapeKey{"where", nonEmptyListShape("Over the columns of the row: where they hold it is anonymous.", blockShape())},
				shapeKey{"columns", listShape("Dimensions and measures with a category.", wordShape(""))},
			).withRequired("where", "columns")},
	).withRequired("subject")
}

func columnShape() *shape {
	return eitherShape("What comes out.",
		wordsShape("As it is, or only to who names the row's key.", "allow", "by_key"),
		keysShape("Changed.",
			shapeKey{"mask", eitherShape("What stands in its place.",
				&shape{kind: nullKind, doc: "NULL"},
				wordsShape("NULL, or a keyed hash: equal values have equal ones.", "null", "hash"),
				keysShape("",
					shapeKey{"generalise", eitherShape(
						"A unit for dates, leading characters for text, a step for numbers.", wordsShape("",
							"year", "month", "day"), numberShape(""))},
				).withRequired("generalise"))},
			shapeKey{"by_key", eitherShape("Only to who names the row's key.", &shape{kind: nullKind}, keysShape("",
				shapeKey{"key", oneOrMore("Columns of the key, if it is not the primary key.")},
				shapeKey{"at_most", numberShape("How many keys a statement may name.")}))},
			shapeKey{"keys", jsonKeysShape("Of a JSON object: its keys that exist for agents, with their types.", 1)},
			shapeKey{"category", oneOrMore("It is NULL unless the subject of the row consents to these categories.")},
			shapeKey{"until", keysShape("The last day of a countdown to anonymity on which it shows, and counts in groups.",
				shapeKey{"decay", textShape("", "30 days")}, shapeKey{"groups", textShape("", "60 days")}).withRequired("decay")},
		))
}

func writeShape() *shape {
	return keysShape("What agents may change, of rows that they see.",
		shapeKey{"commands", listShape("", wordsShape("", "insert", "update", "delete"))},
		shapeKey{"columns", listShape("The columns that they may set.", wordShape("A column."))},
		shapeKey{"immutable", listShape("Columns that they may set in a new row and not change.", wordShape("A column."))},
		shapeKey{"accept", listShape("What agents may learn of hidden rows and columns.",
			wordsShape("", acceptConflicts, acceptReferences, acceptSequences, acceptValues))},
		shapeKey{"check", rowsShape()},
		shapeKey{"stamp", namesShape("Columns that an INSERT sets whatever agents send.", "", keysShape("",
			shapeKey{"attribute", wordShape("The attribute whose value it gets.")},
			shapeKey{"value", wordShape("A fixed value.")},
			shapeKey{"unless", rowsShape()},
		).withEither([]string{"attribute"}, []string{"value"}))},
		shapeKey{"lists", namesShape("Columns that hold lists of ids.", "", listsShape())},
		shapeKey{"insert", commandShape("What a new row must be besides.")},
		shapeKey{"update", commandShape("Of the rows that show, those that agents may change; what they become is among them, too.")},
		shapeKey{"delete", commandShape("Of the rows that show, those that agents may delete.")},
	).withRequired("commands")
}

func commandShape(doc string) *shape {
	return keysShape(doc, shapeKey{"rows", rowsShape()}).withRequired("rows")
}

func listsShape() *shape {
	return keysShape("How far a list of ids may reach.",
		shapeKey{"from", listShape("Where the list of a new row comes from: the first of these that is not empty.",
			keysShape("Columns of the new row, or of the one row of a table that matches it.",
				shapeKey{"table", wordShape("The table.")}, shapeKey{"match", pairsShape()}, shapeKey{"where", nonEmptyListShape("", blockShape())},
				shapeKey{"lists", listShape("Columns of several ids.", wordShape(""))}, shapeKey{
					"ids", listShape("Columns of one.", wordShape(""))}, shapeKey{"when", rowsShape()}))},
		shapeKey{"narrow", &shape{kind: trueKind, doc: "An UPDATE adds no element."}},
		shapeKey{"wider", rowsShape()},
		shapeKey{"chain",
			keysShape("The row of this table that a row was told from: it may hold no id more than the lists "+
				"along the chain.", shapeKey{"match", pairsShape()}, shapeKey{
				"all", wordShape("The word for everybody: a list that holds it bounds nobody.")}).withRequired("match")},
	)
}

func aggregateShape() *shape {
	return keysShape("Rows that agents see in groups of at least so many subjects.",
		shapeKey{"subject", wordShape("The column that says whom a row is about.")},
		shapeKey{"rows", rowsShape()},
		shapeKey{"minimum", &shape{kind: numberKind, doc: "How many subjects a group has at least.", minimum: 2}},
		shapeKey{"share", &shape{kind: numberKind, doc: "How much of a sum one subject may be, in percent.", maximum: 99}},
		shapeKey{"dimensions", namesShape("Columns that groups are made by.",
			"", eitherShape("", wordsShape("", "allow"), keysShape("",
				shapeKey{"by", wordsShape("A time is cut down to it.", sortedKeys(truncationUnits)...)},
				shapeKey{"closed", &shape{kind: boolKind, doc: "Only periods that are over."}},
			).withRequired("by")))},
		shapeKey{"measures", namesShape("Columns that are summed, with their bounds.", "", keysShape("",
			shapeKey{"between", nonEmptyListShape("The lowest and the highest value; what lies outside counts as the bound.",
				&shape{kind: decimalKind})},
		).withRequired("between"))},
		shapeKey{"accept",
			listShape("What agents may learn: of single rows that show, what hidden and masked columns hold.",
				wordsShape("", acceptValues))},
	).withRequired("subject", "rows")
}

// jsonKeysShape returns the shape of the listed keys of a JSON object. depth is 1 for the outermost object.
func jsonKeysShape(doc string, depth int) *shape {
	types := wordsShape("", keyTypes...)
	if depth < maxKeyDepth {
		types = eitherShape("", types, jsonKeysShape("The keys of an object.", depth+1))
	}
	return namesShape(doc, "", types).withNonEmpty()
}
