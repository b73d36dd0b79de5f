package sqltext

// SplitStatements returns the start and end of each statement in a text, in bytes. A statement starts after the
// semicolon of the statement before. The result is nil unless each statement parses alone to the same tree as in the
// whole text.
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
