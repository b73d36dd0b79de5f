package registry

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Person is a subject with the present state of their consents.
type Person struct {
	Subject  string
	Consents []consent.Consent // the consents; the one with a stream comes first
}

// PeopleFilter says which subjects [Registry.People] returns, page by page.
type PeopleFilter struct {
	Text     string         // text that the id contains, in any case; "": all ids
	Stream   consent.Stream // the stream of an active consent; "": with any stream or none
	After    string         // the last subject of the previous page; "": the first page
	PageSize int            // the number of subjects on a page
}

// People returns a page of the subjects that the registry knows, sorted by id. hasMore reports whether more subjects
// follow the page. People reads the table of current consents, not the records.
func (r *Registry) People(ctx context.Context, f PeopleFilter) (out []Person, hasMore bool, now time.Time, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, _ uuid, clock time.Time) error {
		now = clock
		rows, err := tx.Query(ctx, `
			WITH page AS (
				SELECT DISTINCT c.subject FROM pgconsent.consent_current AS c
				WHERE c.subject > $1 AND ($2 = '' OR pg_catalog.strpos(pg_catalog.lower(c.subject), pg_catalog.lower($2)) > 0)
				  AND ($3 = '' OR c.stream = $3 AND c.state = 'given' AND (c.expires_at IS NULL OR c.expires_at > $5))
				ORDER BY c.subject LIMIT $4)
			SELECT c.subject, c.grantee, c.scope, c.state, COALESCE(c.stream, ''), c.categories, c.purposes,
			  c.asked, c.given_at, c.expires_at, c.due_at, c.decay_from
			FROM page JOIN pgconsent.consent_current AS c ON c.subject = page.subject
			ORDER BY c.subject, c.stream IS NULL, c.grantee, c.scope`, f.After, f.Text, string(f.Stream), f.PageSize+1, now)
		if err != nil {
			return databaseError("read who there is", err)
		}
		var c consent.Consent
		var state, stream string
		var givenAt, expires, dueAt, decay *time.Time
		_, err = pgx.ForEachRow(rows, []any{&c.Subject, &c.Grantee, &c.Scope, &state, &stream, &c.Categories,
			&c.Purposes, &c.RequestedCategories, &givenAt, &expires, &dueAt, &decay}, func() error {
			if len(out) == 0 || out[len(out)-1].Subject != c.Subject {
				if len(out) == f.PageSize {
					hasMore = true
					return nil
				}
				out = append(out, Person{Subject: c.Subject})
			}
			newest := c
			newest.State, newest.Stream = consent.State(state), consent.Stream(stream)
			newest.GivenAt, newest.ExpiresAt = timeOrZero(givenAt), timeOrZero(expires)
			newest.DueAt, newest.DecayFrom = timeOrZero(dueAt), timeOrZero(decay)
			lastPerson := &out[len(out)-1]
			lastPerson.Consents = append(lastPerson.Consents, newest)
			c.Categories, c.Purposes, c.RequestedCategories = nil, nil, nil
			return nil
		})
		if err != nil {
			return databaseError("read who there is", err)
		}
		return nil
	})
	return out, hasMore, now, err
}
