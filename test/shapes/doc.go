// Package shapes generates statements systematically: every operator and construct at every place where an expression
// can be. Their operands are written in every form: with parentheses, casts, comments and unusual white space.
//
// pgconsent must either refuse such a statement, or answer it as a filtered copy does. The rewriter may replace names
// in the statement, and must leave all other bytes unchanged.
package shapes
