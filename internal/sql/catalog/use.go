package catalog

// FunctionUse is a relation that a function of the application uses: the function returns or takes its rows, or its
// body names it. For a body that PostgreSQL stores parsed, the catalogs record the relations. In a body that is stored
// as text, they are the names after FROM, JOIN, INTO and UPDATE, if only one relation has the name.
type FunctionUse struct {
	Function  Name
	Relation  Name
	TakesRows bool // rows of the relation are arguments of the function
	MayWrite  bool // the body contains INSERT INTO, UPDATE or DELETE FROM
}

// Trigger is a trigger whose function runs with the rights of the role that changes a row: it is not SECURITY DEFINER.
type Trigger struct {
	Name                   string
	Relation               Name
	Function               Name
	Insert, Update, Delete bool
}

// DefinerDefault is the default of a column that calls a SECURITY DEFINER function.
type DefinerDefault struct {
	Relation Name
	Column   string
	Function string
}
