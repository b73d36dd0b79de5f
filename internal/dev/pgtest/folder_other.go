//go:build unix && !linux

package pgtest

func inMemory(uint64) string { return "" }
