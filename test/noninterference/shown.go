package noninterference

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/test/instance"
)

// masks of columns, by kind, as the policy writes them.
var masks = map[string][]string{
	"text": {"{ mask: null }", "{ mask: { generalise: 3 } }", "{ mask: hash }"}, "digits": {
		"{ mask: null }"}, "int": {"{ mask: null }", "{ mask: { generalise: 10 } }"},
	"num": {"{ mask: null }"}, "bool": {"{ mask: null }"}, "arr": {"{ mask: null }"},
	"time": {"{ mask: null }", "{ mask: { generalise: month } }"}, "json": {
		"{ mask: null }", "{ keys: { n: number, k: string } }", "{ keys: { n: number, k: string } }"},
}

// domains are types over those of columns.
const domains = numbering + `CREATE DOMAIN saying AS text CHECK (length(VALUE) < 1000);
CREATE DOMAIN tally AS integer CHECK (VALUE IS DISTINCT FROM -77);
`

// numbering are domains of the columns by which rules compare.
const numbering = `CREATE DOMAIN numbered AS bigint CHECK (VALUE > -1000000);
CREATE DOMAIN marked AS uuid;
CREATE DOMAIN word AS text CHECK (VALUE !~ '!');
CREATE DOMAIN coded AS word;
`

var numberedBy = map[string][]string{"id": {"numbered"}, "uid": {"marked"}, "code": {"word", "coded"}}

// numbers gives columns by which rules compare a type of a domain, where a policy can have that.
func (s *schema) numbers(r *rand.Rand) {
	if r.IntN(3) > 0 {
		return
	}
	plain := map[*table]bool{} // whose key is of no domain
	for _, t := range s.tables {
		plain[t] = plain[t] || t.noParts || t.grouped || t.consent != nil || len(t.rule.of("registry")) > 0 ||
			slices.ContainsFunc(t.columns, func(c column) bool { return c.keyed })
		for _, d := range t.rule.of("derived") {
			if d.making.self || d.making.list {
				plain[d.target] = true
			}
		}
	}
	for _, t := range s.tables {
		for i := range t.columns {
			c := &t.columns[i]
			if numberedBy[c.kind] == nil || i < t.keys && plain[t] || i >= t.keys && !c.ruled || c.name == "who" || t.noParts || r.IntN(2) == 0 {
				continue
			}
			c.domain = pick(r, numberedBy[c.kind]...)
		}
	}
}

var domainOf = map[string]string{"text": "saying", "int": "tally"}

// conditions are rules in SQL, with what they are for the model.
var conditions = []struct {
	sql   string
	needs [][2]string // columns and their kinds
	judge func(at row, caller map[string]string) verdict
}{
	{`state IN ('granted', 'revoked')`, [][2]string{{"state", "code"}}, func(at row, _ map[string]string) verdict {
		return known(at, "state", func(v string) bool { return v == "granted" || v == "revoked" })
	}},
	{`"Team" = attribute('team') OR owner = 2`, [][2]string{{"Team", "code"}, {"owner", "id"}}, func(at row, caller map[string]string) verdict {
		return max(known(at, "Team", func(v string) bool { return v == caller["team"] }), known(at, "owner", func(v string) bool { return v == "2" }))
	}},
	{`NOT (owner = attribute('member') AND length(state) > 4)`, [][2]string{{"state", "code"}, {"owner", "id"}},
		func(at row, caller map[string]string) verdict {
			return shows - min(known(at, "owner", func(v string) bool { return v == caller["member"] }),
				known(at, "state", func(v string) bool { return len(v) > 4 }))
		}},
	{`coalesce(tenant, 'red') <> 'red' AND starts_with(tenant, 'g')`, [][2]string{{"tenant", "code"}}, func(at row, _ map[string]string) verdict {
		coalesced := decided(at["tenant"] != "red")
		if _, ok := at["tenant"]; !ok {
			coalesced = hides
		}
		return min(coalesced, known(at, "tenant", func(v string) bool { return strings.HasPrefix(v, "g") }))
	}},
}

func known(at row, column string, holds func(string) bool) verdict {
	v, ok := at[column]
	if !ok {
		return undecided
	}
	return decided(holds(v))
}

