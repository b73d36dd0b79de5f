package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A RowDescription names the relation and the column that each column of a result comes from. Statements often read a
// view of pgconsent in the place of a table: the decider says which relation the client is told of. The rest of the
// message stays as it is.

const (
	descriptionHeader = 7 // length of a RowDescription before the first column: type, length, number of columns
	// length of a column after its name: relation, number, type, size and modifier of the type, format
	columnTail = 18

	maxColumn = 1024 // more bytes than any column of a RowDescription has: names have at most 63 bytes
)

var errDescription = errors.New("invalid RowDescription")

// column handles the next column of a RowDescription. It returns needsMore if the column has not arrived whole.
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
