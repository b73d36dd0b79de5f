package operations

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// People is a page of those whom the registry knows.
type People struct {
	List []registry.Person
	More bool
	Now  time.Time // by the database's clock
}

// mostPeople of a page.
const mostPeople = 500

// People are the subjects of the caller's database and where their consents stand: for admins.
func (d *Service) People(ctx context.Context, c identity.Caller, f registry.PeopleFilter) (People, error) {
	if err := RequireRole(c, identity.Admin); err != nil {
		return People{}, err
	}
	r, err := d.registry(c)
	if err != nil {
		return People{}, err
	}
	if f.Most < 1 || f.Most > mostPeople {
		f.Most = mostPeople
	}
	for _, text := range []string{f.Text, f.After, string(f.Stream)} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 512 {
			return People{}, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonBounds,
				"what is looked for is not text of at most 512 bytes")
		}
	}
	var out People
	out.List, out.More, out.Now, err = r.People(ctx, f)
	return out, err
}
