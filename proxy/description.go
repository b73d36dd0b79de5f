package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A RowDescription names the table and column that each column of a result comes from. Rewritten statements often read
// a view of pgconsent in place of a table. The proxy then reports the table, which the decider names; the rest of the
// message stays unchanged.

const (
	descriptionHeader = 7 // length of a RowDescription before the first column: type, length, number of columns
	// length of a column after its name: relation, number, type, size and modifier of the type, format
	columnTail = 18

	maxColumn = 1024 // more bytes than any column of a RowDescription has: names have at most 63 bytes
)

var errDescription = errors.New("invalid RowDescription")

// column rewrites the origin of the next column of a RowDescription. It returns needsMore if the column has not
// completely arrived.
func (a *answers) column() (needsMore bool, _ *sqlstate.Error) {
	available := (*a.buf)[a.unreadStart:min(a.unreadEnd, a.unreadStart+a.tail.remaining)]
	end := bytes.IndexByte(available, 0)
	if end < 0 || len(available) < end+1+columnTail {
		if len(available) == a.tail.remaining || len(available) > maxColumn {
			return false, desyncError(errDescription)
		}
		return true, nil
	}
	field := available[end+1:]
	origin := a.decider.ClientOrigin(verdict.Origin{Relation: binary.BigEndian.Uint32(field),
		Number: int16(binary.BigEndian.Uint16(field[4:]))})
	binary.BigEndian.PutUint32(field, origin.Relation)
	binary.BigEndian.PutUint16(field[4:], uint16(origin.Number))
	n := end + 1 + columnTail
	a.pass(n)
	a.tail.remaining -= n
	a.tail.columns--
	if a.tail.columns == 0 && a.tail.remaining > 0 {
		return false, desyncError(errDescription)
	}
	return false, nil
}
