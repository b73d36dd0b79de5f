package sqltext

import "google.golang.org/protobuf/proto"

// Parts divides a text into its statements: the bytes of each, with what stands before it since the semicolon. It is nil
// unless each reads by itself as it does in the whole.
func Parts(text string) [][2]int {
	tree, refused := Parse(text)
	if refused != nil {
		return nil
	}
	var parts [][2]int
	for _, raw := range tree.Stmts {
		start := int(raw.StmtLocation)
		end := start + int(raw.StmtLen)
		if raw.StmtLen == 0 {
			end = len(text)
		}
		alone, refused := Parse(text[start:end])
		if refused != nil || len(alone.Stmts) != 1 {
			return nil
		}
		StripLocations(alone)
		StripLocations(raw)
		if !proto.Equal(alone.Stmts[0], raw) {
			return nil
		}
		parts = append(parts, [2]int{start, end})
	}
	return parts
}
