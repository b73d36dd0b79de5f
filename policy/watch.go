package policy

import (
	"fmt"
	"os"
	"strings"
)

// Watch stores the state of a policy's files and folders when they are read, and tells later whether they have changed.
// It is not safe for concurrent use.
type Watch struct {
	seen      map[string]string
	lastState string // the state at the last call of HasChanged
}

// noteState stores the state of a file or folder before it is read.
func (w *Watch) noteState(path string) {
	if _, ok := w.seen[path]; !ok {
		w.seen[path] = fileState(path)
	}
}

// fileState returns a text that changes when the file, or the list of files in the folder, changes.
func fileState(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	if !info.IsDir() {
		return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano(), " ", inodeNumber(info))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "none"
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, "\x00")
}

// HasChanged tells whether a file has changed since it was read, and no file has changed since the last call of
// HasChanged. So somebody who saves several files can finish before the policy is read again.
func (w *Watch) HasChanged() bool {
	var b strings.Builder
	isSameMask := true
	for _, path := range sortedKeys(w.seen) {
		now := fileState(path)
		isSameMask = isSameMask && now == w.seen[path]
		fmt.Fprintf(&b, "%q %q\n", path, now)
	}
	isUnchanged := b.String() == w.lastState
	w.lastState = b.String()
	return !isSameMask && isUnchanged
}
