package catalog

// ReadingSettings are the statements that fix, in a transaction, how definitions are read and printed, whatever a role
// or a database has set: names that are not qualified mean pg_catalog's, operators included, and a definition prints
// alike on every connection, so that what two connections read can be compared. Nothing is compiled for it: that takes
// longer than reading.
var ReadingSettings = []string{
	"SET LOCAL search_path = pg_catalog, pg_temp",
	"SET LOCAL standard_conforming_strings = on",
	"SET LOCAL quote_all_identifiers = off",
	"SET LOCAL datestyle = 'ISO, YMD'",
	"SET LOCAL intervalstyle = 'postgres'",
	"SET LOCAL bytea_output = 'hex'",
	"SET LOCAL extra_float_digits = 1",
	"SET LOCAL timezone = 'UTC'",
	"SET LOCAL jit = off",
}
