package verdict

import (
	"encoding/hex"
	"strings"
)

// ResetSettings is what runs in place of RESET ALL, which would take the session's seal away. The client gets the command
// tag of RESET.
const ResetSettings = `DO LANGUAGE plpgsql $pgconsent$DECLARE seal pg_catalog.text := ` +
	`pg_catalog.current_setting('pgconsent.seal', true); BEGIN RESET ALL; ` +
	`PERFORM pg_catalog.set_config('pgconsent.seal', seal, false); END$pgconsent$`

// ResetSettingsActing is ResetSettings for a session that began with a user to act for: acting is the value of
// [ActingSetting] that it began with.
func ResetSettingsActing(acting string) string {
	set := "PERFORM pg_catalog.set_config('" + ActingSetting + "', pg_catalog.convert_from(pg_catalog.decode('" +
		hex.EncodeToString([]byte(acting)) + "', 'hex'), 'UTF8'), false); "
	return strings.Replace(ResetSettings, "PERFORM", set+"PERFORM", 1)
}
