package sqltext

// HavingClause finds the place of HAVING in a text that is a single SELECT. from is a token after FROM, outside of
// parentheses. keyword is the index of the token HAVING, or -1. end is the offset where its condition ends, or where a
// HAVING could be inserted.
func (s *Source) HavingClause(from int) (keyword int, end int32) {
	keyword = -1
	depth := 0
	for i := from; i >= 0 && i < len(s.Tokens); i++ {
		switch s.Tokens[i].Kind {
		case OpenParen, OpenBracket:
			depth++
		case CloseParen, CloseBracket:
			depth--
		}
		if depth == 0 && s.KindAt(i-1) != Dot {
			switch s.Tokens[i].Kind {
			case kwHaving:
				keyword = i
			case kwWindow, kwOrder, kwLimit, kwOffset, kwFetch, kwFor, Semicolon:
				return keyword, end
			}
		}
		end = s.Tokens[i].End
	}
	return keyword, end
}

// ClosingParen returns the index of the token that closes the parenthesis at index i, or -1.
func (s *Source) ClosingParen(i int) int {
	depth := 0
	for ; i >= 0 && i < len(s.Tokens); i++ {
		switch s.Tokens[i].Kind {
		case OpenParen:
			depth++
		case CloseParen:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
