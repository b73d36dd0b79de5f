package migrations

// WithBase is the runner of a program that has one numbered migration more, until the function that it returns is
// called.
func WithBase(name, up, down string) (restore func()) {
	before := bases
	bases = append(bases[:len(bases):len(bases)], base{len(bases) + 1, name, up, down})
	return func() { bases = before }
}
