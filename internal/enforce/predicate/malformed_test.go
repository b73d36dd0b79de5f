package predicate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// A node with missing fields hides every row, in every form and under Not. A valid node that reads other tables does so
// under Not. Policies do not compile to such nodes; this is a second safeguard.
func TestInvalidNodesHideRows(t *testing.T) {
	relation := func(name string, key ...string) *catalog.Relation {
		return &catalog.Relation{Name: catalog.Name{Schema: "public", Name: name}, Kind: catalog.Table, PrimaryKey: key, Columns: []catalog.Column{
			{Name: "id", Type: "integer", TypeOID: 23}, {Name: "other", Type: "integer", TypeOID: 23}, {
				Name: "ids", Type: "bigint[]", TypeOID: 1016}, {Name: "status", Type: "text", TypeOID: 25}}}
	}
	items, others, keyless := relation("items", "id"), relation("others", "id"), relation("keyless")
	step := func(to *catalog.Relation) predicate.Step {
		return predicate.Step{Relation: to, Column: "id", FromColumn: "other"}
	}
	originFrom := func(to *catalog.Relation) predicate.Origin {
		return predicate.Origin{Steps: []predicate.Step{step(to)}}
	}
	list := predicate.List{Column: "ids", Form: predicate.GrantInteger}
	record := predicate.Record{Relation: others, GrantorColumn: "id"}
	for name, node := range map[string]predicate.Node{
		"nothing":                 nil,
		"no parts of all":         predicate.All{},
		"no parts of any":         predicate.Any{},
		"a consent without steps": predicate.Consent{StatusColumn: "status", AgreedStatus: "granted"},
		"derived of nothing":      predicate.Derived{Rows: predicate.Open{}},
		"derived of no table":     predicate.Derived{Origin: predicate.Origin{List: list, Key: "id"}, Rows: predicate.Open{}},
		"derived by no key": predicate.Derived{Origin: predicate.Origin{List: list, Source: others},
			Rows: predicate.Open{}},
		"derived without rows": predicate.Derived{Origin: originFrom(others)},
		"derived again of nothing": predicate.Derived{Origin: originFrom(others), Rows: predicate.Open{},
			SourceOrigins: []predicate.Origin{{}}},
		"derived again of another": predicate.Derived{Origin: originFrom(others), Rows: predicate.Open{},
			SourceOrigins: []predicate.Origin{originFrom(items)}},
		"derived again without a key": predicate.Derived{Origin: originFrom(keyless), Rows: predicate.Open{},
			SourceOrigins: []predicate.Origin{originFrom(keyless)}},
		"a record of nobody":        predicate.RecordedConsent{Record: record},
		"a record that is nowhere":  predicate.RecordedConsent{Subject: "other"},
		"the registry about nobody": predicate.RegistryConsent{Tables: []string{"items"}},
		"a reference of no columns": predicate.Reference{Relation: others, Rows: predicate.Open{}},
		"a reference to no column":  predicate.Reference{Relation: others, FromColumns: []string{"other"}, Rows: predicate.Open{}},
		"a reference to columns beside": predicate.Reference{
			Relation: others, FromColumns: []string{"other"}, Columns: []string{"id", "other"}, Rows: predicate.Open{}},
	} {
		checkHides(t, name, node, items, "false")
		checkHides(t, "not "+name, predicate.Not{Node: node}, items, "NOT (true)")
	}
	for name, node := range map[string]predicate.Node{
		"a consent":    predicate.Consent{Steps: []predicate.Step{step(others)}, StatusColumn: "status", AgreedStatus: "granted"},
		"visible":      predicate.Visible{Relation: others, Column: "id", FromColumn: "other", Rows: predicate.Open{}},
		"derived":      predicate.Derived{Origin: originFrom(others), Rows: predicate.Open{}},
		"a record":     predicate.RecordedConsent{Subject: "other", Record: record},
		"the registry": predicate.RegistryConsent{Subjects: predicate.RecordedConsent{Subject: "other"}, Tables: []string{"items"}},
		"a reference":  predicate.Reference{Relation: others, FromColumns: []string{"other"}, Columns: []string{"id"}, Rows: predicate.Open{}},
	} {
		checkHides(t, "not "+name, predicate.Not{Node: node}, items, "NOT (true)")
		if sql := predicate.CheckSQL(node, items); strings.HasSuffix(sql, "false") {
			t.Errorf("%s hides everything: %s", name, sql)
		}
	}
	for _, o := range []predicate.Origin{{}, {List: list, Source: others}, {List: list, Key: "id"}} {
		if _, condition := o.DerivedRowsSQL(items, "i", "o"); condition != "false" || o.DerivedFromCondition("i", "o") != "false" {
			t.Errorf("%+v: made where %s, %s", o, condition, o.DerivedFromCondition("i", "o"))
		}
	}
	elementRecord := record
	elementRecord.ElementColumn = "id"
	for _, n := range []predicate.RecordedConsent{{Record: record}, {Subject: "other"}, {Subject: "other", Record: elementRecord}} {
		if sql := predicate.SubjectsQuery(n, "t", nil); sql != "" {
			t.Errorf("%+v: who is asked: %s", n, sql)
		}
	}
	if sql := predicate.RegistryQuery(predicate.RegistryConsent{}, "t", nil); sql != "" {
		t.Errorf("who is asked: %s", sql)
	}
}

