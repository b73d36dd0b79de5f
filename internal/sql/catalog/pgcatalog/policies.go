package pgcatalog

import (
	"context"
	"strings"
)

// isForeignPolicySQL is the condition that a row policy l is not pgconsent's and applies to pgconsent's roles: it is
// for PUBLIC, or names one of these roles. pgconsent's roles are members of no other role, and pgconsent doctor reports
// it if one is.
const isForeignPolicySQL = `(l.polname NOT IN ('pgconsent_select', 'pgconsent_insert', 'pgconsent_update', 'pgconsent_delete',
	'pgconsent_none',
	'pgconsent_open', 'pgconsent_reader', 'pgconsent_current', 'pgconsent_waited_update',
	'pgconsent_waited_delete') AND (0 = ANY (l.polroles)
	OR EXISTS (SELECT FROM pg_policy AS o WHERE o.polname LIKE 'pgconsent\_%' AND o.polroles && l.polroles AND NOT 0 = ANY (o.polroles))
	OR EXISTS (SELECT FROM pg_class AS o JOIN pg_namespace AS s ON s.oid = o.relnamespace
		WHERE s.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_rows') AND o.relkind = 'v' AND o.relowner = ANY (l.polroles))))`

// readPolicies reads the row policies that are not pgconsent's, and apply to PUBLIC or to one of pgconsent's roles. It
// finds these roles by pgconsent's own policies, and by the owners of its views.
func (l *loader) readPolicies(ctx context.Context) error {
	var (
		p                    rowPolicy
		usingText, checkText *string
	)
	l.policies = nil
	return l.each(ctx, "SELECT l.polrelid, l.polname, l.polpermissive, l.polqual::text, l.polwithcheck::text FROM "+
		"pg_policy AS l WHERE "+isForeignPolicySQL+" ORDER BY l.oid",
		[]any{&p.relation, &p.name, &p.permissive, &usingText, &checkText},
		func() error {
			p.usingTree, p.trees = newTree(usingText), newTrees(usingText, checkText)
			l.policies = append(l.policies, p)
			usingText, checkText = nil, nil
			return nil
		})
}

// isHarmlessInPolicy tells whether a permissive row policy of the application may call a function without running code
// of other roles. PostgreSQL drops that policy before it plans, since pgconsent's own policy on the table is true. But
// earlier it evaluates calls of immutable functions, and inlines SQL functions: their bodies replace their calls
// (inline_function, clauses.c).
//
// So a function in another language than SQL is harmless if it is not immutable. An SQL function is harmless if
// PostgreSQL does not inline it, or if isHarmlessSQL holds, as for Supabase's auth.uid(). PostgreSQL also parses a body
// that it then does not inline because of a sub-select, and so reads the constants in the body.
func (k *objectFacts) isHarmlessInPolicy(f *function) bool {
	switch {
	case f.hasDefaults:
		return false
	case f.language != "sql":
		return !f.isImmutable
	case !f.isImmutable && (f.securityDefiner || f.hasSettings):
		return true
	case !f.isImmutable && !f.hasParsedBody && isUnambiguous(f.source) &&
		subSelectStart.MatchString(withoutStrings(f.source)) &&
		(!strings.Contains(f.source, "'") || len(k.typesRunningUserCode) == 0):
		return true
	default:
		return k.isHarmlessSQL(f)
	}
}
