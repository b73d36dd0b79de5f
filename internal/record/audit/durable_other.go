//go:build !linux

package audit

// syncFile makes data and size durable, with all other metadata.
func syncFile(f interface{ Sync() error }) error { return f.Sync() }
