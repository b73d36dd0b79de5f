package rewrite

import "github.com/pgconsent/pgconsent/sqlstate"

// CheckSetting judges a setting, wherever it comes from.
func CheckSetting(name, value string, where string, searchPath []string) (normalised string, keep bool, err *sqlstate.Error) {
	return "", false, sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting, "not built yet")
}
