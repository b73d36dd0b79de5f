// Package oracle compares the answers that agents get with PostgreSQL's answers to the same statements on a copy of the
// database. From the copy the invisible rows were physically deleted.
//
// Each folder of testdata is a schema: its data, its policy, and visible.sql, which says in SQL of its own what the
// agent may see. Statements are in statements.sql and analytics.sql (by hand; analytics16.sql for servers from 16 on);
// and testdata/shapes.sql gives each table of bindings.txt its own. Under "-- must be answered" a refusal fails the
// test; under "-- may be refused" it is an answer. Each answer must be right everywhere.
//
// Random statements are made up from the catalog and the visible values of a schema (random_*.go): `make answers
// N=10000 SEED=1`. The tables have an index for each search and seem large, so that the rewriter uses every form of a
// search.
package oracle
