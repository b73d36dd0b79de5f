// Package shapes makes statements systematically: every operator and construct at every place where an expression may
// be. Operands have every form, with parentheses, casts, comments and odd white space.
//
// A statement must be refused, or answered as a filtered copy answers it. The rewriter may replace names in it, and
// must send all other bytes unchanged.
package shapes
