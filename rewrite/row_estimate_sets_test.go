package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// On the signed path, a rule that reads several other tables uses hash sets if the whole table is read. If a condition
// restricts the rows, PostgreSQL chooses.
func TestSetsOnTheSignedPath(t *testing.T) {
	r := countedUnder(t, AutoMode, `CREATE TABLE halls (id int PRIMARY KEY, status text);
		CREATE TABLE shows (id int PRIMARY KEY, hall int, other int, day date); CREATE INDEX ON shows (day);
		CREATE TABLE seats (id int PRIMARY KEY, hall int)`, `version: 1
attributes: {}
tables:
  halls: { rows: [ status: { column: status, is: open } ] }
  shows: { rows: [ visible: { halls: { id: hall } }, visible: { halls: { id: other } } ] }
  seats: { rows: [ visible: { halls: { id: hall } } ] }
`)
	sizes := catalog.Sizes{}
	for name, rows := range map[string]float64{"halls": 1e4, "shows": 1e6, "seats": 1e6} {
		sizes[catalog.Name{Schema: "public", Name: name}] = catalog.Size{Rows: rows}
	}
	for sql, want := range map[string]bool{
		"SELECT count(*) FROM shows": true,
		"SELECT s.day, count(*) FROM shows s JOIN seats t ON t.hall = s.hall GROUP BY 1":          true,
		"SELECT count(*) FROM shows WHERE day > '2026-01-01'":                                     false,
		"SELECT count(*) FROM seats":                                                              false, // a single link, which PostgreSQL joins
		"SELECT count(*) FROM seats s WHERE EXISTS (SELECT 1 FROM shows o WHERE o.hall = s.hall)": false,
	} {
		result, refusal := r.WithSizes(sizes).Rewrite(sql, false)
		if refusal != nil || result.Path != verdict.PathSigned || result.UseHash != want {
			t.Errorf("%s: %v, path %s, sets %v", sql, refusal, result.Path, result.UseHash)
		}
	}
	sizes[catalog.Name{Schema: "public", Name: "halls"}] = catalog.Size{Rows: 1e8} // a hash set would not fit into memory
	if result, refusal := r.WithSizes(sizes).Rewrite("SELECT count(*) FROM shows", false); refusal != nil || result.UseHash {
		t.Errorf("sets that do not fit: %v, %v", refusal, result.UseHash)
	}
}
