//go:build !linux

package audit

// durable makes data and size durable, with all other metadata.
func durable(f interface{ Sync() error }) error { return f.Sync() }
