package generalize

// Corpus counts in how many texts each word occurs. The zero value has no texts. Only one goroutine may use it.
type Corpus struct {
	documents     int
	documentsWith map[string]int
}

// Add adds a text.
func (c *Corpus) Add(text string) {
	if c.documentsWith == nil {
		c.documentsWith = map[string]int{}
	}
	c.documents++
	countedWords := map[string]bool{}
	for _, w := range normalizedWords(text) {
		if !countedWords[w] {
			countedWords[w] = true
			c.documentsWith[w]++
		}
	}
}

// DocumentCount returns how many texts were added.
func (c *Corpus) DocumentCount() int { return c.documents }

// TextsWith returns in how many of the texts a word occurs, for [Input.TextsWithWord].
func (c *Corpus) TextsWith(word string) int { return c.documentsWith[word] }
