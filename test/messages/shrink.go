package messages

import "time"

// shrinkSteps and shrinkTime limit how often and how long shrink tries to shorten a sequence. A missing answer is only
// noticed after a long timeout.
const (
	shrinkSteps = 250
	shrinkTime  = 5 * time.Minute
)

// shrink removes messages from a sequence as long as the sequence still shows a difference.
func (st *databaseTrio) shrink(s sequence, why string, got [databaseCount]transcript) (sequence, string, [databaseCount]transcript) {
	steps, start := 0, time.Now()
	for size := len(s) / 2; size >= 1; size /= 2 {
		for at := 0; at+size <= len(s) && steps < shrinkSteps && time.Since(start) < shrinkTime; steps++ {
			shorter := append(append(sequence{}, s[:at]...), s[at+size:]...)
			if w, g := st.compare(shorter); w != "" {
				s, why, got = shorter, w, g
			} else {
				at++
			}
		}
	}
	return s, why, got
}
