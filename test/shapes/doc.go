// Package shapes makes statements systematically: every operator and construct at every place where an expression may
// stand, with operands of every form, in parentheses, casts, comments and odd white space.
//
// A statement is answered as the filtered copy answers it, or refused; never altered: outside the names that the
// rewriter puts others in the place of, its text goes out byte for byte.
package shapes
