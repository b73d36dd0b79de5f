package serve

import (
	"github.com/pgconsent/pgconsent/internal/face/console"
	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/face/operations"
)

// newConsole makes the pages for people. Off loopback the listener of HTTP speaks TLS, and their cookies travel over
// nothing else.
func (s *Service) newConsole(office *operations.AdminService, v identity.Verifier) (*console.Console, error) {
	return console.New(console.Config{Service: office, Verifier: v, Secure: !s.config.Load().HTTP.Loopback(), Log: s.log})
}
