// Package suite is the part of the harness that each mutant runs against: bounded, and naming no construct.
package suite
