package operations

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// People is a page of the list of subjects that the registry knows.
type People struct {
	List []registry.Person
	More bool
	Now  time.Time // the time by the database's clock
}

// maxPeople is the size of the largest page.
const maxPeople = 500

// People returns subjects of the caller's database with the states of their consents. Only admins may call it.
func (d *Service) People(ctx context.Context, caller identity.Caller, f registry.PeopleFilter) (People, error) {
	if err := RequireRole(caller, identity.Admin); err != nil {
		return People{}, err
	}
	r, err := d.registry(caller)
	if err != nil {
		return People{}, err
	}
	if f.PageSize < 1 || f.PageSize > maxPeople {
		f.PageSize = maxPeople
	}
	for _, text := range []string{f.Text, f.After, string(f.Stream)} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 512 {
			return People{}, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonBounds,
				"the search is not a text of at most 512 bytes")
		}
	}
	var out People
	out.List, out.More, out.Now, err = r.People(ctx, f)
	return out, err
}
