//go:build unix && !linux

package pgcluster

import "syscall"

// killWithParent does nothing: only Linux ends a child with its parent.
func killWithParent(*syscall.SysProcAttr, syscall.Signal) {}
