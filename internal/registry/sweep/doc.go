// Package sweep does the clock's work on a database: it records consents that have expired and questions that lapsed,
// warns of expiries ahead, deletes rows whose subject's consent has ended, makes anonymous what has decayed, and
// delivers what users are to be told.
//
// Guarantee: nothing goes that agents could see. What is deleted is what the policy's lifecycles and the registry say
// at that moment; the registry's writers wait meanwhile, so that a renewal comes before, and saves the rows, or after,
// and is a new consent. One sweeper runs at a time. One that was killed left nothing half done: the next goes on.
//
// Expiry and withdrawal do not wait for it: they hide rows by themselves.
package sweep
