package sqltext

// The parser copies the source of SET (a, b, …) = source for each column. For a text of 4 KB this has taken 11 seconds.
// copiedTokens computes from the tokens how much the parser would copy, so that such a text is refused before it is
// parsed.

// maxCopiedTokens is the largest permitted number of copied tokens. It is enough for SET of a hundred columns from a
// row of 250 values.
const maxCopiedTokens = 50_000

// copiedTokens returns an upper bound of the number of tokens in all copies. It also counts a comparison of rows after
// a comma outside of SET, because its tokens are the same.
func copiedTokens(tokens []Token) int {
	// for each token that opens a parenthesis or bracket, the number of the token that closes it
	closing := make([]int, len(tokens))
	columns := map[int]int{} // for each token that opens a parenthesis or bracket, the number of commas directly inside
	var openTokens []int
	for i, t := range tokens {
		switch t.Kind {
		case OpenParen, OpenBracket:
			openTokens = append(openTokens, i)
		case CloseParen, CloseBracket:
			if len(openTokens) > 0 {
				closing[openTokens[len(openTokens)-1]] = i
				openTokens = openTokens[:len(openTokens)-1]
			}
		case Comma:
			if len(openTokens) > 0 {
				columns[openTokens[len(openTokens)-1]]++
			}
		}
	}
	total := 0
	for first, commas := range columns {
		last := closing[first]
		if first == 0 || tokens[first].Kind != OpenParen || last == 0 || last+1 >= len(tokens) || tokens[last+1].Kind != equals {
			continue
		}
		if before := tokens[first-1].Kind; before != Comma && before != kwSet {
			continue
		}
		end := last + 2
		for end < len(tokens) && !endsAssignedSource(tokens[end].Kind) {
			if closing[end] > end {
				end = closing[end]
			}
			end++
		}
		total += (commas + 1) * (end - last)
	}
	return total
}

// endsAssignedSource tells whether a token ends the source of an assignment, since it cannot be part of one.
func endsAssignedSource(kind TokenKind) bool {
	switch kind {
	case Comma, Semicolon, CloseParen, CloseBracket, kwWhere, kwReturning:
		return true
	}
	return false
}
