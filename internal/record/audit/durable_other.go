//go:build !linux

package audit

// durable makes data and size durable, and what else the system writes at a time with them.
func durable(f interface{ Sync() error }) error { return f.Sync() }
