package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// alike asks, for each operation of the document that takes somebody or something by its id, about one that there is and that is not the caller's to
// know of, and about one that there is not. The answers are the same bytes, headers too: but for the date, and for the id itself where it is said back.
func (f *httpFace) alike() {
	owner, err := pgx.Connect(f.t.Context(), f.run.Access.OwnerDSN)
	if err != nil {
		f.t.Fatal(err)
	}
	defer owner.Close(context.Background())
	var memory string // of ash, about somebody, granted to nobody
	if err := owner.QueryRow(f.t.Context(), "SELECT id FROM episodes WHERE stack_id = 'ash' AND access_grants = '[]' ORDER BY id LIMIT 1").Scan(&memory); err != nil {
		f.t.Fatal(err)
	}
	const person = "human:student_123" // nobody in the stores of the caller
	f.want(f.call("subject:"+person, "POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}), 200, "")
	f.want(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": person, "channel_id": "alike", "channel_type": "api"}), 200, "")
	absent := func(id string) string { return id[:len(id)-3] + "~zz" } // as long, and of the same kind
	// By the member's name: whom or what it names.
	named := map[string]string{"user_id": person, "subject": person, "grantor": person, "id": memory, "source": memory}
	fixed := map[string]any{"channel_id": "alike"}
	// Who has nothing to do with either.
	callers := []string{"subject:si:mallory", "agent:mallory", "operator"}

	m := &maker{httpFace: f, rnd: rand.New(rand.NewPCG(9, 9))}
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	ask := func(who, method, path string, q url.Values, body map[string]any) (int, string) {
		f.t.Helper()
		target := f.run.Access.HTTP + path
		if len(q) > 0 {
			target += "?" + q.Encode()
		}
		var text []byte
		if body != nil {
			if text, err = json.Marshal(body); err != nil {
				f.t.Fatal(err)
			}
		}
		for range 100 {
			r, err := http.NewRequest(method, target, bytes.NewReader(text))
			if err != nil {
				f.t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+f.token(who))
			if body != nil {
				r.Header.Set("Content-Type", "application/json")
			}
			response, err := client.Do(r)
			if err != nil {
				f.t.Fatal(err)
			}
			var b bytes.Buffer
			_, _ = b.ReadFrom(response.Body)
			response.Body.Close()
			if response.StatusCode == http.StatusTooManyRequests {
				time.Sleep(time.Second)
				continue
			}
			response.Header.Del("Date")
			var headers strings.Builder
			_ = response.Header.Write(&headers)
			return response.StatusCode, headers.String() + b.String()
		}
		return 0, ""
	}
	asked := 0
	paths := f.document["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			o := methods[method].(map[string]any)
			schema := m.schema(dig(o, "requestBody", "content", "application/json", "schema"))
			parameters, _ := o["parameters"].([]any)
			in := map[string]bool{} // the members and parameters, and whether they are in the body
			for _, p := range parameters {
				if dig(p, "in") == "query" {
					in[dig(p, "name").(string)] = false
				}
			}
			properties, _ := schema["properties"].(map[string]any)
			for name := range properties {
				in[name] = true
			}
			for _, name := range slices.Sorted(maps.Keys(in)) {
				id, ok := named[name]
				if !ok {
					continue
				}
				asked++
				var body map[string]any
				if schema != nil {
					body = map[string]any{}
					required, _ := schema["required"].([]any)
					for _, member := range required {
						body[member.(string)] = m.valid(m.schema(properties[member.(string)]))
					}
				}
				q := url.Values{}
				for other, inBody := range in {
					if value, ok := fixed[other]; ok && inBody {
						body[other] = value
					} else if ok {
						q.Set(other, value.(string))
					}
				}
				for _, who := range callers {
					statuses, texts := [2]int{}, [2]string{}
					for i, value := range []string{id, absent(id)} {
						if in[name] {
							body[name] = value
						} else {
							q.Set(name, value)
						}
						status, text := ask(who, strings.ToUpper(method), path, q, body)
						statuses[i], texts[i] = status, strings.ReplaceAll(text, value, "ID")
					}
					if statuses[0] != statuses[1] || texts[0] != texts[1] {
						f.t.Errorf("%s %s as %s tells which %s there is: %d %s\n%d %s", method, path, who, name, statuses[0], texts[0], statuses[1], texts[1])
					}
				}
			}
		}
	}
	if asked < 20 {
		f.t.Errorf("only %d members of operations name somebody", asked)
	}
}
