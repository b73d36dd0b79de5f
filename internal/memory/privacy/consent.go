package privacy

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// RecordedConsent is a consent record: the grantor agrees that the grantee sees memories that are granted to the
// grantee.
type RecordedConsent struct {
	ID         string `json:"id"`
	Store      string `json:"store"`
	Grantor    string `json:"grantor"` // the entity that recorded the consent, as its credential says
	OnBehalfOf string `json:"for,omitempty"`
	Grantee    string `json:"grantee"`
	Scope      string `json:"scope"`
	Revoked    bool   `json:"revoked"`
	Repeated   bool   `json:"repeated,omitempty"` // nothing changed, because the consent was recorded or revoked before
}

// ConsentRequest says which consent to record or to revoke.
type ConsentRequest struct {
	ID      string // the id of the record, if one is revoked by its id
	Grantor string // who consents: the caller (""), or a person whose guardian the caller is
	Grantee string // to whom the consent is given
	Scope   string // the memory or context that the consent is about; "": everything
	Store   string // the store for which the consent counts; "": consentStore finds it
	Reason  string
}

func (g ConsentRequest) check(revoke bool) error {
	if revoke && g.ID != "" {
		return checkID("the record's id", g.ID)
	}
	return firstError(checkID("the grantee", g.Grantee), checkOptionalID("the grantor", g.Grantor),
		checkOptionalID("the scope", g.Scope), checkOptionalID("the store", g.Store))
}

// RecordConsent records a consent of the caller, or of a person whose guardian the caller is.
func (d *Service) RecordConsent(ctx context.Context, caller identity.Caller, g ConsentRequest) (*RecordedConsent,
	error) {
	if err := g.check(false); err != nil {
		return nil, err
	}
	s, err := d.openConsentSession(ctx, caller, g.Reason)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	x := s.section.Consents
	store, err := s.consentStore(ctx, g)
	if err != nil {
		return nil, err
	}
	if g.Grantor != "" && g.Grantor != s.entity {
		if err := s.checkGuardian(ctx, g.Grantor, store); err != nil {
			return nil, err
		}
	}
	scope := g.scope(s)
	found, err := s.findConsents(ctx, store, g.Grantee, scope)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		found[0].Repeated, found[0].OnBehalfOf = true, g.wardOrEmpty(s)
		return &found[0], nil
	}
	columns, values := []string{x.Store, x.Grantee}, []any{store, g.Grantee}
	if x.Scope != "" {
		columns, values = append(columns, x.Scope), append(values, scope)
	}
	if table, ok := s.policy.Table(x.Relation.Name); ok && table.Write != nil && !hasStampedColumn(table.Write.Stamps,
		x.Grantor) {
		columns, values = append(columns, x.Grantor), append(values, s.entity)
	}
	out := &RecordedConsent{Store: store, Grantee: g.Grantee, Scope: scope, OnBehalfOf: g.wardOrEmpty(s)}
	err = s.conn.QueryRow(ctx, "INSERT INTO "+x.Relation.Name.SQL()+" ("+quotedList(columns)+") VALUES ("+
		parameterList(len(columns))+") RETURNING "+
		catalog.QuoteIdent(x.Key)+"::pg_catalog.text, "+catalog.QuoteIdent(x.Grantor)+"::pg_catalog.text", values...).
		Scan(&out.ID, &out.Grantor)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	return out, nil
}

// WithdrawConsent revokes consents that the caller has recorded, or that the policy lets it revoke for another person.
func (d *Service) WithdrawConsent(ctx context.Context, caller identity.Caller, g ConsentRequest) ([]RecordedConsent,
	error) {
	if err := g.check(true); err != nil {
		return nil, err
	}
	s, err := d.openConsentSession(ctx, caller, g.Reason)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	x := s.section.Consents
	if x.Revoked == "" {
		return nil, newError(NameNotFound, "The DBA names the column revoked: under consents in the policy.",
			"consents cannot be revoked here")
	}
	condition, values := catalog.QuoteIdent(x.Key)+" = $1", []any{g.ID}
	if g.ID == "" {
		grantor := g.Grantor
		if grantor == "" {
			grantor = s.entity
		}
		condition, values = catalog.QuoteIdent(x.Grantor)+" = $1 AND "+catalog.QuoteIdent(x.Grantee)+
			" = $2", []any{grantor, g.Grantee}
		if x.Scope != "" && g.Scope != "" {
			values = append(values, g.Scope)
			condition += " AND " + catalog.QuoteIdent(x.Scope) + " = $" + intText(len(values))
		}
		if g.Store != "" {
			values = append(values, g.Store)
			condition += " AND " + catalog.QuoteIdent(x.Store) + "::pg_catalog.text = $" + intText(len(values))
		}
	}
	rows, err := s.conn.Query(ctx, "UPDATE "+x.Relation.Name.SQL()+" SET "+catalog.QuoteIdent(x.Revoked)+
		" = CURRENT_TIMESTAMP WHERE "+condition+" AND "+catalog.QuoteIdent(x.Revoked)+" IS NULL RETURNING "+
		s.consentColumns(),
		values...)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, scanConsent)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	if len(out) == 0 { // The consents were revoked before, or there are none.
		withdrawn, err := s.conn.Query(ctx, "SELECT "+s.consentColumns()+" FROM "+x.Relation.Name.SQL()+" WHERE "+condition+
			" AND "+catalog.QuoteIdent(x.Revoked)+" IS NOT NULL ORDER BY 1 LIMIT 100", values...)
		if err != nil {
			return nil, translateDatabaseError(err)
		}
		if out, err = pgx.CollectRows(withdrawn, scanConsent); err != nil {
			return nil, translateDatabaseError(err)
		}
		for i := range out {
			out[i].Repeated = true
		}
	}
	if len(out) == 0 && g.ID == "" && g.Grantor != "" && g.Grantor != s.entity {
		return nil, newError(NameNotFound,
			"What you have recorded as a guardian stands in your own name: leave out whose consent it is. Ids "+
				"match whole: upper and lower case differ. What you may not see is not there.", "there is no such consent for you")
	}
	if len(out) == 0 {
		return nil, newNotFoundError("consent")
	}
	return out, nil
}

