package predicate

// Not shows a row that its part certainly does not. Where the part is neither true nor false, the row is hidden: NULL
// hides at either polarity. Its part may speak of the row's own columns only: what reads other tables could be emptied,
// and an empty table must never show a row.
type Not struct{ Node }

func (Not) node() {}
