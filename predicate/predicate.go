// Package predicate is the predicate tree: the one description of who may see a row, from which both walls are made.
package predicate

// Node is a node of the tree.
type Node interface{ node() }
