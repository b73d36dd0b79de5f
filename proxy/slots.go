package proxy

import (
	"sync"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// sessionSlots are the connections to the server that agents have, or are about to have: of each agent, and of all.
// Owners are not counted: the limit on agents leaves them room.
type sessionSlots struct {
	mu      sync.Mutex
	all     int
	byAgent map[agentKey]int
}

type agentKey struct{ agent, database string }

// take reserves a slot until release is called. perAgent is how many slots the agent may have, total how many all
// agents together; 0 in either means any number.
func (p *sessionSlots) take(who agentKey, perAgent, total int) (release func(), err *sqlstate.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if perAgent > 0 && p.byAgent[who] >= perAgent {
		return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit,
			"too many connections for agent %q", who.agent).
			WithHint("It may have %d at a time. Close those that are idle, or use a pool of at most so many.", perAgent)
	}
	if total > 0 && p.all >= total {
		return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit, "sorry, too many clients already").
			WithHint("Agents together may have %d connections to this server. Close those that are idle, or try "+
				"again in a moment.", total)
	}
	if p.byAgent == nil {
		p.byAgent = map[agentKey]int{}
	}
	p.all++
	p.byAgent[who]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.byAgent[who]--; p.byAgent[who] == 0 {
			delete(p.byAgent, who)
		}
	}), nil
}
