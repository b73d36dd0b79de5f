package serve

import (
	"github.com/pgconsent/pgconsent/internal/services/console"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
)

// newConsole makes the web console. If the HTTP listener is not on loopback, it uses TLS, and browsers send the
// console's cookies over TLS only.
func (s *Service) newConsole(service *operations.AdminService, v identity.Verifier) (*console.Console, error) {
	return console.New(console.Config{Service: service, Verifier: v, ServedOverTLS: !s.config.Load().HTTP.IsLoopback(),
		Log: s.log})
}
