package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// tampering changes the lines of a log, as somebody could who may write its directory but does not have the key. It
// returns nil if nothing was changed.
type tampering func(r *rand.Rand, lines []string) []string

// tamperings are the kinds of tampering, by name.
var tamperings = map[string]tampering{
	"change": func(r *rand.Rand, lines []string) []string {
		i := r.IntN(len(lines))
		b := []byte(lines[i])
		index := r.IntN(len(b) - 1)
		c := byte(' ' + r.IntN(95))
		if b[index] == c {
			return nil
		}
		b[index] = c
		lines[i] = string(b)
		return lines
	},
	"drop": func(r *rand.Rand, lines []string) []string {
		from := r.IntN(len(lines))
		return slices.Delete(lines, from, min(from+1+r.IntN(3), len(lines)))
	},
	"swap": func(r *rand.Rand, lines []string) []string {
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		if i == j {
			return nil
		}
		lines[i], lines[j] = lines[j], lines[i]
		return lines
	},
	"insert": func(r *rand.Rand, lines []string) []string {
		line := lines[r.IntN(len(lines))]
		if r.IntN(2) == 0 {
			line = withHash(strings.Replace(line, `"allow"`, `"deny"`, 1), "", r)
		}
		return slices.Insert(lines, r.IntN(len(lines)+1), line)
	},
	"truncate": func(r *rand.Rand, lines []string) []string { return lines[:r.IntN(len(lines))] },
	// The chain is written again from some record on, so that every hash is right.
	"recompute": func(r *rand.Rand, lines []string) []string {
		from, variant := r.IntN(len(lines)), r.IntN(4)
		lines[from] = strings.Replace(lines[from], `"allow"`, `"deny"`, 1)
		if r.IntN(3) == 0 && from+1 < len(lines) {
			lines = slices.Delete(lines, from, from+1)
		}
		if variant == 3 { // in the older format, which had no codes
			for i := from; i < len(lines); i++ {
				lines[i] = strings.Replace(lines[i], `{"v":2,`, `{"v":1,`, 1)
			}
		}
		return rewriteChain(lines, from, map[int]string{0: "keep", 1: "make up"}[variant], r)
	},
}

// rewriteChain returns the lines with the chain written again from a line on, so that numbers and hashes are right.
func rewriteChain(lines []string, from int, code string, r *rand.Rand) []string {
	prev := genesisHash
	if from > 0 {
		prev = hashOf(lines[from-1])
	}
	for i := from; i < len(lines); i++ {
		line := replaceMember(replaceMember(lines[i], `"seq":`, `,`, fmt.Sprint(i+1)), `"prev":"`, `"`, prev)
		lines[i] = withHash(line, code, r)
		prev = hashOf(lines[i])
	}
	return lines
}

func replaceMember(line, prefix, suffix, value string) string {
	head, afterPrefix, _ := strings.Cut(line, prefix)
	_, tail, _ := strings.Cut(afterPrefix, suffix)
	return head + prefix + value + suffix + tail
}

func hashOf(line string) string {
	_, afterMember, _ := strings.Cut(line, hashMember)
	return afterMember[:64]
}

// withHash returns a line with the right hash. Its code is kept, invented, or left out.
func withHash(line, code string, r *rand.Rand) string {
	body, afterMember, _ := strings.Cut(line, hashMember)
	out := fmt.Sprintf("%s%s%x", body, hashMember, sha256.Sum256([]byte(body)))
	switch code {
	case "keep":
		out += afterMember[64 : len(afterMember)-3]
	case "make up":
		key, _ := NewKey([]byte(fmt.Sprintf("%032d", r.Int())))
		out += kidMember + afterMember[64+len(kidMember):][:kidLen] + macMember + key.recordCode(hashOf(out))
	}
	return out + "\"}\n"
}

