package policy

func (d *blockDecoder) decodeStatus(at place, n *node) block {
	b := statusBlock{place: at}
	d.fields(n, "status", map[string]func(*node){
		"column": d.wordAt(&b.column, &b.columnAt, "column"),
		"is":     d.wordAt(&b.is, &b.isAt, "is"),
	})
	d.need(n, "status", "column", "is")
	return b
}
