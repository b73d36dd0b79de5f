package sqltext

// In a sequence of operator characters, the parser's scanner reads to the end of the sequence for each operator, and
// goes back. With 40,000 characters + this has taken nine seconds, and nothing can interrupt it. So the lengths of such
// sequences are bounded before the scanner is called. The characters that begin and end comments count as well.

// maxRunCost is the largest permitted operatorRunCost. It stands for about a second of work.
const maxRunCost = 200_000_000

// operatorRunCost returns the sum of the squares of the lengths of all sequences of operator characters in a text,
// including those in literals. The characters are op_chars in PostgreSQL's scan.l.
func operatorRunCost(text string) int {
	total, run := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '~', '!', '@', '#', '^', '&', '|', '`', '?', '+', '-', '*', '/', '%', '<', '>', '=':
			run++
			continue
		}
		total, run = total+run*run, 0
	}
	return total + run*run
}
