package verdict

// Origin is where a column of a result comes from, as RowDescription says it: the relation by its OID, and the number
// of the column there. The zero Origin stands for a column that does not come from a relation, such as an expression.
type Origin struct {
	Relation uint32
	Number   int16
}
