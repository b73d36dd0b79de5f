package pgcatalog

// WholeReads is how often everything was read.
func (r *Reader) WholeReads() int { return r.fullReads }
