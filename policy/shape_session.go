package policy

func privacyShape() *shape {
	column := func(name, doc string) shapeKey { return shapeKey{name, wordShape(doc)} }
	store := column("store", "The column with the id of the store.")
	table := column("table", "The table.")
	return keysShape("Where memories, grants, contexts and consents stand, for those who grant and look at grants "+
		"by HTTP, MCP or the command line.",
		column("entity", "The attribute that says who the caller is."),
		shapeKey{"roles", listShape("Attributes whose values are ids of the caller as well.", wordShape(""))},
		column("context", "The attribute, of source: set, of the context that the caller has entered."),
		column("all", "The word for everybody."),
		shapeKey{"memories", nonEmptyListShape("Tables of memories.", keysShape("",
			shapeKey{"tables", namesShape("Tables that have these columns, each by the kind of memories in it.",
				attributeName.String(), wordShape("")).withNonEmpty()},
			store,
			column("content", "The text."),
			column("source", "Who told it."),
			column("told", "The key of the memory that it was told from."),
			column("subjects", "A list: whom it is about."),
			column("grants", "A list: who is to see it."),
			column("evidence", "A list: who is said to have agreed."),
		).withRequired("tables", "store", "content", "subjects", "grants"))},
		shapeKey{"stores", keysShape("Whose memories a store holds. Without it, the store is the owner's id.", table,
			column("id", "The column with its id."), column("owner", "The column with its owner's."),
		).withRequired("table", "id", "owner")},
		shapeKey{"contexts", keysShape("Contexts and who takes part in them.", table, store,
			column("name", "The column with the name by which it is entered."),
			column("participants", "A list: who takes part."),
			column("defaults", "A list: what new memories are granted to."),
		).withRequired("table", "store", "name", "participants")},
		shapeKey{"consents", keysShape("Records of consent.", table, store,
			column("grantor", "Who consented."), column("grantee", "To whom."), column("scope", "About what."),
			column("given", "When."), column("revoked", "When it was revoked."), column("expires", "Until when it counts."),
		).withRequired("table", "store", "grantor", "grantee")},
		shapeKey{"guardians", keysShape("Who speaks for whom.", table, store,
			column("subject", "For whom."), column("guardian", "Who."),
		).withRequired("table", "store", "subject", "guardian")},
		shapeKey{"generalize", keysShape("Where a belief goes that is drawn from a private memory, and where it is noted from which.",
			column("into", "The kind of memories that beliefs are."),
			shapeKey{"link",
				keysShape("The table that has which memory was made from which. Only the owner of the store "+
					"should see it.", table, store,
					column("made", "The belief."), column("source", "The memory that it was drawn from."), column("kind",
						"The kind of that memory: needed where memories of two kinds can have one id."),
					column("note", "How it was abstracted."), column("at", "When."),
				).withRequired("table", "store", "made", "source")},
			shapeKey{"aliases", keysShape("What else those are called whom memories are about.", table, store,
				column("subject", "Who."), column("alias", "Another name."),
			).withRequired("table", "store", "subject", "alias")},
		).withRequired("into", "link")},
	).withRequired("entity", "memories")
}

func limitShape() *shape {
	return keysShape("Bounds: rates per minute, and sizes of one result.",
		shapeKey{"per", wordShape("What the rates are counted by: agent, or an attribute.")},
		shapeKey{"statements", numberShape("Executions in a minute.")},
		shapeKey{"rows", numberShape("Rows in a minute that are sent to agents.")},
		shapeKey{"by_key", numberShape("Keys in a minute by which columns are fetched that exist by key only.")},
		shapeKey{"result_rows", numberShape("Rows of one result.")},
		shapeKey{"result_bytes", eitherShape("Bytes of one result.", numberShape(""), textShape("", "16MiB"))},
		shapeKey{"statement_timeout", textShape("How long a statement may take.", "30s")},
		shapeKey{"transaction_timeout", textShape("How long a transaction may last.", "5m")},
	)
}

func attributeShape() *shape {
	return keysShape("A fact about the session.",
		shapeKey{"type", wordsShape("Its type.", sortedKeys(attributeTypes)...)},
		shapeKey{"source", wordsShape(
			"Where its value comes from. credential: the configuration gives each agent one; set: the agent's own "+
				"setting, within what is permitted; query: a table; expression: other attributes.", attributeSources...)},
		shapeKey{"optional", &shape{kind: boolKind, doc: "A session may be without it: what compares with it hides the row."}},
		shapeKey{"audit", eitherShape(
			"How the records of the audit have it. true: as it is; reference: by a reference that can be "+
				"forgotten; subject: as a reference to the person on whose behalf the session reads; purpose: as "+
				"it is, what the session reads for.",
			&shape{kind: boolKind}, wordsShape("", string(AuditReference), string(AuditSubject), string(AuditPurpose)))},
		shapeKey{"setting", &shape{kind: textKind, doc: "Of source: set, the setting that the agent's session has.",
			example: "app.name", pattern: `^[^.]+\.[^.]+$`}},
		shapeKey{"within", eitherShape("Of source: set, the values that count.",
			keysShape("", shapeKey{"attribute", oneOrMore("An attribute whose value, or one of whose elements, it is.")},
				shapeKey{"values", nonEmptyListShape("These values.", wordShape("A value."))}).withExactlyOne(),
			lookupShape())},
		shapeKey{"query", lookupShape()},
		shapeKey{"sql", textShape("Of source: expression.", "upper(attribute('name'))")},
	).withRequired("type", "source")
}

