// Not here: the login, which is in package proxy, and the list of operators.
package adminconsole
