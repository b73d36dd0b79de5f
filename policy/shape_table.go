package policy

func tableShape() *shape {
	return keysShape("A table: which rows show, which columns, what agents may change.",
		key{"rows", eitherShape("Which rows show.", wordsShape(
			"No row shows one by one: agents read the table in groups. aggregate says which rows count.", "none"), rowsShape())},
		key{"columns", namesShape("The columns that exist for agents; without it all do.", "", columnShape()).nonEmpty()},
		key{"write", writeShape()},
		key{"observe", &shape{kind: boolKind,
			doc: "true: the table is not protected, and what the policy would do is counted. false: it is " +
				"enforced although the policy observes."}},
		key{"aggregate", aggregateShape()},
		key{"approximate", wordsShape(
			"Searches for the nearest rows may use an approximate index: which of the visible rows they find then "+
				"depends on hidden ones. Without it they are exact.", "accept")},
		key{"audit", keysShape("What records say of its rows.",
			key{"keys", &shape{kind: boolKind, doc: "true: of what is read of it, which rows: commitments to their keys."}})},
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
				&shape{kind: nullKind, doc: "NULL"},
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
				key{"where", nonEmptyListShape("Over the columns of the row: where they hold it is anonymous.", blockShape())},
				key{"columns", listShape("Dimensions and measures with a category.", wordShape(""))},
			).needs("where", "columns")},
	).needs("subject")
}

func columnShape() *shape {
	return eitherShape("What comes out.",
		wordsShape("As it is, or only to who names the row's key.", "allow", "by_key"),
		keysShape("Changed.",
			key{"mask", eitherShape("What stands in its place.",
				&shape{kind: nullKind, doc: "NULL"},
				wordsShape("NULL, or a keyed hash: equal values have equal ones.", "null", "hash"),
				keysShape("",
					key{"generalise", eitherShape(
						"A unit for dates, leading characters for text, a step for numbers.", wordsShape("",
							"year", "month", "day"), numberShape(""))},
				).needs("generalise"))},
			key{"by_key", eitherShape("Only to who names the row's key.", &shape{kind: nullKind}, keysShape("",
				key{"key", oneOrMore("Columns of the key, if it is not the primary key.")},
				key{"at_most", numberShape("How many keys a statement may name.")}))},
			key{"keys", jsonKeysShape("Of a JSON object: its keys that exist for agents, with their types.", 1)},
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
		key{"insert", commandShape("What a new row must be besides.")},
		key{"update", commandShape("Of the rows that show, those that agents may change; what they become is among them, too.")},
		key{"delete", commandShape("Of the rows that show, those that agents may delete.")},
	).needs("commands")
}

func commandShape(doc string) *shape {
	return keysShape(doc, key{"rows", rowsShape()}).needs("rows")
}

func listsShape() *shape {
	return keysShape("How far a list of ids may reach.",
		key{"from", listShape("Where the list of a new row comes from: the first of these that is not empty.",
			keysShape("Columns of the new row, or of the one row of a table that matches it.",
				key{"table", wordShape("The table.")}, key{"match", pairsShape()}, key{"where", nonEmptyListShape("", blockShape())},
				key{"lists", listShape("Columns of several ids.", wordShape(""))}, key{
					"ids", listShape("Columns of one.", wordShape(""))}, key{"when", rowsShape()}))},
		key{"narrow", &shape{kind: trueKind, doc: "An UPDATE adds no element."}},
		key{"wider", rowsShape()},
		key{"chain",
			keysShape("The row of this table that a row was told from: it may hold no id more than the lists "+
				"along the chain.", key{"match", pairsShape()}, key{
				"all", wordShape("The word for everybody: a list that holds it bounds nobody.")}).needs("match")},
	)
}

func aggregateShape() *shape {
	return keysShape("Rows that agents see in groups of at least so many subjects.",
		key{"subject", wordShape("The column that says whom a row is about.")},
		key{"rows", rowsShape()},
		key{"minimum", &shape{kind: numberKind, doc: "How many subjects a group has at least.", minimum: 2}},
		key{"share", &shape{kind: numberKind, doc: "How much of a sum one subject may be, in percent.", maximum: 99}},
		key{"dimensions", namesShape("Columns that groups are made by.",
			"", eitherShape("", wordsShape("", "allow"), keysShape("",
				key{"by", wordsShape("A time is cut down to it.", keys(unitsFrom)...)},
				key{"closed", &shape{kind: boolKind, doc: "Only periods that are over."}},
			).needs("by")))},
		key{"measures", namesShape("Columns that are summed, with their bounds.", "", keysShape("",
			key{"between", nonEmptyListShape("The lowest and the highest value; what lies outside counts as the bound.",
				&shape{kind: decimalKind})},
		).needs("between"))},
		key{"accept",
			listShape("What agents may learn: of single rows that show, what hidden and masked columns hold.",
				wordsShape("", acceptValues))},
	).needs("subject", "rows")
}

// jsonKeysShape returns the shape of the keys of a JSON object at a depth of nesting, from 1 on.
func jsonKeysShape(doc string, depth int) *shape {
	types := wordsShape("", keyTypes...)
	if depth < maxKeyDepth {
		types = eitherShape("", types, jsonKeysShape("The keys of an object.", depth+1))
	}
	return namesShape(doc, "", types).nonEmpty()
}
