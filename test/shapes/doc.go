// Package shapes makes statements systematically: every operator and construct at every place where an expression may
// be. Operands have every form, with parentheses, casts, comments and odd white space.
//
// A statement is refused, or answered as the filtered copy answers it. The rewriter never alters it otherwise: apart
// from the names that it replaces, the text is sent byte for byte.
package shapes
