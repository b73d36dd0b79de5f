package adminconsole

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// column is a column of a table. Its type is a built-in type, which clients know without a query to the catalog.
type column struct {
	name string
	oid  uint32
}

func textColumn(name string) column    { return column{name, pgtype.TextOID} }
func integerColumn(name string) column { return column{name, pgtype.Int8OID} }
func floatColumn(name string) column   { return column{name, pgtype.Float8OID} }
func booleanColumn(name string) column { return column{name, pgtype.BoolOID} }
func timeColumn(name string) column    { return column{name, pgtype.TimestamptzOID} }

// row has one value for each column: a string, int64, float64, bool or time.Time, or nil for NULL.
type row []any

// nullIfZero returns nil for the zero value of its type, and v otherwise.
func nullIfZero[T comparable](v T) any {
	var zeroValue T
	if v == zeroValue {
		return nil
	}
	return v
}

// typeSizes has the sizes of the types of fixed length, for RowDescription; the other types have size -1.
var typeSizes = map[uint32]int16{pgtype.Int8OID: 8, pgtype.Float8OID: 8, pgtype.BoolOID: 1, pgtype.TimestamptzOID: 8}

// description makes the RowDescription of the columns. As in Bind, formats has no element, one for all columns, or one
// for each.
func description(columns []column, formats []int16) *pgproto3.RowDescription {
	out := &pgproto3.RowDescription{}
	for i, c := range columns {
		size, ok := typeSizes[c.oid]
		if !ok {
			size = -1
		}
		out.Fields = append(out.Fields, pgproto3.FieldDescription{Name: []byte(c.name), DataTypeOID: c.oid,
			DataTypeSize: size, TypeModifier: -1, Format: formatOf(formats, i)})
	}
	return out
}

func formatOf(formats []int16, i int) int16 {
	switch len(formats) {
	case 0:
		return pgtype.TextFormatCode
	case 1:
		return formats[0]
	default:
		return formats[i]
	}
}

// dataRow encodes a row. As in Bind, formats has no element, one for all columns, or one for each; types encodes binary
// values.
func dataRow(types *pgtype.Map, columns []column, r row, formats []int16) (*pgproto3.DataRow, error) {
	out := &pgproto3.DataRow{Values: make([][]byte, len(columns))}
	for i, v := range r {
		if v == nil {
			continue
		}
		if formatOf(formats, i) == pgtype.TextFormatCode {
			out.Values[i] = []byte(textOf(v))
			continue
		}
		b, err := types.Encode(columns[i].oid, pgtype.BinaryFormatCode, v, []byte{})
		if err != nil {
			return nil, err
		}
		out.Values[i] = b
	}
	return out, nil
}

// textOf formats a value as PostgreSQL does in the text format.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		if v {
			return "t"
		}
		return "f"
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05.999999-07")
	default:
		panic("adminconsole: a value of another type")
	}
}
