package predicate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// oddWords are unusual elements of lists of ids and contexts.
var oddWords = []string{
	"a", "work", "", " ", "NULL", "null", "a,b", `"`, `say "hi"`, `\`, `a\b`, `\"`, "{}", "{a}",
	"}{", "|", "a|b=c#d%e", "%7C", "%25", "%", "#", "=", "é 世界", "😀",
	"'", "a'b", "$1", "*", "[1,2]", "/* x */", "--", ";",
}

// A list attribute has the same elements in the database as in Go. A value that Check accepts is read by the input
// function of text[] without an error.
func TestListsRoundTrip(t *testing.T) {
	b := newTestDatabase(t)
	attribute := policy.Attribute{Name: "words", Type: "text[]"}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		var words []string
		for range random.IntN(6) {
			words = append(words, oddWords[random.IntN(len(oddWords))])
		}
		if i == 0 {
			words = oddWords
		}
		value := predicate.WriteArray(words)
		if err := attribute.Check(value); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		w := predicate.World{Sealed: true, Attributes: map[string]string{"words": value, "wor": "x", "zwords": "y"}}
		if err := b.setSeal(w); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := b.conn.QueryRow(context.Background(), "SELECT pgconsent_signed.attr('words')::pg_catalog.text[]").Scan(&got); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if !slices.Equal(got, words) {
			t.Fatalf("%s came back as %q", value, got)
		}
	}
}

// If ParseArray accepts a text, PostgreSQL reads the same list from it. NULL without quotes, in any letter case, is not
// a word; in quotes it is.
func TestListsAreParsedAsByPostgreSQL(t *testing.T) {
	tier.All(t)
	b := newTestDatabase(t)
	readCount := 0
	for _, text := range []string{
		"{}", "{a}", "{a,b}", "{NULL}", "{null,a}", "{a,Null}", "{nULL}", `{"NULL"}`, `{"null",NULL}`, "{NULLS,nul}",
		`{n\ull}`, `{"n\ull"}`, `{"a,b"}`, `{"a\"b","\\"}`, `{""}`, `{"",a}`,
		"{a,}", "{,a}", "{ a}", "{a }", "{a b}", "{{a}}", "[0:0]={a}", "{a", "a}", "{a}b", `{"a"b}`, `{a"b"}`, "", "NULL",
	} {
		got, ok := predicate.ParseArray(text)
		if !ok {
			continue
		}
		readCount++
		var want []*string
		if err := b.conn.QueryRow(t.Context(), "SELECT "+catalog.QuoteLiteral(text)+"::pg_catalog.text[]").Scan(&want); err != nil {
			t.Errorf("%s is read, and the server says %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-server +read):\n%s", text, diff)
		}
	}
	if readCount < 14 {
		t.Errorf("%d of them are read as lists", readCount)
	}
}

// FuzzParseArray tests that WriteArray and ParseArray are inverse.
func FuzzParseArray(f *testing.F) {
	for _, word := range oddWords {
		f.Add(predicate.WriteArray([]string{word, "x"}))
	}
	f.Add("{a,NULL,b}")
	f.Fuzz(func(t *testing.T, text string) {
		elements, ok := predicate.ParseArray(text)
		if !ok {
			return
		}
		var words []string
		for _, e := range elements {
			if e == nil {
				return
			}
			words = append(words, *e)
		}
		reparsed, ok := predicate.ParseArray(predicate.WriteArray(words))
		if !ok || len(reparsed) != len(words) {
			t.Fatalf("%q became %q", text, predicate.WriteArray(words))
		}
		for i, e := range reparsed {
			if *e != words[i] {
				t.Fatalf("%q became %q", text, predicate.WriteArray(words))
			}
		}
	})
}

