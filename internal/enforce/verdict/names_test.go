package verdict_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

func TestUpstreamName(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("n", 61)
	for _, name := range []string{"", "a", "A", "c:a", "h:a", verdict.SealStatement, long[:60], long, long + "n", "ä\"; x"} {
		got := verdict.UpstreamName(name)
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
		if len(got) > 62 || got == verdict.SealStatement || (got == "") != (name == "") {
			t.Errorf("%q is %q", name, got)
		}
		if back, ok := verdict.ClientName(got); ok != (name != "" && len(name) <= 60) || ok && back != name {
			t.Errorf("%q is %q and back %q", name, got, back)
		}
	}
}

// Long names that differ in one letter, wherever it is, are different names for PostgreSQL, too.
func TestLongNamesAreToldApart(t *testing.T) {
	seen := map[string]bool{}
	n := 0
	for _, length := range []int{61, 62, 63, 64, 65, 100, 1000} {
		for at := range min(length, 200) {
			for _, letter := range "abcXYZ" {
				b := []byte(strings.Repeat("n", length))
				b[at] = byte(letter)
				seen[verdict.UpstreamName(string(b))] = true
				n++
			}
		}
	}
	if len(seen) != n {
		t.Errorf("%d names of %d", len(seen), n)
	}
}

// SQL can run by name a text with exactly one query, or an empty text. Other effects of a text would not be noticed.
func TestRunnable(t *testing.T) {
	for kind := verdict.EffectNone; kind <= verdict.EffectDiscard; kind++ {
		for _, reads := range []bool{false, true} {
			for n := range 4 {
				for at := range max(n, 1) {
					v := &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: make([]verdict.Effect, n)}}
					for i := range v.Effects {
						v.Effects[i].ReadsRows = true
					}
					if n > 0 {
						v.Effects[at] = verdict.Effect{Kind: kind, ReadsRows: reads}
					}
					if want := n == 0 || n == 1 && kind == verdict.EffectNone && reads; v.IsRunnable() != want {
						t.Errorf("%v: %t", v.Effects, !want)
					}
				}
			}
		}
	}
}
