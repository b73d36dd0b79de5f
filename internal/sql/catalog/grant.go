package catalog

// Grant says that a role has a right on a relation.
type Grant struct {
	Relation Name
	Grantee  string // the role, or PUBLIC
}