// oddJSON are texts that applications may store in a column of grants: valid, unusual and invalid JSON.
var oddJSON = []string{
	`[]`, `["a"]`, `["b","a"]`, ` [ "a" , 1 ] `, "\t[\r\n\"a\"]\n", `["*"]`, `["A"]`, `["ab"]`, `["a "]`,
	`["\u0061"]`, `["\u0000a","a"]`, `["\ud83d\ude00"]`, `["\ud83d","a"]`,
	`["\ude00","a"]`, `["\uD83D\uDE00","a"]`, `["\ud83d\u0061","a"]`, `["a",["b"]]`, `["a",{"b":1}]`, `[["a"]]`,
	`{"a":1}`, `"a"`, `a`, ``, ` `, `null`, `[null]`, `[null,"a"]`, `true`, `[true,"a"]`,
	`[1e5,"a"]`, `[1E+05,-0.5,"a"]`, `[01,"a"]`, `[1.,"a"]`, `[.5,"a"]`, `[+1,"a"]`, `[1e400,"a"]`,
	`[1e999999999,"a"]`, `[99999999999999999999999999999999999999,"a"]`, `[-,"a"]`, `["a",]`, `[,"a"]`, `["a"`, `"a"]`,
	`["a"]]`, `[["a"]`, `["a"] x`, `["a" "b"]`, `['a']`, `["a']`, `["\x","a"]`, `["\u12"]`,
	`["\/","\b\f\n\r\t\\\"","a"]`, `["\\u0000","a"]`, "[\"a\x01\",\"a\"]", "[\"a\nb\",\"a\"]", "[\"\x7f\",\"a\"]", `{a}`, `{"a"}`, `a,b`, `*`,
	`["é","世界","😀","a"]`, `[NaN,"a"]`, `[Infinity]`, "\ufeff[\"a\"]", "[\u00a0\"a\"]", `[True,"a"]`, `[TRUE]`,
	`["a"]["b"]`, `[/*x*/"a"]`, `["\\"]`, `["\"]`, `["\\\"a"]`, `["\","a"]`, `["\\","a"]`,
	`[` + strings.Repeat(`"x",`, 3000) + `"a"]`, `["` + strings.Repeat("y", 1<<20) +
		`","a"]`, strings.Repeat("[", 5000), `["a` + strings.Repeat(`\\`, 1000) + `"]`,
}

