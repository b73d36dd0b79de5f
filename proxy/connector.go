package proxy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"
)

// connector gets connections to the server for one session. The session has a connection of its own, or shares those of
// a pool.
type connector struct {
	server          *Server
	upstream        Upstream
	database        string
	settings        map[string]string     // the startup settings of the session
	startupSettings unique.Handle[string] // the startup settings as [startupKey] writes them; only set with a pool
	pool            *pool                 // nil: the session has a connection of its own
	wait            time.Duration         // how long the session waits for a connection of the pool
}

func newConnector(s *Server, key agentKey, route Route, settings map[string]string) *connector {
	l := &connector{server: s, upstream: route.Upstream, database: key.database, settings: settings}
	l.upstream.Params = s.settings.equalTo(l.upstream.Params)
	if route.Pool != nil {
		l.pool, l.wait = s.pools.poolFor(key, route.Pool.Size), route.Pool.Wait
		l.startupSettings = unique.Make(startupKey(settings, l.upstream.Params))
	}
	return l
}

// startupKey encodes the settings that a connection begins with. RESET returns to these settings, so only sessions with
// equal startup settings can share a connection.
func startupKey(settings, pinned map[string]string) string {
	merged := maps.Clone(settings)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, pinned)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		b.WriteString(name + "\x00" + merged[name] + "\x00")
	}
	return b.String()
}

// take returns a logged-in connection to the server. With a pool it waits until the pool has one.
func (l *connector) take(ctx context.Context) (*serverConn, error) {
	if l.pool != nil {
		return l.pool.take(ctx, l)
	}
	total := l.server.maxConnections()
	if !l.server.slots.takeConnection(total) && !l.server.pools.closeIdle() {
		return nil, tooManyConnectionsError(total)
	}
	c, err := l.dial(ctx)
	if err != nil {
		l.server.slots.releaseConnection()
	}
	return c, err
}

func (l *connector) dial(ctx context.Context) (*serverConn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.server.config.DialTimeout)
	defer cancel()
	c, err := l.upstream.dial(ctx, l.database, l.settings, l.pool != nil)
	if err != nil {
		return nil, err
	}
	c.parameters, c.startupSettings = l.server.settings.equalTo(c.parameters), l.startupSettings
	return c, nil
}

// giveUp closes a connection that take returned, and frees its place.
func (l *connector) giveUp(c *serverConn) {
	if l.pool != nil {
		l.pool.remove(c)
		return
	}
	c.Close()
	l.server.slots.releaseConnection()
}

// maxConnections returns how many connections to the server all agents together may have; 0: any number.
func (s *Server) maxConnections() int {
	if s.config.MaxSessions == nil {
		return 0
	}
	return s.config.MaxSessions()
}
