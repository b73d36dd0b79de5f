package messages

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	sequenceCount = flag.Int("sequences", 0, "play that many with a progress bar, instead of the short test")
	seed          = flag.Uint64("seed", 0, "where to begin; 0: what the run says")
	maxLength     = flag.Int("length", 60, "about how many messages a sequence has at most, in the long run")
	settingNames  = flag.String("settings", "", "of these settings alone, divided by commas")
	answerTimeout = flag.Duration("patience", patience, "how long an answer may take")
	saveFound     = flag.Bool("save", true, "save what the long run finds under testdata/found")
)

// An agent sends random messages in any order. It must get the answers that PostgreSQL gives without hidden rows, and
// learn nothing of those.
func TestRandomMessages(t *testing.T) {
	patience = *answerTimeout
	s := *seed
	if s == 0 {
		s = tier.Seed()
	}
	t.Logf("seed %d", s)
	if *sequenceCount > 0 {
		var chosen []policySetting
		for _, setting := range allSettings {
			if *settingNames == "" || strings.Contains(","+*settingNames+",", ","+setting.name+",") {
				chosen = append(chosen, setting)
			}
		}
		r := Run(t, Config{Sequences: *sequenceCount, Seed: s, Length: *maxLength, Settings: chosen, Save: *saveFound, Progress: os.Stderr})
		t.Log(r, r.AnswerCounts)
		return
	}
	settings := allSettings
	if tier.Quick() {
		settings = allSettings[:2]
	}
	t.Log(Run(t, Config{Sequences: tier.Count(10, 40, 10_000), Seed: s, Length: 40, Settings: settings}))
}

// Sequences of messages that once revealed hidden rows must not do so any more.
func TestFoundMessages(t *testing.T) { Replay(t, allSettings[:2]) }