// more draws what a schema has besides, from a source of its own: rules in SQL, masks, keys of JSON, domains and limits.
func (s *schema) more(r *rand.Rand) {
	for _, t := range s.tables {
		if t.rule == nil || t.link() != nil || strings.HasPrefix(t.name, "link") {
			continue
		}
		if r.IntN(3) == 0 {
			n := r.IntN(len(conditions))
			for _, c := range conditions[n].needs {
				t.need(c[0], c[1])
			}
			part := &rule{kind: "sql", condition: n}
			if r.IntN(4) == 0 {
				part = &rule{kind: "not", parts: []*rule{part}}
			}
			if t.rule.kind == "open" || r.IntN(3) == 0 {
				t.rule = part
			} else {
				t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{t.rule, part}}
			}
		}
		if target := s.record(r, t); target != nil && r.IntN(3) == 0 {
			target.need("state", "code")
			part := &rule{kind: "shared", word: "granted", target: target, targetColumn: target.columns[0].name,
				column: t.need("ref "+target.name, target.columns[0].kind)}
			if t.rule.kind == "open" {
				t.rule = part
			} else {
				t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{t.rule, part}}
			}
		}
		masked := t.commands == nil && r.IntN(2) == 0
		for i := t.keys; i < len(t.columns); i++ {
			c := &t.columns[i]
			switch forms := masks[c.kind]; {
			case c.ruled:
			case c.secret:
				c.keyed = r.IntN(2) == 0
			case masked && forms != nil && r.IntN(2) == 0:
				c.mask = pick(r, forms...)
			case domainOf[c.kind] != "" && r.IntN(4) == 0:
				c.domain = domainOf[c.kind]
			}
		}
	}
	s.live, s.stages = r.IntN(3) == 0, r.IntN(4) == 0
	if r.IntN(5) == 0 {
		for _, t := range s.tables {
			if t.rule != nil && t.rule.kind != "open" && t.commands == nil && t.keys == 1 && t.columns[0].mask == "" && !strings.HasPrefix(t.name, "link") {
				t.grouped, s.grouped = true, true
			}
		}
	}
	s.limits = pick(r, "", "{ result_rows: 100000, rows: 50000000 }", "{ result_bytes: 1GiB }", "{ result_rows: 5 }")
}

// narrowWritten hides and masks columns of tables that agents write.
func (s *schema) narrowWritten(r *rand.Rand) {
	for _, t := range s.tables {
		if t.commands == nil || strings.HasPrefix(t.name, "link") || r.IntN(3) > 0 {
			continue
		}
		left := false // a column that they may change
		for i := t.keys; i < len(t.columns); i++ {
			switch c := &t.columns[i]; {
			case !c.asIs() || c.domain != "":
			case !left:
				left = true
			case r.IntN(3) == 0:
				c.secret = true
			case masks[c.kind] != nil && r.IntN(4) == 0:
				c.mask = pick(r, masks[c.kind]...)
			}
		}
	}
}

