package attacks

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/oracle"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type attack struct {
	name     string
	messages []string
}

func attacks(t testing.TB) []attack {
	t.Helper()
	var out []attack
	for block := range strings.SplitSeq(instance.Read(t, "test/attacks/testdata/attacks.txt"), "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if len(lines) < 2 {
			continue // the title
		}
		out = append(out, attack{strings.TrimPrefix(lines[0], "# "), lines[1:]})
	}
	return out
}

// Attacks that are known from elsewhere tell twins apart in no mode that an operator may choose.
func TestKnownAttacks(t *testing.T) {
	var s oracle.Schema
	for _, candidate := range oracle.Schemas {
		if candidate.Name == "works" {
			s = candidate
		}
	}
	list := attacks(t)
	total := 0
	for _, a := range list {
		total += len(a.messages)
	}
	if len(list) < 12 || total < 150 {
		t.Errorf("%d attacks with %d messages", len(list), total)
	}
	visible, disturb := instance.Read(t, "test/oracle/testdata/works/visible.sql"), instance.Read(t, "test/attacks/testdata/disturb.sql")
	for _, mode := range []instance.Mode{instance.Both, instance.Doors, instance.Gate} {
		one, two := s.Behind(t), s.Behind(t)
		instance.Exec(t, two.DB, visible+disturb)
		if mode.Name == instance.Both.Name {
			tellsApart(t, list, one.DB, two.DB)
		}
		proxies := []*instance.Proxy{instance.Start(t, mode, one, s.Attributes), instance.Start(t, mode, two, s.Attributes)}
		for _, a := range list {
			var got [2][]string
			for i, proxy := range proxies {
				c := proxy.Agent(t, "agent", s.Name)
				name := one.DB.Name
				if i == 1 {
					name = two.DB.Name
				}
				for _, message := range a.messages {
					if c.IsClosed() {
						c = proxy.Agent(t, "agent", s.Name)
					}
					got[i] = append(got[i], strings.ReplaceAll(instance.AskCopy(c, message).Multiset(), name, "DATABASE"))
				}
				_ = c.Close(context.Background())
			}
			for m, message := range a.messages {
				if got[0][m] != got[1][m] {
					t.Errorf("%s, %s: %s\none:\n%s\ntwin:\n%s", mode.Name, a.name, message, instance.Shorten(got[0][m]), instance.Shorten(got[1][m]))
				}
			}
		}
		for _, proxy := range proxies {
			proxy.Tap().NoMarker(t)
		}
	}
}

// tellsApart is the control: what only reads does tell the twins apart where there are no walls.
func tellsApart(t *testing.T, list []attack, one, two *pgtest.DB) {
	t.Helper()
	a, b := instance.Super(t, one), instance.Super(t, two)
	differ := 0
	for _, attack := range list {
		for _, message := range attack.messages {
			if strings.HasPrefix(message, "SELECT ") && !strings.Contains(message, ";") && !strings.Contains(message, "pg_") {
				if instance.Ask(a, message).Multiset() != instance.Ask(b, message).Multiset() {
					differ++
				}
			}
		}
	}
	if differ < 20 {
		t.Errorf("without walls only %d messages tell the twins apart", differ)
	}
}
