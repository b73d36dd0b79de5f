package serve

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handler serves what a machine beside us asks: no token is needed, since the listener is on loopback. None of these paths tells
// anything of a person, a statement or a secret. The faces are served beside them, to callers with a token.
func (s *Service) handler() http.Handler {
	mux := http.NewServeMux()
	counted := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if s.sweepers != nil {
			s.sweepers.count(r.Context())
		}
		s.countAIR()
		counted.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	if s.faces != nil {
		s.faces.handle(mux)
	}
	return mux
}
