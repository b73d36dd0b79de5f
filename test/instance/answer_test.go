package instance_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// A COPY in the format binary is read tuple by tuple, so that what tables hold can be compared without their order.
func TestBinaryCopiesAreTuples(t *testing.T) {
	db := pgtest.Database(t)
	c := instance.ConnectSuperuser(t, db)
	one := instance.AskCopy(c, "COPY (VALUES (1, E'a\nb', NULL), (2, 'c', 3)) TO STDOUT (FORMAT binary)")
	two := instance.AskCopy(c, "COPY (VALUES (2, 'c', 3), (1, E'a\nb', NULL)) TO STDOUT (FORMAT binary)")
	if one.String() == two.String() || one.SortedString() != two.SortedString() || len(one.Results[0].Rows) != 4 {
		t.Errorf("%s\n%s", one, two)
	}
	if three := instance.AskCopy(c, "COPY (VALUES (2, 'c', 3), (1, 'a', NULL)) TO STDOUT (FORMAT binary)"); three.SortedString() == one.SortedString() ||
		!strings.Contains(three.String(), "COPY 2") {
		t.Errorf("%s", three)
	}
}
