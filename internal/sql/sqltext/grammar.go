package sqltext

// GrammarVersion returns the major version of PostgreSQL whose grammar the parser has.
func GrammarVersion() int {
	tree, err := Parse("SELECT 1")
	if err != nil {
		return 0
	}
	return int(tree.Version / 10000)
}
