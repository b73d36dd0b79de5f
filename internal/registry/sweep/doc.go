// Package sweep does what becomes due in a database. It records expired consents and lapsed requests, and warns of
// coming expiries. It deletes rows whose subject's consent has ended, anonymises decayed rows, and delivers messages to
// users.
//
// Guarantee: only rows are removed that agents do not see any more. What is deleted follows from the policy's
// lifecycles and the registry at that moment. Writers of the registry wait meanwhile: a renewal comes before, and saves
// the rows, or after, and is a new consent. One sweeper runs at a time. An interrupted sweep leaves consistent data,
// and the next continues.
//
// Expiry and withdrawal do not depend on it: they hide rows at once.
package sweep
