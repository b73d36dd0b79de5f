package rewrite

// notInjectedReason says why the rewriter does not replace a relation with a subquery that has the predicate. Then row
// security alone hides rows, and the text keeps the relation's name.
type notInjectedReason int

const (
	mayInject             notInjectedReason = iota
	onlyTable                               // ONLY t: a subquery cannot be marked ONLY
	starTable                               // t *: a subquery cannot be followed by *
	tableOIDColumn                          // a subquery has no system columns
	wholeRowReference                       // a subquery has another row type
	schemaQualifiedColumn                   // schema.table.column: a subquery has no schema
	columnAliases
	joinAlias
	itemsOfOneName     // PostgreSQL allows two tables of one name, from two schemas, but not two subqueries
	groupByPrimaryKey  // PostgreSQL lets other columns stand ungrouped beside the key of a table, not of a subquery
	writeTargetTable   // the target of INSERT, UPDATE, DELETE or MERGE is a table
	inWritingStatement // relations that a statement reads while it writes or locks rows
	unsignedText       // the predicate names signed views, and the text is not signed
	copyOfParent       // COPY reads a table without its inheritance children, and a query would read them
	copyBinary         // COPY BINARY has no form with a query
	unknownCopyColumn  // PostgreSQL says that the table has no such column
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
