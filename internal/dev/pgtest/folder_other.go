//go:build unix && !linux

package pgtest

func inMemory() string { return "" }
