package attacks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// userCodeDDL is DDL after which a write or a read of the table runs code of the owner's.
var userCodeDDL = []string{
	"CREATE TRIGGER t AFTER UPDATE OR DELETE ON T FOR EACH ROW EXECUTE FUNCTION fire()",
	"CREATE TRIGGER t AFTER DELETE ON part_of_T FOR EACH ROW EXECUTE FUNCTION fire()",
	"ALTER TABLE T ADD CHECK (probe(x) IS NOT NULL) NOT VALID",
	"CREATE INDEX ON T ((x + probe(1)))",
	"ALTER DOMAIN dom_of_T ADD CHECK (probe(VALUE) > 0)",
	"CREATE CAST (enum_of_T AS json) WITH FUNCTION json_of_T(enum_of_T)",
}

const alteredTableSQL = `CREATE DOMAIN dom_of_T AS int; CREATE TYPE enum_of_T AS ENUM ('a');
CREATE FUNCTION json_of_T(enum_of_T) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN '"a"'; END $$;
CREATE TABLE T (id int PRIMARY KEY, owner text NOT NULL, x int, note text, ds dom_of_T[] DEFAULT '{1}', e enum_of_T DEFAULT 'a');
INSERT INTO T SELECT g, 'me', g, 'a' FROM generate_series(1, 20) g;
CREATE TABLE part_of_T (id int PRIMARY KEY, t int REFERENCES T ON DELETE CASCADE); INSERT INTO part_of_T SELECT g, g FROM generate_series(1, 20) g;`

// sendOrders are the steps that an agent sends before and after the DDL, which runs where the bar is.
var sendOrders = []string{
	"prepare|execute", "BEGIN,prepare|execute,COMMIT", "BEGIN,prepare,execute|execute,COMMIT",
	"BEGIN,prepare,bind|run,COMMIT", "BEGIN,SELECT 1|query,COMMIT", "BEGIN,PREPARE|EXECUTE,COMMIT",
	"BEGIN,PREPARE,EXECUTE|EXECUTE,COMMIT", "BEGIN,query|query,COMMIT", "PREPARE,EXECUTE|EXECUTE",
}

// A statement is prepared, bound or started while a table runs no user code, and then DDL adds some. The statement must
// run that code in a hardened plan only. Neither the earlier decision nor PostgreSQL's cached plan may be used.
func TestUserCodeAddedToPreparedStatements(t *testing.T) {
	tier.All(t)
	writes := []string{"DELETE FROM T WHERE id = N RETURNING to_json(e)", "UPDATE T SET x = x + 1 WHERE id = N AND ds <> '{5}'"}
	type table struct{ name, ddl, order, write string }
	var tables []table
	schema, policy := reachedSchema+probeFunctions, costlyRulePolicy
	for k, ddl := range userCodeDDL {
		for o, order := range sendOrders {
			if !tier.IsPicked(k+o, 6) {
				continue
			}
			name := fmt.Sprintf("t%d_%d", k, o)
			write := writes[o%2]
			if k == 1 || k == 5 {
				write = writes[0]
			} else if k != 0 {
				write = writes[1]
			}
			tables = append(tables, table{name, withTableName(ddl, name), order, withTableName(write, name)})
			schema += withTableName(alteredTableSQL, name)
			policy += "  " + name +
				": { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update, delete], accept: [references, values, conflicts] } }\n"
		}
	}
	db := pgtest.Database(t)
	instance.Exec(t, db, schema+"ANALYZE; UPDATE big SET a = 9999 WHERE a = 122")
	proxy := instance.Start(t, instance.Auto,
		instance.Database{Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}, map[string]string{"user": "me"})
	superConn := instance.ConnectSuperuser(t, db)
	instance.Ask(superConn, "SET lock_timeout = '100ms'") // the agent may hold locks
	altered := 0
	for _, table := range tables {
		c := proxy.Agent(t, "agent", "pair")
		stepsBefore, stepsAfter, _ := strings.Cut(table.order, "|")
		n, answers := 1, ""
		runSteps := func(all string) {
			for step := range strings.SplitSeq(all, ",") {
				n++
				answers += "\n   " + step + " " + runStep(t, c, step, table.write, n)
			}
		}
		runSteps(stepsBefore)
		if instance.Ask(superConn, table.ddl).Err == "" {
			altered++
		}
		runSteps(stepsAfter)
		instance.Close(c)
		if strings.Contains(answers, "22012") {
			t.Errorf("%s: %s %s%s", table.ddl, table.order, table.write, answers)
		}
	}
	if altered < len(tables)/3 {
		t.Errorf("%d of %d tables were altered", altered, len(tables))
	}
}

func runStep(t *testing.T, c *pgconn.PgConn, step, write string, n int) string {
	t.Helper()
	withID := func(value string) string { return strings.Replace(write, " N", " "+value, 1) }
	switch step {
	case "prepare":
		_, err := c.Prepare(t.Context(), "s", withID("$1"), nil)
		return fmt.Sprint(err)
	case "execute":
		r := c.ExecPrepared(t.Context(), "s", [][]byte{fmt.Append(nil, n)}, nil, nil).Read()
		return fmt.Sprint(r.CommandTag, r.Err)
	case "bind", "run":
		f := c.Frontend()
		if step == "bind" {
			f.Send(&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{fmt.Append(nil, n)}})
			f.Send(&pgproto3.Flush{})
		} else {
			f.Send(&pgproto3.Execute{})
			f.Send(&pgproto3.Sync{})
		}
		_ = c.Conn().SetReadDeadline(time.Now().Add(tier.Patience))
		if err := f.Flush(); err != nil {
			return err.Error()
		}
		out := ""
		for {
			m, err := f.Receive()
			if err != nil {
				return out + err.Error()
			}
			switch m := m.(type) {
			case *pgproto3.BindComplete:
				return out + "bound"
			case *pgproto3.ErrorResponse:
				out += m.Code + " "
				if step == "bind" {
					return out
				}
			case *pgproto3.CommandComplete:
				out += string(m.CommandTag) + " "
			case *pgproto3.ReadyForQuery:
				return out
			}
		}
	case "query":
		return instance.Ask(c, withID(fmt.Sprint(n))).SortedString()
	case "PREPARE":
		return instance.Ask(c, "PREPARE p (int) AS "+withID("$1")).SortedString()
	case "EXECUTE":
		return instance.Ask(c, fmt.Sprintf("EXECUTE p (%d)", n)).SortedString()
	}
	return instance.Ask(c, step).SortedString()
}
