package sqltext

// The scanner reads a run of operator characters to its end for each operator in it, and gives the rest back. With
// 40,000 times + this has taken nine seconds, which nothing can interrupt. So the lengths of runs are bounded before it
// is called. Comments begin and end with such characters, and are counted.

// maxRunCost limits operatorRunCost, which is about a second of work.
const maxRunCost = 200_000_000

// operatorRunCost returns the sum of the squares of the lengths of all runs of operator characters in a text (op_chars
// in PostgreSQL's scan.l), those in literals included.
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
