package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A virtual generated column (PostgreSQL 18) is computed when it is read, and may fail for some row. So no rule may
// read it, and it must be computed from visible columns only.
func TestVirtualColumns(t *testing.T) {
	name := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	columns := []catalog.Column{
		{Name: "id", Type: "uuid", TypeOID: 2950}, {Name: "raw", Type: "text", TypeOID: 25}, {
			Name: "secret", Type: "text", TypeOID: 25}, {Name: "consented", Type: "boolean", TypeOID: 16},
		{Name: "owner", Type: "uuid", TypeOID: 2950, Generated: true, Virtual: true, ComputedFrom: []string{"raw"}},
		{Name: "owners", Type: "uuid[]", TypeOID: 2951, Generated: true, Virtual: true, ComputedFrom: []string{"raw"}},
		{Name: "state", Type: "text", TypeOID: 25, Generated: true, Virtual: true, ComputedFrom: []string{"raw", "secret"}},
		{Name: "kept", Type: "text", TypeOID: 25, Generated: true, ComputedFrom: []string{"raw", "secret"}},
	}
	snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 180000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{
		{Name: name("lots"), Kind: catalog.Table, PrimaryKey: []string{"id"},
			BTrees: []catalog.BTree{{Columns: []string{"id"}, IsUnique: true}}, Columns: columns},
		{Name: name("files"), Kind: catalog.ForeignTable, Columns: columns},
		{Name: name("shelves"), Kind: catalog.Table, PrimaryKey: []string{"id"},
			Columns: []catalog.Column{{Name: "id", Type: "uuid", TypeOID: 2950}, {Name: "lot", Type: "uuid", TypeOID: 2950}}},
	}})
	for tables, refused := range map[string]string{
		"lots: { rows: [ own: { column: id, is: me } ] }": "",
		"lots: { rows: [ own: { column: id, is: me } ], columns: { id: allow, raw: allow, owner: allow, kept: " +
			"allow } }": "",
		"lots: { rows: [ own: { column: id, is: me } ], columns: { id: allow, raw: allow, owner: { mask: null } } }": "",
		"lots: { rows: [ own: { column: owner, is: me } ] }":                                                         "public.lots.owner is computed as it is read",
		"lots: { rows: [ grant: { column: owners, to: me } ] }":                                                      "public.lots.owners is computed as it is read",
		"lots: { rows: [ status: { column: state, is: open } ] }":                                                    "public.lots.state is computed as it is read",
		"lots: { rows: [ sql: \"state = 'open'\" ] }":                                                                "public.lots.state is computed as it is read",
		"{ lots: { rows: [ own: { column: id, is: me } ] }, shelves: { rows: [ visible: { lots: { owner: lot } " +
			"} ] } }": "public.lots.owner is computed as it is read",
		"lots: { rows: [ own: { column: id, is: me } ], columns: { id: allow, owner: allow } }": "public.lots.owner is computed from raw as it is read",
		"lots: { rows: [ own: { column: id, is: me } ], columns: { id: allow, raw: allow, secret: { mask: { " +
			"generalise: 1 } }, state: allow } }": "public.lots.state is computed from secret as it is read",
		"lots: { rows: [ own: { column: id, is: me } ], columns: { id: allow, raw: by_key, owner: allow } }":  "public.lots.owner is computed from raw as it is read",
		"lots: { rows: [ own: { column: id, is: me } ], columns: { id: allow, raw: by_key, owner: by_key } }": "",
		"lots: { rows: [ own: { column: id, is: me } ], consent: { subject: id, registry: {} }, columns: { id: " +
			"allow, raw: { category: NEWS }, owner: allow } }": "public.lots.owner is computed from raw as it is read",
		"lots: { rows: [ own: { column: id, is: me } ], consent: { subject: id, registry: {} }, columns: { id: " +
			"allow, raw: { category: NEWS }, owner: { category: ADS } } }": "public.lots.owner is computed from raw as it is read",
		"lots: { rows: [ own: { column: id, is: me } ], consent: { subject: id, registry: {} }, columns: { id: " +
			"allow, raw: { category: NEWS }, owner: { category: NEWS } } }": "",
		"files: { rows: [ own: { column: id, is: me } ] }":                                                  "public.files.owner is computed as it is read",
		"files: { rows: [ own: { column: id, is: me } ], columns: { id: allow, raw: allow, kept: allow } }": "",
	} {
		if !strings.HasPrefix(tables, "{") {
			tables = "{ " + tables + " }"
		}
		doc, err := policy.Parse("p.yaml", []byte("version: 1\nattributes: { me: { type: uuid, source: credential } }\ntables: "+tables+"\n"))
		if err == nil {
			_, err = policy.Compile(doc, snap)
		}
		if (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v", tables, err)
		}
	}
}
