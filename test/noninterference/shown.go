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

// maskYAML has the possible masks of a column, by its kind, as YAML of the policy.
var maskYAML = map[string][]string{
	"text": {"{ mask: null }", "{ mask: { generalise: 3 } }", "{ mask: hash }"}, "digits": {
		"{ mask: null }"}, "int": {"{ mask: null }", "{ mask: { generalise: 10 } }"},
	"num": {"{ mask: null }"}, "bool": {"{ mask: null }"}, "arr": {"{ mask: null }"},
	"time": {"{ mask: null }", "{ mask: { generalise: month } }"}, "json": {
		"{ mask: null }", "{ keys: { n: number, k: string } }", "{ keys: { n: number, k: string } }"},
}

// domainDDL creates the domains that columns may have as types.
const domainDDL = ruleDomainDDL + `CREATE DOMAIN saying AS text CHECK (length(VALUE) < 1000);
CREATE DOMAIN tally AS integer CHECK (VALUE IS DISTINCT FROM -77);
`

// ruleDomainDDL creates domains for columns that rules read.
const ruleDomainDDL = `CREATE DOMAIN numbered AS bigint CHECK (VALUE > -1000000);
CREATE DOMAIN marked AS uuid;
CREATE DOMAIN word AS text CHECK (VALUE !~ '!');
CREATE DOMAIN coded AS word;
`

var ruleDomains = map[string][]string{"id": {"numbered"}, "uid": {"marked"}, "code": {"word", "coded"}}

// addRuleDomains changes the types of some columns that rules read to domains, where the policy allows domains.
func (s *schema) addRuleDomains(r *rand.Rand) {
	if r.IntN(3) > 0 {
		return
	}
	needPlainKey := map[*table]bool{} // tables whose key must not have a domain as its type
	for _, t := range s.tables {
		needPlainKey[t] = needPlainKey[t] || t.plainOnly || t.countsHiddenRows || t.consentRule != nil ||
			len(t.rule.partsOfKind("registry")) > 0 ||
			slices.ContainsFunc(t.columns, func(c column) bool { return c.isByKeyOnly })
		for _, d := range t.rule.partsOfKind("derived") {
			if d.derivation.fromOwnTable || d.derivation.byList {
				needPlainKey[d.targetTable] = true
			}
		}
	}
	for _, t := range s.tables {
		for i := range t.columns {
			c := &t.columns[i]
			if ruleDomains[c.kind] == nil || i < t.keyCount && needPlainKey[t] ||
				i >= t.keyCount && !c.isReadByRule || c.name == "who" || t.plainOnly || r.IntN(2) == 0 {
				continue
			}
			c.domain = pick(r, ruleDomains[c.kind]...)
		}
	}
}

var domainByKind = map[string]string{"text": "saying", "int": "tally"}

// sqlRules are rules in SQL. Each has a function that computes its result in the model.
var sqlRules = []struct {
	sql   string
	needs [][2]string // columns that the rule reads, with their kinds
	judge func(at row, caller map[string]string) verdict
}{
	{`state IN ('granted', 'revoked')`, [][2]string{{"state", "code"}}, func(at row, _ map[string]string) verdict {
		return verdictOnValue(at, "state", func(v string) bool { return v == "granted" || v == "revoked" })
	}},
	{`"Team" = attribute('team') OR owner = 2`, [][2]string{{"Team", "code"}, {"owner", "id"}}, func(at row, caller map[string]string) verdict {
		return max(verdictOnValue(at, "Team", func(v string) bool { return v == caller["team"] }),
			verdictOnValue(at, "owner", func(v string) bool { return v == "2" }))
	}},
	{`NOT (owner = attribute('member') AND length(state) > 4)`, [][2]string{{"state", "code"}, {"owner", "id"}},
		func(at row, caller map[string]string) verdict {
			return rowShown - min(verdictOnValue(at, "owner", func(v string) bool { return v == caller["member"] }),
				verdictOnValue(at, "state", func(v string) bool { return len(v) > 4 }))
		}},
	{`coalesce(tenant, 'red') <> 'red' AND starts_with(tenant, 'g')`, [][2]string{{"tenant", "code"}}, func(at row, _ map[string]string) verdict {
		coalesced := verdictOf(at["tenant"] != "red")
		if _, ok := at["tenant"]; !ok {
			coalesced = rowHidden
		}
		return min(coalesced, verdictOnValue(at, "tenant", func(v string) bool { return strings.HasPrefix(v, "g") }))
	}},
}

