package sqltext

// GrammarVersion is the major version of the PostgreSQL whose grammar reads statements.
func GrammarVersion() int {
	tree, err := Parse("SELECT 1")
	if err != nil {
		return 0
	}
	return int(tree.Version / 10000)
}
