package messages

import "time"

// shrinkSteps and shrinkTime bound the attempts on one difference: what is never answered takes all the patience there
// is.
const (
	shrinkSteps = 250
	shrinkTime  = 5 * time.Minute
)

// shrink takes messages out as long as what is left still shows a difference.
func (st *stage) shrink(s sequence, why string, got [places]transcript) (sequence, string, [places]transcript) {
	steps, began := 0, time.Now()
	for size := len(s) / 2; size >= 1; size /= 2 {
		for at := 0; at+size <= len(s) && steps < shrinkSteps && time.Since(began) < shrinkTime; steps++ {
			less := append(append(sequence{}, s[:at]...), s[at+size:]...)
			if w, g := st.compare(less); w != "" {
				s, why, got = less, w, g
			} else {
				at++
			}
		}
	}
	return s, why, got
}
