package catalog

// Grant is a relation on which somebody has a right.
type Grant struct {
	Relation Name
	To       string // a role, or PUBLIC
}
