package policy

func (d *blockDecoder) decodeStatus(position place, n *node) block {
	b := statusBlock{place: position}
	d.decodeFields(n, "status", map[string]func(*node){
		"column": d.decodeWordAt(&b.column, &b.columnAt, "column"),
		"is":     d.decodeWordAt(&b.requiredWord, &b.requiredWordAt, "is"),
	})
	d.requireFields(n, "status", "column", "is")
	return b
}
