package predicate

// Not shows a row for which its part is false. If the part is NULL, the row is hidden: NULL hides a row with and
// without Not. The part may read only the row's own columns. Otherwise somebody could empty another table and so make
// rows visible.
type Not struct{ Node }

func (Not) node() {}
