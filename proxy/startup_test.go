package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Each setting in the startup message is checked as a startup setting, at whatever position it is. Some settings that a
// client may change later are not allowed there.
func TestStartupSettingsAreJudged(t *testing.T) {
	st := &startup{options: `-c a=1 -cb=2 --c-d=3 --Default_Transaction_Isolation=repeatable\ read`,
		settings: []setting{{"application_name", "4", "startup"}, {"e", "5", "startup"}}}
	var checkedSettings []setting
	forwarded, err := st.checkSettings(func(name, value, origin string) (string, bool, *sqlstate.Error) {
		checkedSettings = append(checkedSettings, setting{name, value, origin})
		return value, name != "e", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []setting{{"a", "1", "options"}, {"b", "2", "options"}, {"c_d", "3", "options"},
		{"Default_Transaction_Isolation", "repeatable read", "options"}, {"application_name", "4", "startup"}, {"e", "5", "startup"}}
	if diff := cmp.Diff(want, checkedSettings, cmp.AllowUnexported(setting{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2", "c_d": "3",
		"default_transaction_isolation": "repeatable read", "application_name": "4"}, forwarded); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
