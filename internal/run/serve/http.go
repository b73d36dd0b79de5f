package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pgconsent/pgconsent/internal/face/identity"
)

// handler serves the faces to callers with a token, and what a machine beside us asks: that needs none on loopback, and
// tells nothing of a person, a statement or a secret. From elsewhere the metrics are for operators, and a probe learns
// yes or no.
func (s *Service) handler() http.Handler {
	mux := http.NewServeMux()
	beside := s.config.Load().HTTP.Loopback()
	counted := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if _, shown := r.Header["Authorization"]; (!beside || shown || handedOn(r)) && !s.operator(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="pgconsent"`)
			http.Error(w, "a token of the role operator is required", http.StatusUnauthorized)
			return
		}
		if s.sweepers != nil {
			s.sweepers.count(r.Context())
		}
		s.countAIR()
		counted.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.Ready(); err != nil {
			what := "not ready"
			if beside && !handedOn(r) {
				what += ": " + err.Error()
			}
			http.Error(w, what, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
		if beside && !handedOn(r) {
			for _, what := range s.enforcer.Degraded() {
				fmt.Fprintln(w, what)
			}
		}
	})
	if s.faces == nil {
		return mux
	}
	s.faces.handle(mux)
	return s.faces.plainly(mux)
}

// handedOn tells whether another server says that it hands a request on, as a tunnel does that ends beside us: then it
// comes from somewhere else.
func handedOn(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip",
		"Cf-Connecting-Ip", "Via"}, func(name string) bool { return len(r.Header[name]) > 0 })
}

// operator tells whether a request shows the token of one.
func (s *Service) operator(r *http.Request) bool {
	token, ok := identity.Bearer(r.Header)
	if !ok || s.faces == nil {
		return false
	}
	c, err := s.faces.verifier.Verify(r.Context(), token)
	return err == nil && c.Role == identity.Operator
}

// secured is the listener of HTTP: with TLS where others than this machine can reach it.
func (s *Service) secured() net.Listener {
	few := usualLimits.few(s.http)
	if s.config.Load().HTTP.Loopback() {
		return few
	}
	return tls.NewListener(few, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := s.certificate.Load().Clone()
			now.NextProtos = []string{"http/1.1"}
			return now, nil
		},
	})
}
