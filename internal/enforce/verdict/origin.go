package verdict

// Origin is where a column of a result comes from, as RowDescription says it: the relation by its OID, and the number
// of the column there. The zero Origin is that of a column that is no relation's.
type Origin struct {
	Relation uint32
	Number   int16
}
