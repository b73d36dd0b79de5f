package rewrite

// notInjectedReason says why the rewriter puts no subquery with the predicate in the place of a relation. Then row
// security alone hides rows, and the text keeps the relation's name.
type notInjectedReason int

const (
	mayInject             notInjectedReason = iota
	onlyTable                               // ONLY t: a subquery takes no ONLY
	starTable                               // t *
	tableOIDColumn                          // a subquery has no system columns
	wholeRowReference                       // the row type of a subquery is another
	schemaQualifiedColumn                   // a subquery has no schema
	columnAliases
	joinAlias
	itemsOfOneName    // PostgreSQL allows two tables of one name, from two schemas, but not two subqueries
	groupByPrimaryKey // only a table lets other columns stand ungrouped
	writeTargetTable  // the target of INSERT, UPDATE, DELETE or MERGE is a table
	writesOrLocks     // what such a statement reads besides
	unsignedText      // the predicate names signed views
	copyOfParent      // COPY reads the table without its children, a query would not
	copyBinary        // COPY BINARY has no form with a query
	unknownCopyColumn // PostgreSQL says that the table has no such column
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
	writesOrLocks:         "a statement that writes or locks rows",
	unsignedText:          "the text cannot be signed",
	copyOfParent:          "COPY of a table with children",
	copyBinary:            "COPY BINARY",
	unknownCopyColumn:     "an unknown column",
}

// String is the reason as errors print it.
func (r notInjectedReason) String() string { return notInjectedTexts[r] }
