package pgcatalog

import (
	"context"
	"strings"
)

// ofCustomers tells of a row policy l that it is not ours and concerns our roles: PUBLIC has it, or one of them by
// name. They are members of no role; doctor refuses to serve where one is.
const ofCustomers = `(l.polname NOT IN ('pgconsent_select', 'pgconsent_insert', 'pgconsent_update', 'pgconsent_delete', 'pgconsent_none',
	'pgconsent_open', 'pgconsent_reader', 'pgconsent_current', 'pgconsent_waited_update',
	'pgconsent_waited_delete') AND (0 = ANY (l.polroles)
	OR EXISTS (SELECT FROM pg_policy AS o WHERE o.polname LIKE 'pgconsent\_%' AND o.polroles && l.polroles AND NOT 0 = ANY (o.polroles))
	OR EXISTS (SELECT FROM pg_class AS o JOIN pg_namespace AS s ON s.oid = o.relnamespace
		WHERE s.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_rows') AND o.relkind = 'v' AND o.relowner = ANY (l.polroles))))`

// readPolicies reads the row policies of customers that concern our roles.
func (l *loader) readPolicies(ctx context.Context) error {
	var (
		p             policy
		shows, writes *string
	)
	return l.each(ctx, "SELECT l.polrelid, l.polname, l.polpermissive, l.polqual::text, l.polwithcheck::text FROM "+
		"pg_policy AS l WHERE "+ofCustomers,
		[]any{&p.relation, &p.name, &p.permissive, &shows, &writes},
		func() error {
			p.shows, p.trees = newTree(shows), trees(shows, writes)
			l.policies = append(l.policies, p)
			shows, writes = nil, nil
			return nil
		})
}

// idle tells of a function, which a permissive policy calls, that nothing of anybody's runs by it: beside ours, which
// is true, PostgreSQL drops the policy before it plans, having worked out what is immutable, and put the bodies of
// functions in SQL in the place of their calls (inline_function, clauses.c). So idle are those that are not immutable,
// in another language, or that are not put there; and those in SQL that are plain, as Supabase's auth.uid() is. What is
// not put there for a sub-select was parsed before, which makes values of the constants in it.
func (k *known) idle(f *function) bool {
	switch {
	case f.defaults:
		return false
	case f.language != "sql":
		return !f.immutable
	case !f.immutable && (f.definer || f.configured):
		return true
	case !f.immutable && !f.parsed && isClear(f.source) && subSelect.MatchString(withoutStrings(f.source)) &&
		(!strings.Contains(f.source, "'") || len(k.running) == 0):
		return true
	default:
		return k.plainSQL(f)
	}
}
