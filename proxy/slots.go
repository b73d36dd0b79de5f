package proxy

import (
	"sync"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// sessionSlots counts the sessions of each agent, and the connections to the server that agents have or are making.
// Owners' connections do not count.
type sessionSlots struct {
	mu          sync.Mutex
	connections int
	byAgent     map[agentKey]int
}

type agentKey struct{ agent, database string }

// takeSession counts a session of an agent until release is called. It fails if the agent already has perAgent
// sessions; 0: any number.
func (p *sessionSlots) takeSession(key agentKey, perAgent int) (release func(), err *sqlstate.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if perAgent > 0 && p.byAgent[key] >= perAgent {
		return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit,
			"too many connections for agent %q", key.agent).
			WithHint("It may have %d at a time. Close those that are idle, or use a pool of at most so many.", perAgent)
	}
	if p.byAgent == nil {
		p.byAgent = map[agentKey]int{}
	}
	p.byAgent[key]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.byAgent[key]--; p.byAgent[key] == 0 {
			delete(p.byAgent, key)
		}
	}), nil
}

// takeConnection counts a connection to the server. It returns false if all agents together already have total
// connections; 0: any number.
func (p *sessionSlots) takeConnection(total int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if total > 0 && p.connections >= total {
		return false
	}
	p.connections++
	return true
}

// releaseConnection undoes takeConnection.
func (p *sessionSlots) releaseConnection() {
	p.mu.Lock()
	p.connections--
	p.mu.Unlock()
}

func tooManyConnectionsError(total int) *sqlstate.Error {
	return sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit, "sorry, too many clients already").
		WithHint("Agents together may have %d connections to this server. Close those that are idle, or try "+
			"again in a moment.", total)
}