// record is a listed table, other than t, whose rows t may point to, or nil.
func (s *schema) record(r *rand.Rand, t *table) *table {
	var list []*table
	for _, other := range s.tables {
		if other != t && other.keys == 1 && other.rule != nil && !strings.HasPrefix(other.name, "link") {
			list = append(list, other)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(r, list...)
}

// lookUp makes the attribute team one that is looked up in a table, which tells for each member the same as the caller
// has it.
func (s *schema) lookUp() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE who (member bigint PRIMARY KEY, team text);\n")
	for i, caller := range s.callers {
		caller["member"] = fmt.Sprint(i + 1)
		fmt.Fprintf(&b, "INSERT INTO who VALUES (%s, '%s');\n", caller["member"], caller["team"])
	}
	return b.String()
}

// contract lets one team retrieve everything, another no likeness, and the third all but one table.
func (s *schema) contract() string {
	var b strings.Builder
	n := 0
	b.WriteString("objects:\n")
	for _, t := range s.tables {
		if t.rule != nil {
			fmt.Fprintf(&b, "  o%d: { table: %q, metadata: [%q] }\n", n, t.name, t.columns[0].name)
			n++
		}
	}
	b.WriteString("contracts:\n  c:\n    by: team\n    values:\n      red: everything\n      blue: { allow: { " +
		"any: [metadata, structured, write] } }\n      green: { allow: everything, except: [o0] }\n")
	return b.String()
}

// excepted tells whether the contract lets a caller retrieve nothing of a table.
func (s *schema) excepted(t *table, caller map[string]string) bool {
	first := slices.IndexFunc(s.tables, func(t *table) bool { return t.rule != nil })
	return s.stages && caller["team"] == "green" && first >= 0 && t == s.tables[first]
}

// credentials are what the callers log in with.
func (s *schema) credentials() []map[string]string {
	var out []map[string]string
	for _, caller := range s.callers {
		given := maps.Clone(caller)
		if s.live {
			delete(given, "team")
		}
		out = append(out, given)
	}
	return out
}

// hashKey is the key of hashes in every database, so that a copy without hidden rows has the same.
const hashKey = "the key of every stage's hashes."

func hashed(v string) string {
	mac := hmac.New(sha256.New, []byte(hashKey))
	mac.Write([]byte(v))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}

// sameHashes gives a database that key, as migrate would make it.
func sameHashes() string {
	pad := func(with byte) string {
		out := make([]byte, sha256.BlockSize)
		copy(out, hashKey)
		for i := range out {
			out[i] ^= with
		}
		return hex.EncodeToString(out)
	}
	return fmt.Sprintf("UPDATE pgconsent.mask_key SET ipad = '\\x%s', opad = '\\x%s'", pad(0x36), pad(0x5c))
}

// seen is the value of a column as the policy shows it.
func (c column) seen(v string, ok bool) (string, bool) {
	switch {
	case !ok || c.mask == "":
		return v, ok
	case strings.Contains(c.mask, "null"):
		return "", false
	case strings.Contains(c.mask, "hash"):
		return hashed(v), true
	case strings.Contains(c.mask, "generalise: 3"):
		if n := utf8.RuneCountInString(v); n > 3 {
			v = string([]rune(v)[:3])
		}
		return v, true
	case strings.Contains(c.mask, "generalise: 10"):
		n, _ := strconv.Atoi(v)
		return fmt.Sprint(n / 10 * 10), true // visible numbers are positive
	case strings.Contains(c.mask, "month"):
		return v[:8] + "01 00:00:00+00", true
	}
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(v))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil || object == nil {
		return "", false
	}
	out := map[string]any{"n": nil, "k": nil}
	if n, ok := object["n"].(json.Number); ok {
		out["n"] = n
	}
	if k, ok := object["k"].(string); ok {
		out["k"] = k
	}
	b, _ := json.Marshal(out)
	return string(b), true
}

// behind changes a value to another one that the policy shows alike.
func (c column) behind(r *rand.Rand, v string) string {
	switch {
	case strings.Contains(c.mask, "hash"):
		return v
	case strings.Contains(c.mask, "generalise: 3"):
		return string([]rune(v)[:min(3, utf8.RuneCountInString(v))]) +
			map[bool]string{true: pick(r, "", instance.Marker, "1e400", "\\"), false: ""}[utf8.RuneCountInString(v) >= 3]
	case strings.Contains(c.mask, "generalise: 10"):
		n, _ := strconv.Atoi(v)
		return fmt.Sprint(n/10*10 + r.IntN(10))
	case strings.Contains(c.mask, "month"):
		return fmt.Sprintf("%s%02d 05:30:00+00", v[:8], 1+r.IntN(28))
	}
	seen, ok := c.seen(v, true)
	if !ok {
		return pick(r, "[]", "1", `"`+instance.Marker+`"`)
	}
	return strings.TrimSuffix(seen, "}") + pick(r, "}", `, "`+instance.Marker+`": 0}`, `, "l": ["`+instance.Marker+`"]}`, `, "z": {"n": 1}}`)
}

// fetches ask for columns that exist by key only, with keys of rows that are there, hidden or not, and without.
func (t *table) fetches() []testCase {
	var out []testCase
	for _, c := range t.columns {
		if !c.keyed {
			continue
		}
		for n := range rowsPerTable + 2 {
			var key []string
			for i, k := range t.key() {
				value := keyValue(k.kind, n)
				if i > 0 {
					value = fmt.Sprint(n % 3)
				}
				key = append(key, k.sql()+" = '"+value+"'")
			}
			where := " FROM " + t.sql() + " WHERE " + strings.Join(key, " AND ")
			out = append(out, testCase{messages: []string{"SELECT " + c.sql() + where}, extended: n%2 == 0})
			switch n % 4 {
			case 0:
				out = append(out, testCase{messages: []string{"SELECT 1" + where + " AND " + c.sql() + "::text::int > 0"}})
			case 1:
				out = append(out, testCase{messages: []string{"SELECT count(" + c.sql() + ")" + where + " OR true"}})
			case 2:
				out = append(out, testCase{messages: []string{"PREPARE f AS SELECT max(" + c.sql() + "::text)" + where, "EXECUTE f", "DEALLOCATE f"}})
			}
		}
	}
	return out
}
