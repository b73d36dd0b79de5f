package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A RowDescription names the relation and the column that each column of a result comes from. What statements read is
// often a view of ours in the place of another: the decider says what the client is told. The rest of the message stays
// as it is.

const (
	described  = 7  // bytes of a RowDescription before the first column: type, length, how many
	columnTail = 18 // of a column behind its name: relation, number, type, its size and modifier, format
)

var errDescription = errors.New("invalid RowDescription")

// column takes the next column of a RowDescription. more says that it is not here as a whole.
func (o *answers) column() (more bool, _ *sqlstate.Error) {
	have := (*o.buf)[o.r:min(o.w, o.r+o.rest)]
	end := bytes.IndexByte(have, 0)
	if end < 0 || len(have) < end+1+columnTail {
		if len(have) == o.rest || len(have) > maxColumn {
			return false, desync(errDescription)
		}
		return true, nil
	}
	field := have[end+1:]
	to := o.decider.Origin(verdict.Origin{Relation: binary.BigEndian.Uint32(field),
		Number: int16(binary.BigEndian.Uint16(field[4:]))})
	binary.BigEndian.PutUint32(field, to.Relation)
	binary.BigEndian.PutUint16(field[4:], uint16(to.Number))
	n := end + 1 + columnTail
	o.r, o.rest, o.columns = o.r+n, o.rest-n, o.columns-1
	if o.columns == 0 && o.rest > 0 {
		return false, desync(errDescription)
	}
	return false, nil
}

// maxColumn is longer than any column of a RowDescription: names have 63 bytes.
const maxColumn = 1024