// A grant that is JSON in a text column gives the same result as the model and raises no error, also under NOT.
func TestJSONGrants(t *testing.T) {
	tier.All(t)
	b := newTestDatabase(t)
	ctx := context.Background()
	if _, err := b.conn.Exec(ctx, "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"); err != nil {
		t.Log("no ICU: ", err)
	} else if _, err := b.conn.Exec(ctx, "CREATE TABLE loosely (id int, g text COLLATE loose)"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE TABLE grants (id int, g text)",
		"INSERT INTO grants VALUES (0, NULL)",
	} {
		if _, err := b.conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	rows := []predicate.Row{{"id": "0"}}
	add := func(text string) {
		id := len(rows)
		rows = append(rows, predicate.Row{"id": fmt.Sprint(id), "g": text})
		if _, err := b.conn.Exec(ctx, "INSERT INTO grants VALUES ($1, $2)", id, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range oddJSON {
		add(text)
	}
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{`"`, `"a"`, `"*"`, `\`, `\\`, `\u`, `\u0061`, `\u0000`, `\ud800`, `\udc00`, "[", "]",
		"[", "]", ",", ",", " ", "\n", "1", "-", ".", "e", "0", "9", "true", "null", "{", "}", ":", "a", "é"}
	for range 3000 {
		var s strings.Builder
		s.WriteString("[")
		for range random.IntN(10) {
			s.WriteString(pieces[random.IntN(len(pieces))])
		}
		s.WriteString("]")
		add(s.String())
	}
	if _, err := b.conn.Exec(ctx, "INSERT INTO loosely SELECT * FROM grants"); err != nil {
		t.Log("no ICU: ", err)
	}
	w := predicate.World{Sealed: true, Attributes: map[string]string{"user": "a", "teams": `{"b","x"}`}}
	if err := b.setSeal(w); err != nil {
		t.Fatal(err)
	}
	grant := predicate.Grant{Column: "g", Form: predicate.GrantJSON, EverybodyWord: "*",
		Grantees: []predicate.Grantee{{Attribute: "user"}, {Attribute: "teams", IsList: true}}}
	for _, node := range []predicate.Node{grant, predicate.Not{Node: grant}} {
		var want []string
		for _, row := range rows {
			if predicate.Eval(node, row, w) {
				want = append(want, row["id"])
			}
		}
		slices.Sort(want)
		if len(want) < 10 {
			t.Fatalf("the model shows %d rows", len(want))
		}
		for _, table := range []string{"grants", "loosely"} {
			if table == "loosely" && b.queryIDs("SELECT count(*) FROM loosely") != fmt.Sprint(len(rows)) {
				continue
			}
			condition := predicate.RowPolicySQL(node, &catalog.Relation{Name: catalog.Name{Schema: "public", Name: table}})
			got := b.queryIDs("SELECT id FROM " + table + " WHERE " + condition)
			if diff := cmp.Diff(want, strings.Split(got, ",")); diff != "" {
				t.Errorf("%s (-model +database): %s", table, diff)
			}
		}
	}
}

// The SQL forms and the model agree on every kind of grant, with NULLs in the list and in its place.
func TestGrantForms(t *testing.T) {
	tier.All(t)
	b := newTestDatabase(t)
	ctx := context.Background()
	if _, err := b.conn.Exec(ctx,
		`CREATE TABLE forms (id int, list text[], words varchar(40)[], doc jsonb, raw json, word text, ids uuid[], numbers int[], small smallint)`); err != nil {
		t.Fatal(err)
	}
	const id1, id2 = "6f1e0000-0000-4000-8000-000000000001", "6f1e0000-0000-4000-8000-000000000002"
	rows := []predicate.Row{
		{}, {"list": "{}", "words": "{}", "doc": "[]", "raw": "[]", "word": "[]", "ids": "{}", "numbers": "{}", "small": "1"},
		{"list": "{a}", "words": "{a}", "doc": `["a"]`, "raw": `["a"]`, "word": `["a"]`, "ids": "{" + id1 + "}", "numbers": "{1}", "small": "2"},
		{"list": "{NULL,b}", "words": "{NULL,b}", "doc": `[null,"b"]`, "raw": `[null,"b"]`, "word": `[null,"b"]`,
			"ids": "{NULL," + id2 + "}", "numbers": "{NULL,7}", "small": "7"},
		{"list": "{NULL}", "words": "{NULL}", "doc": `[null]`, "raw": `[null]`, "word": `[null]`, "ids": "{NULL}", "numbers": "{NULL}", "small": "-1"},
		{"list": "{ab,A}", "words": "{ab,A}", "doc": `["ab","A"]`, "raw": `["ab","A"]`, "word": `["ab","A"]`, "ids": "{" + id2 + "}", "numbers": "{10}"},
		{"list": "{*}", "words": "{*}", "doc": `["*"]`, "raw": `["*"]`, "word": `["*"]`},
		{"doc": `{"a":1}`, "raw": `{"a":1}`, "word": `{"a":1}`}, {"doc": `"a"`, "raw": `"a"`, "word": `"a"`}, {
			"doc": `null`, "raw": `null`, "word": `null`},
		{"doc": `[["a"]]`, "raw": `["\u0000","a"]`, "word": `["a"`}, {"doc": `[1]`, "raw": `[1e999]`, "word": `[1]`},
	}
	for i, row := range rows {
		row["id"] = fmt.Sprint(i)
		columns, values := "", ""
		for column, value := range row {
			columns += ", " + column
			values += ", " + catalog.QuoteLiteral(value)
		}
		if _, err := b.conn.Exec(ctx, "INSERT INTO forms ("+columns[2:]+") VALUES ("+values[2:]+")"); err != nil {
			t.Fatal(err)
		}
	}
	user, teams := predicate.Grantee{Attribute: "user"}, predicate.Grantee{Attribute: "teams", IsList: true}
	id, ids := predicate.Grantee{Attribute: "id"}, predicate.Grantee{Attribute: "ids", IsList: true}
	number, numbers := predicate.Grantee{Attribute: "number"}, predicate.Grantee{Attribute: "numbers", IsList: true}
	ownRule := func(column, attribute, sqlType string) predicate.Own {
		return predicate.Own{Column: column, Attribute: attribute, Type: sqlType}
	}
	var rules []predicate.Node
	for _, grantees := range [][]predicate.Grantee{{user}, {teams}, {user, teams}, {teams, user, teams}} {
		for _, everybodyWord := range []string{"", "*"} {
			rules = append(rules,
				predicate.Grant{Column: "list", Grantees: grantees, EverybodyWord: everybodyWord},
				predicate.Grant{Column: "words", NeedsCast: true, Grantees: grantees, EverybodyWord: everybodyWord},
				predicate.Grant{Column: "doc", Form: predicate.GrantJSONB, Grantees: grantees, EverybodyWord: everybodyWord}, predicate.Grant{
					Column: "raw", Form: predicate.GrantJSON, Grantees: grantees, EverybodyWord: everybodyWord},
				predicate.Grant{Column: "word", Form: predicate.GrantJSON, Grantees: grantees, EverybodyWord: everybodyWord})
		}
	}
	for _, grantees := range [][]predicate.Grantee{{id}, {ids}, {id, ids}} {
		rules = append(rules, predicate.Grant{Column: "ids", Form: predicate.GrantUUID, Grantees: grantees})
	}
	for _, grantees := range [][]predicate.Grantee{{number}, {numbers}, {number, numbers}} {
		rules = append(rules, predicate.Grant{Column: "numbers", Form: predicate.GrantInteger, NeedsCast: true, Grantees: grantees})
	}
	for _, sharedValue := range []string{"", "-1", "7"} {
		for _, sharedNull := range []bool{false, true} {
			rules = append(rules,
				predicate.Tenant{Own: ownRule("small", "number", "pg_catalog.int8"), SharedValue: sharedValue, SharedNull: sharedNull},
				predicate.Tenant{Own: ownRule("small", "numbers", "pg_catalog.int8[]"), SharedValue: sharedValue, SharedNull: sharedNull})
		}
	}
	rules = append(rules, ownRule("small", "numbers", "pg_catalog.int8[]"), ownRule("small", "nothing", "pg_catalog.int8[]"), predicate.Grant{Column: "list"},
		predicate.Tenant{Own: ownRule("small", "nothing", "pg_catalog.int8[]"), SharedValue: "7"}, predicate.Grant{
			Column: "list", Grantees: []predicate.Grantee{{Attribute: "nothing", IsList: true}}})
	relation := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "forms"}}
	attributes := map[string]string{"user": "a", "teams": `{"b","zz"}`, "id": id1, "ids": "{" + id2 + "}",
		"number": "1", "numbers": "{7,8}", "nothing": "{}"}
	for _, missing := range []string{"", "user", "teams", "id", "ids", "number", "numbers"} {
		w := predicate.World{Sealed: true, Attributes: map[string]string{}}
		for name, value := range attributes {
			if name != missing {
				w.Attributes[name] = value
			}
		}
		if err := b.setSeal(w); err != nil {
			t.Fatal(err)
		}
		for _, leaf := range rules {
			for _, node := range []predicate.Node{
				leaf, predicate.Not{Node: leaf}, predicate.Not{Node: predicate.Not{Node: leaf}},
				predicate.Any{predicate.Not{Node: leaf}, predicate.Status{Column: "small", Value: "2"}},
				predicate.Not{Node: predicate.All{leaf, predicate.Not{Node: predicate.Status{Column: "small", Value: "2"}}}},
			} {
				want := []string{}
				for _, row := range rows {
					if predicate.Eval(node, row, w) {
						want = append(want, row["id"])
					}
				}
				slices.Sort(want)
				condition := predicate.RowPolicySQL(node, relation)
				if got := b.queryIDs("SELECT id FROM forms WHERE " + condition); got != strings.Join(want, ",") {
					t.Errorf("without %q: the database says %s, the model %s: %s", missing, got, want, condition)
				}
				injected, _ := predicate.InjectedCondition(node, "forms")
				if got := b.queryIDs("SELECT id FROM forms WHERE " + injected); got != strings.Join(want, ",") {
					t.Errorf("without %q: the database says %s, the model %s: %s", missing, got, want, injected)
				}
			}
		}
	}
}