func checkHides(t *testing.T, name string, node predicate.Node, relation *catalog.Relation, want string) {
	t.Helper()
	injectedSQL, _ := predicate.InjectedCondition(node, "r")
	for form, sql := range map[string]string{
		"policy": predicate.RowPolicySQL(node, relation), "check": predicate.CheckSQL(node, relation), "new": predicate.NewRowCondition(node),
		"inject": strings.TrimSuffix(strings.TrimPrefix(injectedSQL, "(CASE WHEN "), " THEN true END) IS NOT NULL"),
		"direct": strings.TrimSuffix(strings.TrimPrefix(predicate.DirectCondition(node, "t", nil), "("), ") IS TRUE"),
	} {
		if sql != want && !strings.HasSuffix(sql, " AND "+want) {
			t.Errorf("%s, %s: %s", name, form, sql)
		}
	}
	if predicate.Eval(node, predicate.Row{"id": "1", "other": "1"},
		predicate.World{Tables: map[catalog.Name][]predicate.Row{{Schema: "public", Name: "others"}: {{"id": "1"}}}}) {
		t.Errorf("%s: the model shows a row", name)
	}
}

// ReplaceByConstants replaces calls for an attribute, but not the same text inside quotes, which may be a constant of
// the policy.
func TestConstantsReplaceNothingInQuotes(t *testing.T) {
	const attributeCall = "pgconsent_signed.attr('user')"
	for sql, want := range map[string]string{
		attributeCall + " = " + attributeCall:         "'it''s'::pg_catalog.text = 'it''s'::pg_catalog.text",
		`"` + attributeCall + `" = ` + attributeCall:  `"` + attributeCall + `" = 'it''s'::pg_catalog.text`,
		`'pgconsent_signed.attr(''user'')'`:           `'pgconsent_signed.attr(''user'')'`,
		`'"' = ` + attributeCall + ` OR "'" = 1`:      `'"' = 'it''s'::pg_catalog.text OR "'" = 1`,
		"pgconsent_signed.attr('user":                 "pgconsent_signed.attr('user",
		"pgconsent_signed.attr('nobody')":             "NULL::pg_catalog.text",
		fmt.Sprintf("'%s' = %s", `x"`, attributeCall): `'x"' = 'it''s'::pg_catalog.text`,
	} {
		if got := predicate.ReplaceByConstants(sql, map[string]string{"user": "it's"}); got != want {
			t.Errorf("%s becomes %s, not %s", sql, got, want)
		}
	}
}
