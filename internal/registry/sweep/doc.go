// Package sweep does what is due in a database. It records expired consents and lapsed requests, and warns subjects
// before an expiry. It deletes rows whose subject's consent has ended, anonymises decayed rows, and delivers messages
// to users.
//
// Guarantee: it removes only rows that agents no longer see. What it deletes follows from the policy's lifecycles and
// the registry at that moment. Writers of the registry wait meanwhile: a renewal comes either before the deletion and
// saves the rows, or after it and is a new consent. One sweeper runs at a time. An interrupted sweep leaves consistent
// data, and the next sweep continues.
//
// Rows are hidden as soon as a consent expires or is withdrawn: that does not depend on sweeps.
package sweep
