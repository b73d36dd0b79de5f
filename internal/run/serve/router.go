package serve

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// router decides whether a client is an owner, an agent, an operator or none of these. It refuses a client of which it
// is not sure.
type router struct {
	enforcer  *enforce.Enforcer
	mockKey   []byte
	verifiers databaseVerifiers
	tokens    *identity.JWT // verifies JWTs; nil: JWTs are not accepted
	databases map[string]databaseUpstreams
	operators *operatorLogins
	pools     func(agent string) config.Pool
}

type databaseUpstreams struct {
	owners []string
	owner  proxy.Upstream // the connection for owners; it has no role, since an owner logs in under its own name
	agent  proxy.Upstream // the connection for agents
}

func newRouter(cfg *config.Config, e *enforce.Enforcer, v databaseVerifiers, tokens *identity.JWT, o *operatorLogins,
	pools func(agent string) config.Pool) (*router, error) {
	mock, err := mockKey(cfg)
	if err != nil {
		return nil, err
	}
	clientTLS, err := cfg.Upstream.ClientTLS()
	if err != nil {
		return nil, err
	}
	r := &router{tokens: tokens, enforcer: e, mockKey: mock, verifiers: v, databases: map[string]databaseUpstreams{}, operators: o,
		pools: pools}
	network, address := cfg.Upstream.NetworkAddress()
	for name, db := range cfg.Databases {
		password, err := config.ReadSecret(db.Secrets.Agent)
		if err != nil {
			return nil, err
		}
		owner := proxy.Upstream{Network: network, Address: address, TLS: clientTLS, Database: db.Name}
		agent := owner
		agent.User, agent.Password, agent.KeepHeap = db.Roles.Agent, password, cfg.Upstream.HeapBytes()
		agent.StatementCache = cfg.Upstream.CachedStatements(proxy.DefaultStatementCache)
		agent.Settings = rewrite.SettingsOfAgents()
		r.databases[name] = databaseUpstreams{owners: db.Owners, owner: owner, agent: agent}
	}
	return r, nil
}

// Route implements proxy.Router.
func (r *router) Route(user, database string) proxy.Route {
	db, ok := r.databases[database]
	// A client is only treated as an owner if the last check has shown that PostgreSQL asks owners for a password.
	if ok && slices.Contains(db.owners, user) && r.verifiers[database].asksOwners.Load() {
		return proxy.Route{Kind: proxy.Owner, Upstream: db.owner}
	}
	if access, isKnown := r.enforcer.Agent(user, database); ok && isKnown {
		upstream := db.agent
		upstream.Params = access.Params
		var password func(context.Context, string) (proxy.TokenGrant, error)
		if access.LogsInByToken {
			password = func(ctx context.Context, token string) (proxy.TokenGrant, error) {
				if r.tokens == nil {
					return proxy.TokenGrant{}, errors.New("no tokens are accepted")
				}
				attributes, until, err := r.tokens.VerifyAgent(ctx, token, user, database)
				return proxy.TokenGrant{Attributes: attributes, Until: until}, err
			}
		}
		credential := access.Credential
		if access.CertificateName != "" {
			credential = r.mockCredential(user) // no password is right: the agent needs its certificate
		}
		return proxy.Route{
			Kind: proxy.Agent, Upstream: upstream, Credential: credential, Password: password,
			Certificate: certificateCheck(access.CertificateName),
			Sessions:    access.MaxSessions, Pool: r.poolOf(user), CheckSetting: access.CheckSetting,
			Paused: r.operators.pauses[database].resumeSignal,
			Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
				return access.OpenSession(ctx, enforce.SessionInfo(info))
			},
		}
	}
	if database == config.AdminDatabase && !ok {
		if credential, isOperator := r.operators.credential(user); isOperator {
			return proxy.Route{Kind: proxy.Operator, Credential: &credential, Serve: r.operators.serveConsole}
		}
	}
	return proxy.Route{Kind: proxy.Refused, Credential: r.mockCredential(user)}
}

// mockCredential returns a SCRAM verifier for the user that no password matches.
func (r *router) mockCredential(user string) *scram.StoredCredentials {
	mock := config.MockCredentials(r.mockKey, user)
	return &mock
}

// poolOf returns the settings of an agent's pool, and nil if each of its sessions has its own connection.
func (r *router) poolOf(agent string) *proxy.PoolSettings {
	p := r.pools(agent)
	if p.Mode != config.PoolTransaction {
		return nil
	}
	return &proxy.PoolSettings{Size: p.Size, Wait: p.WaitTime()}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
