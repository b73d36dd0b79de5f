package oracle

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Schema is a database schema with data, some of whose rows are hidden from the agent.
type Schema struct {
	Name       string
	SearchPath []string
	Attributes map[string]string // attributes of the agent
	settings   []string          // settings of the database behind the proxy, as "name = value"
}

// Schemas lists the schemas in testdata.
var Schemas = []Schema{
	{Name: "arcive", SearchPath: []string{"public"}, Attributes: map[string]string{"user": "11111111-1111-4111-8111-111111111111"}},
	{Name: "clinic", SearchPath: []string{"public", "Clinic"}, Attributes: map[string]string{"user": "aaaaaaaa-0000-4000-8000-000000000001"}},
	{Name: "works", SearchPath: []string{"public"}, Attributes: map[string]string{"member": "7", "org": "acme"}},
	{Name: "hospital", SearchPath: []string{"public"}, Attributes: map[string]string{"site": "NOR", "me": "3"}},
	{Name: "crm", SearchPath: []string{"public"}, Attributes: map[string]string{"me": "2", "team": "red"}},
	{Name: "ward", SearchPath: []string{"public", "hr"},
		Attributes: map[string]string{"departments": "{3,4}", "me": "7", "uid": "f647c755-9206-dbaf-f577-13c58d18b48b"}},
	{Name: "bazaar", SearchPath: []string{"public"}, Attributes: map[string]string{"shop": "2", "user": "ab5d228a-c2ee-550f-9756-ecbc14665748"}},
	{Name: "orbit", SearchPath: []string{"public", "analytics"}, Attributes: map[string]string{"user": "018f0001-00b9-7000-8000-000000000005"}},
	{Name: "recall", SearchPath: []string{"public"},
		Attributes: map[string]string{"user": "fa4c5984-5f8d-7540-5565-c1b5cc19b3cb",
			"orgs": "{e5043f73-a9b9-667b-8449-8870b5966f5b,b634f870-90f7-a2d9-391a-ecda393c69c9}", "owners": "{u4}"}},
	{Name: "docket", SearchPath: []string{"public"}, Attributes: map[string]string{"me": "6"}},
	{Name: "fleet", SearchPath: []string{"public", "telemetry"}, Attributes: map[string]string{"household": "h2", "no": "2"}},
	{Name: "kin", SearchPath: []string{"public"}, Attributes: map[string]string{"user": "8", "handle": "8"}},
	{Name: "estate", SearchPath: []string{"core", "desk", "public"},
		Attributes: map[string]string{"tenant": "t5", "who": "ann", "me": "96d72af7-666f-377d-9b93-9c9c813ad5f4", "teams": "{ann,cyd}"}},
	{Name: "scribe", SearchPath: []string{"public"}, Attributes: map[string]string{"user": "1efd853f-f24d-d22e-908e-615599a44d1d", "tenant": "t2"}},
	{Name: "payroll", SearchPath: []string{"hr", "pay", "public"},
		Attributes: map[string]string{"me": "6", "id": "6", "company": "CYN", "units": "{6,14}"}},
	{Name: "campus", SearchPath: []string{"sis", "lms", "public"},
		Attributes: map[string]string{"user": "ed92eff8-13a0-2a31-a267-7be0563a0739", "school": "MOOR", "grantee": "assistant"}},
	{Name: "carrier", SearchPath: []string{"public", "tel", "msg"},
		Attributes: map[string]string{"me": "7", "brand": "blue", "household": "1", "groups": "{care,night}"}},
	{Name: "alms", SearchPath: []string{"public", "app", "hib", "fin"}, Attributes: map[string]string{"me": "u07", "tenant": "t1", "teams": "{team-a}"}},
	{Name: "aloft", SearchPath: []string{"public", "ops", "crew", "loyal", "sales"},
		Attributes: map[string]string{"me": "7", "carrier": "QX", "programme": "SKY", "teams": "{ops,chief}"}},
	{Name: "grid", SearchPath: []string{"public", "billing", "telemetry"},
		Attributes: map[string]string{"me": "7", "coop": "nord", "teams": "{support,field}", "areas": "{kiel,emden}"}},
	{Name: "tryst", SearchPath: []string{"public", "chat", "pay"},
		Attributes: map[string]string{"user": "4d0a87b6-3b72-90cd-6440-4e2d8098dee1", "me": "5", "region": "eu", "circles": "{book,run}"}},
	{Name: "cortex", SearchPath: []string{"public", "mem", "Kb"},
		Attributes: map[string]string{"user": "13207e3d-5722-030f-6c97-d69b4904d39d", "tenant": "acme", "groups": "{assist,eng}"}},
	{Name: "lodge", SearchPath: []string{"public", "res"},
		Attributes: map[string]string{"me": "8ddf8780-39b7-0767-c4a5-bcf4f0c4f65e", "brand": "alpine", "teams": "{concierge}"}},
	{Name: "surety", SearchPath: []string{"public", "Claims", "ref"}, Attributes: map[string]string{"me": "140", "insurer": "ALFA", "teams": "{home}"}},
	{Name: "troupe", SearchPath: []string{"public", "sched", "log", "extensions"}, Attributes: map[string]string{"me": "4", "agency": "nord"}},
	{Name: "remedy", SearchPath: []string{"public", "fhir", "voice"},
		Attributes: map[string]string{"clinic": "alder", "me": "5", "teams": "{alder,night}", "purposes": "{care,research}"}},
	{Name: "press", SearchPath: []string{"public", "log"}, Attributes: map[string]string{"user": "4", "house": "north", "desks": "{city,sport}"}},
}

