package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Bounds of a policy's files.
const (
	maxFileBytes = 1 << 20
	maxFiles     = 500
)

// Load reads a policy from a file or a folder, with the files that these include. In a folder it reads every .yaml and
// .yml file, except files named *_test. The error is of type [Errors] if the policy is wrong.
func Load(path string) (*Document, error) {
	doc, _, err := LoadWatched(path)
	return doc, err
}

// LoadWatched does the same as [Load]. It also returns a [Watch] of all files and folders that it has read, even if
// there is an error.
func LoadWatched(path string) (*Document, *Watch, error) {
	l := newLoader()
	doc, err := l.load(path)
	return doc, l.watch, err
}

// load reads a policy from a file or a folder.
func (l *loader) load(path string) (*Document, error) {
	l.watch.noteState(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	l.rootFolder = filepath.Dir(path)
	files := []string{path}
	if info.IsDir() {
		l.rootFolder = path
		if files, err = l.listFolder(path); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			l.hasUnreadFile = true
			return nil, Errors{{File: path, Message: "the folder has no .yaml file"}}
		}
	}
	for _, file := range files {
		if err := l.readFile(file, nil); err != nil {
			l.hasUnreadFile = true
			return nil, err
		}
	}
	return l.document()
}

// loader reads the files of a policy, each once.
type loader struct {
	*documentDecoder
	rootFolder string // the folder of the policy, in which included files must be
	fileCount  int

	hasUnreadFile bool // a file could not be read, or is no YAML

	readPaths map[string]bool // the files that are read already, by their paths without symbolic links
	watch     *Watch
}

func newLoader() *loader {
	return &loader{
		documentDecoder: newDocumentDecoder(&Document{blockNames: map[place]string{}}),
		readPaths:       map[string]bool{}, watch: &Watch{seen: map[string]string{}},
	}
}

// document returns the document read from the files, or the errors in them.
func (l *loader) document() (*Document, error) {
	if len(l.errs) > 0 {
		return nil, l.errs
	}
	return l.doc, nil
}

// listFolder returns the policy files in a folder.
func (l *loader) listFolder(dir string) ([]string, error) {
	l.watch.noteState(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && isPolicy(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(files)
	return files, nil
}

// isPolicy tells by a file's name whether the file belongs to the policy.
func isPolicy(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasSuffix(strings.TrimSuffix(name, ext), "_test") &&
		!strings.HasPrefix(name, ".")
}

// readFile reads a file and the files that it includes. chain lists the files through which it is included.
func (l *loader) readFile(path string, chain []string) error {
	realPath, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	if l.readPaths[realPath] {
		return nil
	}
	l.readPaths[realPath] = true
	if l.fileCount++; l.fileCount > maxFiles {
		return Errors{{File: path, Message: fmt.Sprintf("the policy has more than %d files", maxFiles)}}
	}
	l.watch.noteState(path)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	l.decodeData(path, data, append(slices.Clone(chain), realPath))
	return nil
}

// decodeData decodes the text of a file, and then the files that it includes. A policy from memory has no chain and
// includes no files.
func (l *loader) decodeData(file string, data []byte, chain []string) {
	if len(data) > maxFileBytes {
		l.hasUnreadFile = true
		l.fail(place{File: file}, "divide it and include the parts", "the file is larger than %d bytes", maxFileBytes)
		return
	}
	root, errs := fileFormat.Parse(file, data)
	switch {
	case len(errs) > 0: // the meaning of the rest of the file may depend on the parts with errors
		l.hasUnreadFile = true
		l.errs = append(l.errs, errs...)
		return
	case root == nil || root.Kind == yamlfile.NullNode:
		l.fail(place{File: file, Line: 1, Column: 1}, `begin with "version: 1"`, "the file is empty")
		return
	}
	l.includes = nil
	l.documentDecoder.decodeRoot(root)
	for _, w := range l.includes {
		if chain == nil {
			l.fail(w.place, "", "only a file can include others")
			continue
		}
		l.readIncluded(w, filepath.Dir(file), chain)
	}
}

// decodeInclude stores the paths and patterns in the include list of a file.
func (d *documentDecoder) decodeInclude(n *node) { d.includes = d.decodeWords(n, "include") }

// readIncluded reads the files that an entry of include names.
func (l *loader) readIncluded(w wordDecl, dir string, chain []string) {
	fail := func(position place, suggestion, format string, args ...any) {
		l.hasUnreadFile = true
		l.fail(position, suggestion, format, args...)
	}
	if filepath.IsAbs(w.text) || !filepath.IsLocal(filepath.Clean(w.text)) && !l.isInFolder(filepath.Join(dir, w.text)) {
		fail(w.place, "name it relative to this file, beneath "+l.rootFolder, "%q leads out of the policy's folder", w.text)
		return
	}
	pattern := filepath.Join(dir, filepath.FromSlash(w.text))
	paths, err := filepath.Glob(pattern)
	if err != nil {
		fail(w.place, "", "%q is not a pattern: %s", w.text, err)
		return
	}
	for folder := filepath.Dir(pattern); ; folder = filepath.Dir(folder) {
		if !strings.ContainsAny(folder, "*?[") {
			l.watch.noteState(folder)
			break
		}
	}
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			fail(w.place, "", "%s cannot be read: %s", w.text, withoutPath(err))
		case info.IsDir():
			filesInFolder, err := l.listFolder(path)
			if err != nil {
				fail(w.place, "", "%s cannot be read: %s", w.text, withoutPath(err))
			}
			files = append(files, filesInFolder...)
		case isPolicy(filepath.Base(path)) || path == pattern:
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		fail(w.place, "it is looked for beside this file", "%q names no file of a policy", w.text)
	}
	for _, path := range files {
		realPath, err := filepath.EvalSymlinks(path)
		switch i := slices.Index(chain, realPath); {
		case err != nil:
			fail(w.place, "", "%s cannot be read: %s", w.text, withoutPath(err))
		case !l.isInFolder(path):
			fail(w.place, "copy it there", "%q leads out of the policy's folder by a symbolic link", w.text)
		case i >= 0:
			var circle []string
			for _, file := range append(slices.Clone(chain[i:]), realPath) {
				circle = append(circle, filepath.Base(file))
			}
			fail(w.place, "let one of them include the others", "include goes round in a circle: %s", strings.Join(circle, " → "))
		default:
			if err := l.readFile(path, chain); err != nil {
				fail(w.place, "", "%s cannot be read: %s", w.text, withoutPath(err))
			}
		}
	}
}

// isInFolder tells whether a path is inside the policy's folder. It resolves symbolic links in the part of the path
// that exists.
func (l *loader) isInFolder(path string) bool {
	root, err := filepath.EvalSymlinks(l.rootFolder)
	if err != nil {
		return false
	}
	if realPath, err := filepath.EvalSymlinks(path); err == nil {
		path = realPath
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	relative, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(relative)
}

// withoutPath returns the text of an error without the path, which the message contains anyway.
func withoutPath(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
