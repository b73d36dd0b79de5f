package observe

import (
	"slices"
	"strings"
	"testing"
)

func TestStatements(t *testing.T) {
	want := []string{"SELECT 1", "SELECT a,\n  'LOG:  no' FROM t", "UPDATE t SET a = $1", "SELECT \"x, y\"", "FETCH 1"}
	for name, log := range map[string]string{
		"stderr": "2026-11-22 00:00:00.000 UTC [17] LOG:  statement: SELECT 1\n" +
			"2026-11-22 00:00:00.000 UTC [17] app@db LOG:  duration: 0.123 ms  statement: SELECT a,\n\t  'LOG:  no' FROM t\n" +
			"2026-11-22 00:00:00.000 UTC [17] ERROR:  relation \"t\" does not exist at character 8\n" +
			"2026-11-22 00:00:00.000 UTC [17] STATEMENT:  SELECT LOG:  statement: SELECT 9\n" +
			"2026-11-22 00:00:00.000 UTC [17] LOG:  execute S_1/C_2: UPDATE t SET a = $1\n" +
			"2026-11-22 00:00:00.000 UTC [17] DETAIL:  parameters: $1 = 'secret'\n" +
			"2026-11-22 00:00:00.000 UTC [17] LOG:  checkpoint starting: time\n" +
			"2026-11-22 00:00:00.000 UTC [17] LOG:  duration: 9.1 ms  parse <unnamed>: SELECT 7\n" +
			"LOG:  statement: SELECT \"x, y\"\nLOG:  execute fetch from x: FETCH 1\n",
		"csv": "2026-11-22 00:00:00.000 UTC,\"app\",\"db\",17,\"[local]\",abc.1,1,\"SELECT\",2026-11-22 00:00:00 " +
			"UTC,3/2,0,LOG,00000,\"statement: SELECT 1\",,,,,,,,,\"psql\",\"client backend\",,0\n" +
			"2026-11-22 00:00:00.000 UTC,\"app\",\"db\",17,,,,,,,0,LOG,00000,\"duration: 0.1 ms  statement: SELECT a,\n  'LOG:  no' FROM t\",,,\n" +
			"2026-11-22 00:00:00.000 UTC,\"app\",\"db\",17,,,,,,,0,LOG,00000,\"execute <unnamed>: UPDATE t SET a = $1\",\"parameters: $1 = 'secret'\",,\n" +
			"2026-11-22 00:00:00.000 UTC,,,17,,,,,,,0,LOG,00000,\"checkpoint complete\",,,\n" +
			"2026-11-22 00:00:00.000 UTC,,,17,,,,,,,0,LOG,00000,\"statement: SELECT \"\"x, y\"\"\",,,\n2026-11-22 " +
			"00:00:00.000 UTC,,,17,,,,,,,0,LOG,00000,\"execute fetch from c/c: FETCH 1\",,,\n",
		"json": `{"timestamp":"x","user":"app","message":"statement: SELECT 1"}` + "\n" +
			`{"message":"duration: 0.1 ms  statement: SELECT a,\n  'LOG:  no' FROM t"}` + "\n" +
			`{"message":"execute a: UPDATE t SET a = $1","detail":"parameters: $1 = 'secret'"}` +
			"\n" + `{"error_severity":"LOG","message":"checkpoint"}` + "\n" +
			`{"message":"statement: SELECT \"x, y\""}` + "\n" + `{"message":"execute fetch from a: FETCH 1"}`,
	} {
		var got []string
		if err := EachStatement(strings.NewReader(log),
			func(sql string) error { got = append(got, sql); return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	if err := EachStatement(strings.NewReader(""), func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}
