package sqltext

// The parser makes one copy of the source of SET (a, b, …) = source for each column: 4 KB of text have taken it 11
// seconds. copies bounds, from the tokens, how many tokens are read because of that.

// maxCopies is the most that a text may have: a hundred columns from a row of 250 values.
const maxCopies = 50_000

// copies returns an upper bound of the tokens in all copies. What compares rows outside SET is counted too where it
// follows a comma.
func copies(tokens []Token) int {
	closing := make([]int, len(tokens)) // by the index of what opens
	columns := map[int]int{}            // by the index of what opens: items of a list
	var open []int
	for i, t := range tokens {
		switch t.Kind {
		case OpenParen, OpenBracket:
			open = append(open, i)
		case CloseParen, CloseBracket:
			if len(open) > 0 {
				closing[open[len(open)-1]] = i
				open = open[:len(open)-1]
			}
		case Comma:
			if len(open) > 0 {
				columns[open[len(open)-1]]++
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
		for end < len(tokens) && !endsSource(tokens[end].Kind) {
			if closing[end] > end {
				end = closing[end]
			}
			end++
		}
		total += (commas + 1) * (end - last)
	}
	return total
}

// endsSource tells whether a token can only stand behind the source of an assignment.
func endsSource(kind TokenKind) bool {
	switch kind {
	case Comma, Semicolon, CloseParen, CloseBracket, kwWhere, kwReturning:
		return true
	}
	return false
}