func verdictOnValue(at row, column string, holds func(string) bool) verdict {
	v, ok := at[column]
	if !ok {
		return rowUnknown
	}
	return verdictOf(holds(v))
}

// addFeatures adds random features to the schema: rules in SQL, masks, keys of JSON, domains and limits. It has its own
// random source, so that the features do not change what other random choices yield.
func (s *schema) addFeatures(r *rand.Rand) {
	for _, t := range s.tables {
		if t.rule == nil || t.linkTable() != nil || strings.HasPrefix(t.name, "link") {
			continue
		}
		if r.IntN(3) == 0 {
			n := r.IntN(len(sqlRules))
			for _, c := range sqlRules[n].needs {
				t.addRuleColumn(c[0], c[1])
			}
			part := &rule{kind: "sql", conditionIndex: n}
			if r.IntN(4) == 0 {
				part = &rule{kind: "not", parts: []*rule{part}}
			}
			if t.rule.kind == "open" || r.IntN(3) == 0 {
				t.rule = part
			} else {
				t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{t.rule, part}}
			}
		}
		if target := s.pickRecordTable(r, t); target != nil && r.IntN(3) == 0 {
			target.addRuleColumn("state", "code")
			part := &rule{kind: "shared", sharedWord: "granted", targetTable: target, targetColumn: target.columns[0].name,
				column: t.addRuleColumn("ref "+target.name, target.columns[0].kind)}
			if t.rule.kind == "open" {
				t.rule = part
			} else {
				t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{t.rule, part}}
			}
		}
		mayMask := t.writeCommands == nil && r.IntN(2) == 0
		for i := t.keyCount; i < len(t.columns); i++ {
			c := &t.columns[i]
			switch forms := maskYAML[c.kind]; {
			case c.isReadByRule:
			case c.isHidden:
				c.isByKeyOnly = r.IntN(2) == 0
			case mayMask && forms != nil && r.IntN(2) == 0:
				c.mask = pick(r, forms...)
			case domainByKind[c.kind] != "" && r.IntN(4) == 0:
				c.domain = domainByKind[c.kind]
			}
		}
	}
	s.hasLiveTeam, s.hasTeamContract = r.IntN(3) == 0, r.IntN(4) == 0
	if r.IntN(5) == 0 {
		for _, t := range s.tables {
			if t.rule != nil && t.rule.kind != "open" && t.writeCommands == nil && t.keyCount == 1 && t.columns[0].mask == "" && !strings.HasPrefix(t.name, "link") {
				t.countsHiddenRows, s.countsHiddenRows = true, true
			}
		}
	}
	s.limitsYAML = pick(r, "", "{ result_rows: 100000, rows: 50000000 }", "{ result_bytes: 1GiB }", "{ result_rows: 5 }")
}

// hideWritableColumns hides or masks some columns of tables to which agents may write.
func (s *schema) hideWritableColumns(r *rand.Rand) {
	for _, t := range s.tables {
		if t.writeCommands == nil || strings.HasPrefix(t.name, "link") || r.IntN(3) > 0 {
			continue
		}
		hasWritable := false // an updatable column is left
		for i := t.keyCount; i < len(t.columns); i++ {
			switch c := &t.columns[i]; {
			case !c.isUnmasked() || c.domain != "":
			case !hasWritable:
				hasWritable = true
			case r.IntN(3) == 0:
				c.isHidden = true
			case maskYAML[c.kind] != nil && r.IntN(4) == 0:
				c.mask = pick(r, maskYAML[c.kind]...)
			}
		}
	}
}

