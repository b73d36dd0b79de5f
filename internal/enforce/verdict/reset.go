package verdict

import (
	"encoding/hex"
	"strings"
)

// ResetSettings is the statement that the proxy sends in place of RESET ALL, which would remove the session's seal. The
// client gets the command tag of RESET.
const ResetSettings = `DO LANGUAGE plpgsql $pgconsent$DECLARE seal pg_catalog.text := ` +
	`pg_catalog.current_setting('pgconsent.seal', true); BEGIN RESET ALL; ` +
	`PERFORM pg_catalog.set_config('pgconsent.seal', seal, false); END$pgconsent$`

// ResetSettingsWithUser is ResetSettings for a session that began with a user to act for. user is the value that
// [RepresentedUserSetting] had at the beginning of the session.
func ResetSettingsWithUser(user string) string {
	set := "PERFORM pg_catalog.set_config('" + RepresentedUserSetting + "', pg_catalog.convert_from(pg_catalog.decode('" +
		hex.EncodeToString([]byte(user)) + "', 'hex'), 'UTF8'), false); "
	return strings.Replace(ResetSettings, "PERFORM", set+"PERFORM", 1)
}
