package rewrite

// notInjectedReason says why the rewriter cannot put a subquery with the predicate in the place of a relation. The text
// then names the relation itself, and row security alone hides rows.
type notInjectedReason int

const (
	mayInject             notInjectedReason = iota
	onlyTable                               // ONLY t: a subquery cannot be marked ONLY
	starTable                               // t *: a subquery cannot be followed by *
	tableOIDColumn                          // the statement names tableoid, which a subquery does not have
	wholeRowReference                       // the row of a subquery has another row type
	schemaQualifiedColumn                   // schema.table.column: a subquery has no schema
	columnAliases
	joinAlias
	// PostgreSQL allows two tables of the same name from two schemas, but not two subqueries with the same alias
	itemsOfOneName
	// GROUP BY the primary key lets a SELECT name the other columns of a table, but not those of a subquery
	groupByPrimaryKey
	writeTargetTable   // the target of INSERT, UPDATE, DELETE or MERGE is a table
	inWritingStatement // the statement that reads the relation writes or locks rows
	unsignedText       // the predicate names signed views, which answer only signed texts, and this text cannot be signed
	copyOfParent       // COPY of a table leaves out its inheritance children, but a query would read them
	copyBinary         // COPY BINARY is not possible with a query
	unknownCopyColumn  // COPY names a column that the table does not have, and PostgreSQL says so
)

var notInjectedTexts = [...]string{
	mayInject:             "",
	onlyTable:             "ONLY",
	starTable:             "t *",
	tableOIDColumn:        "tableoid",
	wholeRowReference:     "a whole-row reference",
	schemaQualifiedColumn: "schema.table.column",
	columnAliases:         "column aliases",
	joinAlias:             "an alias of the join",
	itemsOfOneName:        "two items of one name",
	groupByPrimaryKey:     "GROUP BY the primary key",
	writeTargetTable:      "the target of a statement that writes",
	inWritingStatement:    "a statement that writes or locks rows",
	unsignedText:          "the text cannot be signed",
	copyOfParent:          "COPY of a table with children",
	copyBinary:            "COPY BINARY",
	unknownCopyColumn:     "an unknown column",
}

// String returns the reason in the words of error messages.
func (r notInjectedReason) String() string { return notInjectedTexts[r] }
