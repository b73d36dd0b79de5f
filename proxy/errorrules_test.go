package proxy

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

var update = flag.Bool("update", false, "write the pages that show what is in code")

const errorsPage = "../docs/reference/errors.md"

// ruleTable returns the table for docs/reference/errors.md, sorted by SQLSTATE, each class after its codes. Rules about
// one code keep their order, since the first that matches counts.
func ruleTable() string {
	names := map[byte]string{'M': "message", 'D': "detail", 'H': "hint", 'P': "position"}
	sortedRules := make([]errorRule, len(errorRules))
	for i, p := range errorRules {
		sortedRules[i] = p
		if codes := strings.Fields(p.codes); len(codes) > 0 {
			slices.Sort(codes)
			sortedRules[i].codes = strings.Join(codes, " ")
		}
	}
	sortKey := func(p errorRule) string {
		first, _, _ := strings.Cut(p.codes, " ")
		return (first + "~~~~~")[:5] // a class sorts after its codes, and the rule for all others last
	}
	slices.SortStableFunc(sortedRules, func(a, b errorRule) int { return strings.Compare(sortKey(a), sortKey(b)) })
	var b strings.Builder
	b.WriteString("| SQLSTATE | passes | in its place | why |\n|---|---|---|---|\n")
	for _, p := range sortedRules {
		codes := strings.ReplaceAll(p.codes, " ", ", ")
		switch {
		case p.codes == "":
			codes = "all others"
		case len(p.codes) == 2:
			codes = "all others of class " + p.codes
		}
		if len(p.messages) > 0 {
			codes += ": “" + strings.ReplaceAll(strings.Join(p.messages, "”, “"), "*", "…") + "”"
		}
		var fields []string
		for i := range len(p.passedFields) {
			fields = append(fields, names[p.passedFields[i]])
		}
		fieldText, ruleText := strings.Join(fields, ", "), ""
		if fieldText == "" {
			text, hint := p.substitute()
			fieldText, ruleText = "nothing", text+". "+hint
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", codes, fieldText, ruleText, p.reason)
	}
	return b.String()
}

// docs/reference/errors.md has the same table of error rules as the code.
func TestErrorsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	const startMarker, endMarker = "<!-- table: written by `go test ./proxy -run Documented -update` -->\n", "<!-- end of table -->\n"
	beforeTable, fromTable, ok := strings.Cut(string(text), startMarker)
	table, afterDollar, ok2 := strings.Cut(fromTable, endMarker)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", errorsPage)
	}
	if *update {
		if err := os.WriteFile(errorsPage, []byte(beforeTable+startMarker+ruleTable()+endMarker+afterDollar), 0o644); err != nil {
			t.Fatal(err)
		}
		table = ruleTable()
	}
	if diff := cmp.Diff(table, ruleTable()); diff != "" {
		t.Errorf("%s (-page +code)\n%s", errorsPage, diff)
	}
}

// The table of error rules is consistent: every rule can match, has a reason, and relays no detail without the message.
func TestErrorRulesAreWellFormed(t *testing.T) {
	code := regexp.MustCompile(`^([0-9A-Z]{2}|[0-9A-Z]{5})$`)
	lastRuleByCode := map[string]int{}
	for i, p := range errorRules {
		for c := range strings.FieldsSeq(p.codes) {
			if !code.MatchString(c) {
				t.Errorf("%q is no SQLSTATE and no class", c)
			}
			if earlierIndex, ok := lastRuleByCode[c]; ok && errorRules[earlierIndex].messages == nil {
				t.Errorf("%s: row %d cannot be reached", c, i)
			}
			if _, ok := lastRuleByCode[c[:2]]; ok && len(c) > 2 {
				t.Errorf("%s comes after its class", c)
			}
			lastRuleByCode[c] = i
		}
		if p.reason == "" {
			t.Errorf("row %d says nothing", i)
		}
		for _, text := range p.messages { // a message must match completely, or as a prefix
			prefix, isPrefix := strings.CutSuffix(text, "*")
			for message, isOfKind := range map[string]bool{
				prefix: true, prefix + "MARKER": isPrefix, "MARKER " + prefix: false, prefix[:len(prefix)-1]: false, "": false} {
				if p.matchesMessage(message) != isOfKind {
					t.Errorf("%s: %q counts as %q: %t", p.codes, message, text, !isOfKind)
				}
			}
		}
		if strings.Trim(p.passedFields, "MDHP") != "" || p.passedFields != "" && p.passedFields[0] != 'M' {
			t.Errorf("%s: passes %q", p.codes, p.passedFields)
		}
		if (p.text == "") != (p.hint == "") || p.text != "" && p.passedFields != "" {
			t.Errorf("%s: a fixed text comes with a hint, and for messages that do not pass", p.codes)
		}
	}
	if lastRule := errorRules[len(errorRules)-1]; lastRule.codes != "" || lastRule.passedFields != "" || lastRule.messages != nil {
		t.Error("the last row is not the one for all codes")
	}
	for _, c := range []sqlstate.Code{"23999", "P0001", "XX000", "ZZZZZ", "58030", "38000", "HV000", "01000", "00000", "42P99", "2F003"} {
		if p := errorRuleFor(c, "x"); p.passedFields != "" {
			t.Errorf("%s passes %s", c, p.passedFields)
		}
	}
}

