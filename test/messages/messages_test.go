package messages

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	sequences = flag.Int("sequences", 0, "play that many with a progress bar, instead of the short test")
	seed      = flag.Uint64("seed", 0, "of the long run; 0: the time")
	length    = flag.Int("length", 60, "about how many messages a sequence has at most, in the long run")
	only      = flag.String("settings", "", "of these settings alone, divided by commas")
	waits     = flag.Duration("patience", patience, "how long an answer may take")
	saves     = flag.Bool("save", true, "save what the long run finds under testdata/found")
)

// Whatever messages an agent sends, in whatever turns, it gets what PostgreSQL answers, and learns nothing of hidden rows.
func TestRandomMessages(t *testing.T) {
	patience = *waits
	if *sequences > 0 {
		s := *seed
		if s == 0 {
			s = uint64(time.Now().UnixNano()) & 0xffffffff
		}
		t.Logf("seed %d", s)
		var at []setting
		for _, e := range every {
			if *only == "" || strings.Contains(","+*only+",", ","+e.name+",") {
				at = append(at, e)
			}
		}
		r := Run(t, Config{Sequences: *sequences, Seed: s, Length: *length, Settings: at, Save: *saves, Progress: os.Stderr})
		t.Log(r, r.Seen)
		return
	}
	// Doors, and another setting each day.
	turn := every[1+instance.Today()%(len(every)-1)]
	r := Run(t, Config{Sequences: 160, Seed: 1, Length: 40, Settings: []setting{every[0], turn}, For: 25 * time.Second})
	t.Log(r)
}

// What was found once stays closed.
func TestFoundMessages(t *testing.T) { Replay(t, every[:2]) }
