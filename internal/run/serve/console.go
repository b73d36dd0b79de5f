package serve

import (
	"github.com/pgconsent/pgconsent/internal/face/console"
	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/face/operations"
)

// newConsole makes the pages for people. Outside of loopback the HTTP listener speaks TLS, and their cookies are sent over
// TLS only.
func (s *Service) newConsole(service *operations.AdminService, v identity.Verifier) (*console.Console, error) {
	return console.New(console.Config{Service: service, Verifier: v, Secure: !s.config.Load().HTTP.Loopback(), Log: s.log})
}
