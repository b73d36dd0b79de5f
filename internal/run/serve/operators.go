package serve

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/adminconsole"
	"github.com/pgconsent/pgconsent/proxy"
)

// operatorLogins has the logins of operators, the admin console, and the pauses of databases.
type operatorLogins struct {
	service     *Service
	credentials *config.Credentials
	console     *adminconsole.Console
	pauses      map[string]*databasePause // by database
}

// newOperators reads the logins of operators, and makes the admin console, which can be used once the service runs.
func (s *Service) newOperators(cfg *config.Config, version string) (*operatorLogins, error) {
	credentials, err := config.OpenCredentials(cfg.Admin.Credentials)
	if err != nil {
		return nil, err
	}
	o := &operatorLogins{service: s, credentials: credentials, pauses: map[string]*databasePause{}}
	for name := range cfg.Databases {
		o.pauses[name] = &databasePause{}
		s.metrics.SetPaused(name, false)
	}
	o.console = adminconsole.New(adminconsole.Config{
		Service: consoleService{s}, Version: version, Log: s.log,
		IsOperator: func(operator string) bool { _, isKnown := o.credential(operator); return isKnown },
		Record: func(c audit.Call) error {
			if err := s.audit.Call(c).Release(); err != nil {
				return err
			}
			return nil
		},
	})
	return o, nil
}

// credential returns the SCRAM verifier of an operator's password. It returns false for a user who is not an operator,
// is disabled, or has no password.
func (o *operatorLogins) credential(user string) (scram.StoredCredentials, bool) {
	if !slices.Contains(o.service.config.Load().Admin.Users, user) {
		return scram.StoredCredentials{}, false
	}
	return o.credentials.Verifier(user)
}

// serveConsole serves an operator whose login has succeeded.
func (o *operatorLogins) serveConsole(ctx context.Context, client net.Conn, info proxy.OperatorInfo) error {
	return o.console.Serve(ctx, client, info.User)
}

// pausedDatabases returns a text for each database that is paused.
func (o *operatorLogins) pausedDatabases() (out []string) {
	for _, name := range sortedKeys(o.pauses) {
		if since := o.pauses[name].beganAt(); !since.IsZero() {
			out = append(out, fmt.Sprintf("database %s: paused since %s: new statements of agents wait until RESUME in the "+
				"admin console", name, since.UTC().Format(time.RFC3339)))
		}
	}
	return out
}
