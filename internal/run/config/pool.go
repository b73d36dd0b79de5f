package config

import "time"

// PoolMode says whether the sessions of an agent share connections to PostgreSQL.
type PoolMode string

// Values of the key pool.mode.
const (
	PoolSession     PoolMode = "session"     // each session has its own connection
	PoolTransaction PoolMode = "transaction" // a session has a connection only while a transaction is open
)

// Pool says how an agent's sessions get connections to PostgreSQL. An agent's field that is left out has the value of
// the agent's database.
type Pool struct {
	Mode PoolMode `yaml:"mode"`
	Size int      `yaml:"size"` // how many connections the sessions of one agent share; 0: the default
	Wait string   `yaml:"wait"` // how long a session waits for a connection, such as "5s"; "": the default
}

const (
	defaultPoolSize = 20
	maxPoolSize     = 10_000
	defaultPoolWait = 5 * time.Second
	maxPoolWait     = 10 * time.Minute
)

// WaitTime returns how long a session waits for a connection.
func (p Pool) WaitTime() time.Duration { return mustParseDuration(p.Wait) }

// PoolOf returns the pool settings of an agent, with defaults for what is left out.
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

// fillFrom copies each value that the other pool has.
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