// SchemaNames returns the names of Schemas.
func SchemaNames() []string {
	var out []string
	for _, s := range Schemas {
		out = append(out, s.Name)
	}
	return out
}

func schemaNamed(t testing.TB, name string) Schema {
	t.Helper()
	for _, s := range Schemas {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no schema %q", name)
	return Schema{}
}

// Policy returns the text of the schema's policy.
func (s Schema) Policy(t testing.TB) string {
	t.Helper()
	if s.Name == "arcive" {
		return instance.ReadRepoFile(t, "examples/worlds/arcive/policy.yaml")
	}
	return s.readFile(t, "policy.yaml")
}

func (s Schema) readFile(t testing.TB, name string) string {
	t.Helper()
	return instance.ReadRepoFile(t, "test/oracle/testdata/"+s.Name+"/"+name)
}

// Database returns a database with the schema and all rows. Rows that are hidden from the agent contain the marker.
func (s Schema) Database(t testing.TB) *pgtest.DB {
	t.Helper()
	var script string
	if s.Name != "arcive" {
		script = s.readFile(t, "schema.sql") + s.readFile(t, "visible.sql") + s.readFile(t, "mark.sql")
	}
	return pgtest.Shared(t, "oracle "+s.Name+"\n"+script, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, ownerRole); err != nil {
			return err
		}
		if s.Name == "arcive" {
			w, err := world.Open(s.Name)
			if err != nil {
				return err
			}
			return w.Load(ctx, conn, func(string) {})
		}
		_, err := conn.PgConn().Exec(ctx, script).ReadAll()
		return err
	})
}

// ownerRole creates the role that owns the tables of the world arcive.
const ownerRole = `DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'arcive_owner') THEN CREATE ROLE arcive_owner LOGIN; END IF;
	EXECUTE format('ALTER DATABASE %I OWNER TO arcive_owner', current_database());
	ALTER SCHEMA public OWNER TO arcive_owner;
END $$`

// Filtered returns the filtered copy: a database with the schema, from which the hidden rows have been deleted.
func (s Schema) Filtered(t testing.TB) *pgtest.DB {
	t.Helper()
	return s.changedCopy(t, s.readFile(t, "visible.sql")+s.readFile(t, "filter.sql"))
}

// changedCopy returns a database with the schema in which the superuser has run sql.
func (s Schema) changedCopy(t testing.TB, sql string) *pgtest.DB {
	t.Helper()
	db := s.Database(t)
	if !db.BuildFurther(sql, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		return err
	}) {
		t.Fatal("the copy has been opened already")
	}
	return db
}

// BehindProxy returns a database with the schema that a proxy can serve.
func (s Schema) BehindProxy(t testing.TB) instance.Database {
	t.Helper()
	return s.behindProxy(t, s.Database(t))
}

// TwinBehindProxy is [Schema.BehindProxy] for a database in which the superuser has run sql.
func (s Schema) TwinBehindProxy(t testing.TB, sql string) instance.Database {
	t.Helper()
	return s.behindProxy(t, s.changedCopy(t, sql))
}

func (s Schema) behindProxy(t testing.TB, db *pgtest.DB) instance.Database {
	t.Helper()
	for _, setting := range s.settings {
		instance.Exec(t, db, "ALTER DATABASE "+catalog.QuoteIdent(db.Name)+" SET "+setting)
	}
	return instance.Database{Name: s.Name, DB: db, Policy: s.Policy(t), SearchPath: s.SearchPath}
}

// hasFile reports whether the schema's folder in testdata has this file.
func (s Schema) hasFile(t testing.TB, name string) bool {
	t.Helper()
	_, err := os.Stat(instance.RepoPath(t, "test/oracle/testdata/"+s.Name+"/"+name))
	return err == nil
}
