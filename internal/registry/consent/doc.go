// Package consent has the rules of consent, such as which command is allowed in which state and which records it makes.
// Its functions depend only on the records, the command, the settings and the time.
//
// Guarantee: [Decide] returns the records of an allowed change, or one of the errors of this package, and never changes
// its arguments. The records cover no more categories than the stream allows. A partnership (stream PARTNERED) needs
// the agreement of both sides. Only the subject's own interaction renews a consent. A withdrawal is never refused.
// Package registry stores the records. This package does no I/O and reads no clock.
package consent
