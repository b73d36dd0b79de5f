package builtin

import (
	"context"
	_ "embed"
	"strconv"
	"strings"
)

//go:embed leakproof.txt
var leakproofList string

// leakproofOIDs are the OIDs of the functions that PostgreSQL itself marks LEAKPROOF, from the embedded list.
var leakproofOIDs = func() []uint32 {
	var out []uint32
	for line := range strings.Lines(leakproofList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		oid, _, _ := strings.Cut(line, " ")
		n, err := strconv.ParseUint(oid, 10, 32)
		if err != nil {
			panic("leakproof.txt: " + line)
		}
		out = append(out, uint32(n))
	}
	return out
}()

// leakproofNames are the names of the functions in leakproofOIDs.
var leakproofNames = func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(leakproofList) {
		_, signature, _ := strings.Cut(line, " ")
		name, _, _ := strings.Cut(signature, "(")
		out[strings.Trim(name, `"`)] = true
	}
	return out
}()

// MayBeLeakproof tells whether PostgreSQL itself marks a function with this name LEAKPROOF.
func MayBeLeakproof(name string) bool { return leakproofNames[name] }

// leakproofQuery finds those functions marked LEAKPROOF that agents' statements may call: functions of pg_catalog, of
// the given extensions, with the given OIDs, and of casts.
const leakproofQuery = `
SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc AS p
WHERE p.proleakproof AND CASE WHEN p.oid < 16384 THEN p.oid <> ALL ($1::pg_catalog.oid[])
  ELSE p.oid = ANY ($2::pg_catalog.oid[]) OR EXISTS (SELECT FROM pg_catalog.pg_cast AS c WHERE c.castfunc = p.oid)
    OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
      WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e'
        AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND e.extname = ANY ($3::pg_catalog.name[])) END
ORDER BY 1`

// ReadLeakproofFunctions returns the names of functions that a superuser has marked LEAKPROOF and that agents'
// statements may call. PostgreSQL may call such functions with values of hidden rows, before row security has filtered
// them. They are functions of pg_catalog that PostgreSQL does not mark itself, functions with one of the OIDs,
// functions of the extensions, and functions of casts. Every role may run the query.
func ReadLeakproofFunctions(ctx context.Context, q Querier, listed []uint32, extensions []string) ([]string, error) {
	return queryNames(ctx, q, "look for functions that were marked LEAKPROOF", leakproofQuery, leakproofOIDs, listed,
		extensions)
}
