package config

import "time"

// PoolMode says whether sessions share connections to the server.
type PoolMode string

// The modes of pools.
const (
	PoolSession     PoolMode = "session"     // each session has a connection of its own
	PoolTransaction PoolMode = "transaction" // a session has a connection while a transaction is open
)

// Pool says how the sessions of an agent get connections to the server. A field that an agent leaves out has the value
// of its database.
type Pool struct {
	Mode PoolMode `yaml:"mode"`
	Size int      `yaml:"size"` // how many connections the sessions of one agent share; 0: as by default
	Wait string   `yaml:"wait"` // how long a session waits for one of them, such as "5s"; "": as by default
}

const (
	defaultPoolSize = 20
	maxPoolSize     = 10_000
	defaultPoolWait = 5 * time.Second
	maxPoolWait     = 10 * time.Minute
)

// WaitTime returns how long a session waits for a connection.
func (p Pool) WaitTime() time.Duration { return mustParseDuration(p.Wait) }

// PoolOf returns the pool of an agent, with nothing left out.
func (c *Config) PoolOf(agent string) Pool {
	p := Pool{Mode: PoolSession, Size: defaultPoolSize, Wait: defaultPoolWait.String()}
	a := c.Agents[agent]
	if a == nil {
		return p
	}
	if db := c.Databases[a.Database]; db != nil {
		p.fillFrom(db.Pool)
	}
	p.fillFrom(a.Pool)
	return p
}

// fillFrom sets each value that is missing to the other pool's.
func (p *Pool) fillFrom(other Pool) {
	if other.Mode != "" {
		p.Mode = other.Mode
	}
	if other.Size != 0 {
		p.Size = other.Size
	}
	if other.Wait != "" {
		p.Wait = other.Wait
	}
}

func (p Pool) check(d *decoder, path string) {
	if p.Mode != "" {
		checkOneOf(d, path+".mode", string(p.Mode), string(PoolSession), string(PoolTransaction))
	}
	if p.Size < 0 || p.Size > maxPoolSize {
		d.addProblem(path+".size", "pool: { mode: transaction, size: 20 }",
			"%s.size must be a number of connections, 1 to %d", path, maxPoolSize)
	}
	if wait, err := time.ParseDuration(p.Wait); p.Wait != "" && (err != nil || wait <= 0 || wait > maxPoolWait) {
		d.addProblem(path+".wait", "pool: { mode: transaction, wait: 5s }", "%s.wait must be a time up to 10m", path)
	}
}
