package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

var benchTexts = map[string]string{
	"one line": "SELECT title FROM memories WHERE occurred_at > $1 ORDER BY occurred_at DESC LIMIT 20",
	"20 lines": strings.Repeat(
		"SELECT p.name, count(*) AS n\nFROM people p JOIN memory_participants l ON l.person_id = p.id\nJOIN "+
			"memories m ON m.id = l.memory_id\nWHERE m.metadata->>'mood' = 'calm' AND m.title LIKE 'a%'\nGROUP BY "+
			"p.name\nUNION ALL\n", 3) + "SELECT name, 0 FROM people",
}

func BenchmarkRewrite(b *testing.B) {
	r := rewriter(b, InjectedMode)
	for name, text := range benchTexts {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, refusal := r.Rewrite(text, true); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
		b.Run(name+", parsing twice alone", func(b *testing.B) {
			result, _ := r.Rewrite(text, true)
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range []string{text, result.Text} {
					if _, refusal := sqltext.Parse(text); refusal != nil {
						b.Fatal(refusal)
					}
				}
			}
		})
	}
}