// Ten thousand random tamperings are all found, with the key and the anchor that pgconsent stores outside the
// directory.
func TestTamperings(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 3000}
	writeDecisions(t, cfg, 12)
	options := VerifyOptions{Key: key, Heads: heads(t, cfg.AnchorFile, key)}
	if _, err := options.Walk(cfg.Dir, nil); err != nil {
		t.Fatal(err)
	}
	segments, err := listSegments(cfg.Dir)
	if err != nil || len(segments) < 3 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	var originalLines []string
	var sizes []int // the number of lines of each segment
	for _, n := range segments {
		b, err := os.ReadFile(filepath.Join(cfg.Dir, segmentName(n)))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(b), "\n")
		originalLines, sizes = append(originalLines, lines[:len(lines)-1]...), append(sizes, len(lines)-1)
	}
	rounds := tier.Count(100, 600, 10000)
	r := rand.New(rand.NewPCG(5, 4))
	for class, tamper := range tamperings {
		workDir, textBySegment := t.TempDir(), map[int]string{}
		for round := 0; round < rounds; {
			lines := tamper(r, slices.Clone(originalLines))
			if lines == nil || slices.Equal(lines, originalLines) {
				continue
			}
			round++
			remainingLines := lines
			for i, n := range segments {
				lineCount := min(sizes[i], len(remainingLines))
				if i == len(segments)-1 {
					lineCount = len(remainingLines)
				}
				text := strings.Join(remainingLines[:lineCount], "")
				remainingLines = remainingLines[lineCount:]
				if oldText, ok := textBySegment[n]; ok && oldText == text {
					continue
				}
				if err := os.WriteFile(filepath.Join(workDir, segmentName(n)), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				textBySegment[n] = text
			}
			var chainError *ChainError
			if _, err := options.Walk(workDir, nil); !errors.As(err, &chainError) {
				t.Fatalf("%s, round %d: not found (%v)", class, round, err)
			}
		}
	}
}

// Verification without the key accepts a chain that was written again, and verification without the anchor accepts one
// that was cut off.
func TestChainWithoutKeyOrAnchor(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor")}
	writeDecisions(t, cfg, 6)
	path := filepath.Join(cfg.Dir, segmentName(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	lines = lines[:len(lines)-1]
	for name, tc := range map[string]struct {
		lines          []string
		isFoundWithout bool // found without key and anchor too
	}{
		"cut":         {lines[:4], false},
		"written new": {rewriteChain(append([]string{strings.Replace(lines[0], "allow", "deny", 1)}, lines[1:]...), 0, "keep", nil), false},
		"changed":     {append([]string{strings.Replace(lines[0], "allow", "deny", 1)}, lines[1:]...), true},
	} {
		if err := os.WriteFile(path, []byte(strings.Join(tc.lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(cfg.Dir); (err != nil) != tc.isFoundWithout {
			t.Errorf("%s, without key and anchor: %v", name, err)
		}
		if _, err := (VerifyOptions{Key: key, Heads: heads(t, cfg.AnchorFile, key)}).Walk(cfg.Dir, nil); err == nil {
			t.Errorf("%s, with key and anchor: not found", name)
		}
	}
}

// In a chain whose records have codes, one without a code was added or stripped by somebody who lacks the key. This
// shows even without the key. Records from before the key existed have none.
func TestRecordsWithoutCodeAreFound(t *testing.T) {
	for codes, found := range map[string]bool{
		"xxxxx": false, ".xxxx": false, "...xx": false,
		"x.xxx": true, "xxx.x": true, "x...x": true, ".x.xx": true,
	} {
		dir, key := t.TempDir(), testKey(t, 'k')
		writeDecisions(t, Config{Dir: dir, Key: key}, len(codes))
		path := filepath.Join(dir, segmentName(1))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(b), "\n")
		for i, code := range codes {
			if code == '.' { // the hash is still right: it does not cover the code
				lines[i] = withHash(lines[i], "", nil)
			}
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, options := range map[string]VerifyOptions{"with the key": {Key: key}, "without the key": {}} {
			var chainError *ChainError
			if _, err := options.Walk(dir, nil); errors.As(err, &chainError) != found {
				t.Errorf("codes %s, %s: %v", codes, name, err)
			}
		}
	}
}
