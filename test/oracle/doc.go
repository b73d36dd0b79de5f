// Package oracle compares the answers that agents get with PostgreSQL's answers to the same statements on a copy of the
// database. The hidden rows have been physically deleted from that copy.
//
// Each folder of testdata is a schema: its data, its policy, and visible.sql, which says in independent SQL what the
// agent may see. Handwritten statements are in statements.sql and analytics.sql (and analytics16.sql for servers from
// 16 on). From testdata/shapes.sql the package makes statements for each table of bindings.txt. Under "-- must be
// answered" a refusal fails the test; under "-- may be refused" it is accepted. Each answer must equal that of the copy
// in all modes.
//
// Random statements are made up from the catalog and the visible values of a schema (random_*.go): `make answers
// N=10000 SEED=1`. The tables have an index for each search and seem large, so that the rewriter uses every form of a
// search.
package oracle
