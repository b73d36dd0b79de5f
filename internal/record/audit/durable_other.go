//go:build !linux

package audit

// syncFile makes the data and all metadata of a file durable.
func syncFile(f interface{ Sync() error }) error { return f.Sync() }
