package generalize

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkJudge checks a text of a few sentences for one subject with aliases, and a long text for many subjects.
func BenchmarkJudge(b *testing.B) {
	text := "Heart murmurs in small breeds need exercise monitoring, and somebody who looks at the gums after each walk. "
	for _, size := range []struct{ subjects, sentences int }{{1, 1}, {1, 20}, {50, 20}} {
		in := Input{Texts: []string{strings.Repeat(text, size.sentences)}}
		for i := range size.subjects {
			in.Subjects = append(in.Subjects, Subject{
				ID: fmt.Sprintf("person:given%d_family%d", i, i), Aliases: []string{fmt.Sprintf("Nick%dname", i), "Margarethe von Trotta"}})
		}
		b.Run(fmt.Sprintf("subjects=%d/bytes=%d", size.subjects, len(in.Texts[0])), func(b *testing.B) {
			for b.Loop() {
				CheckTexts(in)
			}
		})
	}
}
