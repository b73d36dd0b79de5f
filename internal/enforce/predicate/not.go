package predicate

// Not shows a row for which its part is false. Where the part is NULL the row is hidden: NULL hides with and without
// Not. Its part may read only the row's own columns: another table could be emptied, and an empty table must never show
// a row.
type Not struct{ Node }

func (Not) node() {}
