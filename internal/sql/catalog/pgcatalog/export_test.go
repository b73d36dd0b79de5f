package pgcatalog

// WholeReads is how often everything was read.
func (r *Reader) WholeReads() int { return r.fullReads }

// DependentsQuery is the query for the relations that depend on changed ones.
const DependentsQuery = dependentsQuery