var allFields = []byte("SVCMDHPpqWstcdnFLRXx")

// TestContextsOfOthers: an error's context is the client's own only in the forms of the table. One line in another form
// means that another role's code has raised the error.
func TestContextsOfOthers(t *testing.T) {
	ownContexts := []string{"", "unnamed portal parameter $1 = '…'", "unnamed portal with parameters: $1 = '…'",
		`portal "p" parameter $2`, "extended query with parameters: $1 = '…'", "JSON data, line 1: {…", "parallel worker"}
	otherContexts := []string{
		"PL/pgSQL function f() line 3 at RAISE", `SQL function "f" statement 1`, `SQL function "f" during inlining`,
		`SQL statement "SELECT 1"`, `PL/pgSQL expression "1/n"`, "PL/Python function \"f\"", "parallel worker of f", "Parallel worker",
		" parallel worker", "a parallel worker", `while inserting index tuple (0,1) in relation "t"`,
		`while updating tuple (0,1) in relation "t"`, `while locking tuple (0,1) in relation "t"`, `while rechecking updated tuple (0,1) in relation "t"`,
		`while checking exclusion constraint on tuple (0,1) in relation "t"`, `column "c" of foreign table "t"`,
		`whole-row reference to foreign table "t"`, "processing expression at position 1 in select list", `remote SQL command: SELECT 1`,
		"COPY t, line 1, column c: 'x'", "COPY t FROM STDIN", "while scanning block 1 of relation \"public.t\"",
		"line 1 of configuration file \"x\"", "SQL/JSON data", "json data, line 1", "portal p parameter $1", "a JSON data, line 1", "anything else",
	}
	for _, copies := range []bool{false, true} {
		for _, ownContext := range ownContexts {
			for _, otherContext := range ownContexts {
				if !isOwnContext(ownContext+"\n"+otherContext, copies) {
					t.Errorf("%q, %q: another's", ownContext, otherContext)
				}
				for _, other := range otherContexts {
					isAllowed := copies && strings.HasPrefix(other, "COPY ")
					for _, context := range []string{other, other + "\n" + ownContext, ownContext + "\n" + other, ownContext + "\n" + other + "\n" + otherContext, other +
						"\n" + other} {
						if isOwnContext(context, copies) && (!isAllowed || strings.Count(context, other) > 1) {
							t.Errorf("%q counts as the client's own", context)
						}
					}
				}
			}
		}
	}
}

