package policy

// ReminderAttributes names the attributes of a session that say who the user is and in which channel they talk. A
// reminder that the user talks to an AI goes by them.
type ReminderAttributes struct{ User, Channel string }

// ReminderAttributes returns these attributes; nil: sessions name no channel.
func (p *Policy) ReminderAttributes() *ReminderAttributes { return p.reminder }

type reminderDecl struct {
	place
	ReminderAttributes
	userAt, channelAt place
}

func (d *documentDecoder) decodeReminder(n *node) {
	decl := reminderDecl{place: n.Place, userAt: n.Place, channelAt: n.Place}
	d.fields(n, "air", map[string]func(*node){
		"user":    d.wordAt(&decl.User, &decl.userAt, "user"),
		"channel": d.wordAt(&decl.Channel, &decl.channelAt, "channel"),
	})
	d.need(n, "air", "user", "channel")
	if first := d.doc.reminder; first != nil {
		d.fail(n.Place, "write it once", "air is there already, at %s:%d:%d", first.File, first.Line, first.Column)
		return
	}
	d.doc.reminder = &decl
}

// checkReminder checks that each of the two attributes has one value.
func (c *compiler) checkReminder() *ReminderAttributes {
	decl := c.doc.reminder
	if decl == nil {
		return nil
	}
	for _, named := range []struct {
		at   place
		name string
	}{{decl.userAt, decl.User}, {decl.channelAt, decl.Channel}} {
		if a := c.findAttribute(named.at, named.name); a != nil && a.List() {
			c.fail(named.at, "name an attribute that is one value",
				"the attribute %s is a list: a session has one user and one channel", a.Name)
		}
	}
	out := decl.ReminderAttributes
	return &out
}
