package catalog

// A Use is a relation that a function of the application returns rows of, or names in a body that PostgreSQL keeps parsed. Of a
// body that is a text it does not know more.
type Use struct {
	Function Name
	Relation Name
}
