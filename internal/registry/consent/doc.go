// Package consent is what consent is and how it changes: subjects, purposes, categories, streams, the bilateral
// partnership, guardians and decay, as pure functions of what was recorded, what is asked, the settings and the time.
//
// Guarantee: [Decide] returns the records of a change that the rules allow, or one of the errors of this package, and
// never touches what it was given. What it returns covers no more categories than the stream allows; only an agreement of
// both sides makes a partnership; only the subject's own interaction renews a consent; a withdrawal is never refused.
// Package consent/registry keeps the records. Nothing here does I/O, and no clock is read.
package consent