// pickRecordTable returns a random table of the policy, other than t, to which rows of t may refer. It returns nil if
// there is none.
func (s *schema) pickRecordTable(r *rand.Rand, t *table) *table {
	var list []*table
	for _, other := range s.tables {
		if other != t && other.keyCount == 1 && other.rule != nil && !strings.HasPrefix(other.name, "link") {
			list = append(list, other)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(r, list...)
}

// addTeamLookup makes team an attribute that is looked up in a table. It returns the SQL that creates the table, in
// which each caller has the same team as in the model.
func (s *schema) addTeamLookup() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE who (member bigint PRIMARY KEY, team text);\n")
	for i, caller := range s.callers {
		caller["member"] = fmt.Sprint(i + 1)
		fmt.Fprintf(&b, "INSERT INTO who VALUES (%s, '%s');\n", caller["member"], caller["team"])
	}
	return b.String()
}

// teamContractYAML returns a contract for three teams: one may read everything, one may not use similarity search, and
// one may read all tables except the first one.
func (s *schema) teamContractYAML() string {
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

// isExceptedByContract reports whether the contract forbids a caller to read a table.
func (s *schema) isExceptedByContract(t *table, caller map[string]string) bool {
	firstListed := slices.IndexFunc(s.tables, func(t *table) bool { return t.rule != nil })
	return s.hasTeamContract && caller["team"] == "green" && firstListed >= 0 && t == s.tables[firstListed]
}

// credentials returns the attributes in the credentials of the callers. It leaves out an attribute that is looked up in
// a table.
func (s *schema) credentials() []map[string]string {
	var out []map[string]string
	for _, caller := range s.callers {
		loginAttributes := maps.Clone(caller)
		if s.hasLiveTeam {
			delete(loginAttributes, "team")
		}
		out = append(out, loginAttributes)
	}
	return out
}

// hashKey is the key of hash masks in all databases of these tests. It is fixed so that the copy without hidden rows
// shows the same hashes.
const hashKey = "the key of every stage's hashes."

func hashValue(v string) string {
	mac := hmac.New(sha256.New, []byte(hashKey))
	mac.Write([]byte(v))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}

// setHashKeySQL returns the SQL that stores hashKey in a database. pgconsent migrate has stored a random key.
func setHashKeySQL() string {
	pad := func(mask byte) string {
		out := make([]byte, sha256.BlockSize)
		copy(out, hashKey)
		for i := range out {
			out[i] ^= mask
		}
		return hex.EncodeToString(out)
	}
	return fmt.Sprintf("UPDATE pgconsent.mask_key SET ipad = '\\x%s', opad = '\\x%s'", pad(0x36), pad(0x5c))
}

// shownValue returns the value of a column as agents see it, with its mask. ok is false if the value is NULL.
func (c column) shownValue(v string, ok bool) (string, bool) {
	switch {
	case !ok || c.mask == "":
		return v, ok
	case strings.Contains(c.mask, "null"):
		return "", false
	case strings.Contains(c.mask, "hash"):
		return hashValue(v), true
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

// otherHiddenValue returns a different value for a column, for which the mask shows the same.
func (c column) otherHiddenValue(r *rand.Rand, v string) string {
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
	masked, ok := c.shownValue(v, true)
	if !ok {
		return pick(r, "[]", "1", `"`+instance.Marker+`"`)
	}
	return strings.TrimSuffix(masked, "}") + pick(r, "}", `, "`+instance.Marker+`": 0}`, `, "l": ["`+instance.Marker+`"]}`, `, "z": {"n": 1}}`)
}

// fetchByKeyCases returns statements that read columns which the policy shows by key only. The statements name keys of
// visible or hidden rows, keys that do not exist, or no key.
func (t *table) fetchByKeyCases() []testCase {
	var out []testCase
	for _, c := range t.columns {
		if !c.isByKeyOnly {
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