func (d *Service) openConsentSession(ctx context.Context, c identity.Caller, reason string) (*callerSession, error) {
	s, err := d.openSession(ctx, c, "", reason)
	if err != nil {
		return nil, err
	}
	if s.section.Consents == nil {
		s.close(ctx)
		return nil, newError(NameNotFound, "The DBA writes consents: under privacy in the policy.",
			"this database has no records of consent")
	}
	return s, nil
}

// scope returns the scope of the requested consent. If the request has none, it is the policy's word for everybody.
func (g ConsentRequest) scope(s *callerSession) string {
	if g.Scope == "" {
		return s.section.EverybodyWord
	}
	return g.Scope
}

func (g ConsentRequest) wardOrEmpty(s *callerSession) string {
	if g.Grantor == s.entity {
		return ""
	}
	return g.Grantor
}

// consentColumns returns SQL that selects the columns of a consent record as texts.
func (s *callerSession) consentColumns() string {
	x := s.section.Consents
	scope, revoked := catalog.QuoteLiteral(s.section.EverybodyWord)+"::pg_catalog.text", "false"
	if x.Scope != "" {
		scope = catalog.QuoteIdent(x.Scope) + "::pg_catalog.text"
	}
	if x.Revoked != "" {
		revoked = catalog.QuoteIdent(x.Revoked) + " IS NOT NULL"
	}
	var out []string
	for _, c := range []string{x.Key, x.Store, x.Grantor, x.Grantee} {
		out = append(out, catalog.QuoteIdent(c)+"::pg_catalog.text")
	}
	return strings.Join(append(out, scope, revoked), ", ")
}

func scanConsent(row pgx.CollectableRow) (RecordedConsent, error) {
	var c RecordedConsent
	err := row.Scan(&c.ID, &c.Store, &c.Grantor, &c.Grantee, &c.Scope, &c.Revoked)
	return c, err
}

// findConsents returns an active consent record of the caller with this store, grantee and scope, if there is one.
func (s *callerSession) findConsents(ctx context.Context, store, grantee, scope string) ([]RecordedConsent, error) {
	x := s.section.Consents
	conditions, values := []string{catalog.QuoteIdent(x.Store) + "::pg_catalog.text = $1",
		catalog.QuoteIdent(x.Grantee) + " = $2", catalog.QuoteIdent(x.Grantor) + " = $3"}, []any{store, grantee, s.entity}
	if x.Scope != "" {
		conditions, values = append(conditions, catalog.QuoteIdent(x.Scope)+" = $4"), append(values, scope)
	}
	if x.Revoked != "" {
		conditions = append(conditions, catalog.QuoteIdent(x.Revoked)+" IS NULL")
	}
	if x.Expires != "" {
		expires := catalog.QuoteIdent(x.Expires)
		conditions = append(conditions, "("+expires+" IS NULL OR "+expires+" > CURRENT_TIMESTAMP)")
	}
	rows, err := s.conn.Query(ctx, "SELECT "+s.consentColumns()+" FROM "+x.Relation.Name.SQL()+" WHERE "+
		strings.Join(conditions, " AND ")+" ORDER BY 1 LIMIT 1", values...)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, scanConsent)
	return out, translateDatabaseError(err)
}

// checkGuardian returns an error unless the caller is a guardian of the ward in this store. That counts only if the
// policy lets agents read the table of guardians.
func (s *callerSession) checkGuardian(ctx context.Context, ward, store string) error {
	forbiddenError := newError(NameForbidden, "The owner of the store records who speaks for whom.",
		"only the grantor or its guardian records consent, by its own credential")
	stores, err := s.storesOfWard(ctx, ward)
	if err != nil {
		return err
	}
	if !slices.Contains(stores, store) {
		return forbiddenError
	}
	return nil
}

