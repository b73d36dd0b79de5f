package catalog

// A Use is a relation that a function of the application returns or takes rows of, or names in its body. A body that
// PostgreSQL keeps parsed says which; of one that is a text it is what follows FROM, JOIN, INTO and UPDATE, as far as
// one relation alone has that name.
type Use struct {
	Function Name
	Relation Name
	Takes    bool // rows of it are arguments
	Writes   bool // its text says INSERT INTO, UPDATE or DELETE FROM
}

// A Trigger runs a function with the rights of whoever changes a row: it is not SECURITY DEFINER.
type Trigger struct {
	Name                   string
	Relation               Name
	Function               Name
	Insert, Update, Delete bool
}

// A Default is a column's default that calls a function that is SECURITY DEFINER.
type Default struct {
	Relation Name
	Column   string
	Function string
}
