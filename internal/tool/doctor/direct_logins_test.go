package doctor_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// A login role that could read protected tables without the proxy is reported, with the tables. Owners and roles
// without such rights are not.
func TestDirectLogins(t *testing.T) {
	db := migratedDatabase(t)
	defer pgtest.Lock(t, "roles")()
	conn := db.Connect(t, "postgres")
	s, err := compile(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, `CREATE ROLE beside_reader LOGIN; CREATE ROLE beside_owner LOGIN; CREATE ROLE beside_group NOLOGIN;
		CREATE ROLE beside_member LOGIN IN ROLE beside_group; CREATE ROLE beside_none LOGIN; CREATE ROLE beside_column LOGIN`)
	t.Cleanup(func() {
		for _, role := range []string{"beside_reader", "beside_owner", "beside_member", "beside_group", "beside_none", "beside_column"} {
			exec(t, conn, "DROP OWNED BY "+role+"; DROP ROLE "+role)
		}
	})
	exec(t, conn, `GRANT SELECT ON people, memories TO beside_reader; GRANT SELECT ON people TO beside_owner, beside_group;
		GRANT SELECT (id) ON people TO beside_column`)
	findingText := func(owners []string) string {
		s.Owners = owners
		out := ""
		for _, f := range examine(t, db, s) {
			if f.ID == "direct_login" && f.Severity == doctor.SeverityWarning && strings.HasPrefix(f.Problem, "beside_") {
				out += f.Problem + "\n"
			}
		}
		return out
	}
	const ends = " past the proxy, every row of them\n"
	want := "beside_column can log in on the server and read people" + ends + "beside_member can log in on the server and read people" + ends +
		"beside_reader can log in on the server and read memories, people" + ends
	if got := findingText([]string{"beside_owner"}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := findingText(nil); got != "" {
		t.Errorf("a running proxy says %s", got)
	}
}