// However an ErrorResponse is composed, a field is relayed only as the table says. Nothing is relayed of an error that
// was raised in a function, or that is cut off.
func TestErrorFieldsPassOnlyByRule(t *testing.T) {
	var codes []string
	for _, p := range errorRules {
		codes = append(codes, strings.Fields(p.codes)...)
	}
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 3))
	v := &verdict.Verdict{Original: "SELECT 1", Rewritten: verdict.Rewritten{Position: func(p int) int { return p }}}
	const n = 200_000
	passedMessages := 0
	for range n {
		code := codes[rng.IntN(len(codes))]
		switch {
		case len(code) == 2:
			code += fmt.Sprintf("%03d", rng.IntN(1000))
		case rng.IntN(20) == 0:
			code = string([]byte{byte(rng.IntN(256)), byte(rng.IntN(256))}) + code[2:]
		case rng.IntN(20) == 0:
			code = strings.ToLower(code)
		}
		row := errorRuleFor((&errorFields{sqlstate: code}).code(), "")
		values := map[byte]string{}
		var body []byte
		for _, k := range rng.Perm(len(allFields)) {
			key := allFields[k]
			if rng.IntN(4) == 0 && key != 'C' {
				continue
			}
			value := "MARKER-" + string(key)
			switch key {
			case 'C':
				value = code
			case 'S', 'V':
				value = "ERROR"
			case 'P', 'p', 'L':
				value = "7"
			case 'W':
				value = []string{"PL/pgSQL function f() line 3 at RAISE MARKER", "JSON data, line 1: MARKER", "COPY t, line 1: MARKER",
					"JSON data, line 1: MARKER\nSQL statement \"MARKER\"", "unnamed portal parameter $1 = 'MARKER'",
					"COPY t, line 1: MARKER\nCOPY u, line 2: MARKER", "parallel worker"}[rng.IntN(7)]
			case 'M':
				value = []string{"MARKER-M", "canceling statement due to user request", `portal "MARKER-M"`,
					"", "new row violates row-level security policy MARKER-M",
					"pgconsent_rows MARKER-M", "MARKER-M denied_00"}[rng.IntN(7)]
				row = errorRuleFor((&errorFields{sqlstate: code}).code(), value)
			}
			if rng.IntN(8) == 0 && (key == 'D' || key == 'H') {
				value += " pgconsent_rows"
			}
			if rng.IntN(30) == 0 && key != 'M' && key != 'C' {
				value = strings.Map(func(r rune) rune { return r ^ rune(rng.IntN(4)) }, value)
			}
			values[key] = value
			body = append(append(append(body, key), value...), 0)
		}
		isWhole := rng.IntN(4) > 0
		if isWhole {
			body = append(body, 0)
		} else {
			body = body[:rng.IntN(len(body)+1)]
		}
		f := parseFields(body)
		copying := &verdict.Verdict{Rewritten: verdict.Rewritten{Position: v.Position, Effects: []verdict.Effect{{}, {Kind: verdict.EffectCopyIn}}}}
		queryEntries := []*queryEntry{nil, {}, newQueryEntry(v), newQueryEntry(v), newQueryEntry(copying), newQueryEntry(copying), newQueryEntry(copying)}
		index := rng.IntN(len(queryEntries))
		var e entry
		if index > 0 {
			e = queryEntries[index]
		}
		queryEntries[3].refusal = &refusal{}
		queryEntries[5].completedStatements, queryEntries[6].completedStatements = 1, 2
		copies, isRefused := index == 5, index == 3
		b, _ := f.sanitisedMessage(e)
		var got pgx3.ErrorResponse
		if err := got.Decode(b[5:]); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		isOwn := isWhole && (values['W'] == "" || !strings.Contains(values['W'], "PL/") &&
			!strings.Contains(values['W'], "SQL") &&
			(!strings.Contains(values['W'], "COPY") || copies && strings.Count("\n"+values['W'], "\nCOPY ") < 2) && isOwnContext(values['W'], copies))
		mayPass := func(field byte) bool {
			return isOwn && strings.IndexByte(row.passedFields, field) >= 0 && values['M'] != "" && !strings.Contains(values['M'], "pgconsent")
		}
		for field, value := range map[byte]string{'M': got.Message, 'D': got.Detail, 'H': got.Hint} {
			if strings.Contains(value, "MARKER") {
				passedMessages++
				if !mayPass(field) || strings.Contains(value, "pgconsent") {
					t.Fatalf("%c passed: %q\nfrom %q", field, value, body)
				}
			}
		}
		if isRefused && strings.Contains(got.Message, "denied_") {
			t.Fatalf("the refused form passed: %q", got.Message)
		}
		if got.Position != 0 && (!isOwn || !row.passes('P') || isRefused) {
			t.Fatalf("a position passed from %q", body)
		}
		if got.Where != "" && (got.Where != "COPY, line 1" || !isOwn || !strings.HasPrefix(values['W'], "COPY t, line 1: ")) {
			t.Fatalf("a context passed: %q from %q", got.Where, body)
		}
		if otherFields := got.SchemaName + got.TableName + got.ColumnName + got.DataTypeName + got.ConstraintName +
			got.File + got.Routine + got.InternalQuery; otherFields != "" || got.Line != 0 || got.InternalPosition != 0 ||
			len(got.UnknownFields) > 0 {
			t.Fatalf("%q passed from %q", otherFields, body)
		}
		if len(got.Code) != 5 || strings.Trim(got.Code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || got.Message == "" {
			t.Fatalf("SQLSTATE %q, message %q from %q", got.Code, got.Message, body)
		}
		if notice := f.notice(); notice != nil {
			if !passingNotices[f.code()] || strings.Contains(string(notice), "MARKER") && (!isWhole || values['W'] != "") {
				t.Fatalf("a notice passed: %q", notice)
			}
		}
	}
	if passedMessages < n/100 {
		t.Errorf("only %d of %d messages passed: the test proves little", passedMessages, n)
	}
}