// storesOfWard returns the memory stores in which the caller is recorded as a guardian of the ward.
func (s *callerSession) storesOfWard(ctx context.Context, ward string) ([]string, error) {
	g := s.section.Guardians
	if g == nil {
		return nil, nil
	}
	if _, isListed := s.policy.Table(g.Relation.Name); !isListed {
		return nil, nil
	}
	rows, err := s.conn.Query(ctx, "SELECT "+catalog.QuoteIdent(g.Store)+"::pg_catalog.text FROM "+
		g.Relation.Name.SQL()+" WHERE "+catalog.QuoteIdent(g.Subject)+" = $1 AND "+catalog.QuoteIdent(g.Guardian)+
		" = $2 ORDER BY 1 LIMIT 1000", ward, s.entity)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, translateDatabaseError(err)
}

// consentStore finds the store for a consent if the request does not name one. It tries the store of the context or
// memory in the scope, the stores where the caller is the grantor's guardian, and then the caller's own stores.
func (s *callerSession) consentStore(ctx context.Context, g ConsentRequest) (string, error) {
	if g.Store != "" {
		return g.Store, nil
	}
	var ward []string
	if g.Grantor != "" && g.Grantor != s.entity {
		var err error
		if ward, err = s.storesOfWard(ctx, g.Grantor); err != nil {
			return "", err
		}
		if len(ward) == 0 {
			return "", s.checkGuardian(ctx, g.Grantor, "")
		}
	}
	// onlyStore returns the store if exactly one of those found is possible. Otherwise the next way to find one is tried.
	onlyStore := func(found []string) (string, bool) {
		if ward != nil {
			found = slices.DeleteFunc(found, func(store string) bool { return !slices.Contains(ward, store) })
		}
		slices.Sort(found)
		found = slices.Compact(found)
		if len(found) == 1 {
			return found[0], true
		}
		return "", false
	}
	if g.Scope != "" && s.section.Contexts != nil {
		contexts, err := s.readContexts(ctx, g.Scope)
		if err != nil {
			return "", err
		}
		var found []string
		for _, x := range contexts {
			found = append(found, x.Store)
		}
		if store, ok := onlyStore(found); ok {
			return store, nil
		}
	}
	if store, ok := onlyStore(slices.Clone(ward)); ok {
		return store, nil
	}
	if g.Scope != "" && g.Scope != s.section.EverybodyWord {
		found, err := s.storesOfMemory(ctx, g.Scope)
		if err != nil {
			return "", err
		}
		if store, ok := onlyStore(found); ok {
			return store, nil
		}
	}
	for _, from := range []func(context.Context) ([]string, error){s.ownStores, s.storesOfRecords, s.storesOfWards} {
		found, err := from(ctx)
		if err != nil {
			return "", err
		}
		if store, ok := onlyStore(found); ok {
			return store, nil
		}
	}
	return "", newError(NameValidation, "Say it with --store.", "nothing says in which store this consent counts")
}

// storesOfMemory returns the stores that have a memory with this key, as far as the caller sees it.
func (s *callerSession) storesOfMemory(ctx context.Context, key string) ([]string, error) {
	prefix, _, _ := strings.Cut(key, ":")
	m := s.section.MemoriesOf(prefix)
	if m == nil {
		return nil, nil
	}
	rows, err := s.conn.Query(ctx, "SELECT "+catalog.QuoteIdent(m.StoreColumn)+"::pg_catalog.text FROM "+
		m.Relation.Name.SQL()+" WHERE "+catalog.QuoteIdent(m.Key)+" = $1", key)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, translateDatabaseError(err)
}

// storesOfRecords returns the stores for which the caller has recorded consents before.
func (s *callerSession) storesOfRecords(ctx context.Context) ([]string, error) {
	x := s.section.Consents
	rows, err := s.conn.Query(ctx, "SELECT DISTINCT "+catalog.QuoteIdent(x.Store)+"::pg_catalog.text FROM "+
		x.Relation.Name.SQL()+" WHERE "+catalog.QuoteIdent(x.Grantor)+" = $1 LIMIT 100", s.entity)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, translateDatabaseError(err)
}

// storesOfWards returns the memory stores of all persons whose guardian the caller is.
func (s *callerSession) storesOfWards(ctx context.Context) ([]string, error) {
	g := s.section.Guardians
	if g == nil {
		return nil, nil
	}
	if _, isListed := s.policy.Table(g.Relation.Name); !isListed {
		return nil, nil
	}
	rows, err := s.conn.Query(ctx, "SELECT DISTINCT "+catalog.QuoteIdent(g.Store)+"::pg_catalog.text FROM "+
		g.Relation.Name.SQL()+" WHERE "+catalog.QuoteIdent(g.Guardian)+" = $1 LIMIT 100", s.entity)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, translateDatabaseError(err)
}

// hasStampedColumn reports whether the policy sets a column itself, whatever value the caller sends.
func hasStampedColumn(stamps []policy.Stamp, column string) bool {
	return slices.ContainsFunc(stamps, func(s policy.Stamp) bool { return s.Column == column && s.Unless == nil })
}
