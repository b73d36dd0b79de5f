package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// If many tables have rules that read other tables, the planner underestimates the rows of their joins. Such statements
// take row security, but a search still takes the signed path, since it needs its index.
func TestManyRulesTakeRowSecurity(t *testing.T) {
	r, _ := altered(t, AutoMode, "CREATE TYPE kept_mood AS ENUM ('sad', 'happy'); ALTER TABLE memories ADD found tsvector, ADD felt kept_mood")
	r = r.WithSizes(sizes())
	const two = " FROM memories m JOIN memory_participants q ON q.memory_id = m.id"
	for sql, want := range map[string]verdict.Path{
		"SELECT count(*)" + two: verdict.PathSigned,
		// the rule of people reads no other table
		"SELECT count(*)" + two + " JOIN people ON people.id = q.person_id":                         verdict.PathSigned,
		"SELECT count(*)" + two + " JOIN memories n ON n.id = q.memory_id":                          verdict.PathRowSecurity,
		"SELECT count(*)" + two + " WHERE EXISTS (SELECT FROM memories n WHERE n.id = q.memory_id)": verdict.PathRowSecurity,
		// the condition is not leak-proof, and is not a search
		"SELECT count(*)" + two + " JOIN memories n ON n.id = q.memory_id WHERE m.felt = 'sad'":                                verdict.PathRowSecurity,
		"SELECT count(*)" + two + " JOIN memories n ON n.id = q.memory_id WHERE m.found @@ plainto_tsquery('english', 'lake')": verdict.PathSigned,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
		} else if result.Path != want || want == verdict.PathRowSecurity && !result.UseHash {
			t.Errorf("%s: %s, hint %v (%s)", sql, result.Path, result.UseHash, result.RowSecurityReason)
		}
	}
}
