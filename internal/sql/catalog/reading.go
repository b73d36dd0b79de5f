package catalog

// ReadingSettings are the statements that fix, for a transaction, how PostgreSQL reads and prints definitions, whatever
// settings a role or a database has. Names and operators without a schema then mean those of pg_catalog. Definitions
// print in the same way on every connection, so that the results of two connections can be compared. JIT compilation is
// off, since compiling these queries takes longer than running them.
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
