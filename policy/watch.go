package policy

import (
	"fmt"
	"os"
	"strings"
)

// Watch notes the state of a policy's files and folders when they are read, and tells whether they change later. It is
// for one goroutine.
type Watch struct {
	seen      map[string]string
	lastState string // the state that the last call of Changed saw
}

// noteState notes the state of a file or folder before it is read.
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

// HasChanged tells whether something has changed since it was read, and has been unchanged since the last call of
// Changed. So people who save several files have the time between two calls to finish.
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
