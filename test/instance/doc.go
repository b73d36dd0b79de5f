// Package instance starts databases on the test server, installs a policy in each, and starts a proxy for them in the
// test's process. Agents connect to the databases through the proxy, and the superuser connects directly.
//
// The package is for tests whose TestMain has started package pgtest.
package instance
