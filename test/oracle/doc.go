// Package oracle compares the answers that agents get with PostgreSQL's answers on a filtered copy: a copy of the
// database from which the hidden rows have been deleted.
//
// Each folder of testdata has a schema, its data, its policy, and visible.sql, which says in SQL written by hand what
// the agent may see. Handwritten statements are in statements.sql and analytics.sql (and analytics16.sql for servers
// from 16 on). From testdata/shapes.sql the package makes statements for each table of bindings.txt. After the line "--
// must be answered", a refusal fails the test; after "-- may be refused", it is accepted. In all modes, each answer
// must be the same as from the copy.
//
// Random statements are made up from the catalog and the visible values of a schema (random_*.go): `make answers
// N=10000 SEED=1`. The tables have an index for each search and seem large, so that the rewriter uses each form in
// which it can write a search.
package oracle
