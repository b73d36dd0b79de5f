package verdict

// Origin says from which column of which relation a column of a result comes, as RowDescription gives it: the OID of
// the relation and the number of the column. The zero Origin is for a column that comes from no relation, such as an
// expression.
type Origin struct {
	Relation uint32
	Number   int16
}
