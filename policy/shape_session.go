package policy

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
		key{"memories", nonEmptyListShape("Tables of memories.", keysShape("",
			key{"tables", namesShape("Tables that have these columns, each by the kind of memories in it.",
				attributeName.String(), wordShape("")).nonEmpty()},
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
		key{"optional", &shape{kind: boolKind, doc: "A session may be without it: what compares with it hides the row."}},
		key{"audit", eitherShape(
			"How the records of the audit have it. true: as it is; reference: by a reference that can be "+
				"forgotten; subject: as a reference to the person on whose behalf the session reads; purpose: as "+
				"it is, what the session reads for.",
			&shape{kind: boolKind}, wordsShape("", string(AuditReference), string(AuditSubject), string(AuditPurpose)))},
		key{"setting", &shape{kind: textKind, doc: "Of source: set, the setting that the agent's session has.",
			example: "app.name", pattern: `^[^.]+\.[^.]+$`}},
		key{"within", eitherShape("Of source: set, the values that count.",
			keysShape("", key{"attribute", oneOrMore("An attribute whose value, or one of whose elements, it is.")},
				key{"values", nonEmptyListShape("These values.", wordShape("A value."))}).exactlyOne(),
			lookupShape())},
		key{"query", lookupShape()},
		key{"sql", textShape("Of source: expression.", "upper(attribute('name'))")},
	).needs("type", "source")
}

// lookupShape returns the shape of the look-up of an attribute's value.
func lookupShape() *shape {
	return keysShape("Where it is looked up.",
		key{"table", wordShape("The table.")},
		key{"column", wordShape("Its column with the value.")},
		key{"rows", rowsShape()},
		key{"match", namesShape("Its columns, and the attributes that they equal.", "",
			wordShape("An attribute.")).nonEmpty()},
	).needsEither([]string{"table", "column", "rows"}, []string{"table", "column", "match"})
}

func functionShape() *shape {
	return keysShape("",
		key{"pin", namesShape("Arguments that are fixed, whatever agents pass.", "",
			wordShape("The value, as a boolean, a number or a text."))},
		key{"reads", eitherShape("What it reads, for contracts.", wordsShape("", "nothing"),
			namesShape("Objects with their sources.", "", oneOrMore("A source.", sourceWords[:3]...)))},
		key{"tool", keysShape("It is published as a tool of MCP.",
			key{"name", &shape{kind: textKind, doc: "The tool's name. Default: the function's.", example: "search_notes",
				pattern: toolName.String()}},
			key{"description", textShape("What it is for, in words that a model acts on.", "Finds notes by what they are about.")},
			key{"arguments", eitherShape("What it takes. Default: all that is not pinned.",
				namesShape("Arguments, each with what it is.", "", textShape("", "what to look for")),
				listShape("", wordShape("An argument.")))},
		).needs("description")},
	)
}

func objectShape() *shape {
	return keysShape("A table as contracts speak of it.",
		key{"table", wordShape("The table.")},
		key{"vessel", wordShape("What it is kept in; none: nothing.")},
		key{"metadata", oneOrMore("Columns that are metadata.")},
		key{"embedding", oneOrMore("Columns that are vectors.")},
		key{"join_only", &shape{kind: boolKind, doc: "It may be joined on a key, and none of its columns is returned."}},
	).needs("table")
}

func contractShape() *shape {
	return keysShape("Which objects may be read, from which sources, under which conditions.", append(termShapes(),
		key{"by", wordShape("The attribute that decides.")},
		key{"values", namesShape("What each of its values allows.",
			"", eitherShape("", wordsShape("", "everything", "nothing"),
				keysShape("", termShapes()...).needs("allow"))).nonEmpty()},
		key{"governs", oneOrMore("The objects that it is about.")},
		key{"apart", eitherShape("Vessels that no statement reads together.", nonEmptyListShape("", wordShape("A vessel.")),
			nonEmptyListShape("", nonEmptyListShape("", wordShape("A vessel."))))},
	)...).needsEither([]string{"by", "values"}, []string{"allow"})
}

func termShapes() []key {
	condition := textShape("A condition on attributes.", "attribute('stage') > 3")
	return []key{
		{"allow", eitherShape("Objects with their sources.", wordsShape("", "everything", "nothing"),
			namesShape("", "", eitherShape("", oneOrMore("A source.", sourceWords...), keysShape("",
				key{"sources", oneOrMore("", sourceWords...)}, key{"columns", oneOrMore("The columns that may be read.")}).
				needs("sources"))).nonEmpty())},
		{"except", oneOrMore("Objects that are left out.")},
		{"requires", eitherShape("", condition, nonEmptyListShape("", condition))},
		{"plan", wordShape("The attribute with the plan.")},
		{"rows", eitherShape("How many rows a statement returns at most.", numberShape(""),
			keysShape("How many rows all statements of an agent return together.",
				key{"at_most", numberShape("So many.")}, key{"per", wordShape("An attribute: for each of its values.")}).
				needs("at_most", "per"))},
		{"statements", namesShape("The only statements that may be sent, by name.", "", wordShape("SQL.")).nonEmpty()},
	}
}
