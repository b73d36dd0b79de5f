package pgcatalog

// WholeReads returns how often the reader has read the whole catalog.
func (r *Reader) WholeReads() int { return r.fullReads }

// DependentsQuery is the query for the relations that depend on changed ones.
const DependentsQuery = dependentsQuery
