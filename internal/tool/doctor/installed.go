package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

func checkInstalled(ctx context.Context, x *examination) ([]Finding, error) {
	installation, err := migrations.ReadInstalled(ctx, x.conn)
	switch {
	case errors.Is(err, migrations.ErrNotInstalled):
		return []Finding{{"not_installed", SeverityUnsafe, "pgconsent is not installed in this database",
			"Run pgconsent migrate."}}, nil
	case err != nil:
		return nil, err
	}
	if err := installation.CheckPlan(x.Plan); err != nil {
		difference, _, _ := strings.Cut(err.Error(), ": ")
		return []Finding{{"other_policy", SeverityUnsafe, difference, "Run pgconsent migrate."}}, nil
	}
	return nil, nil
}

func checkDrift(ctx context.Context, x *examination) ([]Finding, error) {
	changes, err := migrations.Drift(ctx, x.conn)
	if errors.Is(err, migrations.ErrNotInstalled) {
		return []Finding{{"not_installed", SeverityUnsafe, "pgconsent is not installed in this database",
			"Run pgconsent migrate."}}, nil
	}
	if err != nil {
		return nil, err
	}
	// Other checks compare a table's row security, its owner and the rights of pgconsent's roles. So a table that differs
	// here has other grants to other roles than when migrate ran.
	var alterations, tables []string
	// whether each alteration is about a single table, and the OIDs of the tables that the alterations are about
	eachInOneTable, tableOIDs := true, []uint32{}
	var missingViews []string
	for _, c := range changes {
		isMissingView := func(relation *catalog.Relation) bool {
			return c == "relation "+predicate.SignedView(relation.Name).String()+" is gone"
		}
		if slices.ContainsFunc(x.Policy.Tables(), func(table *policy.Table) bool { return isMissingView(table.Relation) }) ||
			slices.ContainsFunc(x.Policy.Views(), func(v *policy.View) bool { return isMissingView(v.Relation) }) {
			missingViews = append(missingViews, c)
			continue
		}
		if strings.HasPrefix(c, "table ") {
			tables = append(tables, c)
			continue
		}
		alterations = append(alterations, c)
		if oid := x.tableOfDrift(c); oid != 0 {
			tableOIDs = append(tableOIDs, oid)
		} else {
			eachInOneTable = false
		}
	}
	var found []Finding
	if len(alterations) > 0 {
		finding := Finding{"drift", SeverityUnsafe, "what pgconsent migrate installed was altered: " + nameList(alterations),
			"Run pgconsent migrate, which puts back what is its own. What others have added stays: look at it first."}
		if eachInOneTable {
			x.findingTables[finding] = tableOIDs
		}
		found = append(found, finding)
	}
	if len(missingViews) > 0 {
		found = append(found, Finding{"drift_signed_view", SeverityWarning,
			"views that signed statements read are gone, which read under row security instead: " + nameList(missingViews),
			"Run pgconsent migrate, which makes them anew."})
	}
	if len(tables) > 0 {
		found = append(found, Finding{"drift_table", SeverityWarning,
			"grants or settings of protected tables changed since pgconsent migrate: " +
				nameList(tables), "If that was meant, nothing; pgconsent migrate records it."})
	}
	// No transaction can have changed anything after this snapshot, so changed_since must report no change.
	var hasNoChanges bool
	if err := x.conn.QueryRow(ctx,
		"SELECT pgconsent.changed_since('9000000000000000000:9000000000000000000:'::pg_catalog.pg_snapshot)").
		Scan(&hasNoChanges); err != nil {
		return found, err
	}
	if hasNoChanges && len(alterations) == 0 {
		found = append(found, Finding{"changes", SeverityWarning,
			"pgconsent.change was emptied, or a trigger that fills it is off: everything that agents hold open " +
				"ends with 40001", "Run pgconsent migrate, which puts it back."})
	}
	return found, nil
}

// makeKeyHint tells the administrator how to make a key. Proxies use the newest key from their next probe of the
// database.
const makeKeyHint = "As the role that ran pgconsent migrate: SELECT pgconsent.make_key()"

func checkKeys(ctx context.Context, x *examination) ([]Finding, error) {
	var found []Finding
	if _, err := seal.LoadKeyring(ctx, x.conn); err != nil {
		found = append(found, Finding{"bad_key", SeverityUnsafe, "the keys of seals cannot be used: " + err.Error(),
			makeKeyHint})
	}
	if !x.rolesExist() {
		return append(found, rolesMissing...), nil
	}
	moreFindings, err := x.findingsOfQuery(ctx, Finding{"key_readable", SeverityUnsafe,
		"the role " + x.AgentRole + " may read keys through %s, by itself or through PUBLIC",
		"REVOKE ALL ON %s FROM PUBLIC, " + quoteIdent(x.AgentRole)},
		`SELECT 'TABLE pgconsent.keys' WHERE pg_catalog.has_any_column_privilege($1, 'pgconsent.keys', 'SELECT, INSERT, UPDATE')
		 UNION ALL SELECT 'FUNCTION pgconsent.seal_key()'
		   WHERE pg_catalog.has_function_privilege($1, 'pgconsent.seal_key()', 'EXECUTE')`, x.AgentRole)
	return append(found, moreFindings...), err
}
