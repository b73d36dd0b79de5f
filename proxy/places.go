package proxy

import (
	"sync"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// places are the connections to the server that agents have, or are about to have: of each agent, and of all. Owners
// are not counted: agents leave them room.
type places struct {
	mu    sync.Mutex
	all   int
	taken map[agentPlace]int
}

type agentPlace struct{ agent, database string }

// take takes a place; of is how many the agent may have and most how many all together, 0 each: any number. Give it back.
func (p *places) take(who agentPlace, of, most int) (giveBack func(), err *sqlstate.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of > 0 && p.taken[who] >= of {
		return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit,
			"too many connections for agent %q", who.agent).
			WithHint("It may have %d at a time. Close those that are idle, or use a pool of at most so many.", of)
	}
	if most > 0 && p.all >= most {
		return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit, "sorry, too many clients already").
			WithHint("Agents together may have %d connections to this server. Close those that are idle, or try "+
				"again in a moment.", most)
	}
	if p.taken == nil {
		p.taken = map[agentPlace]int{}
	}
	p.all++
	p.taken[who]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.taken[who]--; p.taken[who] == 0 {
			delete(p.taken, who)
		}
	}), nil
}
