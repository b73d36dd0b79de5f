package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// handler returns the handler of the HTTP listener: the API, MCP and the console for callers with a token, and metrics
// and probes. On loopback, metrics and probes need no token, since they reveal nothing about a person, a statement or a
// secret. On other addresses, only operators may read metrics, and a probe returns only whether the process is ready.
func (s *Service) handler() http.Handler {
	mux := http.NewServeMux()
	isLoopback := s.config.Load().HTTP.IsLoopback()
	counts := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if _, hasToken := r.Header["Authorization"]; (!isLoopback || hasToken || isForwarded(r)) && !s.isOperator(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="pgconsent"`)
			http.Error(w, "a token of the role operator is required", http.StatusUnauthorized)
			return
		}
		s.refreshCounts(r.Context())
		counts.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.Ready(); err != nil {
			text := "not ready"
			if isLoopback && !isForwarded(r) {
				text += ": " + err.Error()
			}
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
		if isLoopback && !isForwarded(r) {
			for _, limit := range append(s.enforcer.Degraded(), s.operators.pausedDatabases()...) {
				fmt.Fprintln(w, limit)
			}
		}
	})
	if s.httpServices == nil {
		return mux
	}
	s.httpServices.addHandlers(mux)
	return s.httpServices.requireCanonicalPaths(mux)
}

// refreshCounts updates the metrics that are counted only when they are read.
func (s *Service) refreshCounts(ctx context.Context) {
	if s.sweepers != nil {
		s.sweepers.updateCounts(ctx)
	}
	s.countReminders()
}

// isForwarded reports whether another server, such as a tunnel on this machine, has forwarded the request. The client
// is then on another machine, although the connection comes from loopback.
func isForwarded(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip",
		"Cf-Connecting-Ip", "Via"}, func(name string) bool { return len(r.Header[name]) > 0 })
}

// isOperator reports whether a request has the token of an operator.
func (s *Service) isOperator(r *http.Request) bool {
	token, ok := identity.Bearer(r.Header)
	if !ok || s.httpServices == nil {
		return false
	}
	c, err := s.httpServices.verifier.Verify(r.Context(), token)
	return err == nil && c.Role == identity.Operator
}

// httpListener returns the listener of HTTP. It uses TLS if other machines can connect to it.
func (s *Service) httpListener() net.Listener {
	limitedListener := defaultLimits.limitListener(s.http)
	if s.config.Load().HTTP.IsLoopback() {
		return limitedListener
	}
	return tls.NewListener(limitedListener, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := s.certificate.Load().Clone()
			now.NextProtos = []string{"http/1.1"}
			now.ClientAuth, now.ClientCAs = tls.NoClientCert, nil // client certificates are only for agents over SQL
			return now, nil
		},
	})
}