// lookupShape returns the shape of a lookupDecl.
func lookupShape() *shape {
	return keysShape("Where it is looked up.",
		shapeKey{"table", wordShape("The table.")},
		shapeKey{"column", wordShape("Its column with the value.")},
		shapeKey{"rows", rowsShape()},
		shapeKey{"match", namesShape("Its columns, and the attributes that they equal.", "",
			wordShape("An attribute.")).withNonEmpty()},
	).withEither([]string{"table", "column", "rows"}, []string{"table", "column", "match"})
}

func functionShape() *shape {
	return keysShape("",
		shapeKey{"pin", namesShape("Arguments that are fixed, whatever agents pass.", "",
			wordShape("The value, as a boolean, a number or a text."))},
		shapeKey{"reads", eitherShape("What it reads, for contracts.", wordsShape("", "nothing"),
			namesShape("Objects with their sources.", "", oneOrMore("A source.", sourceWords[:3]...)))},
		shapeKey{"tool", keysShape("It is published as a tool of MCP.",
			shapeKey{"name", &shape{kind: textKind, doc: "The tool's name. Default: the function's.", example: "search_notes",
				pattern: toolName.String()}},
			shapeKey{"description", textShape("What it is for, in words that a model acts on.", "Finds notes by what they are about.")},
			shapeKey{"arguments", eitherShape("What it takes. Default: all that is not pinned.",
				namesShape("Arguments, each with what it is.", "", textShape("", "what to look for")),
				listShape("", wordShape("An argument.")))},
		).withRequired("description")},
	)
}

func objectShape() *shape {
	return keysShape("A table as contracts speak of it.",
		shapeKey{"table", wordShape("The table.")},
		shapeKey{"vessel", wordShape("What it is kept in; none: nothing.")},
		shapeKey{"metadata", oneOrMore("Columns that are metadata.")},
		shapeKey{"embedding", oneOrMore("Columns that are vectors.")},
		shapeKey{"join_only", &shape{kind: boolKind, doc: "It may be joined on a key, and none of its columns is returned."}},
	).withRequired("table")
}

func contractShape() *shape {
	return keysShape("Which objects may be read, from which sources, under which conditions.", append(termShapes(),
		shapeKey{"by", wordShape("The attribute that decides.")},
		shapeKey{"values", namesShape("What each of its values allows.",
			"", eitherShape("", wordsShape("", "everything", "nothing"),
				keysShape("", termShapes()...).withRequired("allow"))).withNonEmpty()},
		shapeKey{"governs", oneOrMore("The objects that it is about.")},
		shapeKey{"apart", eitherShape("Vessels that no statement reads together.", nonEmptyListShape("", wordShape("A vessel.")),
			nonEmptyListShape("", nonEmptyListShape("", wordShape("A vessel."))))},
	)...).withEither([]string{"by", "values"}, []string{"allow"})
}

func termShapes() []shapeKey {
	condition := textShape("A condition on attributes.", "attribute('stage') > 3")
	return []shapeKey{
		{"allow", eitherShape("Objects with their sources.", wordsShape("", "everything", "nothing"),
			namesShape("", "", eitherShape("", oneOrMore("A source.", sourceWords...), keysShape("",
				shapeKey{"sources", oneOrMore("", sourceWords...)}, shapeKey{"columns", oneOrMore("The columns that may be read.")}).
				withRequired("sources"))).withNonEmpty())},
		{"except", oneOrMore("Objects that are left out.")},
		{"requires", eitherShape("", condition, nonEmptyListShape("", condition))},
		{"plan", wordShape("The attribute with the plan.")},
		{"rows", eitherShape("How many rows a statement returns at most.", numberShape(""),
			keysShape("How many rows all statements of an agent return together.",
				shapeKey{"at_most", numberShape("So many.")}, shapeKey{"per", wordShape("An attribute: for each of its values.")}).
				withRequired("at_most", "per"))},
		{"statements", namesShape("The only statements that may be sent, by name.", "", wordShape("SQL.")).withNonEmpty()},
	}
}
