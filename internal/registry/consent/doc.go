// Package consent has the rules of consent: subjects, purposes, categories, streams, the bilateral partnership,
// guardians and decay, as pure functions of the records, the command, the settings and the time.
//
// Guarantee: [Decide] returns the records of an allowed change, or one of the errors of this package, and never changes
// its arguments. The records cover no more categories than the stream allows. Only an agreement of both sides makes a
// partnership. Only the subject's own interaction renews a consent. A withdrawal is never refused. Package registry
// stores the records. This package does no I/O and reads no clock.
package consent
