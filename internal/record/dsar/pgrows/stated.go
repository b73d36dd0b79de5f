package pgrows

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ReadStatedConsents reads what the application's own tables say about the subject's consents, by the rules of the
// policy.
func ReadStatedConsents(ctx context.Context, tx pgx.Tx, tables []dsar.ConsentTable,
	subject string) ([]dsar.StatedConsent, error) {
	var out []dsar.StatedConsent
	for _, t := range tables {
		condition, err := equalsSubjectSQL(ctx, tx, "r", t.Relation.Column(t.PersonColumn), subject)
		if err != nil {
			return nil, fmt.Errorf("read the subject's consents in %s: %w", t.Relation.Name, err)
		}
		if condition == "" {
			continue
		}
		column := func(name, alias string) string {
			if name == "" {
				return "NULL::pg_catalog." + alias
			}
			return "r." + catalog.QuoteIdent(name) + "::pg_catalog." + alias
		}
		rows, err := tx.Query(ctx, "SELECT COALESCE("+column(t.StatusColumn,
			"text")+", 'NULL'), COALESCE("+column(t.GranteeColumn, "text")+
			", ''), COALESCE("+column(t.ScopeColumn, "text")+", ''), "+column(t.ExpiryColumn,
			"timestamptz")+", "+t.ActiveCondition()+" FROM "+
			t.Relation.Name.SQL()+" AS r WHERE "+condition+" ORDER BY 5 DESC, 2, 3, 1", subject)
		if err != nil {
			return nil, fmt.Errorf("read the subject's consents in %s: %w", t.Relation.Name, err)
		}
		s := dsar.StatedConsent{Table: t}
		var until *time.Time
		if _, err := pgx.ForEachRow(rows, []any{&s.Status, &s.Grantee, &s.Scope, &until, &s.Active}, func() error {
			if s.Until = (time.Time{}); until != nil {
				s.Until = *until
			}
			out = append(out, s)
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read the subject's consents in %s: %w", t.Relation.Name, err)
		}
	}
	return out, nil
}
