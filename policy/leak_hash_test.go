package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A value that agents write is not shown as a hash elsewhere, because they could compare the other hashes with guesses.
func TestHashesOfAgentsValues(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	columns := func(extraColumns ...catalog.Column) []catalog.Column {
		return append([]catalog.Column{{Name: "id", Type: "uuid", Default: "gen_random_uuid()"},
			{Name: "owner", Type: "uuid"}, {Name: "code", Type: "text"}, {Name: "note", Type: "text"}}, extraColumns...)
	}
	key := func(name string) []catalog.Key {
		return []catalog.Key{{Name: name + "_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}},
			{Name: name + "_code", Columns: []string{"owner", "code"}, EqualColumns: []string{"owner", "code"}}}
	}
	foreignKeys := func(target string, action catalog.Action) []catalog.ForeignKey {
		return []catalog.ForeignKey{{Columns: []string{"owner", "code"}, Target: public(target),
			TargetColumns: []string{"owner", "code"}, OnUpdate: action, OnDelete: catalog.NoAction}}
	}
	compile := func(action catalog.Action, tables string) (*policy.Policy, error) {
		doc, err := policy.Parse("p.yaml",
			[]byte("version: 1\nattributes: { user: { type: uuid, source: credential }, word: { type: text, source: credential } }\ntables:\n"+tables))
		if err != nil {
			return nil, err
		}
		return policy.Compile(doc, catalog.NewSnapshot(catalog.Spec{
			Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{
				{Name: public("t"), Kind: catalog.Table, PrimaryKey: []string{"id"}, UniqueKeys: key("t"),
					Columns: columns(catalog.Column{Name: "made", Type: "text", Generated: true, ComputedFrom: []string{"code"}})},
				{Name: public("near"), Kind: catalog.Table, PrimaryKey: []string{"id"}, UniqueKeys: key("near"), Columns: columns(), ForeignKeys: foreignKeys("t", action)},
				{Name: public("far"), Kind: catalog.Table, PrimaryKey: []string{"id"}, Columns: columns(), ForeignKeys: foreignKeys("near", action)},
			}}))
	}
	const ownRule = "{ rows: [ { own: { column: owner, is: user } } ]"
	const computed, hashed = ", columns: { id: allow, owner: allow, code: allow, note: allow, made: { mask: hash } }",
		", columns: { id: allow, owner: allow, code: { mask: hash }, note: allow }"
	tablesOf := func(t, nearTable, farTable string) string {
		return "  t: " + ownRule + t + " }\n  near: " + ownRule + nearTable + " }\n  far: " + ownRule + farTable + " }\n"
	}
	for _, c := range []struct {
		name                   string
		action                 catalog.Action
		t, nearTable, farTable string
		insertable, update     string // the columns of t that agents may write
		want                   string
	}{
		{"computed", catalog.NoAction, computed +
			", write: { commands: [insert, update], columns: [code, note], stamp: { owner: { attribute: user } }", "", "", "owner note", "note",
			"agents cannot write public.t.code: public.t.made gets what is written there and comes out as a hash"},
		{"computed, and masked with null", catalog.NoAction,
			strings.Replace(computed, "hash", "null", 1) +
				", write: { commands: [insert], columns: [code, note], stamp: { owner: { attribute: user } }", "", "", "owner code note", "", ""},
		{"computed, a stamp unless the row says otherwise", catalog.NoAction,
			computed + ", write: { commands: [insert, update], columns: [note], stamp: { code: { value: x, " +
				"unless: [ status: { column: note, is: y } ] } }", "", "", "", "note",
			"agents cannot insert into public.t: public.t.made gets"},
		{"computed, a stamp of the credential", catalog.NoAction,
			computed + ", write: { commands: [insert, update], columns: [note], stamp: { code: { attribute: word } }", "", "", "code note", "note", ""},
		{"what follows", catalog.Cascade,
			", write: { commands: [insert, update], columns: [code, note], stamp: { owner: { attribute: user } }", hashed, "", "owner code note", "note",
			"agents cannot update public.t.code: public.near.code gets what is written there and comes out as a hash"},
		{"what follows, and nothing else", catalog.Cascade,
			", write: { commands: [insert, update], columns: [code], stamp: { owner: { attribute: user } }", hashed, "", "owner code", "",
			"agents cannot update public.t.code: public.near.code gets"},
		{"what follows what follows", catalog.Cascade,
			", write: { commands: [insert, update], columns: [code, note], stamp: { owner: { attribute: user } }", "", hashed, "owner code note", "note",
			"agents cannot update public.t.code: public.far.code gets"},
		{"what does not follow", catalog.NoAction,
			", write: { commands: [insert, update], columns: [code, note], stamp: { owner: { attribute: user } }, " +
				"accept: [references]", hashed, "", "owner code note", "code note", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(writeRule, insertable, update, want string) {
				p, err := compile(c.action, tablesOf(writeRule, c.nearTable, c.farTable))
				if err != nil {
					t.Fatal(err)
				}
				for _, table := range p.Tables() {
					if w := table.Write; w != nil {
						inserts := ""
						if w.Insert {
							inserts = strings.Join(w.Insertable, " ")
						}
						if updates := strings.Join(w.Updatable, " "); inserts != insertable || updates != update {
							t.Errorf("agents insert %q and update %q, want %q and %q", inserts, updates, insertable, update)
						}
					}
				}
				if failure := errorOrWarnings(p, nil); want == "" && failure != nil ||
					want != "" && (failure == nil || !strings.Contains(failure.Error(), want) || !strings.Contains(failure.Error(), "accept: [values]")) {
					t.Errorf("left out: %v, want %s", failure, want)
				}
			}
			check(c.t+" }", c.insertable, c.update, c.want)
			p, err := compile(c.action, tablesOf(strings.TrimSuffix(c.t,
				", accept: [references]")+", accept: [values, conflicts, references] }", c.nearTable, c.farTable))
			if failure := errorOrWarnings(p, err); failure != nil {
				t.Errorf("accepted: %v", failure)
			}
		})
	}
}
