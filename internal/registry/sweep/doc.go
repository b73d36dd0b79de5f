// Package sweep does what is due in a database at a time. It records expired consents and lapsed requests, and warns of
// coming expiries. It deletes rows whose subject's consent has ended, anonymises decayed rows, and delivers messages to
// users.
//
// Guarantee: only rows are removed that agents no longer see. What is deleted follows from the policy's lifecycles and
// the registry at that moment. Writers of the registry wait meanwhile: a renewal comes either before, and saves the
// rows, or after, and is a new consent. One sweeper runs at a time. An interrupted sweep leaves consistent data, and
// the next sweep continues.
//
// Expiry and withdrawal do not depend on sweeps: they hide rows at once.
package sweep
