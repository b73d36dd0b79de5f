package verdict

// ResetSettings is what runs in place of RESET ALL, which would take the session's seal away. The client gets the command
// tag of RESET.
const ResetSettings = `DO LANGUAGE plpgsql $pgconsent$DECLARE seal pg_catalog.text := ` +
	`pg_catalog.current_setting('pgconsent.seal', true); BEGIN RESET ALL; ` +
	`PERFORM pg_catalog.set_config('pgconsent.seal', seal, false); END$pgconsent$`
