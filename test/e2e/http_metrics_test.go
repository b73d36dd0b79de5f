package e2e

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// checkMetrics tests who gets /metrics: its numbers count people whose rows no agent sees. Local callers without a
// token and operators get it. Other tokens do not, nor do callers through another server on this machine, as through a
// tunnel.
func (f *httpAPI) checkMetrics() {
	const person = "human:mira"
	callers := []struct {
		user, header string
		isAllowed    bool
	}{
		{"", "", true}, {"operator", "", true}, {"operator", "X-Forwarded-For", true},
		{"agent:mallory", "", false}, {"subject:" + person, "", false}, {"admin", "", false}, {
			"", "X-Forwarded-For", false}, {"", "Forwarded", false}, {"", "X-Real-Ip", false}, {"", "Via", false},
		{"agent:mallory", "Cf-Connecting-Ip", false},
	}
	readMetrics := func() (texts []string) {
		for _, c := range callers {
			request, err := http.NewRequest("GET", f.demoRun.Access.HTTP+"/metrics", nil)
			if err != nil {
				f.t.Fatal(err)
			}
			if c.user != "" {
				request.Header.Set("Authorization", "Bearer "+f.token(c.user))
			}
			if c.header != "" {
				request.Header.Set(c.header, "203.0.113.7")
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				f.t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				f.t.Fatal(err)
			}
			line := ""
			for l := range strings.Lines(string(text)) {
				if strings.HasPrefix(l, "consent_active_users ") {
					line = l
				}
			}
			if want := map[bool]int{true: 200, false: 401}[c.isAllowed]; response.StatusCode != want || (line != "") != c.isAllowed {
				f.t.Errorf("/metrics for %q by %q: %d %q, want %d", c.user, c.header, response.StatusCode, line, want)
			}
			texts = append(texts, line)
		}
		return texts
	}
	before := readMetrics()
	f.checkStatus(f.call("subject:"+person, "POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}), 200, "")
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(200 * time.Millisecond) { // the numbers are updated every few seconds
		if after := readMetrics(); after[0] != before[0] && after[1] != before[1] || f.t.Failed() {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatal("a consent is not counted")
		}
	}
}
