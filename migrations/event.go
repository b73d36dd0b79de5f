package migrations

import (
	"context"
	"fmt"
)

// The event triggers that record DDL, and the one that withdraws agents' rights on a table whose row security is
// switched off. PostgreSQL fires event triggers in the order of their names, so these fire last. Being ENABLE ALWAYS,
// they also fire in sessions that apply replicated changes.
var eventTriggers = []struct{ name, event, function, why string }{
	{"zz_pgconsent_ddl", "ddl_command_end", "pgconsent.catalog_changed()", eventTriggersReason},
	{"zz_pgconsent_drop", "sql_drop", "pgconsent.catalog_changed()", eventTriggersReason},
	{"zz_pgconsent_withhold", "ddl_command_end WHEN TAG IN ('ALTER TABLE')", "pgconsent.withhold()",
		"Agents have no rights on a table of the policy while its row security is off. Only a superuser may make " +
			"event triggers; without it proxies notice at their next look."},
}

const eventTriggersReason = "DDL is noticed before an agent's next statement. Only a superuser may make event triggers; " +
	"without them proxies look every two seconds."

// TracksDDL is the SQL condition that the event triggers which record DDL exist and fire.
const TracksDDL = `(SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>=) 2 FROM pg_catalog.pg_event_trigger AS t
    WHERE t.evtfoid OPERATOR(pg_catalog.=) pg_catalog.to_regprocedure('pgconsent.catalog_changed()') AND t.evtenabled IN ('O', 'A'))`

// createEventTriggers makes the event triggers if the migrating role may do so. It skips an event trigger whose
// function belongs to another role, since that role could make a superuser run any code.
func (r *migrationRun) createEventTriggers(ctx context.Context) error {
	enabled := map[string]bool{}
	names, err := r.queryNames(ctx, `SELECT t.evtname FROM pg_catalog.pg_event_trigger AS t
		WHERE t.evtfoid IN ('pgconsent.catalog_changed()'::pg_catalog.regprocedure,
			'pgconsent.withhold()'::pg_catalog.regprocedure) AND t.evtenabled = 'A'`)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, name := range names {
		enabled[name] = true
	}
	for _, t := range eventTriggers {
		if enabled[t.name] {
			continue
		}
		var ours bool
		if err := r.tx.QueryRow(ctx, `SELECT pg_catalog.pg_get_userbyid(p.proowner) = current_user FROM pg_catalog.pg_proc AS p
			WHERE p.oid = $1::pg_catalog.text::pg_catalog.regprocedure`, t.function).Scan(&ours); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if !ours {
			continue
		}
		_, err := r.tryExec(ctx, Statement{
			fmt.Sprintf("DROP EVENT TRIGGER IF EXISTS %[1]s; CREATE EVENT TRIGGER %[1]s ON %[2]s EXECUTE FUNCTION "+
				"%[3]s; ALTER EVENT TRIGGER %[1]s ENABLE ALWAYS",
				t.name, t.event, t.function), t.why}, "42501")
		if err != nil {
			return err
		}
	}
	return nil
}
