package sqltext

// SplitStatements returns where each statement of a text starts and ends, in bytes; a statement starts behind the
// semicolon of the one before. It is nil unless each of them parses alone to the tree that it has in the whole text.
func SplitStatements(text string) [][2]int {
	tree, refusal := Parse(text)
	if refusal != nil {
		return nil
	}
	var parts [][2]int
	for _, raw := range tree.Stmts {
		start := int(raw.StmtLocation)
		end := start + int(raw.StmtLen)
		if raw.StmtLen == 0 {
			end = len(text)
		}
		aloneTree, refusal := Parse(text[start:end])
		if refusal != nil || len(aloneTree.Stmts) != 1 {
			return nil
		}
		if !equalTrees(aloneTree.Stmts[0], raw) {
			return nil
		}
		parts = append(parts, [2]int{start, end})
	}
	return parts
}
